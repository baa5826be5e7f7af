"""What a report needs to say: commit, versions, settings; no secret, and no folder of this machine in full."""
from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest

from lib.machinery import doctor, environment, facts, machine, second_kernel

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
OURS = ("COURSE_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "ATEN_", "ONEDNN_", "DNNL_")


@pytest.fixture
def clean(monkeypatch):
    """No variable that the line on variables would name."""
    for name in list(os.environ):
        if name.startswith(OURS) or re.fullmatch(r"(?:https?|all|no)_proxy|pip_.*|hf_.*", name, re.I):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small git checkout in the course's place, with one commit."""
    root = tmp_path / "course"
    root.mkdir()
    (root / "a.py").write_text("1\n", encoding="utf-8")
    monkeypatch.setattr(environment, "ROOT", root)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return root


@needs_git
def test_the_commit_and_what_is_changed(checkout):
    number = facts.git("rev-parse", "HEAD")
    assert facts.commit() == f"commit: {number[:12]}, nothing changed"
    (checkout / "a.py").write_text("2\n", encoding="utf-8")
    (checkout / "private.txt").write_text("", encoding="utf-8")
    assert facts.commit() == f"commit: {number[:12]}, 1 changed: a.py, 1 not in git"


@needs_git
def test_of_many_changed_files_some_are_named(checkout):
    for place in range(12):
        (checkout / f"{place:02}.py").write_text("", encoding="utf-8")
    facts.git("add", ".")
    assert "12 changed: 00.py, 01.py," in facts.commit() and facts.commit().endswith("07.py, and 4 more")


@needs_git
def test_a_checkout_of_something_else_around_the_course_is_not_its_commit(checkout, monkeypatch):
    (checkout / "inside").mkdir()
    monkeypatch.setattr(environment, "ROOT", checkout / "inside")
    assert facts.commit().startswith("commit: not known")


@needs_git
def test_git_is_asked_about_the_course_whatever_a_hook_has_set(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert "nothing changed" in facts.commit()


@pytest.mark.parametrize("path", ["", "nowhere"])
def test_without_git_the_commit_is_not_known(path, monkeypatch):
    monkeypatch.setenv("PATH", path)
    assert facts.commit().startswith("commit: not known")


def test_the_versions_are_those_installed(monkeypatch):
    assert facts.versions() == "versions: " + ", ".join(f"{name} {version(name)}" for name in facts.LIBRARIES)
    assert f"torch {environment.pins()['torch']}" in facts.versions()
    monkeypatch.setattr(facts, "LIBRARIES", ("no-such-package",))
    assert facts.versions() == "versions: no-such-package (not installed)"


def test_how_torch_computes_is_asked_in_a_process_like_a_notebooks(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")  # which a notebook's kernel is not given
    asked = "import os; print(os.environ.get('ATEN_CPU_CAPABILITY', 'ITS_OWN'), os.environ['OMP_NUM_THREADS'])"
    monkeypatch.setattr(facts, "COMPUTING", asked)
    assert facts.computing() == "torch computes with ITS_OWN and 1 thread"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert facts.computing() == "torch computes with ITS_OWN and 4 threads"


def test_a_torch_that_cannot_be_asked_is_a_finding_with_its_last_word(monkeypatch):
    monkeypatch.setattr(facts, "COMPUTING", "raise SystemExit('no torch')")
    (found,) = doctor.guarded(doctor.computing)
    assert found.level == "fault" and "no torch" in found.what


def test_no_variable_that_matters(clean):
    assert facts.variables() == "variables: none that matter"


@pytest.mark.parametrize("name, value, says", [
    ("COURSE_MODEL", "smollm2-135m", "COURSE_MODEL=smollm2-135m"), ("OMP_NUM_THREADS", "2", "OMP_NUM_THREADS=2"),
    ("MKL_CBWR", "COMPATIBLE", "MKL_CBWR=COMPATIBLE"), ("ATEN_CPU_CAPABILITY", "avx2", "ATEN_CPU_CAPABILITY=avx2"),
    ("COURSE_CACHE", "C:\\models", "COURSE_CACHE=C:\\models"),
    ("COURSE_CACHE", "smb://anna:geheim@host/x", "COURSE_CACHE (value not shown)"),
    ("COURSE_API_KEY", "geheim", "COURSE_API_KEY (value not shown)"),
    ("HTTPS_PROXY", "http://anna:geheim@proxy:80", "HTTPS_PROXY (value not shown)"),
    ("no_proxy", "geheim.example", "no_proxy (value not shown)"),
    ("PIP_INDEX_URL", "https://anna:geheim@host/simple", "PIP_INDEX_URL (value not shown)"),
    ("HF_ENDPOINT", "https://geheim.example", "HF_ENDPOINT (value not shown)"),
])
def test_variables_are_told_without_secrets(name, value, says, clean):
    clean.setenv(name, value)
    assert facts.variables() == f"variables: {says}"
    assert "geheim" not in facts.variables()


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PATH", "HOME"])
def test_variables_of_others_are_not_named(name, clean):
    clean.setenv(name, "geheim")
    assert facts.variables() == "variables: none that matter"


@pytest.mark.parametrize("text, shown", [
    ("{home}/.cache/x is full", "~/.cache/x is full"), ("it is {home}.", "it is ~."), ("({home})", "(~)"),
    ("{home}-old/x", "{home}-old/x"), ("/mnt{home}/x", "/mnt{home}/x"), ("{root}/.venv/bin", "./.venv/bin"),
    ("{home}.d/x", "{home}.d/x"), ("nothing", "nothing"),
])
def test_folders_are_shown_without_their_names(text, shown, tmp_path, monkeypatch):
    home, root = tmp_path / "anna", tmp_path / "anna" / "my course"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setattr(environment, "ROOT", root)
    names = {"home": str(home), "root": str(root)}
    assert facts.discreet(text.format(**names)) == shown.format(**names)


def test_a_home_folder_that_is_the_root_is_left_alone(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    assert facts.discreet("/usr/bin and /") == "/usr/bin and /"


def test_the_whole_report_names_no_folder_of_the_home_and_no_course_folder(tmp_path, monkeypatch, capsys):
    home = tmp_path / "anna-lindqvist"
    (home / ".cache").mkdir(parents=True)
    for name, value in {"HOME": home, "USERPROFILE": home, "COURSE_CACHE": home / ".cache",
                        "HTTPS_PROXY": "http://anna:geheim@proxy:80"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(second_kernel, "measure", lambda name: pytest.fail("no model is here"))
    monkeypatch.setattr(machine, "memory", lambda: machine.Memory(8_000_000_000, 8_000_000_000))
    doctor.main(argparse.Namespace(deep=False))
    out = capsys.readouterr().out
    assert "commit: " in out and "versions: torch " in out and "torch computes with " in out
    assert "COURSE_CACHE=" in out and "~/.cache" in out
    for private in ("anna", "geheim", str(environment.ROOT), str(tmp_path)):
        assert private not in out
    user = getpass.getuser()
    assert user == "root" or not re.search(rf"[/\\]{re.escape(user)}[/\\]", out.replace(sys.prefix, ""))
