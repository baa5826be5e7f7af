"""The one comparison of a cell with its recording: the strict run's, and that of whatever proves how much it sees."""
from __future__ import annotations

from nbformat import NotebookNode
from nbval.plugin import coalesce_streams

from lib.machinery import notebooks
from lib.machinery.outputs import difference


def fault(cell: NotebookNode, now: list[NotebookNode]) -> str | None:
    """What differs first between a cell as recorded and its outputs of `now`; None when the recording holds."""
    return difference(coalesce_streams(cell.outputs), coalesce_streams(now), not notebooks.is_unchecked(cell))
