"""The Markdown of a notebook: headings in order, links that lead somewhere, images that say what they show."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

from lib.machinery.structure.recorded import PATHS

_FENCE = re.compile(r"^(```+|~~~+).*?^\1[`~]*[ \t]*$", re.M | re.S)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$", re.M)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^)\s>]*)>?(?:\s+[^)]*)?\)")


def markdown(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Each Markdown cell with its text, code and comments taken out of it."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell, without_code(cell.source)


def without_code(text: str) -> str:
    """Markdown without fenced blocks, code spans and comments; lines keep their places."""
    for pattern in (_FENCE, _COMMENT, _CODE):
        text = pattern.sub(lambda found: "\n" * found.group().count("\n") or " ", text)
    return text


def headings(text: str) -> list[tuple[int, str]]:
    """The headings of a Markdown text: level and words."""
    return [(len(found[1]), found[2].strip()) for found in _HEADING.finditer(text)]


def heading_faults(notebook: NotebookNode) -> list[str]:
    """One title, first of all; then no level is skipped on the way down."""
    found = [heading for _, text in markdown(notebook) for heading in headings(text)]
    levels = [level for level, _ in found]
    faults = [] if levels[:1] == [1] else ["the notebook does not start with a title (# …)"]
    faults += ["the notebook has more than one title (# …)"] if levels.count(1) > 1 else []
    return faults + [f"the heading {words!r} skips a level" for before, (level, words)
                     in zip(levels, found[1:], strict=False) if level > before + 1]


def links(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, bool, str, str]]:
    """Each Markdown link or image: its cell, whether it is an image, its text, its target."""
    for cell, text in markdown(notebook):
        for found in _LINK.finditer(text):
            yield cell, bool(found[1]), found[2], found[3]


def image_faults(notebook: NotebookNode) -> list[str]:
    """Markdown images without alternative text."""
    bare = re.compile(r"<img\b(?![^>]*\balt=['\"][^'\"])", re.I)
    return [f"cell {cell.get('id')}: the image {target} has no alternative text"
            for cell, image, text, target in links(notebook) if image and not text.strip()
            ] + [f"cell {cell.get('id')}: an <img> has no alternative text"
                 for cell, text in markdown(notebook) if bare.search(text)]


def link_faults(notebook: NotebookNode, path: Path) -> list[str]:
    """Links to files of the course that are not there."""
    return [f"cell {cell.get('id')}: the link {target} leads nowhere" for cell, _, _, target in links(notebook)
            if not _leads_somewhere(target, path)]


def _leads_somewhere(target: str, path: Path) -> bool:
    file = unquote(target.partition("#")[0])
    if re.match(r"(?:https?|mailto):", target) or (not file and target.startswith("#")):
        return True
    return bool(file) and not Path(file).is_absolute() and (path.parent / file).exists()


def placeholder_faults(notebook: NotebookNode) -> list[str]:
    """Words in Markdown that were left to be filled in."""
    left = re.compile(r"\b(?:TODO|FIXME|TBD|XXX+|[A-Z]{2,}(?:_[A-Z]+)+)\b")
    return [f"cell {cell.get('id')}: {found.group()!r} was left to be filled in"
            for cell, text in markdown(notebook) if (found := left.search(text))]


def path_faults(notebook: NotebookNode) -> list[str]:
    """Paths of one machine in what was written by hand."""
    return [f"cell {cell.get('id')}: it holds a path of one machine ({found.group()!r})"
            for cell in notebook.cells if (found := PATHS.search(cell.source))]
