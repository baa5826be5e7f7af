"""Changes of `lib` in a copy: each is one place, each names cells that exist, and a toy shows how they are caught."""
import ast
import subprocess
import sys

import pytest

from lib.machinery import ledger, mutants, notebooks
from lib.machinery.mutants import MUTANTS, Mutant
from lib.tests.canaries.make import stdout
from lib.tests.test_ledger import generation
from lib.tests.toys import GENERATES, course, tree

LIB = "SIX = 6\n\n\ndef times(n):\n    return SIX * n\n"
CELLS = [("import inspect\nfrom lib import toy as toylib", []),
         ("print(inspect.getsource(toylib.times))  # as show.source(…) does", [stdout("def times(n): ...\n")]),
         ("print(toylib.times(7))", [stdout("42\n")]), ("print(toylib.times(1))", [stdout("6\n")])]


@pytest.fixture
def root(tmp_path):
    """A copy of a course with a `lib` of its own."""
    for name, text in (("__init__", ""), ("toy", LIB)):
        notebooks.write_atomically(tmp_path / "lib" / f"{name}.py", text)
    course(tmp_path, *CELLS)
    return tmp_path


def toy(old: str = "SIX = 6", new: str = "SIX = 7", until: str = "cell-3") -> Mutant:
    return Mutant("six", "lib/toy.py", old, new, "01", until)


@pytest.mark.parametrize("mutant, fault", [
    (toy(), ""), (toy(until="cell-2"), "the notebook is green up to its cell cell-2"),
    (toy("SIX * n", "n * SIX"), "the notebook is green up to its cell cell-3"),
    (toy("def times", "def time"), "it broke the program"), (toy("SIX = 6", "SIX ="), "it broke the program"),
    (toy("return SIX * n", "raise ValueError(n)"), "")])
def test_a_mutant_is_caught_by_what_a_notebook_shows(root, mutant, fault):
    before = tree(root)
    controls, found = mutants.cases(root, ["01", "02"], [mutant, mutant._replace(notebook="03")])
    assert controls == [(f"01-toy up to {mutant.until}, lib unchanged", "")]
    assert found[0][0] == "01-toy, lib: six" and (found[0][1].startswith(fault) if fault else not found[0][1]), found
    assert tree(root) == before, "nothing is left behind, nothing compiled either"


def test_source_that_is_shown_proves_nothing(root):
    [path] = (root / "notebooks").glob("*.ipynb")
    with mutants.planted(root, toy("def times(n):", "dex = 1\ndef times(n):")):
        assert mutants.first_fault(root, path, "cell-4") is None
    with mutants.planted(root, toy("    return SIX * n\n", "    return SIX * n\n\n\ntimes = 'x'\n")):
        assert "TypeError" in mutants.first_fault(root, path, "cell-3")


def test_a_red_control_lets_no_mutant_count(root):
    course(root, *CELLS[:2], ("print(toylib.times(7))", [stdout("43\n")]))
    controls, found = mutants.cases(root, ["01"], [toy()])
    assert "recorded: '43'" in controls[0][1] and found == [("01-toy, lib: six", "its control is red")]


def test_the_control_goes_as_far_as_any_mutant(root, monkeypatch):
    seen = []
    monkeypatch.setattr(mutants, "first_fault", lambda root, path, until, only: seen.append((until, only)))
    some = toy(until="cell-3")._replace(only=("cell-1", "cell-3"))
    mutants.cases(root, ["01"], [toy(until="cell-4"), some, toy(until="cell-2")])
    assert seen == [("cell-4", ()), ("cell-4", ()), ("cell-2", ())] + [("cell-3", ("cell-1", "cell-3"))] * 2


def test_only_the_cells_that_are_named_are_run(root):
    path = course(root, CELLS[0], ("1 / 0", []), *CELLS[2:])
    assert "ZeroDivisionError" in mutants.first_fault(root, path, "cell-3")
    assert mutants.first_fault(root, path, "cell-3", ("cell-1", "cell-3")) is None


def test_generations_count_too(root):
    kept = generation([3, 4], [0.5, 0.00042])
    ledger.write(root, "01", [kept])
    path = course(root, (GENERATES, [stdout("[3, 4]\n")]))
    assert mutants.first_fault(root, path, "cell-1") is None
    ledger.write(root, "01", [generation([3, 5])])
    assert "near tie at token 2 of generation 1" in mutants.first_fault(root, path, "cell-1")


@pytest.mark.parametrize("old, new", [("SEVEN", "8"), ("S", "T"), ("SIX = 6", "SIX = 6")])
def test_what_changes_nothing_or_more_than_one_place_is_an_error(root, old, new):
    with pytest.raises(ValueError, match="it has to stand there once and become something else"), \
            mutants.planted(root, toy(old, new)):
        raise AssertionError("it was planted")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.says)
def test_each_mutant_changes_one_place_and_names_a_cell(mutant):
    text = (notebooks.ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1 and mutant.new != mutant.old
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(text.replace(mutant.old, mutant.new)))
    [path] = notebooks.select([mutant.notebook])
    cells = notebooks.code_cells(notebooks.read(path))
    names = [cell.id for cell in cells]
    place = names.index(mutant.until)
    assert set(mutant.only) <= set(names[:place + 1]) and (not mutant.only or mutant.until in mutant.only)
    assert any(cell.outputs and "show.source(" not in cell.source for cell in cells[:place + 1])


def test_the_constants_that_matter_most_are_among_them():
    says = " ".join(mutant.says for mutant in MUTANTS)
    assert all(words in says for words in ("k1", "end token", "default system prompt", "grader", "prefix cache"))
    shown = {mutant.notebook for mutant in MUTANTS}
    bare = [path.stem for path in notebooks.select([]) if notebooks.number(path) not in shown]
    assert not bare, "lib/machinery/mutants.py: add a change of lib that these notebooks have to notice"
    assert len({mutant.says for mutant in MUTANTS}) == len(MUTANTS)


def test_a_kernel_finds_the_copy_first_and_compiles_nothing(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("HERE = 'the copy'", encoding="utf-8")
    variables = mutants.surroundings(tmp_path, tmp_path / "results", tmp_path / "lines")
    told = subprocess.run([sys.executable, "-c", "import lib\nprint(lib.HERE)"], env=variables, cwd=tmp_path.parent,
                          capture_output=True, encoding="utf-8", check=True).stdout
    assert told == "the copy\n" and not list(tmp_path.rglob("__pycache__"))
