"""The Markdown of a notebook: headings in order, images that say what they show, nothing left to be filled in."""
from __future__ import annotations

import re
from collections import Counter

from nbformat import NotebookNode

from lib.machinery.structure import markdown

_TAG = re.compile(r"<(?:img|svg)\b[^>]*>", re.I)
_SAID = re.compile(r"\b(?:alt|aria-label)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.I)
_FILE = re.compile(r"[\w\s./-]*\.(?:png|jpe?g|gif|svg|webp|pdf)", re.I)
_EMPTY_WORDS = {"image", "img", "picture", "figure", "fig", "plot", "chart", "diagram", "graph", "alt", "text",
                "photo", "screenshot", "the", "a", "an", "of", "here", "untitled"}


def heading_faults(notebook: NotebookNode) -> list[str]:
    """One title, first of all; then no level is skipped on the way down, and no two headings are alike."""
    found = [heading for _, text in markdown.cells(notebook) for heading in markdown.headings(text)]
    levels = [level for level, _ in found]
    faults = [] if starts_with_title(notebook) else ["the notebook does not start with a title (# …)"]
    faults += ["the notebook has more than one title (# …)"] if levels.count(1) > 1 else []
    faults += [f"the heading {words!r} skips a level" for before, (level, words)
               in zip(levels, found[1:], strict=False) if level > before + 1]
    names = Counter(markdown.slug(words) for _, words in found)
    return faults + ["a heading says nothing" for _, words in found if not words] + [
        f"{count} headings read {name!r}, so that a link cannot tell them apart"
        for name, count in names.items() if name and count > 1]


def starts_with_title(notebook: NotebookNode) -> bool:
    """Whether the first line of the first cell is a title."""
    if not notebook.cells or notebook.cells[0].cell_type != "markdown":
        return False
    lines = markdown.without_code(notebook.cells[0].source).strip().split("\n")
    return [level for level, _ in markdown.headings("\n".join(lines[:2]))][:1] == [1]


def image_faults(notebook: NotebookNode) -> list[str]:
    """Images in Markdown whose alternative text is missing or says nothing."""
    found = []
    for cell, text in markdown.cells(notebook):
        found += [f"cell {cell.get('id')}: the image {link.target} has no alternative text that says what it shows"
                  for link in markdown.links(_TAG.sub("", text)) if link.image and says_nothing(link.text)]
        found += [f"cell {cell.get('id')}: an <img> has no alternative text that says what it shows"
                  for tag in _TAG.findall(text) if says_nothing(alternative(tag))]
    return found


def alternative(tag: str) -> str:
    """What an HTML tag says in place of its image."""
    return " ".join(one or other for one, other in _SAID.findall(tag))


def says_nothing(text: str) -> bool:
    """Whether an alternative text is empty, the name of a file, or only says that there is an image."""
    words = set(re.findall(r"[^\W\d_]+", text.lower()))
    return bool(_FILE.fullmatch(text.strip())) or not words - _EMPTY_WORDS


def placeholder_faults(notebook: NotebookNode) -> list[str]:
    """Words in Markdown that were left to be filled in."""
    left = re.compile(r"\b(?:TODO|FIXME|TBD|XXX+|[A-Z]{2,}(?:_[A-Z]+)+)\b")
    return [f"cell {cell.get('id')}: {found.group()!r} was left to be filled in"
            for cell, text in markdown.cells(notebook) if (found := left.search(text))]
