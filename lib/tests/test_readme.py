"""The README says what is so: its numbers stand in the notebooks' outputs, its links and commands exist."""

from __future__ import annotations

import re

import pytest

from lib.machinery import commands, notebooks
from lib.machinery.drift import readme, report
from lib.machinery.structure import borne

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (\d\d) \|$", README, re.M)


def evidence(number: str) -> list[tuple[frozenset, frozenset]]:
    """What the cells of a notebook show, as the check of its own prose has it."""
    cells = notebooks.code_cells(notebooks.read(notebooks.select([number])[0]))
    texts = [borne._evidence(cell) for cell in cells]
    return [(frozenset(f.value for f in borne.figures(text)), frozenset(borne._stems(text))) for text in texts]


@pytest.mark.parametrize("finding, measured, number", ROWS)
def test_what_was_measured_is_borne_out_by_the_notebook(finding, measured, number):
    found = evidence(number)
    assert [str(figure) for figure in borne.figures(measured) if not borne.is_borne(figure, found)] == []


def test_there_are_findings_to_check():
    assert len(ROWS) >= 5


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
    assert report.path(notebooks.ROOT).exists(), "run `python3 -m lib drift --whole`: it writes file and table"
    between = README.split(readme.BEGIN)[1].split(readme.END)[0]
    assert between.strip() == readme.table(report.read(notebooks.ROOT))
