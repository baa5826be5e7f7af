"""Figures in Markdown are borne out: each number stands, with its unit or noun, in an output or a claim above it.

A number is borne out by one cell's outputs that hold the same number and, where words follow it directly ('32
tokens', '1,000 prompt tokens'), at least one of these words in singular or plural. Not looked at are code, links,
dates and years of publications, numbers of sections, lists, notebooks and figures, ordinals, names with digits
(BM25), sections headed 'Further reading', cells tagged `course-no-figures`, table columns headed 'the text reports'.
"""
from __future__ import annotations

import html
import re
from dataclasses import dataclass
from decimal import Decimal

from nbformat import NotebookNode

from lib.machinery.notebooks import is_unchecked
from lib.machinery.outputs import values
from lib.machinery.structure import prose

EXEMPT_TAG = "course-no-figures"
EXEMPT_SECTION = "further reading"
EXEMPT_COLUMN = "the text reports"
_LETTER = r"[^\W\d_]"
_NUMBER = re.compile(
    rf"(?P<name>(?<![\w.\-]){_LETTER}[\w.\-]*\d[\w.\-]*)"  # a name with digits in it is no number: BM25, top-1
    r"|(?P<number>\d{1,3}(?:[,\u00a0\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_WORD = re.compile(rf"[ \u00a0\u202f-]?(?P<word>%|{_LETTER}+)")
_REFERENCE = re.compile(r"(?:notebook|cell|step|figure|table|section|chapter|part|question|exercise|python|page"
                        r"|no\.|@|#|v)s?[ \u00a0]?$", re.I)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_MONTH = ("January|February|March|April|May|June|July|August|September|October|November|December")
_DATE = re.compile(rf"\b\d{{4}}-\d{{2}}(?:-\d{{2}})?\b|\b(?:\d{{1,2}} )?(?:{_MONTH}) \d{{4}}\b")
_YEAR = re.compile(r"(?<=[(,; ])(?:19|20)\d{2}[a-z]?(?=[),;])")
_NO_NOUN = frozenset(
    "a about after against all also among an and are as at be because been before below between both but by can "
    "costs do does down each else either ever every for from gave gives had has have here if in instead into is it "
    "its just less like may means more most much must need needs no nor not now of off on once one only onto or out "
    "over per plus rather see since so still than that the their them then there these they this those though "
    "through times to together too under until up upon very was we were when where whereas which while who will "
    "with without would x yet you".split())


@dataclass(frozen=True)
class Figure:
    """A number in a text, with the words that follow it directly (at most three; none after a comma or 'of')."""
    value: Decimal
    text: str
    nouns: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.text, *self.nouns))


def faults(notebook: NotebookNode) -> list[str]:
    """The figures in Markdown that nothing above them bears out."""
    evidence: list[tuple[frozenset[Decimal], frozenset[str]]] = []
    found, further = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            text = _evidence(cell)
            evidence.append((frozenset(figure.value for figure in figures(text)), frozenset(_stems(text))))
        elif cell.cell_type == "markdown":
            text, further = without_further_reading(prose.without_code(cell.source), further)
            if EXEMPT_TAG not in cell.metadata.get("tags", []):
                found += [f"cell {cell.get('id')}: {str(figure)!r} is borne out by no output above it"
                          for figure in figures(checked_text(text)) if not is_borne(figure, evidence)]
    return found


def is_borne(figure: Figure, evidence: list[tuple[frozenset[Decimal], frozenset[str]]]) -> bool:
    """Whether one cell's outputs hold the number and, if it has any, one of its nouns."""
    nouns = {_stem(noun) for noun in figure.nouns}
    return any(figure.value in numbers and (not nouns or nouns & words) for numbers, words in evidence)


def figures(text: str) -> list[Figure]:
    """The numbers in `text`, in order."""
    found = [match for match in _NUMBER.finditer(text) if match["number"]]
    return [Figure(_value(match["number"]), match["number"], _nouns(text, match.end())) for match in found
            if not _is_reference(text, match)]


def _value(number: str) -> Decimal:
    return Decimal(re.sub(r"[,\u00a0\u2009\u202f]", "", number)).normalize()


def _is_reference(text: str, match: re.Match) -> bool:
    """Whether the number only names something: a notebook, a place in a list, a rank."""
    before, after = text[:match.start()], text[match.end():]
    return bool(_ORDINAL.match(after) or re.match(r"0\d", match["number"]) or _REFERENCE.search(before[-12:]))


def _nouns(text: str, end: int) -> tuple[str, ...]:
    nouns: list[str] = []
    while len(nouns) < 3 and (found := _WORD.match(text, end)) and found["word"].lower() not in _NO_NOUN:
        nouns.append(found["word"])
        end = found.end()
    return tuple(nouns)


def _stem(word: str) -> str:
    word = word.lower()
    return word[:-1] if len(word) > 2 and word.endswith("s") else word


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in re.findall(rf"%|{_LETTER}+", text)]


def _evidence(cell: NotebookNode) -> str:
    """What a code cell shows, claims included; an unchecked cell's outputs may change and bear nothing out."""
    if is_unchecked(cell):
        return ""
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", " ", text)) if "<" in text else text
                     for output in cell.outputs for text in values(output).values())


def without_further_reading(text: str, inside: int) -> tuple[str, int]:
    """`text` without the section 'Further reading'; `inside`: the level of its heading where it has begun, else 0."""
    kept = []
    for line in text.split("\n"):
        for level, words in prose.headings(line):
            if EXEMPT_SECTION in words.lower():
                inside = level
            elif level <= inside:
                inside = 0
        kept.append("" if inside else line)
    return "\n".join(kept), inside


def checked_text(text: str) -> str:
    """A Markdown text without what may hold numbers that are no findings."""
    text = re.sub(r"^(\s*(?:#{1,6}|>|[-*+])*\s*)\d+(?:\.\d+)*[.)]?\s+(?=\S)", _without_place, text, flags=re.M)
    for pattern in (prose._LINK, re.compile(r"https?://\S+|<[^>\n]+>"), _DATE, _YEAR):
        text = pattern.sub(" ", text)
    return "\n".join(without_columns(text.split("\n")))


def _without_place(found: re.Match) -> str:
    """A list's or a heading's own number goes; a number that starts a plain line of prose stays."""
    numbered = "#" in found[1] or re.search(r"\d[.)]\s+$", found[0])
    return found[1] if numbered else found[0]


def without_columns(lines: list[str]) -> list[str]:
    """Lines of Markdown with the cells of each column headed 'the text reports' emptied."""
    exempt: set[int] = set()
    kept = []
    for line in lines:
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) < 3:
            exempt = set()
        elif any(EXEMPT_COLUMN in cell.lower() for cell in cells):
            exempt = {place for place, cell in enumerate(cells) if EXEMPT_COLUMN in cell.lower()}
        kept.append(" | ".join("" if place in exempt else cell for place, cell in enumerate(cells)))
    return kept
