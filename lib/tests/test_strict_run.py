"""A strict run in hostile surroundings: settings and plugins of others, odd paths, dying and hanging kernels."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from lib.machinery import canaries, kernels, notebooks
from lib.machinery.reexecute import Verdict, judge, reexecute, strict_command
from lib.tests.canaries.make import TIMED, UNCHECKED, stdout
from lib.tests.toys import course

FINE = ("print(6 * 7)", [stdout("42\n")])
WRONG = ("print(6 * 7)", [stdout("43\n")])
SOON = 20  # seconds within which a death has to be told; the cell itself would take 300

DEATHS = {  # how a kernel dies in the middle of a cell of five minutes
    "it ends itself": "import os\nos._exit(3)",
    "in a long cell": "import os, threading, time\nthreading.Timer(1, os._exit, [3]).start()\ntime.sleep(300)",
    "killed": "import os, signal, threading, time\n"
              "threading.Timer(1, os.kill, [os.getpid(), signal.SIGKILL]).start()\ntime.sleep(300)",
    "a fault in memory": "import ctypes, time\nctypes.string_at(0)\ntime.sleep(300)",
}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is not known there")
def test_a_dead_kernel_is_told_within_seconds_and_what_follows_fails(tmp_path, death):
    path = course(tmp_path, FINE, (DEATHS[death], []), FINE)
    started = time.monotonic()
    verdict = reexecute([path], quiet=True, root=tmp_path)
    said = "\n".join(verdict.faults[path])
    assert time.monotonic() - started < SOON + baseline(tmp_path)
    assert "the kernel died in this cell" in said and "not run: the kernel died in cell 2" in said
    assert (verdict.passed, verdict.failed, verdict.compared) == (1, 2, 1)


def baseline(folder) -> float:
    """Seconds that a strict run takes here for a cell that lives."""
    path = course(folder / "baseline", FINE)
    started = time.monotonic()
    assert reexecute([path], quiet=True, root=folder).passed == 1
    return time.monotonic() - started


STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(300)\n    except KeyboardInterrupt:\n        pass"


def test_a_cell_that_does_not_let_itself_be_interrupted_is_ended_with_its_kernel(tmp_path):
    path = course(tmp_path, (STUBBORN, []), FINE)
    verdict = reexecute([path], quiet=True, root=tmp_path, cell_timeout=1)
    assert verdict.failed == 2 and "not run: cell 1 took too long" in "\n".join(verdict.faults[path])
    assert strict_kernels(tmp_path) == []


def strict_kernels(folder) -> list[int]:
    """The processes of strict runs and kernels that work in `folder`."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        try:
            command = " ".join(process.info["cmdline"] or [])
            if ("ipykernel" in command and folder.as_posix() in process.cwd()) or f"--rootdir {folder}" in command:
                found.append(process.info["pid"])
        except psutil.Error:
            continue
    return found


GATE = """import sys
from pathlib import Path
from lib.machinery.reexecute import reexecute
print("ready", flush=True)
reexecute([Path(sys.argv[1])], quiet=True, root=Path(sys.argv[2]))
"""


@pytest.mark.skipif(os.name == "nt", reason="its kernels are told by a handle")
def test_who_kills_the_gate_leaves_nothing_alive(tmp_path):
    path = course(tmp_path, ("import time\ntime.sleep(300)", []))
    gate = subprocess.Popen([sys.executable, "-c", GATE, str(path), str(tmp_path)],
                            env=notebooks.child_environment(), stdout=subprocess.DEVNULL)
    try:
        assert wait(lambda: len(strict_kernels(tmp_path)) == 2, 120), "a strict run and its kernel"
        gate.send_signal(signal.SIGKILL)
        gate.wait()
        assert wait(lambda: not strict_kernels(tmp_path), 60)
    finally:
        gate.kill()
        for pid in strict_kernels(tmp_path):
            os.kill(pid, signal.SIGKILL)


