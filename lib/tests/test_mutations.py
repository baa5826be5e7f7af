"""Mutations on a toy course: all are caught, and nothing makes the stage pass that should not."""
import pytest

from lib.machinery import changes, mutations, notebooks, record, stages
from lib.machinery.mutants import Mutant
from lib.machinery.stages import Request
from lib.tests.canaries.make import TIMED, UNCHECKED, shows_picture
from lib.tests.toys import change, course, tree

SIX = Mutant("six", "lib/toy.py", "SIX = 6", "SIX = 7", "01", "cell-1")
HARMLESS = SIX._replace(new="SIX =  6")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A toy course with a `lib`, recorded, and the same recorded anew."""
    root = tmp_path_factory.mktemp("toy") / "course"
    for name, text in (("lib/__init__.py", ""), ("lib/toy.py", "SIX = 6\n"), ("README.md", "# Toy\n")):
        notebooks.write_atomically(root / name, text)
    path = course(root, ("from pathlib import Path\nfact = Path('../lib/toy.py').read_text()\n"
                         "print(int(fact.split()[-1]) * 7, 'tokens')", []),
                  (shows_picture(), []), (TIMED, [], UNCHECKED),
                  prose="It took 42 tokens. See [the start](../README.md).")
    record.record(path, root)
    anew = root.parent / "anew"
    record.copy_course(root, anew, [path])
    record.record(path, anew)
    return path, {path: anew / "notebooks" / path.name}


# The toy reads its lib as a file: what it imports in the tests' own recording is another course's.
@pytest.fixture
def here(recorded, monkeypatch):
    path, anew = recorded
    monkeypatch.setattr(notebooks, "ROOT", path.parent.parent)
    before = tree(path.parent.parent)
    yield path, anew
    assert tree(path.parent.parent) == before


def test_all_are_caught_each_by_its_half(here, tmp_path):
    path, anew = here
    found = mutations.mutations([path], anew, tmp_path, [])
    assert found.controls == [("01-toy, unchanged", "")]
    assert [fault for _, fault in found.mutations] == [""] * 5
    seen = {name.split(": ")[0].split(", ")[1]: name.split("(seen by ")[1].rstrip(")") for name, _ in found.mutations}
    assert set(seen) == set(changes.KINDS)
    assert all("strict" in seen[kind] for kind in ("a letter changed", "an output emptied", "an output removed"))
    assert "structure" in seen["a figure of the prose changed"] and seen["a picture mirrored"] == "bytes"


@pytest.mark.parametrize("seed", range(5))
def test_another_seed_is_as_good(here, tmp_path, monkeypatch, seed):
    monkeypatch.setenv(mutations.SEED_VARIABLE, str(seed))
    assert [fault for _, fault in mutations.mutations([here[0]], here[1], tmp_path, []).mutations if fault] == []


def test_a_change_that_changes_nothing_is_no_catch(here, tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "KINDS", {kind: lambda made, rng: changes.Change("nowhere", made)
                                           for kind in changes.KINDS})
    found = mutations.mutations([here[0]], here[1], tmp_path, []).mutations
    assert [fault for _, fault in found] == ["the change changed nothing"] * 5


def test_a_survivor_is_named(here, tmp_path, monkeypatch):
    monkeypatch.setattr(mutations.compare, "fault", lambda cell, now: None)
    monkeypatch.setattr(mutations.structure, "faults", lambda path: [])
    faults = {name.split(": ")[0]: fault for name, fault in
              mutations.mutations([here[0]], here[1], tmp_path, []).mutations}
    assert faults == {"01-toy, a letter changed": "it has to be seen by strict",
                      "01-toy, an output emptied": "it has to be seen by strict",
                      "01-toy, an output removed": "it has to be seen by strict", "01-toy, a picture mirrored": "",
                      "01-toy, a figure of the prose changed": "it has to be seen by structure"}


@pytest.mark.parametrize("old, new, says", [
    ('"42 tokens\\n"', '"43 tokens\\n"', "strict: cell 1"), ("It took 42", "It took 99", "structure: cell prose"),
    ("../README.md", "../GONE.md", "structure: cell prose")])
def test_nothing_is_changed_in_a_notebook_that_is_red_itself(here, tmp_path, old, new, says):
    path, anew = here
    copy = mutations.copy_course(path.parent.parent, tmp_path / "copy") / "notebooks" / path.name
    change(copy, old, new)
    control, made = mutations.in_recording(copy, anew[path])
    assert control.startswith("it is red without any change: ") and says in control and made == []


def test_without_a_recording_anew_there_is_nothing_to_compare_with(here, tmp_path):
    found = mutations.mutations([here[0]], {}, tmp_path, [])
    assert "it could not be recorded anew" in found.controls[0][1] and found.mutations == []


def test_a_notebook_with_nothing_to_change_is_named(tmp_path):
    path = course(tmp_path, ("x = 1", []))
    control, made = mutations.in_recording(path, path)
    assert control == "" and [kind for kind, fault in made if fault] == [
        "a letter changed", "an output emptied", "an output removed"]


def staged(monkeypatch, here, tmp_path, constants) -> stages.Stage:
    monkeypatch.setattr(mutations.mutants, "MUTANTS", constants)
    return stages.mutations_caught(Request([here[0]], True, tmp_path, here[1]))


def test_the_stage_is_green_when_all_are_caught(monkeypatch, here, tmp_path, capsys):
    assert staged(monkeypatch, here, tmp_path, [SIX]).is_green
    assert "caught 6 of 6, with the seed 1" in capsys.readouterr().out


def test_the_stage_counts_and_names_the_survivors(monkeypatch, here, tmp_path, capsys):
    done = staged(monkeypatch, here, tmp_path, [HARMLESS])
    assert not done.is_green and done.faults == ["01-toy, lib: six: the notebook is green up to its cell cell-1"]
    assert "caught 5 of 6, with the seed 1" in capsys.readouterr().out


@pytest.mark.parametrize("anew", [True, False])
def test_the_stage_is_green_only_if_something_was_changed(monkeypatch, here, tmp_path, anew):
    done = staged(monkeypatch, (here[0], here[1] if anew else {}), tmp_path, [])
    assert done.is_green == anew


def test_a_copy_of_the_course_holds_nothing_hidden(tmp_path):
    for name in ("lib/a.py", "lib/__pycache__/a.pyc", "data/x", "notebooks/01-a.ipynb", ".git/y", ".env", "README.md",
                 "results/table.txt", "results/run/z", "results/lab/z", "other/z"):
        notebooks.write_atomically(tmp_path / "root" / name, "")
    copied = tree(mutations.copy_course(tmp_path / "root", tmp_path / "copy"))
    assert set(copied) == {"lib/a.py", "data/x", "notebooks/01-a.ipynb", "README.md", "results/table.txt"}
