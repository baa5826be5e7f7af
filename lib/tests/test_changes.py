"""Small defects for copies of recordings: each changes what it says, and every place can be hit."""
import random
from collections import Counter

import pytest
from nbformat.v4 import new_markdown_cell, new_output

from lib.machinery import changes, compare, notebooks, pictures
from lib.machinery.structure import borne
from lib.tests.canaries.make import TIMED, UNCHECKED, notebook, picture, result, stdout

SEEDS = range(300)
REPORTED = "| question | the text reports |\n|---|---|\n| length | 99 tokens |"
HTML = new_output("display_data", data={"text/html": "<b>sáu</b>", "text/plain": "sáu", "application/json": {"a": 1}})


@pytest.fixture(scope="module")
def made():
    """A notebook with outputs of all kinds, and figures in its prose."""
    cells = (("1", [stdout("32 tokens and 7\n"), result("'x'", 1)]), ("2", [HTML]), ("3", [picture()]),
             (TIMED, [stdout("1.5\n")], UNCHECKED), ("4", []))
    return notebook(*cells, prose=f"It took 32 tokens.\n\n{REPORTED}\n\nThen 7.")


def over_seeds(change, made) -> list[changes.Change]:
    return [change(made, random.Random(seed)) for seed in SEEDS]


def outputs(made) -> list[list]:
    return [cell.outputs for cell in notebooks.code_cells(made)]


def test_every_place_is_hit_and_only_compared_ones(made):
    where = Counter(change.where for change in over_seeds(changes.letter, made))
    assert {name.split(")")[0] for name in where} == {"cell 1 (cell-1", "cell 2 (cell-2", "cell 3 (cell-3"}
    assert {name.split("(")[-1] for name in where} == {"text)", "data, text/plain)", "data, text/html)",
                                                       "metadata, image/png, alt)"}
    assert len(where) == 6


def test_one_letter_of_the_same_kind_is_another(made):
    for change in over_seeds(changes.letter, made):
        old, new = changes_of(made, change.notebook)
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        assert len(old) == len(new) and len(pairs) == 1
        assert pairs[0][0].isalnum() and pairs[0][0].isdigit() == pairs[0][1].isdigit()


def changes_of(old, new) -> tuple[str, str]:
    """The text that is another, before and after."""
    for place in changes.texts(old):
        if changes._text(old, place) != changes._text(new, place):
            return changes._text(old, place), changes._text(new, place)
    raise AssertionError("nothing has changed")


@pytest.mark.parametrize("kind", ["a letter changed", "an output emptied", "an output removed"])
def test_each_is_seen_by_the_strict_comparison(made, kind):
    for change in over_seeds(changes.KINDS[kind], made):
        pairs = zip(notebooks.code_cells(change.notebook), outputs(made), strict=True)
        assert sum(compare.fault(cell, now) is not None for cell, now in pairs) == 1, change.where


def test_an_output_is_removed_and_its_count_is_kept(made):
    for change in over_seeds(changes.removed, made):
        cells = notebooks.code_cells(change.notebook)
        assert sum(map(len, outputs(change.notebook))) == sum(map(len, outputs(made))) - 1
        assert [cell.execution_count for cell in cells] == [1, 2, 3, 4, 5]
    assert {change.where.split(",")[0] for change in over_seeds(changes.removed, made)} >= {"cell 4 (cell-4)"}


def test_a_picture_becomes_its_mirror_image():
    one = picture()
    one.data["image/png"] = changes.mirrored(one.data["image/png"])
    assert pictures.read(one.data["image/png"]).size == (1, 1)
    change = changes.picture(notebook(("1", [picture()])), random.Random(1))
    assert change.notebook.cells[1].outputs[0].data["image/png"] != picture().data["image/png"]


def test_a_figure_of_the_prose_becomes_one_that_nothing_bears_out(made):
    assert borne.faults(made) == []
    for change in over_seeds(changes.figure, made):
        assert len(borne.faults(change.notebook)) == 1, change.where
        assert REPORTED in change.notebook.cells[-1].source
    assert {change.where.split("'")[1] for change in over_seeds(changes.figure, made)} == {"32 tokens", "7"}


def test_where_there_is_nothing_to_change_there_is_no_change():
    empty = notebook(("1", []), prose="Nothing.")
    assert [change(empty, random.Random(1)) for change in changes.KINDS.values()] == [None] * 5


def test_the_same_seed_makes_the_same_change(made):
    for change in changes.KINDS.values():
        assert change(made, random.Random("7")) == change(made, random.Random("7"))


def test_a_change_leaves_the_notebook_itself_alone(made):
    before = notebooks.dumps(made)
    for change in changes.KINDS.values():
        assert notebooks.dumps(change(made, random.Random(3)).notebook) != before
        assert notebooks.dumps(made) == before


@pytest.mark.parametrize("number", ["7", "1,062", "10.1", "0.5"])
def test_an_unheard_of_number_keeps_its_form(number):
    known = {changes.Decimal(digit) for digit in range(1, 10)}
    new = changes._unheard_of(number, known, random.Random(1))
    assert new != number and changes.Decimal(new.replace(",", "")) not in known
    assert [one for one in new if not one.isdigit()] == [one for one in number if not one.isdigit()]


@pytest.mark.parametrize("source, given, found", [
    ("It took 32 tokens.", {}, ["32 tokens"]), ("32 tokens and 32 tokens", {}, []), (REPORTED, {}, []),
    (f"From 99 to 187 tokens.\n\n{REPORTED}", {}, ["187 tokens"]),
    ("It took 32 tokens.", {"32 tokens": "what the makers say"}, []), ("Two tokens are read.", {}, []),
    ("Of 48 questions 36 of 40 calls ran.", {}, ["36 of 40 calls ran", "48 questions"])])
def test_only_figures_that_are_checked_and_stand_once_are_changed(source, given, found):
    cell = new_markdown_cell(source, metadata={"course": {"given": given}} if given else {})
    assert changes._figures(cell) == found
