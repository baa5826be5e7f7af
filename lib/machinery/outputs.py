"""Compares the outputs of a cell as recorded with those of now: their order, kinds, metadata and every letter."""
from __future__ import annotations

import json

from nbformat import NotebookNode

from lib.machinery import pictures

# Another platform may draw a figure in other bytes: it has to look the same (PNG, JPEG) and say the same of itself.
FIGURES = ("image/png", "image/jpeg", "image/svg+xml")


def shape(output: NotebookNode) -> tuple[str, str, str]:
    """What kind of output it is: type with stream name or exception, MIME types, metadata (alternative texts)."""
    name = output.get("name") or output.get("ename") or ""
    metadata = json.dumps(output.get("metadata", {}), sort_keys=True, ensure_ascii=False)
    return f"{output.output_type} {name}".strip(), ", ".join(sorted(output.get("data", {}))), metadata


def shapes(outputs: list[NotebookNode]) -> list[tuple[str, str, str]]:
    """The ordered kinds of a cell's outputs."""
    return [shape(output) for output in outputs]


def values(output: NotebookNode) -> dict[str, str]:
    """The contents of an output that are compared, each as text."""
    data = {mime: _text(value) for mime, value in output.get("data", {}).items() if mime not in FIGURES}
    return data | {key: _text(output[key]) for key in ("text", "ename", "evalue") if key in output}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def difference(recorded: list[NotebookNode], now: list[NotebookNode], contents: bool = True) -> str | None:
    """What differs first between two lists of outputs; None when nothing does.

    Without `contents` only their kinds are compared, and whether they hold anything.
    """
    if shapes(recorded) != shapes(now):
        return _difference_of_kinds(recorded, now)
    for place, (old, new) in enumerate(zip(recorded, now, strict=True), start=1):
        if found := _difference_of_contents(old, new) if contents else _emptied(old, new):
            return f"output {place} ({' '.join(shape(old)[:2]).strip()}) {found}"
    return None


def _difference_of_contents(old: NotebookNode, new: NotebookNode) -> str | None:
    after = values(new)
    for key, before in values(old).items():
        if before != after[key]:
            return _first_line(before, after[key])
    seen = ((old.data[mime], new.data[mime]) for mime in ("image/png", "image/jpeg") if mime in old.get("data", {}))
    return next(filter(None, (pictures.difference(*pair) for pair in seen)), None)


def _emptied(old: NotebookNode, new: NotebookNode) -> str | None:
    after = values(new)
    return next((f"holds nothing {'as recorded' if after[key].strip() else 'now'}" for key, before
                 in values(old).items() if bool(before.strip()) != bool(after[key].strip())), None)


def _difference_of_kinds(recorded: list[NotebookNode], now: list[NotebookNode]) -> str:
    places = range(max(len(recorded), len(now)))
    place = next(place for place in places if shapes(recorded)[place:place + 1] != shapes(now)[place:place + 1])
    return (f"output {place + 1} is of another kind\n    recorded: {_named(recorded, place)}\n"
            f"    now:      {_named(now, place)}")


def _named(outputs: list[NotebookNode], place: int) -> str:
    if place >= len(outputs):
        return "no output"
    kind, mimes, metadata = shape(outputs[place])
    return " ".join(filter(None, (kind, mimes, "" if metadata == "{}" else metadata)))[:300]


def _first_line(before: str, after: str) -> str:
    """The first line in which two different texts differ."""
    old, new = before.split("\n"), after.split("\n")
    line = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]),
                min(len(old), len(new)))
    return f"differs from line {line + 1} on\n    recorded: {_quoted(old, line)}\n    now:      {_quoted(new, line)}"


def _quoted(lines: list[str], place: int) -> str:
    return repr(lines[place][:200]) if place < len(lines) else "no such line"
