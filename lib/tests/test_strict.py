"""The strict plugin: what it refuses, what it says, and how soon; the canaries show the rest."""
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.machinery import canaries, ledger, notebooks
from lib.machinery import strict as plugin
from lib.machinery.reexecute import Verdict, judge, reexecute, strict_command, unproven
from lib.tests.canaries.make import FOLDER, notebook, result, stdout
from lib.tests.test_ledger import generation
from lib.tests.toys import GENERATES, WRITES, change, course, tree

FINE = ("print(6 * 7)", [stdout("42\n")])
KEEPS_PARENT = "kernel = get_ipython().kernel\nearlier = kernel.get_parent()"
SENDS_LATE = ("said = {'name': 'stdout', 'text': 'late'}\n"
              "_ = kernel.session.send(kernel.iopub_socket, 'stream', said, parent=earlier)\nprint(42)")
SLEEPS = ("import time\ntime.sleep(1.5)", [])


def generating(root: Path, kept: list[dict]) -> Path:
    """A toy that generates the tokens 3 and 4, the second nearly tied, beside a recording of `kept`."""
    ledger.write(root, "01", kept)
    return course(root, (GENERATES, [stdout("[3, 4]\n")]), FINE)


def changed(root: Path) -> Path:
    """A toy with one changed letter in its recording."""
    path = course(root, ("print('một hai')", [stdout("một hai\n")]))
    change(path, '"một hai\\n"', '"một hái\\n"')
    return path


TOYS = {  # how each is built, and what must be said about it, in order; nothing: it is sound
    "sound": (lambda root: course(root, FINE, (WRITES, [])), []),
    "below python": (lambda root: course(root, ("import os\n_ = os.system('echo x')", [stdout("x\n")])), []),
    "a history": (lambda root: course(root, ("41", [result("41", 1)]), ("42;", []),
                                      ("print(Out[1], In[2])", [stdout("41 42;\n")])), []),
    "changed": (changed, ["cell 1 (cell-1)", "recorded: 'một hái'", "now:      'một hai'"]),
    "dead": (lambda root: course(root, FINE, ("import os\nos._exit(3)", []), FINE, FINE),
             ["cell 2 (cell-2)", "the kernel died in this cell", "cell 3 (cell-3)",
              "not run: the kernel died in cell 2", "cell 4 (cell-4)", "not run: the kernel died in cell 2"]),
    "of an earlier cell": (lambda root: course(root, (KEEPS_PARENT, []), (SENDS_LATE, [stdout("42\n")]), FINE),
                           ["cell 2 (cell-2)", "an output of an earlier cell comes while this one runs (stream)"]),
    "same tokens": (lambda root: generating(root, [generation([3, 4], [0.5, 0.00042])]), []),
    "near tie": (lambda root: generating(root, [generation([3, 5])]), ["near tie at token 2 of generation 1"]),
    "parted": (lambda root: generating(root, [generation([9, 4])]), ["generation 1 differs from token 1 on"]),
    "too many": (lambda root: generating(root, []), ["1 generations so far, and 0 are recorded"]),
    "too few": (lambda root: generating(root, [generation([3, 4])] * 2),
                ["1 generations so far, and 2 are recorded"]),
}


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """All toys, run in one process: for each its folder before the run, its path, and what was said about it."""
    root = tmp_path_factory.mktemp("toys")
    paths = {name: build(root / name) for name, (build, _) in TOYS.items()}
    before = {name: tree(root / name) for name in TOYS}
    verdict = reexecute(list(paths.values()), quiet=True, root=root)
    return {name: (before[name], path, "\n".join(verdict.faults.get(path, []))) for name, path in paths.items()}


@pytest.mark.parametrize("name", TOYS)
def test_what_is_said_about_a_toy(toys, name):
    before, path, says = toys[name]
    place = -1
    for words in TOYS[name][1]:
        place = says.find(words, place + 1)
        assert place >= 0, says
    assert TOYS[name][1] or not says
    assert tree(path.parent.parent) == before, "a strict run leaves the course alone"


def test_a_dead_kernel_is_reported_once(toys):
    assert toys["dead"][2].count("the kernel died in this cell") == 1


def test_a_cell_that_takes_too_long_fails_and_so_do_those_below(tmp_path):
    path = course(tmp_path, SLEEPS, FINE)
    verdict = reexecute([path], quiet=True, root=tmp_path, cell_timeout=1)
    says = "\n".join(verdict.faults[path])
    assert verdict.failed == 2 and "Timeout of 1 seconds" in says and "not run: cell 1 took too long" in says


def options(**given):
    """pytest's options as they are in a strict run, but for those `given`."""
    names = ("nbval_lax nbdime nbval_kernel_name nbval_sanitize_with sanitize_with keyword markexpr deselect lf "
             "maxfail numprocesses cov_source ignore ignore_glob collectonly stepwise")
    return SimpleNamespace(**dict.fromkeys(names.split()), **{"nbval": True, "nbval_current_env": True, **given})