def wait(holds, seconds: float) -> bool:
    """Whether something comes to hold within these seconds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


HOOKS = {  # what a plugin does to leave a cell out, and what becomes of the run
    "deselects": "def pytest_collection_modifyitems(config, items):\n"
                 "    config.hook.pytest_deselected(items=items[1:])\n    del items[1:]",
    "skips": "import pytest\ndef pytest_runtest_setup(item):\n    pytest.skip('today')",
    "expects failures": "import pytest\ndef pytest_collection_modifyitems(items):\n"
                        "    [item.add_marker(pytest.mark.xfail) for item in items]",
    "moves": "def pytest_collection_modifyitems(items):\n    items.reverse()",
    "repeats": "def pytest_collection_modifyitems(items):\n    items += items[:1]",
    "forgets": "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_collection_modifyitems(items):\n"
               "    yield\n    items.clear()",
    "passes everything": "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_call(item):\n"
                         "    item.runtest = lambda: None",
}


def run_with(path, *arguments: str, **variables: str) -> tuple[int, dict]:
    """(exit code, report) of the strict command with some more arguments."""
    report = path.parent / "report.json"
    code = subprocess.run([*strict_command(path.parent.parent, 60), "--strict-report", str(report), *arguments,
                           f"notebooks/{path.name}"], cwd=path.parent.parent, capture_output=True,
                          env=notebooks.child_environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **variables)).returncode
    return code, json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}


@pytest.mark.parametrize("what", HOOKS)
def test_a_plugin_that_leaves_a_cell_out_turns_the_run_red(tmp_path, what):
    path = course(tmp_path, FINE, FINE)
    (tmp_path / "meddles.py").write_text(HOOKS[what], encoding="utf-8")
    search = os.pathsep.join([str(notebooks.ROOT), str(tmp_path)])
    code, told = run_with(path, "-p", "meddles", PYTHONPATH=search)
    verdict = judge([path], told, code)
    assert verdict.failed and verdict.faults, told


def foreign(root) -> None:
    """Lays settings, a conftest and an installed plugin about, each of which would leave cells out."""
    deselects = HOOKS["deselects"]
    for folder in (root, root.parent, root / "notebooks"):
        (folder / "conftest.py").write_text(deselects, encoding="utf-8")
        for name, head in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
            (folder / name).write_text(f"[{head}]\naddopts = -k nothing --nbval-lax\n", encoding="utf-8")
        (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-k no"\n', encoding="utf-8")
    installed = root / "site" / "meddles-1.dist-info"
    installed.mkdir(parents=True)
    (root / "site" / "meddles.py").write_text(deselects, encoding="utf-8")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: meddles\nVersion: 1\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text("[pytest11]\nrandomly = meddles\n", encoding="utf-8")


def test_settings_and_plugins_of_others_have_no_part(tmp_path, monkeypatch):
    root = tmp_path / "outer" / "course"
    path = course(root, FINE, WRONG, FINE)
    foreign(root)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --nbval-lax -n 2")
    monkeypatch.setenv("PYTEST_PLUGINS", "meddles")
    monkeypatch.setenv("PYTHONPATH", str(root / "site"))
    monkeypatch.chdir(tmp_path)
    verdict = reexecute([path], quiet=True, root=root)
    assert (verdict.passed, verdict.failed, verdict.compared) == (2, 1, 3)
    assert len(verdict.faults[path]) == 1 and "recorded: '43'" in verdict.faults[path][0]


def test_a_notebook_given_twice_is_run_once_and_one_that_is_missing_is_a_fault(tmp_path):
    path = course(tmp_path, FINE)
    assert reexecute([path, path], quiet=True, root=tmp_path).faults == {}
    code, told = run_with(path)
    other = course(tmp_path, FINE, name="02-other")
    assert code == 0 and judge([path, other], told, code).faults == {other: ["not one of its cells was run"]}


def test_a_cell_counts_as_compared_only_when_it_was(tmp_path):
    path = course(tmp_path, FINE, (TIMED, [stdout("1.5\n")], UNCHECKED), ("import os\n_ = os.getpid()", []))
    verdict = reexecute([path], quiet=True, root=tmp_path)
    assert verdict == Verdict(passed=3, compared=2)


ODD = "Bài [1]::2 một] ế"


@pytest.mark.skipif(os.name == "nt", reason="no colons in names there")
def test_a_checkout_at_an_odd_path_is_tested_like_any_other(tmp_path):
    root = tmp_path / ODD
    shutil.copytree(notebooks.ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__", "serving"))
    (root / "notebooks").mkdir()
    for number, name in (("01", "clean"), ("02", "false_claim")):
        shutil.copyfile(canaries.FOLDER / f"{name}.ipynb", root / "notebooks" / f"{number}-{name}.ipynb")
    code = ("import json, sys\nfrom lib.machinery import notebooks\nfrom lib.machinery.reexecute import reexecute\n"
            "found = reexecute(notebooks.select([]), quiet=True)\n"
            "print(json.dumps([found.passed, found.failed, [path.name for path in found.faults], "
            "str(found.faults)]))")
    environment = {name: value for name, value in notebooks.child_environment().items() if name != "PYTHONPATH"}
    told = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True,
                          encoding="utf-8", check=True).stdout
    passed, failed, red, words = json.loads(told)
    assert (passed, failed, red) == (5, 1, ["02-false_claim.ipynb"])
    assert "a recorded claim does not hold" in words and f"{ODD}/lib/show.py" in words, "its own lib, no other"


def test_only_a_path_that_the_search_path_cannot_hold_needs_more_words(tmp_path):
    assert kernels.import_path(tmp_path) == []
    assert str(tmp_path) in kernels.import_path(tmp_path / f"a{os.pathsep}b")[0]
