"""Runs the factors one after another, each in a fresh process, and keeps what is done until all of it is."""
from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from lib import models
from lib.machinery import Stop, lock, machine, notebooks, preflight
from lib.machinery.drift.factors import FACTORS, Factor
from lib.machinery.drift.sample import PART, SAMPLE, SEED, WHOLE, Budget, Recording, items
from lib.machinery.evaluations import origin
from lib.machinery.progress import Progress

LOADER = "lib.models:load"
LOGIT_BYTES = 4 * 152_000  # what one token's logits take on disk, with the largest vocabulary of the course
MANY = 5                   # notebooks of which a part will do for the control; of fewer it might change no token
PREFILL = 20               # tokens of a prompt that take as long as one that is generated: for the estimate alone


class Run:
    """The measurement of some notebooks under all factors."""

    def __init__(self, recordings: list[Recording], whole: bool, factors: Sequence[Factor] = tuple(FACTORS),
                 loader: str = LOADER, root: Path | None = None, progress: Progress | None = None):
        self.recordings, self.whole, self.factors, self.loader = recordings, whole, factors, loader
        self.root, self.progress = root or notebooks.ROOT, progress or Progress()
        self.folder = self.root / "results" / "run" / "drift"
        self.begun, self.units_done = time.monotonic(), 0.0
        self.keys = {each.number: self._key(each) for each in recordings}  # now: code may be edited while it runs

    def budget(self, factor: Factor) -> Budget:
        """How much a factor looks at."""
        if self.whole:
            return PART if factor.in_part else WHOLE
        if factor.is_control:
            return PART if len(self.recordings) >= MANY else WHOLE
        return SAMPLE

    def items(self, recording: Recording, factor: Factor) -> list[dict]:
        """The generations of a notebook that a factor is to force."""
        return items(recording, self.budget(factor), factor.feeding)

    def place(self, recording: Recording) -> Path:
        """Where what is done of a notebook waits; another one if anything that decides it has changed."""
        kind = "whole" if self.whole else "sample"
        return self.folder / kind / f"{recording.number}-{self.keys[recording.number]}"

    def _key(self, recording: Recording) -> str:
        names = sorted({generation["model"] for generation in recording.generations})
        decides = [recording.hash, sorted(recording.ties), code(), versions(), machine.processor()[0], SEED,
                   [WHOLE, PART, SAMPLE], [origin.model_facts(name) if name in models.MODELS else name
                                              for name in names], self.loader]
        return hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:12]

    def file(self, recording: Recording, factor: Factor) -> Path:
        """Where the result of a factor for a notebook is kept."""
        return self.place(recording) / (hashlib.sha256(repr(factor).encode()).hexdigest()[:12] + ".json")

    def measure(self) -> dict[tuple[str, str], dict]:
        """(notebook, factor) -> {facts, tokens} or {facts, not_measured}; Stop when a process breaks off."""
        with self.alone():
            self._make_room()
            for number, factor in enumerate(self.factors, start=1):
                lacking = [each for each in self.recordings if not self.file(each, factor).exists()]
                self.progress.step(f"{number} of {len(self.factors)}: {factor.name}")
                if lacking:
                    self._start(factor, lacking)
                self.progress.done("measured" if lacking else "kept from before")
            return {(each.number, factor.name): json.loads(self.file(each, factor).read_text(encoding="utf-8"))
                    for each in self.recordings for factor in self.factors}

    def forget(self) -> None:
        """Remove what was kept for going on after an interrupt."""
        for recording in self.recordings:
            shutil.rmtree(self.place(recording), ignore_errors=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the measurement; Stop where another process has it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with lock.attempt(self.folder / "drift.lock") as free:
            if not free:
                raise Stop("Another process measures the drift in this folder: wait until it has ended, or end it "
                           "there; what it has measured is kept.")
            yield

    def _make_room(self) -> None:
        """Remove what older recordings left; Stop where the reference's logits don't fit on the disk."""
        for recording in self.recordings:
            place = self.place(recording)
            for other in place.parent.glob(f"{recording.number}-*"):
                if other != place:
                    shutil.rmtree(other, ignore_errors=True)
            place.mkdir(parents=True, exist_ok=True)
        tokens = sum(len(item["steps"]) for each in self.recordings for item in self.items(each, self.factors[0]))
        preflight.check_disk(self.folder, tokens * LOGIT_BYTES, "The measurement of drift")

    def _start(self, factor: Factor, lacking: list[Recording]) -> None:
        """Let a fresh process measure a factor for some notebooks, and show how far it is."""
        with tempfile.TemporaryDirectory(prefix="course-drift-", ignore_cleanup_errors=True) as scratch:
            task, errors = Path(scratch, "task.json"), Path(scratch, "stderr")
            task.write_text(json.dumps(self._task(factor, lacking)), encoding="utf-8")
            command = [*(factor.command or (sys.executable,)), "-m", "lib.machinery.drift.measure", str(task)]
            with open(errors, "wb") as file:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, cwd=notebooks.ROOT,
                                           env=variables(factor), text=True, encoding="utf-8")
                code = self._follow(process, factor, lacking)
            if code != 0:
                last = (errors.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""])[-1]
                raise Stop(f"Drift could not be measured under '{factor.name}': its process ended with code {code} "
                           f"({last[:300]}); what is measured is kept, and the same command goes on.")

    def _task(self, factor: Factor, lacking: list[Recording]) -> dict:
        known = [self.file(each, self.factors[0]) for each in self.recordings]
        facts = next((json.loads(file.read_text(encoding="utf-8"))["facts"] for file in known if file.exists()), None)
        is_reference = factor == self.factors[0]
        return {"factor": asdict(factor), "loader": self.loader, "is_reference": is_reference,
                "reference": None if is_reference else facts,
                "notebooks": [{"number": each.number, "folder": str(self.place(each)),
                               "file": str(self.file(each, factor)),
                               "items": self.items(each, factor)} for each in lacking]}

    def _follow(self, process: subprocess.Popen, factor: Factor, lacking: list[Recording]) -> int:
        """Show what a process tells until it ends; its exit code. It never outlives this one."""
        ahead = self.units(self.factors[self.factors.index(factor) + 1:], self.recordings)
        steps = sum(len(item["steps"]) for each in lacking for item in self.items(each, factor))
        units, done = self.units([factor], lacking), 0
        try:
            for line in process.stdout:
                done += json.loads(line).get("tokens", 0) if line.startswith("{") else 0
                left = self.left(self.units_done + units * done / steps, ahead + units * (1 - done / steps))
                self.progress.tell(f"{done} of {steps} tokens{left}")
            return process.wait()
        finally:
            process.kill()
            process.communicate()
            self.units_done += units

    def left(self, done: float, ahead: float) -> str:
        """How many minutes the units ahead will take, by those that are done; nothing before there are some."""
        minutes = (time.monotonic() - self.begun) * ahead / done / 60 if done else 0
        return f", about {minutes:.0f} min left in all" if done else ""

    def units(self, factors: Sequence[Factor], recordings: list[Recording]) -> float:
        """How much work some factors are, in generated tokens of the reference."""
        return sum(factor.slow * _units(item, factor.feeding) for factor in factors for each in recordings
                   for item in self.items(each, factor))


def _units(item: dict, feeding: str) -> float:
    prompt, count = len(item["prompt_ids"]), len(item["ids"])
    if feeding == "cached":
        return prompt / PREFILL + count
    return (prompt + count) / PREFILL * (len(item["steps"]) if feeding == "afresh" else 1)


def variables(factor: Factor) -> dict[str, str]:
    """The variables of a factor's process: those of a notebook's kernel, nothing for MKL, and the factor's own."""
    kept = {name: value for name, value in notebooks.child_environment().items() if not name.startswith("MKL_")}
    return {**kept, "PYTHONUNBUFFERED": "1", **factor.variables}


def code() -> str:
    """The hash of the code that decides a measurement."""
    here = Path(__file__).parent
    files = [here / f"{name}.py" for name in ("factors", "forced", "measure", "probe", "settings", "sample")]
    rooms = ("fast_linear", "generation", "models", "prefix_cache")
    files += [notebooks.ROOT / "lib" / f"{name}.py" for name in rooms]
    return origin.code_hash(sorted(files), notebooks.ROOT)


def versions() -> dict[str, str]:
    """The versions that decide a measurement."""
    return {"python": platform.python_version(), **{name: version(name) for name in origin.LIBRARIES}}
