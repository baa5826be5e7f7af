"""Which Python the course runs on: the pins as they are read, and when .venv counts as whole."""
import json
import os
import sys
from pathlib import Path

import pytest

from lib.machinery import Stop, environment

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
HEAD = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python>=3.11\n  - pip\n"


def write(folder: Path, section: str, name: str = "environment.yml") -> Path:
    (folder / name).write_text(HEAD + section, encoding="utf-8")
    return folder / name


def package(packages: Path, name: str, version: str, **files: str) -> Path:
    """A package as pip leaves it, for those who look at metadata only."""
    folder = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
    return folder


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A checkout with two pins, whose .venv isn't made yet."""
    write(tmp_path, "  - pip:\n      - torch==2.0\n      - Tiny_Package==1.5\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    return tmp_path


def make_venv(checkout: Path, stage: str | None = "whole", **versions: str) -> Path:
    """Something that looks like the .venv of `checkout`; returns its folder of packages."""
    venv = checkout / ".venv"
    python = environment.python_of(venv)
    python.parent.mkdir(parents=True)
    python.symlink_to(getattr(sys, "_base_executable", sys.executable))
    (venv / "pyvenv.cfg").write_text("", encoding="utf-8")
    for name, version in ({"torch": "2.0+cpu", "tiny_package": "1.5"} | versions).items():
        package(environment.packages_of(venv, VERSION), name, version)
    if stage:
        environment.write_stamp(stage)
    return environment.packages_of(venv, VERSION)


def test_the_pins_of_the_course_can_be_read():
    pins = environment.pins()
    assert {"torch", "transformers", "jupyterlab", "nbval", "flit-core", "typing-extensions"} <= set(pins)
    assert all(name == environment.normalised(name) for name in pins)


@pytest.mark.parametrize("name, normal", [("Jinja2", "jinja2"), ("typing_extensions", "typing-extensions"),
                                          ("zope.interface", "zope-interface"), ("a-._b", "a-b")])
def test_names_are_compared_as_pep_503_says(name, normal):
    assert environment.normalised(name) == normal


@pytest.mark.parametrize("section", [
    "  - pip:\n      - Torch==2.0\n      - tiny_package==1.5\n",
    "  - pip:\n      # why\n\n      - torch==2.0   # a word\n      - tiny.package==1.5\n  - other>=1\n",
    "  - pip:\n    - torch==2.0\n    - tiny-package==1.5\nvariables:\n  - x: 1\n",
])
def test_pins_are_read_whatever_is_around_them(section, tmp_path):
    assert environment.pins(write(tmp_path, section)) == {"torch": "2.0", "tiny-package": "1.5"}


@pytest.mark.parametrize("line, fault", [
    ("- torch>=2.0", "is not of the form"), ("- torch", "is not of the form"), ("torch==2.0", "is not of the form"),
    ("- torch==2.*", "is not of the form"), ("- torch==2.0; sys_platform == 'linux'", "is not of the form"),
    ("- git+https://example.org/x", "is not of the form"), ("- -r more.txt", "is not of the form"),
    ("- Tiny-Package==1.5", "stands there twice"),
])
def test_a_line_that_is_no_pin_is_named(line, fault, tmp_path):
    file = write(tmp_path, f"  - pip:\n      - tiny_package==1.5\n      {line}\n")
    with pytest.raises(Stop, match=f"environment.yml, line 9: .*{fault}"):
        environment.pins(file)


@pytest.mark.parametrize("section", ["", "  - pip:\n", "  - pip:\n      # none\n"])
def test_no_pins_at_all(section, tmp_path):
    with pytest.raises(Stop, match="no pip section"):
        environment.pins(write(tmp_path, section))


def test_missing_compares_versions_without_their_local_part(checkout):
    packages = make_venv(checkout, tiny_package="1.4")
    assert environment.missing([str(packages)]) == {"tiny-package": "1.4"}
    assert environment.missing([str(checkout)]) == {"torch": None, "tiny-package": None}
    assert environment.installed("torch", [str(packages)]) == "2.0"


def test_a_package_that_lost_its_metadata_is_missing(checkout):
    packages = make_venv(checkout)
    (packages / "torch-2.0+cpu.dist-info" / "METADATA").unlink()
    assert environment.venv_fault() == "1 of its packages are missing or of another version"


@pytest.mark.parametrize("stage, fault", [
    ("whole", None), (None, None),  # without a stamp it is somebody's own environment: what it holds counts
    ("made", "did not come to an end"), ("making", "did not come to an end"),
])
def test_only_a_whole_venv_is_used(stage, fault, checkout):
    make_venv(checkout, stage)
    found = environment.venv_fault()
    assert found is None if fault is None else fault in found
    assert (environment.ready() is None) == (fault is not None)


def test_a_venv_that_moved_with_its_checkout_is_not_used(checkout):
    make_venv(checkout)
    (checkout / ".venv" / "course.json").write_text(json.dumps({"stage": "whole", "checkout": "/elsewhere"}),
                                                    encoding="utf-8")
    assert environment.venv_fault() == "it was made for another folder"


def test_a_venv_whose_base_python_is_gone_is_not_used(checkout):
    make_venv(checkout)
    python = environment.python_of(checkout / ".venv")
    python.unlink()
    python.symlink_to(checkout / "gone" / "python3.11")
    assert environment.venv_fault() == "its Python doesn't run any more"


def test_a_venv_whose_base_python_became_another_one_is_not_used(checkout, monkeypatch):
    make_venv(checkout)
    monkeypatch.setattr(environment, "version_of", lambda python: "3.13" if VERSION != "3.13" else "3.12")
    assert environment.venv_fault() == "2 of its packages are missing or of another version"


def test_no_venv_is_made_yet(checkout):
    assert environment.venv_fault() == "it isn't made yet"
    (checkout / ".venv").mkdir()
    assert environment.venv_fault() == "it isn't made yet" and environment.ready() is None


def test_a_python_that_holds_every_pin_is_used_as_it_is(checkout, monkeypatch):
    package(checkout / "site", "torch", "2.0")
    package(checkout / "site", "tiny_package", "1.5")
    monkeypatch.setattr(sys, "path", [str(checkout / "site"), *sys.path])
    make_venv(checkout)
    assert environment.ready() == Path(sys.executable)
    assert environment.is_running(environment.ready())


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"stage": 3}', "\x00\x00"])
def test_a_damaged_stamp_never_counts_as_whole_with_packages_missing(content, checkout):
    packages = make_venv(checkout, None)
    (checkout / ".venv" / "course.json").write_text(content, encoding="utf-8")
    (packages / "torch-2.0+cpu.dist-info" / "METADATA").unlink()
    assert environment.venv_fault() is not None


