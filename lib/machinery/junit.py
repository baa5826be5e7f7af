"""One JUnit file out of the stages of the gate: the suites of each pytest, and a suite for each other stage."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from lib.machinery.stages import Stage


def write(path: Path, stages: list[Stage]) -> None:
    """Writes the results of `stages` to `path`."""
    root = ElementTree.Element("testsuites", name="course")
    for stage in stages:
        root.extend(suites(stage))
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def suites(stage: Stage) -> list[ElementTree.Element]:
    """The suites of one stage; faults that no test case stands for get one of their own."""
    made = _of_pytest(stage) + ([_of_cases(stage, stage.cases)] if stage.cases else [])
    told = sum(int(suite.get("failures", 0)) + int(suite.get("errors", 0)) for suite in made)
    if not stage.is_green and not told:
        made.append(_of_cases(stage, [("the stage", "\n".join(stage.faults) or stage.outcome)]))
    return made


def _of_pytest(stage: Stage) -> list[ElementTree.Element]:
    if stage.junit is None or not stage.junit.exists():
        return []
    found = list(ElementTree.parse(stage.junit).getroot().iter("testsuite"))
    for suite in found:
        suite.set("name", stage.title)
    return found


def _of_cases(stage: Stage, cases: list[tuple[str, str]]) -> ElementTree.Element:
    failures = sum(bool(fault) for _, fault in cases)
    suite = ElementTree.Element("testsuite", name=stage.title, tests=str(len(cases)), failures=str(failures),
                                errors="0", skipped="0", time=f"{stage.seconds:.3f}")
    for name, fault in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=stage.title, name=name, time="0")
        if fault:
            ElementTree.SubElement(case, "failure", message=fault.splitlines()[0][:200]).text = fault
    return suite
