"""The only way in which recorded outputs and results/ are made: executed once, made uniform, written whole or not."""
from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode
from rich.console import Console

from lib.machinery import Stop, kernels, ledger, notebooks
from lib.machinery.normalise import keep_unchecked, normalise, refuse_stderr
from lib.machinery.ready import make_ready
from lib.machinery.results import TIMES, bring_back, copy_aside
from lib.machinery.watch import Outcome, Watch

CELL_TIMEOUT = 1200  # seconds


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib record [NN …] [--times]`: 0 when all are recorded; Stop when one cannot be."""
    paths = notebooks.select(arguments.notebooks)
    notebooks.require_default_model()
    make_ready()
    for path in paths:
        Console(highlight=False).print(record(path, notebooks.ROOT, arguments.times))
    return 0


def record(path: Path, into: Path, times: bool = False) -> str:
    """Records one notebook and what it writes under the course folder `into`; a sentence that says what changed."""
    before = notebooks.read(path)
    with tempfile.TemporaryDirectory(prefix="course-record-", ignore_cleanup_errors=True) as scratch:
        results, lines = Path(scratch, "results"), Path(scratch, "ledger.jsonl")
        copy_aside(into / "results", results)
        outcome = Outcome(path, len(notebooks.code_cells(before)))
        after = execute(before, results, lines, outcome)
        if not times:
            keep_unchecked(after, normalise(before))
        if notebooks.read(path) != before:
            raise Stop(f"{path.stem} is not recorded: the file was changed while it was executed; record it again.")
        changed = _write(into / "notebooks" / path.name, notebooks.dumps(after))
        write_times(results / TIMES / f"{notebooks.number(path)}.json", outcome)
        bring_back(results, into / "results", times)
        ledger.write(into, notebooks.number(path), ledger.read(lines))  # after it, or an older copy would come back
    return f"{path.stem}: {'recorded' if changed else 'recorded again, nothing has changed'}."


def execute(before: NotebookNode, results: Path, lines: Path, outcome: Outcome) -> NotebookNode:
    """The notebook executed under the rules of a recording; `results` and `lines` are what it writes to."""
    path = outcome.path
    notebook = normalise(before)
    environment = notebooks.child_environment(COURSE_RESULTS=results, COURSE_LEDGER=lines, COURSE_STRICT="1")
    outcome.total = len(kernels.runnable(notebook))
    try:
        with Watch(outcome) as shown:
            kernels.execute(Recorder(notebook), path.parent, environment, outcome, shown)
        refuse_stderr(notebook)
    except kernels.FAILURES as failure:
        raise Stop(f"{path.stem} is not recorded: {outcome.failure}.") from failure
    except Stop as refusal:
        raise Stop(f"{path.stem} is not recorded: {refusal}") from refusal
    return normalise(notebook)


def write_times(path: Path, outcome: Outcome) -> None:
    """Note how long the recording took and how much memory its kernel had at most, and on what machine."""
    facts = {"seconds": round(outcome.seconds), "peak_memory_mb": round(outcome.memory / 1e6),
             "processor": platform.machine(), "cores": os.cpu_count(), "system": platform.system()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8", newline="\n")


class Recorder(NotebookClient):
    """Executes for a recording: no times, one output per stream, and a Stop for what cannot be compared later."""

    def __init__(self, notebook: NotebookNode) -> None:
        super().__init__(notebook, timeout=CELL_TIMEOUT, startup_timeout=120, iopub_timeout=60,
                         raise_on_iopub_timeout=True, record_timing=False, coalesce_streams=True,
                         store_widget_state=False, force_raise_errors=True, skip_cells_with_tag="")

    def process_message(self, msg: dict, cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """As nbclient's, but outputs that change after they were shown are refused."""
        kind = msg["msg_type"]
        if kind in ("clear_output", "update_display_data") or kind.startswith("comm"):
            place = notebooks.code_cells(self.nb).index(cell) + 1
            raise Stop(f"{notebooks.label(place, cell)} changes an output after showing it ({kind}): "
                       "show it once, without widgets or display handles.")
        return super().process_message(msg, cell, cell_index)


def _write(path: Path, text: str) -> bool:
    if path.exists() and path.read_bytes() == text.encode():
        return False
    notebooks.write_atomically(path, text)
    return True


def copy_course(root: Path, into: Path, paths: list[Path]) -> None:
    """Lays a copy of `paths` and of results/ under `into`, for a recording that leaves the checkout alone."""
    (into / "notebooks").mkdir(parents=True)
    for path in paths:
        shutil.copyfile(path, into / "notebooks" / path.name)
    copy_aside(root / "results", into / "results")
