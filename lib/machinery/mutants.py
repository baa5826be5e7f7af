"""What is changed in a copy of `lib`, one constant or rule at a time, and the notebook that has to notice it."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from lib.machinery import Stop, compare, kernels, ledger, notebooks, run
from lib.machinery.outputs import shapes
from lib.machinery.record import Recorder
from lib.machinery.results import copy_aside


class Mutant(NamedTuple):
    """`old` stands once in `file` and becomes `new`; cells of `notebook` up to `until` show it, or `only` those."""
    says: str
    file: str
    old: str
    new: str
    notebook: str
    until: str
    only: tuple[str, ...] = ()


_FILE = ("load", "questions", "rows", "tally")  # what 06 makes of its file, no model needed
_LOADED = "    return Model(name, network, tokenizer, eos, network.config.max_position_embeddings)\n"
_SHORTER = '.replace("You are a helpful assistant.", "You are an assistant.")'
MUTANTS = [
    Mutant("BM25's k1", "lib/retrieval.py", "k1: float = 1.5", "k1: float = 1.2", "04", "source-claim"),
    Mutant("BM25's b", "lib/retrieval.py", "b: float = 0.75", "b: float = 0.7", "04", "source-claim"),
    Mutant("the idf's 0.5", "lib/retrieval.py", "n + 0.5) / (n + 0.5))", "n + 1) / (n + 0.5))", "04", "source-claim"),
    Mutant("words are no longer brought to NFC", "lib/retrieval.py",
           'unicodedata.normalize("NFC", text).lower()', "text.lower()", "04", "short-break"),
    Mutant("hit at k looks at one more", "lib/retrieval.py",
           "return float(any(_found(right, ranking, k)))", "return float(any(_found(right, ranking, k + 1)))",
           "04", "test-table"),
    Mutant("Wilson's interval is one of 90 %", "lib/grading.py", 'proportion_ci(0.95, method="wilson")',
           'proportion_ci(0.9, method="wilson")', "04", "test-table"),
    Mutant("the default system prompt", "lib/models.py", _LOADED,
           f"    tokenizer.chat_template = tokenizer.chat_template{_SHORTER}\n{_LOADED}", "01", "hello-count"),
    Mutant("an end token is missing", "lib/models.py", 'entry(name)["eos"])', 'entry(name)["eos"][1:])',
           "02", "alone"),
    Mutant("the prefix cache keeps one token too few", "lib/prefix_cache.py",
           "layer.keys[..., :length, :], layer.values[..., :length, :]",
           "layer.keys[..., :length - 1, :], layer.values[..., :length - 1, :]", "02", "alone"),
    Mutant("a truth value passes for a number", "lib/schema.py",
           'if kind in ("number", "integer") and isinstance(value, bool):',
           'if kind in ("integer",) and isinstance(value, bool):', "02", "bad-set"),
    Mutant("the loop rule ends it after two", "lib/agent.py", "IN_A_ROW = 3", "IN_A_ROW = 2", "03", "run"),
    Mutant("the instructions with passages", "lib/rag_prompt.py", "and answer the question in English",
           "then answer the question in English", "05", "prompt"),
    Mutant("a verdict of the grader", "lib/grading.py", 'Verdict("ambiguous", f"it names {gold',
           'Verdict("correct", f"it names {gold', "06", "grader", ("load", "questions", "grader")),
    Mutant("a class of failures takes another's", "lib/failures.py", '_ended("repeated_format_error")',
           '_ended("repeated_format_error", "loop")', "06", "tally", _FILE),
    Mutant("the calculator rounds what it reads", "lib/calculator.py", "return number(text)",
           "return Fraction(float(number(text)))", "06", "naive", ("load", "naive")),
    Mutant("the endpoint's longest answer", "lib/machinery/serve.py", "MAX_TOKENS = 256", "MAX_TOKENS = 255",
           "07", "leave"),
]
_BROKEN = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError", "AttributeError")


def cases(course: Path, wanted: list[str], mutants: list[Mutant]) -> tuple[list, list]:
    """(controls, mutants) of the notebooks numbered in `wanted`, each a name and its fault, in a copy of a course.

    A control runs the cells unchanged, as far as any of its mutants runs them.
    """
    controls, found = [], []
    for number, only in dict.fromkeys((mutant.notebook, mutant.only) for mutant in mutants):
        if number not in wanted:
            continue
        mine = [mutant for mutant in mutants if (mutant.notebook, mutant.only) == (number, only)]
        [path] = (course / "notebooks").glob(f"{number}-*.ipynb")
        last = max((mutant.until for mutant in mine), key=lambda id: _place(path, id))
        fault = first_fault(course, path, last, only)
        controls.append((f"{path.stem} up to {last}, lib unchanged", fault or ""))
        for mutant in mine:
            found.append((f"{path.stem}, lib: {mutant.says}",
                          "its control is red" if fault else missed(course, path, mutant)))
    return controls, found


def missed(course: Path, path: Path, mutant: Mutant) -> str:
    """Why a mutant does not count as caught; empty when it is."""
    with planted(course, mutant):
        fault = first_fault(course, path, mutant.until, mutant.only)
    if fault is None:
        return f"the notebook is green up to its cell {mutant.until}"
    broken = next((name for name in _BROKEN if name in fault), None)
    return f"it broke the program ({broken}) and did not change what it does: {fault}" if broken else ""


@contextmanager
def planted(course: Path, mutant: Mutant) -> Iterator[None]:
    """The copy of the course with the mutant in it; ValueError unless it changes exactly one place."""
    file = course / mutant.file
    before = file.read_bytes()
    text = before.decode("utf-8")
    if text.count(mutant.old) != 1 or mutant.old == mutant.new:
        raise ValueError(f"{mutant.says}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}, and "
                         "it has to stand there once and become something else")
    try:
        file.write_bytes(text.replace(mutant.old, mutant.new).encode("utf-8"))
        yield
    finally:
        file.write_bytes(before)


def first_fault(course: Path, path: Path, until: str, only: tuple[str, ...] = ()) -> str | None:
    """The first fault of a notebook of `course`, executed with that course's own `lib`; None up to the cell `until`.

    A cell that prints source code is run and not compared: that it shows a change of the source proves nothing.
    """
    recorded = notebooks.read(path)
    recorded.cells = recorded.cells[:_place(path, until) + 1]
    recorded.cells = [cell for cell in recorded.cells if not only or cell.get("id") in only]
    with tempfile.TemporaryDirectory(prefix="course-mutant-", ignore_cleanup_errors=True) as scratch:
        copy_aside(course / "results", Path(scratch, "results"))
        try:
            return _compared(course, path, recorded, Path(scratch))
        except (Stop, *kernels.FAILURES) as failure:
            return f"{type(failure).__name__}: {failure}"


def _compared(course: Path, path: Path, recorded: NotebookNode, scratch: Path) -> str | None:
    blank, lines = run.blank(recorded), scratch / "ledger.jsonl"
    client, number = Recorder(blank), notebooks.number(path)
    kept = ledger.read_json(ledger.generations_path(course, number))
    ties = [tie for tie in ledger.read_json(ledger.near_ties_path(course)) if tie["notebook"] == number]
    with kernels.session(client, path.parent, surroundings(course, scratch / "results", lines)):
        for place, (index, cell, now) in enumerate(_code(recorded, blank), start=1):
            client.execute_cell(now, index, execution_count=place)
            shows_source = "show.source(" in cell.source and shapes(cell.outputs) == shapes(now.outputs)
            fault = None if shows_source else compare.fault(cell, now.outputs)
            if fault := fault or ledger.compare(kept, ties, ledger.read(lines)):
                return f"{notebooks.label(place, cell)}: {fault}"
    return None


def _code(recorded: NotebookNode, blank: NotebookNode) -> Iterator[tuple[int, NotebookNode, NotebookNode]]:
    """(index, cell as recorded, cell to be executed) of each code cell."""
    for index, (cell, now) in enumerate(zip(recorded.cells, blank.cells, strict=True)):
        if cell.cell_type == "code":
            yield index, cell, now


def surroundings(course: Path, results: Path, lines: Path) -> dict[str, str]:
    """The variables of a kernel that imports the `lib` of `course`, and leaves nothing compiled beside it."""
    variables = notebooks.child_environment(COURSE_RESULTS=results, COURSE_LEDGER=lines, COURSE_STRICT="1",
                                            PYTHONDONTWRITEBYTECODE="1")
    others = [path for path in variables["PYTHONPATH"].split(os.pathsep) if path != str(notebooks.ROOT)]
    return variables | {"PYTHONPATH": os.pathsep.join([str(course), *others])}


def _place(path: Path, id: str) -> int:
    return [cell.get("id") for cell in notebooks.read(path).cells].index(id)
