"""Markdown as its reader sees it: sentences, headings and table cells of plain text, each with what is around it.

Left out is what holds no findings of the course: code (a code span that is nothing but a figure stays), addresses,
formulas of small constants, dates and years of publications, the numbers of lists and sections, minutes and gigabytes
in the paragraph 'What you'll need', and the columns of tables headed 'the text reports'.
"""
from __future__ import annotations

import html
import re
from typing import NamedTuple

from lib.machinery.structure import markdown
from lib.machinery.structure.numbers import letters

_NEEDS = re.compile(r"\s*\**What you'll need\b", re.I)
_NEEDED = re.compile(r"\b[\w.,–-]+(?: to [\w.,]+)? (?:minutes?|hours?|gigabytes?|megabytes?|GB|MB)\b", re.I)
_SENTENCE = re.compile(r"(?<=[.!?;])[)*]*\s+(?=[A-ZÀ-Ỹ*(])")
EXEMPT_COLUMN = re.compile(r"\s*the text reports\s*", re.I)
_PROSE = {"", "text", "txt", "output", "console"}  # what a fence holds that holds no code
_FORMULA = re.compile(r"\$\$.*?\$\$", re.S)
_LARGE = re.compile(r"(?<![\d.])(?:\d\d|[3-9])")
_ATTRIBUTES = re.compile(r"<[^>]*?\b(?:alt|title|aria-label)\s*=\s*([\"'])(?P<text>.*?)\1[^>]*>", re.S | re.I)
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|code|small|sub|span|u|s|mark|kbd|q|abbr)\b[^>]*>", re.I)
_TAG = re.compile(r"</?[A-Za-z!][^>]*>")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)(?<!\\)\1"
                       r"|(?<![\w\\])(_{1,3})(?=\S)(.+?)(?<=\S)\3(?!\w)", re.S)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ADDRESS = re.compile(r"\b(?:https?|mailto):[^\s)>]+")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-\d\d)?\b|\b(?:\d{{1,2}} )?(?:{_MONTH}) (?:19|20)\d\d\b")
_YEAR = re.compile(r"(?<=\()(?:19|20)\d\d[a-z]?(?=\))|(?<=, )(?:19|20)\d\d[a-z]?(?=[);])")
_SPAN_OF_FIGURES = re.compile(r"[\s~≈<>±+−-]*[\w.,'%]+(?:[ -][\w.,'%]+)*[\s.]*")
_IDENTIFIER = re.compile(r"_|[^\W\d]\.[^\W\d]|[^\W\d]\d")
_ITEM = re.compile(r"^(?P<indent>\s*(?:>\s*)*)(?P<number>\d+)[.)]\s+(?=\S)")
_SECTION = re.compile(r"^(\s*(?:>\s*)*#{1,6}\s+)(?:\d+[.)]|\d+(?:\.\d+)+[.)]?(?=\s+[A-ZÀ-Ỹ]))\s+")


class Block(NamedTuple):
    """A piece of text that is read in one go, and the words it stands among: its own, or its table row and column."""

    text: str
    around: str


def blocks(source: str) -> list[Block]:
    """The sentences, headings, list items and table cells of a Markdown text, as their reader sees them."""
    found, paragraph, table = [], [], []
    for line in [*_unnumbered(_visible(source).split("\n")), ""]:
        if _cells(line):
            table.append(_cells(line))
        elif table:
            found += _blocks_of_table(table)
            table = []
        starts = not line.strip() or bool(_cells(line)) or re.match(r"\s*(?:[#>*+-]|\d+[.)])\s", line)
        if starts and paragraph:
            found += _paragraph(" ".join(paragraph))
            paragraph = []
        if line.strip() and not _cells(line):
            paragraph.append(line.strip())
    return [Block(_finished(block.text), _finished(block.around)) for block in found]


def _paragraph(text: str) -> list[Block]:
    text = _NEEDED.sub(" ", text) if _NEEDS.match(text) else text
    return [Block(sentence, sentence) for sentence in _SENTENCE.split(text)]


def _blocks_of_table(rows: list[list[str]]) -> list[Block]:
    """The cells of a table with the words of their row and of their column's head."""
    head, body = (rows[0], rows[2:]) if len(rows) > 1 and _is_rule(rows[1]) else ([], rows)
    exempt = {place for place, text in enumerate(head) if EXEMPT_COLUMN.fullmatch(text)}
    found = [Block(text, text) for place, text in enumerate(head) if place not in exempt]
    for row in body:
        found += [Block(text, " ".join([*row, *head[place:place + 1]]))
                  for place, text in enumerate(row) if place not in exempt]
    return found


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())
    return cells[not cells[0].strip():len(cells) - (not cells[-1].strip())] if len(cells) > 2 else []


def _is_rule(cells: list[str]) -> bool:
    return all(re.fullmatch(r"\s*:?-+:?\s*", cell) for cell in cells)


def _unnumbered(lines: list[str]) -> list[str]:
    """Lines without the numbers of headings and lists: 1, and each that follows the one before."""
    last = 0
    for place, line in enumerate(lines):
        lines[place] = _SECTION.sub(r"\1", line)
        item = _ITEM.match(line)
        if item and int(item["number"]) in (1, last + 1):
            last = int(item["number"])
            lines[place] = f"{item['indent']}- {line[item.end():]}"
    return lines


def _visible(source: str) -> str:
    """The text without what isn't shown as prose; lines keep their places."""
    source = markdown.FENCE.sub(_fence, source)
    source = _FORMULA.sub(lambda found: found.group() if _LARGE.search(found.group()) else " ", source)
    source = markdown.CODE.sub(lambda found: _span(found["body"]), markdown.COMMENT.sub("", source))
    source = markdown.DEFINITION.sub(lambda found: found["title"], source)
    for _ in range(2):  # an image may stand in a link
        source = markdown.LINK.sub(lambda found: f"{found['text']} {found['title'] or ''}".rstrip(), source)
    source = re.sub(r"\[\^[^\]\s]+\]:?", "", re.sub(r"\[([^\[\]]+)\]\[[^\[\]]*\]", r"\1", source))
    source = _ATTRIBUTES.sub(lambda found: f" {found['text']} ", source)
    return _ADDRESS.sub(" ", html.unescape(_TAG.sub(" ", _INLINE.sub("", source))))


def _fence(found: re.Match) -> str:
    """A fence without a language holds text; any other holds code."""
    return f"\n{found['body']}\n" if found["language"].strip() in _PROSE else "\n"


def _span(code: str) -> str:
    """A code span that reads as a figure with its words stays as text; any other is code."""
    reads = _SPAN_OF_FIGURES.fullmatch(code) and not _IDENTIFIER.search(code)
    return code if reads else " "


def _finished(text: str) -> str:
    """A piece of text without marks of Markdown, dates and years, in plain letters."""
    text = re.sub(r"^\s*(?:[#>]+|[*+-](?=\s))\s*", "", text)
    for _ in range(3):
        text = _EMPHASIS.sub(lambda found: found[2] or found[4], text)
    text = _ESCAPE.sub(r"\1", re.sub(r"(?<!\\)\$(?=\d)|(?<=\d)\$", "", text))
    text = letters(text)
    return re.sub(r"(?<![\d,.])(\d+),(\d{1,2})(?![\d,])", r"\1.\2", _YEAR.sub(" ", _DATE.sub(" ", text)))
