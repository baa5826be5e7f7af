"""Times that a reader waits: until the first text comes, and the middle of several runs without the first."""
from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter


def time_to_first_text(stream: Iterable[tuple[str, float]]) -> float | None:
    """Seconds until the first piece that is not empty, of (piece, seconds since the call); None if none came."""
    return next((seconds for piece, seconds in stream if piece), None)


def median_without_warm_up(seconds: Sequence[float]) -> float:
    """The median of the runs after the first, which also pays for loading; ValueError for fewer than two runs."""
    if len(seconds) < 2:
        raise ValueError(f"at least two runs are needed, since the first only warms up; there are {len(seconds)}")
    return statistics.median(seconds[1:])


class Stopwatch:
    """An `on_token` that notes when each piece of text came, and passes it on."""

    def __init__(self, on_token: Callable[[str], None] | None = None, clock: Callable[[], float] = perf_counter):
        self.on_token, self.clock, self.start = on_token, clock, clock()
        self.pieces: list[tuple[str, float]] = []

    def __call__(self, piece: str) -> None:
        self.pieces.append((piece, self.clock() - self.start))
        if self.on_token:
            self.on_token(piece)
