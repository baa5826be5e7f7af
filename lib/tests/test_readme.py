"""The README says what is so: its numbers stand in the notebooks' outputs, its links and commands exist."""

from __future__ import annotations

import re

import pytest

from lib.machinery import commands, notebooks
from lib.machinery.drift import readme, report
from lib.machinery.structure import borne, evidence, numbers

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (\d\d) \|$", README, re.M)


def shown(number: str) -> borne.Evidence:
    """What the cells of a notebook show, as the check of its own prose has it."""
    return [evidence.shown(cell) for cell in notebooks.code_cells(notebooks.read(notebooks.select([number])[0]))]


@pytest.mark.parametrize("finding, measured, number", ROWS)
def test_what_was_measured_is_borne_out_by_the_notebook(finding, measured, number):
    assert [str(figure) for figure in borne.unborne(measured, shown(number), around=finding)] == []


@pytest.mark.parametrize("finding, measured, number", ROWS)
def test_the_numbers_of_the_question_stand_in_the_notebook_too(finding, measured, number):
    asked = {one.value for one in numbers.in_digits(re.sub(r"\b[\d.]+B\b", "", finding))}  # 0.5B names a model
    assert asked <= {value for lines in shown(number) for line in lines for value in line.numbers}


def test_every_finding_is_checked():
    table = README.split("## What was measured")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(ROWS) == len(rows) >= 5, "a row that names no single notebook as two digits is not checked"


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!http)[^)]+)\)", README))
def test_links_lead_somewhere(link):
    assert (notebooks.ROOT / link).exists()


@pytest.mark.parametrize("line", re.findall(r"python3 -m lib ([a-z]+)", README))
def test_commands_exist(line):
    assert line in commands.COMMANDS


def test_every_notebook_and_command_is_listed():
    assert all(f"(notebooks/{path.name})" in README for path in notebooks.select([]))
    assert all(f"`{name}" in README for name in commands.COMMANDS)


def test_where_outputs_were_verified_is_what_was_measured():
    between = README.split(readme.BEGIN)[1].split(readme.END)[0].strip()
    is_there = report.path(notebooks.ROOT).exists()
    assert between == (readme.table(report.read(notebooks.ROOT)) if is_there else "Nothing was measured so far.")
