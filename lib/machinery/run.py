"""The main job: executes the notebooks in order, shows how it goes, keeps the executed copies under results/run/."""
from __future__ import annotations

import argparse
import copy
from contextlib import suppress
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode

from lib.machinery import kernels, notebooks, watch
from lib.machinery.ready import make_ready
from lib.machinery.watch import Outcome


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib run [NN …]`: 0 when every notebook ran to its end, 1 when one failed, 130 when interrupted."""
    paths = notebooks.select(arguments.notebooks)
    make_ready()
    return run(paths, notebooks.ROOT / "results" / "run")


def run(paths: list[Path], into: Path) -> int:
    """Executes `paths` in order; copies and what they write go to `into`; prints a table; exit code as in `main`."""
    outcomes = []
    for path in paths:
        outcomes.append(execute(path, into))
        if outcomes[-1].interrupted:
            break
    watch.table(outcomes, into)
    if any(outcome.interrupted for outcome in outcomes):
        return 130
    return int(any(outcome.failure for outcome in outcomes))


def execute(path: Path, into: Path) -> Outcome:
    """Executes one notebook, whose copy is kept in `into` however it ends; a failure is part of the outcome."""
    notebook = blank(notebooks.read(path))
    client = NotebookClient(notebook, timeout=None, record_timing=False, coalesce_streams=True)
    outcome = Outcome(path, len(kernels.runnable(notebook)))
    environment = notebooks.child_environment(COURSE_RESULTS=into)

    def keep() -> None:
        notebooks.write_atomically(into / path.name, notebooks.dumps(notebook))

    keep()
    with suppress(KeyboardInterrupt, *kernels.FAILURES), watch.Watch(outcome) as shown:
        kernels.execute(client, path.parent, environment, outcome, shown, after_each=keep)
    keep()
    return outcome


def blank(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook without outputs and counts, so that nothing recorded is mistaken for executed."""
    notebook = copy.deepcopy(notebook)
    for cell in notebooks.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    return notebook
