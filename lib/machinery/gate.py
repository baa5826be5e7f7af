"""The gate: unit tests, structure, strict re-execution, canaries; green only if every stage is, and did something."""
from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lib.machinery import Stop, notebooks
from lib.machinery.canaries import canaries  # noqa: F401  (the gate's own word for them)
from lib.machinery.ready import make_ready
from lib.machinery.stages import STAGES, Request, Stage


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib test [NN …] [--all] [--junit FILE]`: 0 when every stage is green, else 1."""
    junit = Path(arguments.junit).resolve() if arguments.junit else None
    if junit and (junit.is_dir() or not junit.parent.is_dir()):
        raise Stop(f"{arguments.junit} cannot be written: give --junit a file in a folder that exists.")
    paths = notebooks.select(arguments.notebooks)
    notebooks.require_default_model()
    make_ready()
    return gate(paths, arguments.all, junit)


def gate(paths: list[Path], everything: bool = False, junit: Path | None = None,
         stages: list[Callable[[Request], Stage]] = STAGES) -> int:
    """Runs the stages one after another, whatever becomes of each, and sums up; the exit code."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="course-gate-", ignore_cleanup_errors=True) as folder:
        request = Request(paths, everything, Path(folder))
        done = [_run(stage, request, console) for stage in stages if everything or not stage.slow]
        code = conclude(done, console)
        if junit:
            from lib.machinery import junit as junit_file
            junit_file.write(junit, done)
    return code


def _run(stage: Callable[[Request], Stage], request: Request, console: Console) -> Stage:
    """One stage below its heading; what it raises is its failure and stops no other stage."""
    console.rule(stage.title, align="left")
    started = time.monotonic()
    try:
        result = stage(request)
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code:  # a signal has ended us; a stage that leaves with 0 has not
            raise
        result = Stage(stage.title, failed=1, faults=[f"the stage itself failed: {type(error).__name__}: {error}"])
    result.seconds = time.monotonic() - started
    for fault in result.faults:
        console.print(Text(fault), soft_wrap=True)
    console.print(f"{stage.title}: {result.outcome}", soft_wrap=True)
    sys.stdout.flush()
    return result


def conclude(done: list[Stage], console: Console) -> int:
    """The table of all stages, and the numbers of passed and failed checks on the last line."""
    rows = Table("stage", "passed", "failed", "seconds", "outcome")
    for stage in done:
        rows.add_row(stage.title, str(stage.passed), str(stage.failed), f"{stage.seconds:.1f}", stage.outcome)
    console.print(rows)
    green = bool(done) and all(stage.is_green for stage in done)
    failed = sum(stage.failed for stage in done) or int(not green)
    print(f"{sum(stage.passed for stage in done)} passed, {failed} failed", flush=True)
    return int(not green)
