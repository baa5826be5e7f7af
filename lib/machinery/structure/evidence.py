"""What the outputs of a code cell show: line by line, and table cell by table cell with row and column."""
from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest

from nbformat import NotebookNode

from lib.machinery.notebooks import is_unchecked
from lib.machinery.outputs import values
from lib.machinery.structure.figures import MEASURES, figures, stems
from lib.machinery.structure.numbers import letters, numbers
from lib.machinery.structure.tables import Table, taken_apart

_PER_CENTS = re.compile(r"(?<!\d)(?<!\d )%|per ?cent", re.I)
_RATIOS = re.compile(r"\b(?:times|ratio)\b|×", re.I)
_RULE = re.compile(r"[ ─]*─[ ─]*")


@dataclass(frozen=True)
class Line:
    """A line of an output, or a table's cell: its words and numbers, and which of these are N of M, per cents, …"""

    numbers: frozenset[Decimal]
    words: frozenset[str]
    shares: frozenset[tuple[Decimal, Decimal]]
    percents: frozenset[Decimal]
    times: frozenset[Decimal] = frozenset()
    parts: frozenset[Decimal] = frozenset()


def line(text: str, around: frozenset[str] = frozenset(), head: str = "") -> Line:
    """What a line or a table's cell says; `around`: words that go with it, `head`: what stands above its column."""
    known = numbers(text)
    found = figures(text, known)
    kinds = {kind: {one.value for one in found if one.kind.startswith(kind)} for kind in ("percent", "times", "part")}
    there = {number.value for number in known} | kinds["times"]
    for kind, said in (("percent", _PER_CENTS), ("times", _RATIOS)):
        kinds[kind] |= there if said.search(head) else set()
    return Line(frozenset(there | {abs(value) for value in there}), stems(text) | stems(head) | around,
                frozenset((one.value, one.whole) for one in found if one.whole is not None),
                *map(frozenset, kinds.values()))


def shown(cell: NotebookNode) -> list[Line]:
    """What a code cell shows, claims included; an unchecked cell's outputs may change and bear nothing out."""
    if is_unchecked(cell):
        return []
    return [one for output in cell.outputs for one in _lines(values(output))]


def _lines(data: dict[str, str]) -> list[Line]:
    """A table is read where it is one, in HTML; other outputs in their plain form, if they have one."""
    if "<table" in data.get("text/html", "") or set(data) == {"text/html"}:
        return lines_of_html(data["text/html"])
    return [one for mime, text in data.items() if mime != "text/html" or "text/plain" not in data
            for one in lines_of_text(text)]


def lines_of_text(text: str) -> list[Line]:
    """Lines of plain text; below a rule the words of the head go with each, below words alone those words."""
    found, head, before = [], "", ""
    for written in letters(text).split("\n"):
        if _RULE.fullmatch(written):
            head = before
        elif not written.strip():
            head = ""
        else:
            found.append(line(written, head=head))
            head = head if found[-1].numbers else written
        before = written
    return found


def lines_of_html(text: str) -> list[Line]:
    """Cells of tables, each with its row and its column's head; each row as a whole; and the text around tables."""
    around, tables = taken_apart(letters(text))
    return lines_of_text(around) + [one for table in tables for one in _lines_of_table(table)]


def _lines_of_table(rows: Table) -> list[Line]:
    """A column whose head names no measure (later, in all) goes with the heads of all columns."""
    head = [text for _, text in rows[0]] if rows and all(is_head for is_head, _ in rows[0]) else []
    whole = stems(" ".join(head))
    found = [Line(frozenset([Decimal(len(rows) - bool(head))]), whole, frozenset(), frozenset())]  # so many rows
    for row in rows[bool(head):]:
        texts = [text for _, text in row]
        found.append(line(" | ".join(texts)))
        for text, above in zip_longest(texts, head[:len(texts)], fillvalue=""):
            around = stems(" ".join(texts)) | (frozenset() if stems(above) & MEASURES else whole)
            found.append(line(text, around, above))
    return found
