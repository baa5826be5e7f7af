"""Links and images in Markdown that lead nowhere: no such file in the course, no such heading in it."""
from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

from lib.machinery import notebooks
from lib.machinery.structure import markdown

_ELSEWHERE = re.compile(r"(?:https?|mailto):", re.I)
_NUMBER = re.compile(r"0\d")


def faults(notebook: NotebookNode, path: Path) -> list[str]:
    """Links of a notebook that lead nowhere in the course."""
    return [f"cell {cell.get('id')}: {fault}" for cell, text in markdown.cells(notebook)
            for fault in text_faults(text, path, set(cell.get("attachments", {})), _anchors_of(notebook))]


def document_faults(path: Path) -> list[str]:
    """Links of a Markdown file that lead nowhere in the course."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text_faults(markdown.without_code(text), path, set(), markdown.anchors(text))


def text_faults(text: str, path: Path, attached: set[str], own: set[str]) -> list[str]:
    """What is wrong with the links in a Markdown text of the file at `path`, which has the anchors `own`."""
    found = [fault for link in markdown.links(text) if (fault := _fault(link, path, attached, own))]
    defined = {name["name"].lower() for name in markdown.DEFINITION.finditer(text)}
    return found + [f"the link [{name}] is defined nowhere" for _, name in
                    re.findall(r"\[([^\[\]]+)\]\[([^\[\]^]+)\]", text) if name.lower() not in defined]


def files(text: str, path: Path) -> list[Path]:
    """The files of the course that a Markdown text in the file at `path` links to."""
    targets = [link.target.partition("#")[0] for link in markdown.links(text) if not _ELSEWHERE.match(link.target)]
    found = [_file(unquote(target), path) for target in targets if target]
    return [file for file in found if file is not None and file.is_file()]


def _fault(link: markdown.Link, path: Path, attached: set[str], own: set[str]) -> str | None:
    target, _, anchor = link.target.partition("#")
    if _ELSEWHERE.match(link.target) or target.removeprefix("attachment:") in attached and ":" in target:
        return None
    file = path if not target and anchor else _file(unquote(target), path)
    if file is None:
        return f"the link {link.target} leads nowhere"
    if anchor and unquote(anchor) not in (own if file == path else _anchors_in(file)):
        return f"the link {link.target} leads to a heading that is not there"
    named = _NUMBER.findall(link.text)
    if file.suffix == ".ipynb" and named and file.name[:2] not in named:
        return f"the link {link.target} is called {link.text!r}, which is another notebook"
    return None


def _file(target: str, path: Path) -> Path | None:
    """The file or folder of the course that a link names, spelt as it is spelt; None if there is none."""
    whole = Path(os.path.normpath(path.parent / target))
    inside = _root(path) in (whole, *whole.parents)
    spelt = all(step.name in os.listdir(step.parent) for step in (whole, *whole.parents)
                if inside and _root(path) in step.parents and step.parent.is_dir())
    return whole if target and inside and not os.path.isabs(target) and spelt and whole.exists() else None


def _root(path: Path) -> Path:
    """The folder of the course that holds `path`: a notebook lies in a folder of it, a document in it."""
    if notebooks.ROOT in path.parents:
        return notebooks.ROOT
    return path.parent if path.suffix == ".md" else path.parent.parent


def _anchors_in(file: Path) -> set[str]:
    """The anchors of a notebook or a Markdown file; none of any other file."""
    if file.suffix == ".ipynb":
        return _anchors_of(notebooks.read(file))
    return markdown.anchors(file.read_text(encoding="utf-8", errors="replace")) if file.suffix == ".md" else set()


def _anchors_of(notebook: NotebookNode) -> set[str]:
    return markdown.anchors("\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"))
