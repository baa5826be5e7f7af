"""The stages of the gate: each looks at one thing and says how many checks passed, how many failed, and why."""
from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from lib.machinery import Stop, anew, canaries, drift, extras, ledger, mutations, notebooks, structure, unchecked
from lib.machinery.reexecute import call, reexecute

ADDOPTS = "-p no:cacheprovider --strict-markers"  # of the unit tests, whatever pyproject.toml has come to say


@dataclass(frozen=True)
class Request:
    """What is to be tested: these notebooks, with the slow things or without; stages leave files in `folder`.

    `anew` says where the notebooks lie that a stage has recorded anew.
    """
    paths: list[Path]
    everything: bool
    folder: Path
    anew: dict[Path, Path] = field(default_factory=dict)


@dataclass
class Stage:
    """How a stage ended; for --junit its `cases` (name and fault, empty when it passed) or the file of a pytest."""
    title: str
    passed: int = 0
    failed: int = 0
    faults: list[str] = field(default_factory=list)
    cases: list[tuple[str, str]] = field(default_factory=list)
    junit: Path | None = None
    seconds: float = 0.0

    @property
    def is_green(self) -> bool:
        """Whether something was checked, and nothing was wrong."""
        return self.passed > 0 and not self.failed and not self.faults

    @property
    def outcome(self) -> str:
        """The outcome in a few words."""
        return "green" if self.is_green else "red" if self.failed or self.faults else "red: nothing was checked"


def stage(title: str, slow: bool = False) -> Callable:
    """Names a stage; a slow one belongs to `test --all` only."""
    def name(function: Callable[[Request], Stage]) -> Callable[[Request], Stage]:
        function.title, function.slow = title, slow
        return function
    return name


def from_cases(title: str, cases: list[tuple[str, str]]) -> Stage:
    """A stage whose checks are `cases`."""
    failed = [f"{name}: {fault}" for name, fault in cases if fault]
    return Stage(title, len(cases) - len(failed), len(failed), failed, cases)


@stage("unit tests")
def unit_tests(request: Request) -> Stage:
    """The tests in lib/tests; the slow ones, and the libraries they compare with, only with --all."""
    junit = request.folder / "unit.xml"
    variables, lacking = peers() if request.everything else ({}, [])
    chosen = [] if request.everything else ["-m", "not slow"]
    code = call([sys.executable, "-m", "pytest", str(notebooks.ROOT / "lib" / "tests"), "-c",
                 str(notebooks.ROOT / "pyproject.toml"), "-o", f"addopts={ADDOPTS}", "-q", "--tb=short",
                 f"--junitxml={junit}", *chosen],
                COURSE_RESULTS=request.folder / "results", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **variables)
    passed, failed = counts(junit)
    silent = silent_files(junit, notebooks.ROOT / "lib" / "tests", request.everything)
    faults = [f"{file}: not one of its tests was run" for file in silent]
    faults += unseen_tests(junit, notebooks.ROOT / "lib" / "tests", request.everything)
    faults += lacking or (skipped_peers(junit) if request.everything else [])
    return Stage("unit tests", passed, failed or int(code != 0), faults, junit=junit)


def peers() -> tuple[dict[str, str], list[str]]:
    """(variables that show the peers to the tests, why they can't be had): without them their tests are skipped."""
    try:
        folder = extras.folder()
    except Stop as stop:
        return {}, [f"the peers of lib/tests/extras.txt are not there: {stop}"]
    return {"PYTHONPATH": os.pathsep.join([notebooks.child_environment()["PYTHONPATH"], str(folder)])}, []


def skipped_peers(junit: Path) -> list[str]:
    """The tests that were skipped since a library of lib/tests/extras.txt could not be imported."""
    cases = ElementTree.parse(junit).getroot().iter("testcase") if junit.exists() else ()
    return [f"{case.get('name')}: {skip.get('message')}" for case in cases
            if (skip := case.find("skipped")) is not None and "extras.txt" in skip.get("message", "")]


def silent_files(junit: Path, folder: Path, everything: bool = True) -> list[str]:
    """The files of tests of which none passed or failed: all are skipped, or there are none left.

    Files that are slow as a whole have their turn with `everything`.
    """
    cases = ElementTree.parse(junit).getroot().iter("testcase") if junit.exists() else ()
    ran = {case.get("classname", "").split(".")[-1] for case in cases if case.find("skipped") is None}
    silent = [path for path in sorted(folder.glob("test_*.py")) if path.stem not in ran]
    return [path.name for path in silent if everything or not _SLOW_FILE.search(path.read_text(encoding="utf-8"))]


def unseen_tests(junit: Path, folder: Path, everything: bool = True) -> list[str]:
    """The tests that something has taken out of files that were run, and those whose failing is expected.

    A slow one has its turn with `everything`.
    """
    cases = list(ElementTree.parse(junit).getroot().iter("testcase")) if junit.exists() else []
    seen = {(case.get("classname", "").split(".")[-1], case.get("name", "").split("[")[0]) for case in cases}
    found = [f"{path.name}: {name} was not run" for path in sorted(folder.glob("test_*.py"))
             if any(file == path.stem for file, _ in seen) for name in _tests(path, everything)
             if (path.stem, name) not in seen]
    return found + [f"{case.get('classname')}.{case.get('name')}: a test that is expected to fail proves nothing"
                    for case in cases for skip in case.iter("skipped") if skip.get("type") == "pytest.xfail"]


