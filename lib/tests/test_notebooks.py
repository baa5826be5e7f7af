"""Notebooks as files: choosing, reading, naming, and the surroundings of their kernels."""
import os

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lib.machinery import Stop, notebooks
from lib.tests.toys import course, sources


@pytest.fixture
def folder(tmp_path):
    for name in ("02-second", "01-first", "10-last"):
        sources(tmp_path, "1", name=name)
    (tmp_path / "notebooks" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "notebooks" / ".ipynb_checkpoints" / "01-first-checkpoint.ipynb").write_text("", encoding="utf-8")
    return tmp_path / "notebooks"


@pytest.mark.parametrize("numbers, names", [
    ([], ["01-first", "02-second", "10-last"]), (["10", "1"], ["01-first", "10-last"]), (["02", "2"], ["02-second"])])
def test_select_gives_the_notebooks_in_order(folder, numbers, names):
    assert [path.stem for path in notebooks.select(numbers, folder)] == names


@pytest.mark.parametrize("number", ["03", "first", ""])
def test_select_names_what_there_is(folder, number):
    with pytest.raises(Stop, match="there are: 01, 02, 10"):
        notebooks.select([number], folder)


def test_select_stops_when_there_is_no_notebook(tmp_path):
    with pytest.raises(Stop):
        notebooks.select([], tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nbformat": 3}', '{"nbformat": 4, "cells": 1}'])
def test_a_broken_file_is_a_stop(tmp_path, text):
    (tmp_path / "01-x.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(Stop, match="01-x.ipynb is no readable notebook"):
        notebooks.read(tmp_path / "01-x.ipynb")


def test_what_is_written_is_read_back_with_plain_line_ends(tmp_path):
    path = course(tmp_path, ("print('é')", []))
    text = path.read_bytes()
    assert "é".encode() in text and b"\r" not in text and text.endswith(b"}\n")
    assert notebooks.dumps(notebooks.read(path)).encode() == text
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_missing_ids_depend_on_the_content_only():
    def named():
        made = new_notebook(cells=[new_code_cell("1", id="kept"), new_code_cell("2"), new_code_cell("2")])
        del made.cells[1]["id"], made.cells[2]["id"]
        notebooks.name_cells(made)
        return [cell.id for cell in made.cells]

    assert named() == named()
    assert named()[0] == "kept" and len(set(named())) == 3


@pytest.mark.parametrize("source, metadata, unchecked, reason, shown", [
    ("1", {}, False, "", False),
    ("# not compared: a time\n1", {"tags": ["nbval-ignore-output"], "course": {"unchecked": "a time"}},
     True, "a time", True),
    ("# not compared:\n1", {"tags": ["nbval-ignore-output"], "course": "a time"}, True, "", False),
    ("'# not compared: a time'", {"course": {"unchecked": 3}}, False, "", False)])
def test_only_the_tag_leaves_a_cell_unchecked(source, metadata, unchecked, reason, shown):
    cell = new_code_cell(source, metadata=metadata)
    assert (notebooks.is_unchecked(cell), notebooks.unchecked_reason(cell), notebooks.shows_reason(cell)) == (
        unchecked, reason, shown)


OF_A_SHELL = {"TRANSFORMERS_VERBOSITY", "TORCH_LOGS", "ONEDNN_VERBOSE", "PYTEST_ADDOPTS", "MPLBACKEND",
              "COURSE_STRICT", "PYTHONSTARTUP", "COLUMNS"}


def test_kernels_get_nothing_of_a_shell_or_another_test(monkeypatch):
    for name in OF_A_SHELL | {"COURSE_LEDGER"}:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["elsewhere", str(notebooks.ROOT)]))
    variables = notebooks.child_environment(COURSE_LEDGER="mine")
    assert not (OF_A_SHELL | {"PYTEST_CURRENT_TEST"}) & set(variables)
    assert variables["PYTHONPATH"] == os.pathsep.join([str(notebooks.ROOT), "elsewhere"])
    assert [variables[name] for name in ("COURSE_LEDGER", "PYTHONHASHSEED", "HF_HUB_OFFLINE")] == ["mine", "0", "1"]


def test_another_model_cannot_be_compared(monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "smollm2-135m")
    with pytest.raises(Stop, match="unset it first"):
        notebooks.require_default_model()


@pytest.mark.parametrize("stray", ["01-another.ipynb", "intro.ipynb", "1-short.ipynb", "sub/03-deep.ipynb"])
def test_a_notebook_that_no_command_would_look_at_is_named(tmp_path, stray):
    for name in ("01-real.ipynb", stray):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(Stop, match="which no command would look at"):
        notebooks.select([], tmp_path)
