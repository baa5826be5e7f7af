"""One factor, in a process of its own: teacher-forces recorded generations and keeps what became of the logits.

Started by work.py with a JSON file that says what to do; prints a line of JSON for each step that is done.
"""
from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import torch

from lib.generation import Model
from lib.machinery.drift import probe, settings
from lib.machinery.drift.factors import Factor
from lib.machinery.drift.forced import FEEDINGS


def main(argv: list[str]) -> int:
    """Measure what the file argv[0] asks for."""
    task = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    module, name = task["loader"].split(":")
    Measurement(task, getattr(importlib.import_module(module), name)).run()
    return 0


class Measurement:
    """A task of work.py: {factor, loader, is_reference, reference: its facts, notebooks: [{folder, file, items}]}."""

    def __init__(self, task: dict, load: Callable[[str], Model]):
        self.task, self.load = task, load
        self.factor = Factor(**task["factor"])
        self.models: dict[str, Model] = {}
        self.facts: dict[str, str] = {}

    def run(self) -> None:
        """Measure one notebook after another; each is kept when it is whole."""
        for notebook in self.task["notebooks"]:
            first = self.model(notebook["items"][0]["model"])
            self.facts = self.facts or probe.facts(first, FEEDINGS[self.factor.feeding])
            tell(facts=self.facts)
            missed = self.factor.missed(self.facts, self.task["reference"])
            found = {"not_measured": missed} if missed else {"tokens": list(self.tokens(notebook))}
            write(Path(notebook["file"]), {"facts": self.facts, **found})

    def model(self, name: str) -> Model:
        """The model `name` in the factor's state; loaded once."""
        if name not in self.models:
            self.models[name] = self.load(name)
            settings.apply(self.models[name], self.factor.settings)
        return self.models[name]

    @torch.inference_mode()
    def tokens(self, notebook: dict) -> Iterator[dict]:
        """What became of each token of a notebook, as in its kernel: the cache is empty first and then kept."""
        for model in self.models.values():
            model.cache.clear()
        for item in notebook["items"]:
            model = self.model(item["model"])
            steps = FEEDINGS[self.factor.feeding](model, item["prompt_ids"], item["ids"], item["steps"])
            yield from self.compared(Path(notebook["folder"], f"logits-{item['generation']}.npy"), item, steps)

    def compared(self, file: Path, item: dict, steps: Iterator[torch.Tensor]) -> Iterator[dict]:
        """The tokens of one generation beside the reference's logits, which the reference itself writes to `file`."""
        reference = numpy.load(file, mmap_mode="r") if file.exists() and not self.task["is_reference"] else []
        kept = []
        for step, logits in zip(item["steps"], steps, strict=True):
            logits = logits.float()
            first, second = logits.topk(2).values.tolist()
            change = largest(logits, reference[step]) if step < len(reference) else None
            yield {"generation": item["generation"], "token": step + 1, "id": item["ids"][step],
                   "chosen": int(logits.argmax()), "gap": first - second, "change": change}
            tell(tokens=1)
            kept += [logits.numpy()] if self.task["is_reference"] else []
        if kept:
            save(file, numpy.stack(kept))


def largest(logits: torch.Tensor, reference: numpy.ndarray) -> float:
    """The largest change of a logit; infinite where one is no number."""
    difference = (logits - torch.from_numpy(numpy.array(reference))).abs()
    return float(difference.nan_to_num(nan=float("inf")).max())


def tell(**state: object) -> None:
    """Say one thing to the process that waits for this one."""
    print(json.dumps(state), flush=True)


def write(file: Path, result: dict) -> None:
    """Keep a result, whole or not at all."""
    beside = file.with_name(f".{file.name}.part")
    beside.write_text(json.dumps(result), encoding="utf-8")
    os.replace(beside, file)


def save(file: Path, logits: numpy.ndarray) -> None:
    """Keep logits, whole or not at all."""
    beside = file.with_name(f".{file.name}.part.npy")
    numpy.save(beside, logits)
    os.replace(beside, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
