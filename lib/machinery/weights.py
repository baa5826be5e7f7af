"""Writes a safetensors file of float32 values as a stream: constant memory, the same bytes on every machine.

The layout is safetensors' own: 8 bytes of header length, the header as JSON, then the values back to back.
"""
from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

ALIGNMENT = 64    # of the first value: mapped memory is then aligned for every vector unit
CHUNK = 1 << 21   # values made at a time by one thread: 8 MB of float32
THREADS = 2
Job = Callable[[], np.ndarray]


class Weight(NamedTuple):
    """A tensor to be written: its name and shape, and jobs that each make the next part of its values."""

    name: str
    shape: tuple[int, ...]
    jobs: list[Job]

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.shape)


def write_weights(path: Path, weights: list[Weight], advance: Callable[[int], None] = lambda count: None) -> str:
    """Write `weights` to `path` in their order; its SHA-256. `advance` is told of bytes as they are written."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for part in _parts(weights):
            file.write(part)
            digest.update(part)
            advance(len(part))
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def header(weights: list[Weight]) -> bytes:
    """The header of a safetensors file, its length included, padded with spaces as the format allows."""
    entries: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    end = 0
    for weight in weights:
        start, end = end, end + 4 * weight.size
        entries[weight.name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def by_rows(count: int, width: int, make: Callable[[int, int], np.ndarray]) -> list[Job]:
    """Jobs that each `make(start, stop)` some of `count` rows of `width` values, about CHUNK values at a time."""
    step = max(1, CHUNK // width)
    return [partial(make, start, min(start + step, count)) for start in range(0, count, step)]


def _parts(weights: list[Weight]) -> Iterator[memoryview]:
    """The file's bytes in order; ValueError where a weight's jobs made another number of values than its shape."""
    yield memoryview(header(weights))
    made = _in_order(job for weight in weights for job in weight.jobs)
    for weight in weights:
        left = weight.size
        for values in (next(made) for _ in weight.jobs):
            left -= values.size
            yield memoryview(np.ascontiguousarray(values, dtype="<f4")).cast("B")
        if left:
            raise ValueError(f"{weight.name}: {weight.size - left:,} values were made for the shape {weight.shape}")


def _in_order(jobs: Iterable[Job]) -> Iterator[np.ndarray]:
    """The results of the jobs, in their order; a few are made ahead by THREADS threads (NumPy frees the lock)."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque = deque()
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) > 2 * THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
