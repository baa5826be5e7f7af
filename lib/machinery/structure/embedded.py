"""What Markdown and outputs bring in or hide: scripts, frames, pictures that no cell made, addresses of a machine."""
from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from lib.machinery import notebooks
from lib.machinery.outputs import values
from lib.machinery.structure import markdown
from lib.machinery.structure.plain import EXEMPT_COLUMN

_ACTIVE = re.compile(r"<(?:script|iframe|object|embed|form|style|link|meta|base)\b|\bjavascript:"
                     r"|<\w+[^>]*\son\w+\s*=", re.I)
_HIDDEN = re.compile(r"<\w+[^>]*(?:display\s*:\s*none|visibility\s*:\s*hidden|\shidden\b|font-size\s*:\s*0\b)", re.I)
_FROM_THE_NET = re.compile(r"\bsrc\s*=\s*[\"']?(?:https?:)?//|url\(\s*[\"']?(?:https?:)?//", re.I)
# a host without a dot, or one that only a house or a machine knows
_HERE = re.compile(r"https?://(?:[^/\s]*@)?(?:[\w-]+(?=[:/?#]|$)|[\w.-]+\.(?:local|lan|internal)\b|\[::1?\]"
                   r"|(?:127|10)(?:\.\d+){3}|0\.0\.0\.0|192\.168(?:\.\d+){2}"
                   r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2})", re.I)
_ROW = re.compile(r"^\s*\|(.+)\|\s*$\n^\s*\|[\s:|-]+\|\s*$", re.M)
_MEASURED = "we measured"
_OBJECT = re.compile(r"<IPython\.core\.display\.\w+ object>|<\w[\w.]* object(?: at |>)")
_UNHELD = re.compile(r"^recorded: .*, here: ", re.M)


def faults(notebook: NotebookNode) -> list[str]:
    """What is brought in or hidden, each with its cell."""
    written = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    found = [(cell, fault) for cell in written for fault in markdown_faults(cell)]
    found += [(cell, fault) for cell in notebooks.code_cells(notebook) for output in cell.outputs
              for fault in output_faults(output)]
    return [f"cell {cell.get('id')}: {fault}" for cell, fault in found]


def markdown_faults(cell: NotebookNode) -> Iterator[str]:
    """What is wrong with what a Markdown cell brings in, hides or leaves open."""
    text = markdown.without_code(cell.source)
    if not markdown.COMMENT.sub("", cell.source).strip():
        yield "it says nothing"
    yield from (f"it holds {found.group()!r}, which does something" for found in [_ACTIVE.search(text)] if found)
    yield from ["it hides a part of itself from its reader"] * bool(_HIDDEN.search(text))
    if cell.get("attachments"):
        yield "it has an attachment: a picture is made by a cell, or it cannot be checked"
    yield from left_open(text)
    yield from table_faults(text)
    yield from link_faults(text)


def link_faults(text: str) -> Iterator[str]:
    """Pictures from the net, links to one machine, and links without words."""
    for link in markdown.links(text):
        if link.image and re.match(r"(?:https?:)?//", link.target):
            yield f"the picture {link.target} comes from the net"
        if _HERE.match(link.target):
            yield f"the link {link.target} leads to one machine"
        if not link.image and not link.text.strip() and f"[]({link.target}" in text:
            yield f"the link {link.target} has no words"


def left_open(text: str) -> Iterator[str]:
    """What begins and does not end, so that the rest of a cell is shown as something else, or not at all."""
    checks = {"a comment": "<!--" in text, "a block of code": re.search(r"^ {0,3}(?:```|~~~)", text, re.M),
              "a formula": text.count("$$") % 2, "a link": re.search(r"\]\([^)\n]*$", text, re.M)}
    return (f"{what} is begun and not ended" for what, open_ in checks.items() if open_)


def table_faults(text: str) -> Iterator[str]:
    """The column that holds a text's figures is the one beside those that were measured, and there is only one."""
    for head in _ROW.findall(text):
        names = [name.strip().lower() for name in head.split("|")]
        reported = [name for name in names if EXEMPT_COLUMN.fullmatch(name)]
        if len(reported) > 1 or (reported and _MEASURED not in names):
            yield f"a table's heads are {', '.join(names)}: one is 'the text reports', and another {_MEASURED!r}"


def output_faults(output: NotebookNode) -> Iterator[str]:
    """What is wrong with what an output brings in, or leaves unsaid."""
    found = values(output)
    page = found.get("text/html", "") + markdown.without_code(found.get("text/markdown", ""))
    active = _ACTIVE.search(page) or "application/javascript" in found
    checks = {"an output holds a script, a frame or a style": active,
              "an output loads something from the net": _FROM_THE_NET.search(page),
              "an output hides a part of itself": _HIDDEN.search(page),
              "an output has an object's name in place of text": _OBJECT.search(found.get("text/plain", "")),
              "an output says that a claim does not hold": _UNHELD.search(found.get("text", ""))}
    return (fault for fault, wrong in checks.items() if wrong)
