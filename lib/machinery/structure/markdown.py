"""Markdown taken apart: cells, code, headings with their anchors, links and images."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from nbformat import NotebookNode

FENCE = re.compile(r"^[ ]{0,3}(```+|~~~+)[ \t]*(?P<language>[^\n]*)\n(?P<body>.*?)^[ ]{0,3}\1[`~]*[ \t]*$",
                   re.M | re.S)
CODE = re.compile(r"(?<!`)(`+)(?!`)(?P<body>.+?)(?<!`)\1(?!`)", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
_HEADING = re.compile(r"^[ ]{0,3}(?P<marks>#{1,6})[ \t]+(?P<words>.*?)[ \t]*#*[ \t]*$"
                      r"|^[ ]{0,3}(?![|>#*+-])(?P<above>\S.*)\n[ ]{0,3}(?P<line>=+|-{3,})[ \t]*$"
                      r"|<h(?P<level>[1-6])\b[^>]*>(?P<inside>.*?)</h(?P=level)>", re.M | re.I)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
                  r"\(\s*(?:<(?P<pointed>[^>\n]*)>|(?P<plain>[^)\s]*))(?:\s+(?P<title>\"[^\"]*\"|'[^']*'|\([^)]*\)))?\s*\)")
DEFINITION = re.compile(r"^[ ]{0,3}\[(?!\^)(?P<name>[^\]\n]+)\]:\s*<?(?P<target>[^\s>]+)>?(?P<title>.*)$", re.M)
_ATTRIBUTE = re.compile(r"<(?P<tag>a|img)\b[^>]*?\b(?:href|src)\s*=\s*(?P<quote>[\"'])(?P<target>.*?)(?P=quote)",
                        re.I | re.S)
_ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)\s*=\s*([\"'])(.+?)\1", re.I | re.S)


class Link(NamedTuple):
    """A link or an image: what is to be read, and where it leads."""

    image: bool
    text: str
    target: str


def cells(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Each Markdown cell with its text, code and comments taken out of it."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell, without_code(cell.source)


def without_code(text: str) -> str:
    """Markdown without fenced blocks, code spans and comments; lines keep their places."""
    for pattern in (FENCE, COMMENT, CODE):
        text = pattern.sub(lambda found: "\n" * found.group().count("\n") or " ", text)
    return text


def headings(text: str) -> list[tuple[int, str]]:
    """The headings of a Markdown text, underlined ones and those in HTML included: level and words."""
    return [(_level(found), (found["words"] or found["above"] or found["inside"] or "").strip())
            for found in _HEADING.finditer(text)]


def _level(heading: re.Match) -> int:
    if heading["level"]:
        return int(heading["level"])
    return len(heading["marks"]) if heading["marks"] else 1 + heading["line"].startswith("-")


def links(text: str) -> Iterator[Link]:
    """The links and images of a Markdown text without code, those written in HTML and by reference included."""
    for found in LINK.finditer(text):
        yield Link(bool(found["image"]), found["text"], found["pointed"] or found["plain"] or "")
        yield from links(found["text"])
    for found in DEFINITION.finditer(text):
        yield Link(False, found["name"], found["target"])
    for found in _ATTRIBUTE.finditer(text):
        yield Link(found["tag"].lower() == "img", "", found["target"])


def anchors(text: str) -> set[str]:
    """What `#…` may name in a Markdown text: its headings as GitHub and as Jupyter spell them, and ids in HTML."""
    plain = without_code_marks(text)
    words = [words for _, words in headings(plain)]
    seen: Counter[str] = Counter()
    found = {name for _, name in _ANCHOR.findall(text)}
    for heading in words:
        for name in {slug(heading), heading.replace(" ", "-")}:
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


def without_code_marks(text: str) -> str:
    """Markdown without fenced blocks, with the contents of code spans."""
    return CODE.sub(lambda found: found["body"], FENCE.sub("", text))


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading: small letters, blanks as hyphens, no signs."""
    words = LINK.sub(lambda found: found["text"], heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
