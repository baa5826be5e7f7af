"""Passages: a Markdown text cut into what can be found, its paragraphs or pieces of a size, and where each stands."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import chain, pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])  # what a line belongs to; emphasis and links are left alone


class Passage(NamedTuple):
    """A part of a document and where it stands: the document's name, its number there (from 0), its heading."""
    document: str
    number: int
    heading: str
    text: str


def passages(text: str, document: str = "", cut: Callable[[str], list[str]] | None = None) -> list[Passage]:
    """The paragraphs of a Markdown document, or its parts by another `cut`; none reaches across a heading."""
    found = [(heading, part) for heading, body in _sections(text) for part in (cut or paragraphs)(body)]
    return [Passage(document, number, *each) for number, each in enumerate(found)]


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a Markdown text, white space as one space; lists, tables, quotations and code are none."""
    lines, tokens = _parse(text)
    return [" ".join(" ".join(lines[slice(*token.map)]).split()) for token in tokens
            if token.type == "paragraph_open" and token.level == 0]


def pieces(text: str, size: int = 800, overlap: int = 0) -> list[str]:
    """A Markdown text without its code in pieces of at most `size` characters (NFC), as many words in each as fit.

    A piece begins with the last words of the one before that fit in `overlap` characters. Only a word longer than
    `size` is cut. ValueError unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"0 <= overlap < size is needed, not an overlap of {overlap} in pieces of {size}")
    found, piece, length = [], [], -1  # the length of no word and no space
    for word in chain.from_iterable(_cut(word, size) for word in without_code(text).split()):
        if length + 1 + len(word) > size:
            found.append(" ".join(piece))
            piece = _tail(piece, min(overlap, size - 1 - len(word)))
            length = sum(len(carried) + 1 for carried in piece) - 1
        piece.append(word)
        length += 1 + len(word)
    return [*found, " ".join(piece)] if piece else found


def without_code(text: str) -> str:
    """A Markdown text in NFC, without the lines of its fenced code (by CommonMark's rules)."""
    lines, tokens = _parse(text)
    code = {number for token in tokens if token.type == "fence" for number in range(*token.map)}
    return "\n".join(line for number, line in enumerate(lines) if number not in code)


def _parse(text: str) -> tuple[list[str], list]:
    """The lines of a text in NFC (no BOM), and the tokens of its blocks; `map` of a token is its range of lines."""
    text = re.sub(r"\r\n?", "\n", unicodedata.normalize("NFC", text)).removeprefix("\ufeff")
    return text.split("\n"), _MARKDOWN.parse(text)


def _sections(text: str) -> list[tuple[str, str]]:
    """(heading, what stands below it) in order; what comes before the first heading has ''."""
    lines, tokens = _parse(text)
    headings = [(token.map, inline.content) for token, inline in pairwise(tokens)
                if token.type == "heading_open" and token.level == 0]
    titles = ["", *(" ".join(title.split()) for _, title in headings)]
    starts = [0, *(place[1] for place, _ in headings)]
    ends = [*(place[0] for place, _ in headings), len(lines)]
    return [(title, "\n".join(lines[start:end])) for title, start, end in zip(titles, starts, ends, strict=True)]


def _tail(words: list[str], room: int) -> list[str]:
    """The last of the words, as many as fit in `room` characters with their spaces."""
    count, length = 0, -1
    while count < len(words) and (length := length + 1 + len(words[-1 - count])) <= room:
        count += 1
    return words[len(words) - count:]


def _cut(word: str, size: int) -> list[str]:
    """A word in parts of at most `size` characters; a combining mark stays with its letter where both fit."""
    parts, start = [], 0
    while len(word) - start > size:
        ends = range(start + size, start, -1)
        end = next((end for end in ends if not unicodedata.category(word[end]).startswith("M")), start + size)
        parts.append(word[start:end])
        start = end
    return [*parts, word[start:]]
