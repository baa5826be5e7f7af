"""What of an executed notebook is kept in a recording: nothing that another recording would write differently."""
from __future__ import annotations

import copy

from nbformat import NotebookNode

from lib.machinery import Stop, notebooks
from lib.machinery.outputs import shapes

METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
_CELL_METADATA = ("tags", "course")


def normalise(executed: NotebookNode) -> NotebookNode:
    """`executed` in format 4.5 with ids and only the metadata that the course knows."""
    notebook = copy.deepcopy(executed)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = NotebookNode(copy.deepcopy(METADATA))
    notebooks.name_cells(notebook)
    for cell in notebook.cells:
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in _CELL_METADATA if cell.metadata.get(key)})
        for output in cell.get("outputs", []):
            output.pop("transient", None)
    return notebook


def keep_unchecked(notebook: NotebookNode, before: NotebookNode) -> NotebookNode:
    """`notebook` with the outputs of unchecked cells as they were `before`, where those still have the same shape."""
    old = {cell.get("id"): cell for cell in notebooks.code_cells(before)}
    for cell in notebooks.code_cells(notebook):
        earlier = old.get(cell.id)
        if earlier is not None and notebooks.is_unchecked(cell) and shapes(earlier.outputs) == shapes(cell.outputs):
            cell.outputs = copy.deepcopy(earlier.outputs)
            _renumber(cell)
    return notebook


def _renumber(cell: NotebookNode) -> None:
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count


def refuse_stderr(notebook: NotebookNode) -> None:
    """Stop when a cell wrote to stderr: a warning would be recorded as part of the lesson."""
    for place, cell in enumerate(notebooks.code_cells(notebook), start=1):
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                first = next(iter(output.text.strip().splitlines()), "")
                raise Stop(f"{notebooks.label(place, cell)} writes to stderr ({first[:200]!r}); mend what warns.")
