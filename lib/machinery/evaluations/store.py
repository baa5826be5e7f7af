"""The rows of an evaluation on disk: the committed file, the one that grows while the work goes on, the seconds."""
from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from lib.machinery import Stop, lock, notebooks
from lib.machinery.evaluations.origin import Origin


class Made(NamedTuple):
    """A computed row as the file holds it, and its seconds; both begin with the key and what it was made from."""
    row: dict
    seconds: dict


class Store:
    """The files of the evaluation `name` under the course folder `root`."""

    def __init__(self, name: str, root: Path | None = None):
        self.name, self.root = name, root or notebooks.ROOT
        self.file = self.root / "results" / "evaluations" / f"{name}.json"
        self.times = self.root / "results" / "timings" / f"evaluation-{name}.json"
        self.growing = self.root / "results" / "run" / "evaluations" / f"{name}.jsonl"  # one JSON a line, not in git

    def shown(self, path: Path) -> str:
        """A path as messages name it."""
        return path.relative_to(self.root).as_posix()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the evaluation's lock; Stop where another process has it."""
        self.growing.parent.mkdir(parents=True, exist_ok=True)
        with lock.attempt(self.growing.with_suffix(".lock")) as free:
            if not free:
                raise Stop(f"Another process computes the evaluation {self.name} in this folder: wait until it has "
                           "ended, or end it there; what it has computed is kept.")
            yield

    def begin(self, wanted: set[str], again: list[str]) -> dict[str, Made]:
        """The `wanted` rows that are there, by what they were made from; none of the models named by `again`.

        After an interrupt a model named by `again` still is: the growing file says so, in lines without a row.
        """
        lines = [line for line in self._lines() if line["model"] not in again]
        again = sorted({line["model"] for line in lines if "row" not in line}.union(again))
        lines = [line for line in lines if "row" in line and line["row"]["made_from"] in wanted]
        self._rewrite([{"model": model} for model in again] + lines)
        there = [made for made in self._committed() if made.row["model"] not in again]
        there += [Made(line["row"], line["seconds"]) for line in lines]
        return {made.row["made_from"]: made for made in there if made.row["made_from"] in wanted}

    def add(self, made: Made) -> None:
        """Keep one more row, at once."""
        line = {"model": made.row["model"], "row": made.row, "seconds": made.seconds}
        self.growing.parent.mkdir(parents=True, exist_ok=True)
        with open(self.growing, "ab") as file:
            file.write(notebooks.as_json(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def finish(self, origin: Origin, rows: list[Made]) -> bool:
        """Write the committed file and the seconds, and drop the growing file; False if the file was so already."""
        document = {"name": self.name, "date": datetime.now(UTC).date().isoformat(), **asdict(origin),
                    "rows": [made.row for made in rows]}
        old = self._document() or {}
        changed = old | {"date": ""} != document | {"date": ""} or bool(self._lines())
        if changed:
            machine = {"processor": platform.machine(), "cores": os.cpu_count(), "system": platform.system()}
            notebooks.write_atomically(self.times, text(machine | {"rows": [made.seconds for made in rows]}))
            notebooks.write_atomically(self.file, text(document))
        self.growing.unlink(missing_ok=True)
        return changed

    def document(self) -> dict:
        """The committed file; Stop where there is none that can be read."""
        if not self.file.exists():
            raise Stop(f"There is no {self.shown(self.file)} yet: run `python3 -m lib evaluate {self.name}` first.")
        if (document := self._document()) is None:
            raise Stop(f"{self.shown(self.file)} cannot be read: bring it back with `git checkout`.")
        return document

    def _document(self) -> dict | None:
        document = _read(self.file)
        whole = isinstance(document, dict) and isinstance(document.get("rows"), list)
        return document if whole and all(map(_is_row, document["rows"])) else None

    def _committed(self) -> list[Made]:
        """The rows of the committed file, each with its seconds where those are known."""
        document, times = self._document(), _read(self.times)
        if document is None and self.file.exists():
            print(f"{self.shown(self.file)} cannot be read; its rows are computed anew.", flush=True)
        listed = times.get("rows") if isinstance(times, dict) else None
        listed = listed if isinstance(listed, list) else []
        seconds = {row["made_from"]: row for row in filter(_is_row, listed)}
        rows = document["rows"] if document else []
        return [Made(row, seconds.get(row["made_from"], {"model": row["model"], "made_from": row["made_from"]}))
                for row in rows]

    def _lines(self) -> list[dict]:
        """The lines of the growing file that are whole."""
        if not self.growing.exists():
            return []
        lines = self.growing.read_bytes().splitlines()
        whole = [value for value in map(_parsed, lines) if _is_line(value)]
        if len(whole) < len(lines):
            print(f"{self.shown(self.growing)}: {len(lines) - len(whole)} of {len(lines)} lines cannot be read and "
                  "are left out; their rows are computed anew.", flush=True)
        return whole

    def _rewrite(self, lines: list[dict]) -> None:
        """Leave `lines` alone in the growing file, so that nothing is ever written behind half a line."""
        notebooks.write_atomically(self.growing, "".join(notebooks.as_json(line) + "\n" for line in lines))


def text(document: dict) -> str:
    """A document as JSON, a field a line and a row a line, so that a difference shows which row has changed."""
    head = "".join(f"{notebooks.as_json(name)}: {notebooks.as_json(value)},\n"
                   for name, value in document.items() if name != "rows")
    return "{\n" + head + '"rows": [\n' + ",\n".join(map(notebooks.as_json, document["rows"])) + "\n]}\n"


def _read(path: Path) -> object:
    return _parsed(path.read_bytes()) if path.is_file() else None


def _parsed(data: bytes) -> object:
    """The JSON that bytes hold, or None."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def _is_row(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("model", "made_from"))


def _is_line(value: object) -> bool:
    """Whether a line of the growing file names a model to compute again, or holds a row of it with its seconds."""
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        return False
    return value.keys() == {"model"} or (_is_row(value.get("row")) and _is_row(value.get("seconds")))
