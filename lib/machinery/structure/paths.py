"""Paths of one machine, wherever they may stand: sources, Markdown, outputs, metadata, files of the course."""
from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

from lib.machinery.notebooks import ROOT

PATHS = re.compile(
    r"(?<![\w.~])/(?:home|root|tmp|Users|var/folders|var/tmp|private|mnt|media|opt|srv|Volumes|run/user|scratch"
    r"|usr/(?:local/)?(?:lib|bin))/[\w.-]*"
    r"|(?<![\w.~])/(?:content/drive|kaggle/(?:input|working)|workspaces?|nix/store|dev/shm|cygdrive|etc|proc/\d+|usr/share"
    r"|Applications|Library|var/(?:lib|log|cache))/[\w.-]+|\b(?:ana|mini)(?:conda|forge)3?[\\/]+envs\b"
    r"|\b(?:dbfs|vscode-remote):/|(?<![\w\\])\\{2,4}(?![nrtu])[A-Za-z][\w.-]+\\{1,2}(?![nrtu])[\w$]{2,}"
    r"|\b[A-Za-z]:(?:\\{1,2}(?![nrtu])|/)[\w.-]{2,}[\\/]+\w"
    r"|\b[A-Za-z]:[\\/]+(?:Users|Windows|Temp|Program)\b|\bAppData\b|%(?:TEMP|USERPROFILE)%"
    r"|(?:site|dist)-packages|<ipython-input-|ipykernel_\d+|\bfile://", re.I)
_PICTURES = {"image/png", "image/jpeg"}


def found_in(text: str) -> str | None:
    """The first path of one machine in `text`, entities and escapes of addresses undone; None if there is none."""
    for form in dict.fromkeys((text, html.unescape(text), unquote(text))):
        if found := PATHS.search(form) or _here().search(form):
            return found.group()
    return None


def _here() -> re.Pattern:
    """The folders of the machine that checks: where the course lies, and the home folder, unless they are short."""
    folders = [str(folder) for folder in (ROOT, Path.home()) if len(folder.parts) > 2]
    return re.compile("|".join(rf"(?<![\w.-]){re.escape(folder)}(?![\w-])" for folder in folders) or r"(?!)")


def faults(notebook: NotebookNode) -> list[str]:
    """Paths of one machine in sources, Markdown, metadata and drawings; what outputs say is looked at elsewhere."""
    found = [("the metadata of the notebook", notebook.metadata)]
    for cell in notebook.cells:
        name = f"cell {cell.get('id')}"
        found += [(name, [cell.source, cell.get("attachments", {})]), (f"the metadata of {name}", cell.metadata)]
        found += [(f"the metadata of an output of {name}", output.get("metadata", {}))
                  for output in cell.get("outputs", [])]
        found += [(f"a picture of {name}", output.get("data", {}).get("image/svg+xml", ""))
                  for output in cell.get("outputs", [])]
    return [f"{where}: it holds a path of one machine ({path!r})" for where, value in found
            if (path := next(filter(None, map(found_in, texts(value))), None))]


def texts(value: object) -> Iterator[str]:
    """All texts in a value of JSON, keys included, pictures left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner) if key not in _PICTURES or not isinstance(inner, str) else ()
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
