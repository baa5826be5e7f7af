"""The door: which Python may come in, and the one sentence for those that may not."""
import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lib import __main__ as door
from lib.machinery import environment

ROOT = environment.ROOT
BEFORE_THE_CHECK = ["lib/__init__.py", "lib/__main__.py", "lib/machinery/__init__.py"]


@pytest.mark.parametrize("version, wide, let_in", [
    ((2, 7, 18), True, False), ((3, 6, 15), True, False), ((3, 10, 13), True, False), ((3, 11, 0), True, True),
    ((3, 12, 4), True, True), ((3, 13, 9), True, True), ((3, 14, 0), True, False), ((4, 0, 0), True, False),
    ((3, 12, 4), False, False),
])
def test_only_the_right_pythons_come_in(version, wide, let_in, monkeypatch):
    monkeypatch.setattr(door, "suitable", lambda: None)
    assert (door.refusal(version, wide) is None) == let_in


@pytest.mark.parametrize("version, wide, words", [
    ((3, 10, 13), True, "this is Python 3.10.13;"), ((3, 14, 0), True, "this is Python 3.14.0;"),
    ((3, 12, 4), False, "this is Python 3.12.4 (32-bit);"),
])
def test_the_refusal_is_one_line_that_names_what_runs_here(version, wide, words, monkeypatch):
    monkeypatch.setattr(door, "suitable", lambda: "python3.12")
    sentence = door.refusal(version, wide, ["run", "01"])
    assert words in sentence and "python3.12 -m lib run 01." in sentence and "\n" not in sentence
    monkeypatch.setattr(door, "suitable", lambda: None)
    assert "install one" in door.refusal(version, wide, ["run"])


@pytest.mark.parametrize("system, runs, found", [
    ("posix", {"python3.13": "3.13"}, "python3.13"), ("posix", {"python3": "3.11"}, "python3"),
    ("posix", {"python3.12": "False"}, None),  # there, but 32-bit
    ("posix", {"python3": "3.10"}, None), ("posix", {}, None),
    ("nt", {"py -3.12": "3.12", "python": "3.11"}, "py -3.12"), ("nt", {"python3.12": "3.12"}, None),
])
def test_a_suitable_python_is_found_by_running_it(system, runs, found, monkeypatch):
    monkeypatch.setattr(door.os, "name", system)
    monkeypatch.setattr(door, "output_of", lambda command: runs.get(" ".join(command[:-2]), ""))
    assert door.suitable() == found


def test_output_of_a_command_that_fails_or_is_not_there_is_empty(tmp_path):
    assert door.output_of([str(tmp_path / "no-such-python")]) == ""
    assert door.output_of([sys.executable, "-c", "print('no'); raise SystemExit(3)"]) == ""
    assert door.output_of([sys.executable, "-c", door.PROBE]) == "%d.%d" % sys.version_info[:2]  # noqa: UP031


@pytest.mark.parametrize("file", BEFORE_THE_CHECK)
def test_old_pythons_can_read_what_comes_before_the_check(file):
    tree = ast.parse((ROOT / file).read_text(encoding="ascii"), feature_version=(3, 6))
    modern = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.AsyncFunctionDef)
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, modern)]


@pytest.mark.parametrize("name", ["python2.7", "python3.6", "python3.8", "python3.9", "python3.10", "python3.14"])
def test_a_real_unsuitable_python_meets_the_sentence(name):
    program = shutil.which(name)
    if not program or door.output_of([program, "-c", "print(1)"]) != "1":
        pytest.skip(f"no {name} on this machine")
    answer = subprocess.run([program, "-m", "lib", "run"], cwd=ROOT, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("The course needs a 64-bit Python 3.11, 3.12 or 3.13 and this is Python")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["commands", "doctor", "clean"])
def test_without_any_package_the_way_to_set_up_can_be_imported(module, tmp_path):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import lib.machinery.{module}"
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")  # -S: the folder of packages is not looked into


def test_the_floor_and_ceiling_are_the_same_everywhere():
    versions = [f"{door.FLOOR[0]}.{minor}" for minor in range(door.FLOOR[1], door.CEILING[1] + 1)]
    assert list(environment.VERSIONS) == versions
    bounds = f">={versions[0]},<{door.CEILING[0]}.{door.CEILING[1] + 1}"
    for file in ("environment.yml", "pyproject.toml"):
        assert bounds in Path(ROOT, file).read_text(encoding="utf-8")