def test_a_stamp_is_written_in_one_step(checkout, monkeypatch):
    make_venv(checkout, "made")

    def killed(*arguments):
        raise KeyboardInterrupt
    monkeypatch.setattr(environment.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        environment.write_stamp("whole")
    assert environment.stamp()["stage"] == "made"


def test_the_environment_comes_first_for_its_children(checkout, monkeypatch):
    make_venv(checkout)
    for name, value in {"PYTHONPATH": "/opt-robots", "PYTHONHOME": "/x", "JUPYTER_PATH": "/mine",
                        "PATH": "/bin", "PIP_TARGET": "/y", "HTTPS_PROXY": "http://proxy"}.items():
        monkeypatch.setenv(name, value)
    found = environment.variables(environment.python_of(environment.VENV))
    venv, join = str(checkout / ".venv"), os.pathsep.join
    assert found["PYTHONPATH"] == str(checkout) and "PYTHONHOME" not in found and "PIP_TARGET" not in found
    assert found["PATH"] == join([str(environment.python_of(checkout / ".venv").parent), "/bin"])
    assert found["JUPYTER_PATH"] == join([os.path.join(venv, "share", "jupyter"), "/mine"])
    assert (found["JUPYTER_PREFER_ENV_PATH"], found["PYTHONUTF8"]) == ("1", "1")
    assert found["HTTPS_PROXY"] == "http://proxy"


def test_a_python_used_as_it_is_keeps_its_own_paths(checkout, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/my/packages")
    found = environment.variables(Path(sys.executable))
    assert found["PYTHONPATH"] == os.pathsep.join([str(checkout), "/my/packages"])
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    assert found["JUPYTER_PATH"].startswith(sys.prefix)


def test_a_personal_kernel_called_python3_does_not_win(tmp_path, monkeypatch):
    from jupyter_client.kernelspec import KernelSpecManager
    personal = tmp_path / "data" / "kernels" / "python3"
    personal.mkdir(parents=True)
    spec = {"argv": ["/another/python"], "display_name": "mine", "language": "python"}
    (personal / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "data"))
    monkeypatch.delenv("JUPYTER_PREFER_ENV_PATH", raising=False)
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == "/another/python"
    for name, value in environment.variables(Path(sys.executable)).items():
        monkeypatch.setenv(name, value)
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] != "/another/python"