def _tests(path: Path, everything: bool) -> list[str]:
    """The names of the tests in a file; of slow ones, and of those with slow cases, only with `everything`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            and (everything or not any("mark.slow" in ast.unparse(mark) for mark in node.decorator_list))]


_SLOW_FILE = re.compile(r"^pytestmark = .*pytest\.mark\.slow", re.M)


def counts(junit: Path) -> tuple[int, int]:
    """How many tests passed and failed according to a JUnit file of pytest (none if there is no file)."""
    if not junit.exists():
        return 0, 0
    suites = list(ElementTree.parse(junit).getroot().iter("testsuite"))
    total, failures, errors, skipped = (sum(int(suite.get(name, 0)) for suite in suites)
                                        for name in ("tests", "failures", "errors", "skipped"))
    return total - failures - errors - skipped, failures + errors


@stage("structure of the notebooks")
def structure_of_notebooks(request: Request) -> Stage:
    """The files as they stand, nothing executed."""
    cases = [(path.name, "\n".join(structure.faults(path))) for path in request.paths]
    there = notebooks.select([])
    kept = ledger.kept_faults(notebooks.ROOT, [notebooks.number(path) for path in there])
    course = "\n".join([*structure.course_faults(there), *kept])
    return from_cases("structure of the notebooks", [*cases, ("the course", course)])


@stage("strict re-execution")
def strict_reexecution(request: Request) -> Stage:
    """Every cell executed anew and compared with what is recorded."""
    junit = request.folder / "strict.xml"
    verdict = reexecute(request.paths, junit)
    unlisted = [f"{path.name}: {fault}" for path in request.paths for fault in unchecked.faults(path)]
    faults = unlisted + [fault if fault.startswith(path.name) else f"{path.name}: {fault}"
                         for path, found in verdict.faults.items() for fault in found]
    print(f"{verdict.compared} of {verdict.passed + verdict.failed} cells compared; not compared: "
          + (", ".join(f"{notebooks.number(path)} {cell} ({reason})" for path in request.paths
                       for cell, reason in unchecked.listed(path).items()) or "none"))
    return Stage("strict re-execution", verdict.passed, verdict.failed + len(unlisted), faults, junit=junit)


@stage("canaries")
def canaries_caught(request: Request) -> Stage:
    """The defective notebooks, each of which must be caught, and the sound one, which must pass."""
    found = canaries.canaries()
    result = from_cases("canaries", [(f"{one.name} ({one.half})", "" if one.is_right else str(one)) for one in found])
    missed = {one.name for one in found if not one.is_right}
    defects = {one.name for one in found} - canaries.SOUND
    print(f"caught {len(defects - missed)} of {len(defects)}; "
          f"{'the sound one is not green' if canaries.SOUND & missed else 'the sound one is green'}")
    return result


@stage("recorded anew, byte for byte", slow=True)
def recorded_anew(request: Request) -> Stage:
    """The notebooks recorded into a copy: they, their generations and near ties must come out the same."""
    copy = request.folder / "copy"
    cases, made = anew.record_all(request.paths, copy, notebooks.ROOT)
    request.anew.update(made)
    cases += anew.compare_trees(copy, notebooks.ROOT) + anew.record_again(request.paths, copy, notebooks.ROOT)
    return from_cases("recorded anew, byte for byte", cases)


@stage("mutations", slow=True)
def mutations_caught(request: Request) -> Stage:
    """Small defects planted in copies of the notebooks and of lib, each of which must be caught."""
    found = mutations.mutations(request.paths, request.anew, request.folder)
    caught = sum(not fault for _, fault in found.mutations)
    print("\n".join(f"  {name}" for name, _ in found.mutations))
    print(f"caught {caught} of {len(found.mutations)}, with the seed {mutations.seed()} "
          f"({mutations.SEED_VARIABLE} sets another)")
    unsound = [("mutations", "nothing was changed")] if not found.mutations else []
    return from_cases("mutations", found.controls + found.mutations + unsound)


@stage("drift on other machines", slow=True)
def drift_on_other_machines(request: Request) -> Stage:
    """A sample of the recorded tokens under other threads and kernels, and whether the committed file is of them."""
    numbers = [notebooks.number(path) for path in request.paths]
    return from_cases("drift on other machines", drift.checked(numbers))


@stage("ruff", slow=True)
def ruff(request: Request) -> Stage:
    """What the linter says about the code."""
    code = call([sys.executable, "-m", "ruff", "check", "--no-cache", "--extend-exclude",
                 "lib/tests/canaries/*.ipynb", str(notebooks.ROOT)])
    return from_cases("ruff", [("ruff check", f"it ended with code {code}" if code else "")])


STAGES = [structure_of_notebooks, unit_tests, strict_reexecution, canaries_caught, recorded_anew, mutations_caught,
          drift_on_other_machines, ruff]
