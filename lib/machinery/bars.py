"""How far work on bytes is: one bar in a terminal, a line every ten seconds in a log."""
from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

Advance = Callable[[int], None]
EVERY = 10.0  # seconds between the lines of a log
LOOK = 0.25   # seconds between two looks at a growing folder
MEGABYTE = 1_000_000


def say(sentence: str) -> None:
    """Tell the reader one thing, at once."""
    print(sentence, flush=True)


@contextmanager
def bar(label: str, total: int, done: int = 0) -> Iterator[Advance]:
    """Show how many of `total` bytes are done, beginning with `done`; call what it gives with each further count."""
    if not sys.stdout.isatty():
        yield from _log(label, total, done)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(force_jupyter=False)) as progress:
        task = progress.add_task(label, total=total, completed=done)
        yield lambda count: progress.advance(task, count)


def _log(label: str, total: int, done: int) -> Iterator[Advance]:
    """The same for a file or a pipe: lines, seldom."""
    begun = spoken = time.monotonic()
    now_done = done

    def advance(count: int) -> None:
        nonlocal spoken, now_done
        now_done += count
        now = time.monotonic()
        if now - spoken >= EVERY:
            spoken = now
            speed = (now_done - done) / (now - begun) / MEGABYTE
            say(f"  {now_done / MEGABYTE:,.0f} of {total / MEGABYTE:,.0f} MB, {speed:.1f} MB/s")

    say(f"{label}: {total / MEGABYTE:,.0f} MB" + (f", of which {done / MEGABYTE:,.0f} are here" if done else ""))
    yield advance
    say(f"{label}: done, {time.monotonic() - begun:.0f} s")


@contextmanager
def growth(folder: Path, limit: int, advance: Advance) -> Iterator[None]:
    """Tell `advance` how `folder` grows while another program or library fills it, up to `limit` bytes in all."""
    stop, first, shown = threading.Event(), size(folder), 0

    def watch() -> None:
        nonlocal shown
        while not stop.wait(LOOK):
            grown = max(0, min(size(folder) - first, limit))
            advance(grown - shown)
            shown = grown

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    advance(limit - shown)


def size(folder: Path) -> int:
    """How many bytes lie under `folder` now; files that come and go meanwhile are no error."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(place, file)).st_size
            except OSError:
                continue
    return total
