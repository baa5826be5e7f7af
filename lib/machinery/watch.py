"""Shows how the execution of a notebook goes: live on a terminal, a line at a time in a log; then a table."""
from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from lib.machinery import kernels, notebooks

SLOW = 15.0  # seconds after which a log says that a cell is still running
_TICK = 0.2  # seconds between two looks at the kernel


@dataclass
class Outcome:
    """What became of one notebook: cells run, seconds, peak memory in bytes, its failure (empty when it is ok)."""
    path: Path
    total: int
    cells: int = 0
    at: str = "the start of the kernel"
    memory: int = 0
    failure: str = ""
    interrupted: bool = False
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0


class Watch:
    """While it is open, a thread shows where `outcome` stands and keeps the highest memory it has seen."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.kernel = outcome, None
        self.console = Console(highlight=False, soft_wrap=True)
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.cell, self.cell_started, self.told = 0, time.monotonic(), 0

    def __enter__(self) -> Watch:
        if self.console.is_terminal:
            self.live.start()
        else:
            self.console.print(f"{self.outcome.path.stem}: {self.outcome.total} cells")
        self.thread.start()
        return self

    def watch(self, kernel: psutil.Process) -> None:
        """From now on, `kernel` is the process whose memory counts."""
        self.kernel = kernel
        self.measure()

    def measure(self) -> None:
        """Keeps the highest memory seen so far."""
        if self.kernel is not None:
            self.outcome.memory = max(self.outcome.memory, kernels.memory(self.kernel))

    def __exit__(self, _, failure: BaseException | None, __) -> None:
        if failure is not None:
            self.outcome.failure = kernels.in_one_line(failure, self.outcome.at)
            self.outcome.interrupted = isinstance(failure, KeyboardInterrupt)
        self.outcome.seconds = time.monotonic() - self.outcome.started
        self.closing.set()
        self.thread.join()
        self.live.stop()
        self.console.print(closing_line(self.outcome))

    def _look(self) -> None:
        while not self.closing.wait(_TICK):
            self.measure()
            if self.console.is_terminal:
                self.live.update(Text(running_line(self.outcome)), refresh=True)
            else:
                self._tell_if_slow()

    def _tell_if_slow(self) -> None:
        now = time.monotonic()
        if self.outcome.cells != self.cell:
            self.cell, self.cell_started, self.told = self.outcome.cells, now, 0
        if now - self.cell_started > SLOW * (self.told + 1):
            self.told += 1
            self.console.print(f"  {self.outcome.at}, of {self.outcome.total}, still runs: {SLOW * self.told:.0f} s")


def running_line(outcome: Outcome) -> str:
    """The one line that changes while a notebook runs."""
    cell = min(outcome.cells + 1, outcome.total)
    seconds = time.monotonic() - outcome.started
    return f"{outcome.path.stem}  cell {cell} of {outcome.total}  {seconds:.0f} s  {gigabytes(outcome.memory)}"


def closing_line(outcome: Outcome) -> str:
    """The line that stays when a notebook has ended."""
    end = f"stopped: {outcome.failure}" if outcome.failure else "ok"
    return f"{outcome.path.stem}: {outcome.cells} of {outcome.total} cells, {outcome.seconds:.1f} s, {end}"


def gigabytes(memory: int) -> str:
    """Bytes as people say them."""
    return f"{memory / 1e9:.2f} GB"


def table(outcomes: list[Outcome], into: Path) -> None:
    """Prints what became of the notebooks, and where their executed copies lie."""
    console = Console(highlight=False)
    rows = Table("notebook", "cells", "seconds", "peak memory", Column("outcome", overflow="fold"))
    for outcome in outcomes:
        rows.add_row(outcome.path.stem, f"{outcome.cells} of {outcome.total}", f"{outcome.seconds:.1f}",
                     gigabytes(outcome.memory), Text(outcome.failure or "ok"))
    console.print(rows)
    shown = into.relative_to(notebooks.ROOT) if into.is_relative_to(notebooks.ROOT) else into
    console.print(f"The executed copies and what they wrote are in {shown.as_posix()}.", soft_wrap=True)
