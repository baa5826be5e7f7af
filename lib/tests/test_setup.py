"""Set-up for real, from a bare Python, with three tiny packages in place of the pinned ones; no network."""
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from lib.machinery import environment
from lib.tests.test_doctor import bare_python

pytestmark = pytest.mark.slow
RUN = '''"""Stands in for the command `run`."""
import lib, sys


def main(arguments):
    print("ran on", sys.prefix, "with", lib.__path__[0])
    return 0
'''


def wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    """Put a wheel into `folder`."""
    info = f"{name}-{version}.dist-info"
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)


@pytest.fixture
def course(tmp_path) -> Path:
    """A checkout with three small pins, whose wheels lie beside it."""
    root, wheels = tmp_path / "khóa học", tmp_path / "wheels"
    wheels.mkdir()
    shutil.copytree(environment.ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (root / "lib/machinery/run.py").write_text(RUN, encoding="utf-8")
    shutil.copy(environment.ROOT / "pyproject.toml", root)
    flit = distribution("flit_core")
    inside = {str(path): path.locate().read_bytes() for path in flit.files
              if path.parts[0] == "flit_core" and path.suffix != ".pyc"}
    wheel(wheels, "flit_core", flit.version, inside)
    wheel(wheels, "torch", "2.0+cpu", {f"torch/{number}.py": b"x = 1\n" * 50 for number in range(300)})
    wheel(wheels, "tiny_package", "1.5", {f"tiny/{number}.py": b"x = 1\n" * 50 for number in range(300)})
    pin(root, "torch==2.0", "Tiny-Package==1.5", f"flit_core=={flit.version}")
    return root


def pin(root: Path, *pins: str) -> None:
    """Write an environment.yml with these pins."""
    lines = "".join(f"      - {pin}\n" for pin in pins)
    (root / "environment.yml").write_text(f"dependencies:\n  - pip:\n{lines}", encoding="utf-8")


def start(root: Path, **more: str) -> subprocess.Popen:
    """`python3 -m lib run` on a bare Python, with an empty home."""
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    variables = {"HOME": str(home), "USERPROFILE": str(home), "COURSE_CACHE": str(root.parent / "cache"),
                 "COURSE_MODEL": "smollm2-135m", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
                 "PIP_FIND_LINKS": (root.parent / "wheels").as_uri(), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.Popen([bare_python(), "-m", "lib", "run"], cwd=root, env={**kept, **variables, **more},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                            start_new_session=True)


def finish(process: subprocess.Popen) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a process that ends by itself."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def assert_ran(root: Path, answer: tuple[int, str, str]) -> None:
    """The command ran in the end, on the checkout's own environment."""
    code, out, err = answer
    assert (code, err) == (0, "") and out.splitlines()[-1] == f"ran on {root / '.venv'} with {root / 'lib'}"


def test_from_nothing_and_again_and_from_anywhere_and_moved(course):
    answer = finish(start(course))
    assert_ran(course, answer)
    assert "1/4 virtual environment" in answer[1] and "4/4" in answer[1] and "GB" in answer[1].splitlines()[0]
    begun = time.monotonic()
    again = finish(start(course))
    assert_ran(course, again)
    assert time.monotonic() - begun < 3 and len(again[1].splitlines()) == 1
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    elsewhere = subprocess.run([environment.python_of(course / ".venv"), "-c", "import lib; print(lib.__path__[0])"],
                               cwd=course.parent, env=plain, capture_output=True, text=True, encoding="utf-8")
    assert elsewhere.stdout.strip() == str(course / "lib")
    assert not list((course.parent / "home").rglob("kernel.json"))
    moved = course.rename(course.with_name("moved"))
    assert_ran(moved, finish(start(moved)))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_killed_and_interrupted_at_any_moment_it_goes_on(course):
    for seconds, number in [(0.15, signal.SIGKILL), (0.5, signal.SIGKILL), (1.5, signal.SIGINT), (3, signal.SIGKILL),
                            (4, signal.SIGTERM), (5, signal.SIGKILL)]:
        process = start(course)
        time.sleep(seconds)
        process.send_signal(number)
        code, out, err = finish(process)
        assert code in (-number, 128 + number, 0) and "Traceback" not in err, f"{seconds} s, {number!r}: {out}{err}"
        assert_whole_only_with_every_package(course)
    assert_ran(course, finish(start(course)))


def assert_whole_only_with_every_package(root: Path) -> None:
    """Whatever happened, the stamp that makes .venv count stands only where nothing is missing."""
    stamp = root / ".venv/course.json"
    if stamp.exists() and '"whole"' in stamp.read_text(encoding="utf-8"):
        packages = environment.packages_of(root / ".venv", f"{sys.version_info[0]}.{sys.version_info[1]}")
        assert {"torch", "tiny", "flit_core"} <= {path.name for path in packages.iterdir()}


def test_of_two_set_ups_the_second_waits_for_the_first(course):
    answers = [finish(process) for process in [start(course), start(course)]]
    for answer in answers:
        assert_ran(course, answer)
    assert sum("Another set-up is at work" in out for _, out, _ in answers) == 1
    assert sum("4/4" in out for _, out, _ in answers) == 1


@pytest.mark.parametrize("variables, words", [
    ({}, "no ready-made tiny-package==9.9"),
    ({"PIP_NO_INDEX": "", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}, "could not reach"),
])
def test_what_cannot_be_had_is_one_sentence_and_can_be_mended(variables, words, course):
    good = (course / "environment.yml").read_text(encoding="utf-8")
    pin(course, "torch==2.0", "tiny_package==9.9")
    code, out, err = finish(start(course, **variables))
    assert code == 1 and words in err and err.count("\n") == 1 and ".venv/setup.log" in err
    assert (course / ".venv/setup.log").exists()
    (course / "environment.yml").write_text(good, encoding="utf-8")
    assert_ran(course, finish(start(course)))


def test_a_pin_that_changes_is_followed(course):
    finish(start(course))
    wheel(course.parent / "wheels", "tiny_package", "1.6", {"tiny/a.py": b""})
    text = (course / "environment.yml").read_text(encoding="utf-8")
    (course / "environment.yml").write_text(text.replace("Tiny-Package==1.5", "Tiny-Package==1.6"), encoding="utf-8")
    answer = finish(start(course))
    assert_ran(course, answer)
    assert "1/4" not in answer[1] and "3/4" in answer[1]