@pytest.mark.parametrize("given, named", [
    ({}, []), ({"keyword": "cell 1"}, ["-k"]), ({"deselect": ["x"]}, ["--deselect"]), ({"maxfail": 1}, ["--maxfail"]),
    ({"nbval": False}, ["no --nbval"]), ({"nbval_current_env": False}, ["no --nbval-current-env"]),
    ({"sanitize_with": "x"}, ["--nbval-sanitize-with"]), ({"numprocesses": 2}, ["-n"]),
    ({"ignore": ["x"]}, ["--ignore"]), ({"ignore_glob": ["x"]}, ["--ignore"]), ({"cov_source": ["lib"]}, ["--cov"]),
    ({"collectonly": True}, ["--collect-only"]), ({"stepwise": True}, ["--stepwise"])])
def test_options_that_leave_something_out_are_refused(given, named):
    plain = options()
    vars(plain).update(given)
    assert plugin.refused_options(plain) == named


@pytest.mark.parametrize("arguments, says", [
    pytest.param(["-k", "cell"], "does not go with: -k", marks=pytest.mark.slow),
    pytest.param(["--nbval-lax"], "does not go with: --nbval-lax", marks=pytest.mark.slow),
    (["{path}::cell 2 (cell-2)"], "not all of its cells would run")])
def test_part_of_a_notebook_is_refused(tmp_path, arguments, says):
    path = course(tmp_path, FINE, FINE)
    arguments = [argument.format(path=path) for argument in arguments]
    run = subprocess.run([*strict_command(tmp_path, 60), *arguments, *([] if "::" in arguments[0] else [str(path)])],
                         capture_output=True, encoding="utf-8", cwd=tmp_path,
                         env=notebooks.child_environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))
    assert run.returncode != 0 and says in run.stdout + run.stderr


def test_another_nbval_is_refused(monkeypatch):
    monkeypatch.setattr(plugin.nbval, "__version__", "0.12.0")
    with pytest.raises(pytest.UsageError, match=r"written for nbval 0\.11\.0, and this is 0\.12\.0"):
        plugin.pytest_configure(None)


def test_insides_that_nbval_has_no_more_are_named(monkeypatch):
    monkeypatch.setattr(plugin, "_INSIDE", [(plugin.nbval.plugin.IPyNbCell, "runtest gone")])
    with pytest.raises(pytest.UsageError, match="missing: gone"):
        plugin.pytest_configure(None)


SOUND = {"code_cells": 1, "checked": 1, "unchecked": 0, "passed": 1, "failed": 0}


@pytest.mark.parametrize("counts, fault", [
    (SOUND, None), ({}, "not one of its cells was run"), (SOUND | {"checked": 0, "unchecked": 1}, "checked: 0"),
    (SOUND | {"passed": 0}, "passed: 0 instead of 1"), (SOUND | {"code_cells": 2}, "code cells: 2 instead of 1")])
def test_what_a_report_does_not_prove_is_a_fault(tmp_path, counts, fault):
    found = unproven(course(tmp_path, FINE), counts)
    assert (not found) if fault is None else any(fault in one for one in found)


def test_a_run_that_ended_badly_is_red_even_if_its_report_is_fine(tmp_path):
    path = course(tmp_path, FINE)
    assert judge([path], {str(path): SOUND}, 0).failed == 0
    assert judge([path], {str(path): SOUND}, 1).failed == 1
    assert reexecute([]) == Verdict()


def test_the_list_of_canaries_is_that_of_the_folder():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(canaries.EXPECTED)
    assert [name for name, half in canaries.EXPECTED.items() if not any(half)] == ["clean"]


@pytest.mark.parametrize("expected, got, right", [("count", "its count is 2", True), ("count", "", False),
                                                  ("count", "another fault", False), (None, "", True),
                                                  (None, "a fault", False)])
def test_a_canary_is_caught_for_its_own_defect_only(expected, got, right):
    assert canaries.Caught("x", "structure", expected, got).is_right == right


def test_strays_among_the_canaries_are_no_catch(tmp_path, monkeypatch):
    monkeypatch.setattr(canaries, "in_execution", lambda known: [])
    notebooks.write_atomically(tmp_path / "stray.ipynb", notebooks.dumps(notebook(FINE)))
    found = canaries.canaries(tmp_path)
    assert {one.name for one in found} == {"stray", *canaries.EXPECTED} and not any(one.is_right for one in found)


def test_the_structure_half_alone():
    known = {path.stem: path for path in FOLDER.glob("*.ipynb")}
    assert [str(one) for one in canaries.in_structure(known) if not one.is_right] == []
