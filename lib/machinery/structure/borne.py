"""Figures in Markdown are borne out: each stands, with what it is a number of, in an output or a claim above it.

A count is borne out by a line or table cell that holds the number and one of its nouns (for a figure without a noun:
any word of its sentence, or no word at all); N of M by N of M; a per cent by a per cent; so many times as much by so
many times; a part (half of) by a part, or by N of M that comes close. A count in words may also announce what the
cells below hold.

A figure that no output can bear out, since it is given and not measured, is listed with its reason in the metadata of
its cell: `"course": {"given": {"384 numbers": "what the model's makers say of it"}}`.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import takewhile

from nbformat import NotebookNode

from lib.machinery.structure import plain
from lib.machinery.structure.evidence import Line, lines_of_text, shown
from lib.machinery.structure.figures import MEASURES, NO_NOUN, Figure, figures, stem, stems

CLOSE = Decimal("0.1")
RECENT = 4  # code cells: of all N of M in a notebook some are always about a half
LEAST_REASON = 3  # words
Evidence = list[list[Line]]


def faults(notebook: NotebookNode) -> list[str]:
    """The figures in Markdown that nothing above them bears out, and those listed as given without need."""
    evidence: Evidence = []
    found = []
    said = {id(cell): shown(cell) for cell in notebook.cells if cell.cell_type == "code"}
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            evidence.append(said[id(cell)])
        elif cell.cell_type == "markdown":
            missing = list(unborne(cell.source, evidence, _below(notebook.cells[place + 1:], said)))
            found += [f"cell {cell.get('id')}: {fault}" for fault in cell_faults(missing, given(cell))]
    return found


def cell_faults(missing: list[Figure], exempt: dict[str, str]) -> list[str]:
    """What is wrong with the figures of a cell: not borne out and not given, or given without need or reason."""
    names = [str(figure) for figure in missing]
    found = [f"{name!r} is borne out by no output above it" for name in names if name not in exempt]
    found += [f"{name!r} is listed as given, and nothing there needs it" for name in exempt if name not in names]
    return found + [f"{name!r} is listed as given without a reason" for name, reason in exempt.items()
                    if not isinstance(reason, str) or len(reason.split()) < LEAST_REASON]


def given(cell: NotebookNode) -> dict[str, str]:
    """The figures that a Markdown cell lists as given, each with its reason."""
    course = cell.metadata.get("course", {})
    return dict(course.get("given", {})) if isinstance(course, dict) else {}


def _below(cells: list[NotebookNode], said: dict[int, list[Line]]) -> list[Line]:
    """What the code cells directly below say, in source and outputs: a number in words may announce it."""
    return [one for cell in takewhile(lambda cell: cell.cell_type == "code", cells)
            for one in [*lines_of_text(cell.source), *said[id(cell)]]]


def unborne(text: str, evidence: Evidence, below: Iterable[Line] = (), around: str = "") -> Iterator[Figure]:
    """The figures of a text that no cell of `evidence` bears out.

    `below`: what a number in words may announce; `around`: words that stand beside the text and belong to it.
    """
    below = list(below)
    for block in plain.blocks(text):
        for figure in figures(block.text):
            if not is_borne(figure, evidence, f"{block.around} {around}") and not _is_announced(figure, below):
                yield figure


def is_borne(figure: Figure, evidence: Evidence, around: str = "") -> bool:
    """Whether the outputs of one cell bear the figure out; `around`: the text that it stands in."""
    words = frozenset(map(stem, figure.nouns)) or stems(around) - NO_NOUN
    near = evidence[-RECENT:] if figure.kind == "part" else evidence
    return any(_CHECKS.get(figure.kind, _has_count)(figure, words, lines) for lines in near)


def _is_announced(figure: Figure, below: list[Line]) -> bool:
    """Whether a number in words names what comes: three questions, asked in the next cell."""
    return (figure.in_words and figure.kind == "count" and any(figure.value in one.numbers for one in below)
            and any(one.words & set(map(stem, figure.nouns)) for one in below))


def _has_count(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    """A bare number bears out one without a noun; of one in N of M the noun may stand elsewhere in the outputs."""
    for one in lines:
        if figure.value in one.numbers and (words & one.words or not words or not (figure.nouns or one.words)):
            return True
    return any(figure.value in share for one in lines for share in one.shares) and _name(words, lines)


def _has_share(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    nouns = frozenset(map(stem, figure.nouns)) & MEASURES
    return (not nouns or _name(nouns, lines)) and any((figure.value, figure.whole) in one.shares for one in lines)


def _name(words: frozenset[str], lines: list[Line]) -> bool:
    return any(words & one.words for one in lines)


def _has_percent(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    return any(figure.value in one.percents for one in lines)


def _has_times(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    return any(figure.value in one.times for one in lines)


def _has_times_done(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    """Called five times: a number of times, or five of what the sentence is about."""
    return _has_times(figure, words, lines) or any(figure.value in one.numbers and words & one.words for one in lines)


def _has_part(figure: Figure, words: frozenset[str], lines: list[Line]) -> bool:
    """A part that is said so, or N of M that comes close to it or misses M by it, on a line with a word in common."""
    return any(figure.value in one.parts for one in lines) or any(
        abs(part - figure.value) <= CLOSE * figure.value for one in lines if words & one.words
        for value, whole in one.shares for part in (value / whole, 1 - value / whole))


_CHECKS = {"share": _has_share, "percent": _has_percent, "times": _has_times, "times done": _has_times_done,
           "part": _has_part}
