"""What must be true of a notebook's file before anything is run: `faults(path)` says what is not, in sentences."""
from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lib.machinery import Stop, notebooks
from lib.machinery.normalise import METADATA, normalise
from lib.machinery.structure import (
    borne,
    course,
    embedded,
    honest,
    links,
    paths,
    prose,
    recorded,
    signs,
    silence,
    source,
)

MOST_BYTES = 1_000_000
UNCHECKED_SHARE = 20  # at most one code cell in so many is left unchecked, over the course
_CELL_METADATA = {"tags", "course"}
_COURSE = {"code": {"unchecked"}, "markdown": {"given"}}  # what a cell's metadata `course` may hold


def faults(path: Path) -> list[str]:
    """All that is wrong with the notebook at `path`, each a sentence that says where; empty when it is sound."""
    try:
        text = path.read_bytes().decode("utf-8")
        notebook = notebooks.read(path)
    except UnicodeDecodeError:
        return ["the file is not UTF-8"]
    except Stop as stop:
        return [str(stop)]
    found = file_faults(text) + format_faults(json.loads(text))
    try:
        return found or content_faults(notebook, path) or form_faults(notebook, text)
    except Exception as error:  # a file so broken that a check stumbles over it is a fault, not a crash
        return [f"it cannot be checked: {type(error).__name__}: {error}"]


def content_faults(notebook: NotebookNode, path: Path) -> list[str]:
    """What is wrong with the metadata, the cells, their recordings and the prose."""
    found = metadata_faults(notebook) + count_faults(notebook)
    for check in _CELL_CHECKS:
        found += check(notebook)
    return found + links.faults(notebook, path)


def course_faults(there: list[Path]) -> list[str]:
    """What is wrong with the course whose notebooks are `there`, beyond each of them: its files, its README, too many
    cells left unchecked."""
    try:
        return course.faults(there[0].parent.parent, there) + share_faults(there)
    except Stop as stop:
        return [str(stop)]


def share_faults(there: list[Path]) -> list[str]:
    """Too many cells left unchecked, over all notebooks."""
    cells = [cell for path in there for cell in notebooks.code_cells(notebooks.read(path))]
    unchecked = sum(notebooks.is_unchecked(cell) for cell in cells)
    most = math.ceil(len(cells) / UNCHECKED_SHARE)
    if unchecked > most:
        return [f"{unchecked} of {len(cells)} code cells are left unchecked, and at most {most} may be"]
    return []


def file_faults(text: str) -> list[str]:
    """What is wrong with the bytes."""
    checks = {"a line ends with CR, not with LF alone": "\r" in text,
              "the file does not end with one newline": not text.endswith("}\n"),
              f"the file is larger than {MOST_BYTES:,} bytes": len(text.encode()) > MOST_BYTES}
    return [fault for fault, wrong in checks.items() if wrong]


def format_faults(content: dict) -> list[str]:
    """What nbformat 4.5 says against it: versions, fields, ids."""
    if (content.get("nbformat"), content.get("nbformat_minor")) != (4, 5):
        return [f"the format is {content.get('nbformat')}.{content.get('nbformat_minor')}, not 4.5"]
    ids = [cell.get("id") for cell in content["cells"]]
    found = ["a cell has no id"] * (None in ids) + ["two cells have the same id"] * (len(set(ids)) != len(ids))
    try:
        if not found:
            nbformat.validate(nbformat.from_dict(content))
    except (nbformat.ValidationError, AssertionError) as error:  # it asserts that the format is a whole number
        found.append(f"it is no valid notebook: {(str(error) or 'its format is no number').splitlines()[0]}")
    return found


def metadata_faults(notebook: NotebookNode) -> list[str]:
    """Metadata beyond what a recording writes: another kernel, versions, widgets, an editor's notes."""
    found = [f"the metadata {key!r} is {json.dumps(notebook.metadata.get(key))}, not {json.dumps(wanted)}, "
             "which `record` sets" for key, wanted in METADATA.items() if notebook.metadata.get(key) != wanted]
    found += [f"the metadata {key!r} does not belong in a recording" for key in notebook.metadata
              if key not in METADATA]
    for cell in notebook.cells:
        found += [f"cell {cell.get('id')}: the metadata or tag {name!r} does not belong there"
                  for name in sorted(_strange(cell))]
        found += [f"cell {cell.get('id')}: a raw cell is neither shown nor run"] * (cell.cell_type == "raw")
    return found


def _strange(cell: NotebookNode) -> set[str]:
    """What the metadata of a cell hold that no part of the course knows, or must not know."""
    given = cell.metadata.get("course", {})
    unknown = set(given) - _COURSE.get(cell.cell_type, set()) if isinstance(given, dict) else {"course"}
    allowed = {notebooks.UNCHECKED_TAG} if cell.cell_type == "code" else set()
    return (set(cell.metadata) - _CELL_METADATA) | unknown | (set(cell.metadata.get("tags", [])) - allowed)


def count_faults(notebook: NotebookNode) -> list[str]:
    """Code cells that were not run in their turn, each once, in one go from the top."""
    counts = [(place, cell, count) for place, cell in enumerate(notebooks.code_cells(notebook), start=1)
              for count in (cell.execution_count, *(output.execution_count for output in cell.outputs
                                                    if output.output_type == "execute_result"))]
    return [f"{notebooks.label(place, cell)}: its count is {count}, and it should be {place}, which `record` sets"
            for place, cell, count in counts if count != place]


def unchecked_faults(cell: NotebookNode) -> list[str]:
    """An unchecked cell says why, in its metadata and to its reader."""
    if not notebooks.is_unchecked(cell):
        return ["a reason for being unchecked, without the tag"] * bool(notebooks.unchecked_reason(cell))
    checks = {"it is unchecked, and its metadata give no reason (course: unchecked)":
              not notebooks.unchecked_reason(cell),
              f"it is unchecked, and no line that starts {notebooks.UNCHECKED_COMMENT!r} says why":
              not notebooks.shows_reason(cell)}
    return [fault for fault, wrong in checks.items() if wrong]


def form_faults(notebook: NotebookNode, text: str) -> list[str]:
    """Whether the file is letter for letter in the form that `record` writes."""
    as_recorded = notebooks.dumps(normalise(notebook))
    return [] if as_recorded == text else ["the file is not in the form that `record` writes"]


def _of_code_cells(check: Callable[[NotebookNode], list[str]]) -> Callable[[NotebookNode], list[str]]:
    def check_all(notebook: NotebookNode) -> list[str]:
        return [f"{notebooks.label(place, cell)}: {fault}"
                for place, cell in enumerate(notebooks.code_cells(notebook), start=1) for fault in check(cell)]
    return check_all


_CELL_CHECKS = [_of_code_cells(check) for check in (source.faults, silence.faults, recorded.faults, unchecked_faults)]
_CELL_CHECKS += [prose.heading_faults, prose.image_faults, prose.placeholder_faults, paths.faults, borne.faults]
_CELL_CHECKS += [honest.faults, signs.faults, embedded.faults]
