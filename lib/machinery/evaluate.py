"""The command `evaluate`: computes the rows of an evaluation, one model after another, and commits them to results/.

A row is computed once: what is there from the same code, model, settings and versions is kept, also after an
interrupt. The committed file is only ever whole; until it can be, finished rows wait in results/run/evaluations/.
Models that only the hub has are optional: computed where --model names them, and in the file once they were begun.
"""
from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from itertools import groupby
from time import perf_counter
from typing import Any

from lib import models
from lib.machinery import Stop, bars, evaluations, fetch, machine, preflight
from lib.machinery.evaluations import Evaluation, check, label, origin
from lib.machinery.evaluations.store import Made, Store
from lib.machinery.machine import gigabytes
from lib.machinery.progress import Progress


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib evaluate NAME [--model NAME …] [--again] [--check N]`: 1 if a check finds a difference."""
    evaluation = evaluations.find(arguments.evaluation)
    chosen = choose(evaluation, arguments.models or [])
    store = Store(evaluation.name)
    if arguments.check is not None:
        if arguments.again:
            raise Stop("--check compares with the file and --again makes it anew: give one of them.")
        return compare(evaluation, store, chosen, arguments.check)
    with store.alone():
        return Run(evaluation, store, chosen, arguments.again).main()


def choose(evaluation: Evaluation, names: list[str]) -> list[str]:
    """The models asked for, all required ones if none is; Stop for one that the evaluation doesn't have."""
    for name in names:
        if name not in evaluation.models:
            raise Stop(f"The evaluation {evaluation.name} has no model {name!r}; its models are: "
                       f"{', '.join(evaluation.models)}.")
    return [name for name in evaluation.models if name in (names or required(evaluation))]


def required(evaluation: Evaluation) -> list[str]:
    """The models without which the file isn't whole: all but those that only the hub has."""
    return [name for name in evaluation.models if "wheels" in models.entry(name)]


class Run:
    """One run of the command: which rows are there, which are missing, and computing those."""

    def __init__(self, evaluation: Evaluation, store: Store, chosen: list[str], again: bool = False):
        self.evaluation, self.store, self.chosen = evaluation, store, chosen
        self.origin = origin.of(evaluation)
        self.rows = {self.origin.made_from(key, evaluation.inputs(key)): key for key in evaluation.keys()}
        self.made = store.begin(set(self.rows), chosen if again else [])

    def main(self) -> int:
        """Compute what is missing and write the file; 130 after an interrupt."""
        try:
            self.compute({hash: key for hash, key in self.rows.items()
                          if hash not in self.made and key["model"] in self.chosen})
        except KeyboardInterrupt:
            Progress().clear()
            print(f"Interrupted; {self.state()}: {self.command(self.chosen)} goes on.", file=sys.stderr, flush=True)
            return 130
        return self.finish()

    def compute(self, missing: dict[str, dict]) -> None:
        """Compute the missing rows and keep each at once."""
        prepare(self.evaluation, [key["model"] for key in missing.values()])
        progress = Progress()
        hashes = {label(key): hash for hash, key in missing.items()}
        for key, values, seconds in computed(self.evaluation, list(missing.values()), progress):
            hash = hashes[label(key)]
            made = Made({**key, "made_from": hash, **values}, {**key, "made_from": hash, **seconds})
            self.store.add(made)
            self.made[hash] = made
            progress.done(self.evaluation.summary(values))

    def finish(self) -> int:
        """Write the committed file if all rows are there, and say how things stand."""
        shown, name, wanted = self.store.shown(self.store.file), self.evaluation.name, self.wanted
        lacking = list(dict.fromkeys(key["model"] for hash, key in wanted.items() if hash not in self.made))
        if lacking:
            bars.say(f"{name}: {self.state()}; {shown} is written when those of {', '.join(lacking)} are there too: "
                     f"{self.command(lacking)}.")
        elif self.store.finish(self.origin.only({key["model"] for key in wanted.values()}),
                               [self.made[hash] for hash in wanted]):
            bars.say(f"{name}: {len(wanted)} rows are written to {shown}.")
        else:
            bars.say(f"{name}: {shown} holds all {len(wanted)} rows, made from this code, these models and "
                     "settings; nothing is to be done (--again computes them again).")
        return 0

    @property
    def wanted(self) -> dict[str, dict]:
        """The rows of the required models, of those asked for, and of those of which a row is there."""
        names = {*required(self.evaluation), *self.chosen, *(made.row["model"] for made in self.made.values())}
        return {hash: key for hash, key in self.rows.items() if key["model"] in names}

    def state(self) -> str:
        """How many rows are there."""
        return f"{len(self.made)} of {len(self.wanted)} rows are there"

    def command(self, names: list[str]) -> str:
        """The command line that goes on with the rows of some models."""
        some = names if names != choose(self.evaluation, []) else []
        return " ".join(["python3 -m lib evaluate", self.evaluation.name, *(f"--model {name}" for name in some)])


def prepare(evaluation: Evaluation, names: list[str]) -> None:
    """Make models ready, after saying how much is downloaded; Stop for one that can't be, or doesn't fit."""
    names = list(dict.fromkeys(names))
    for name in names:
        check_memory(evaluation, name)
    for name in names:
        if not models.is_ready(name):
            entry = models.entry(name)
            download, ready = entry.get("file_bytes", 0), 4 * entry.get("parameters", 0)
            sizes = f": {gigabytes(download)} to download, {gigabytes(ready)} once converted" if ready else ""
            bars.say(f"{name} is not on this machine yet and is fetched now{sizes}.")
    fetch.ensure(names)


def check_memory(evaluation: Evaluation, name: str, found: machine.Memory | None = None) -> None:
    """Stop where a model would not fit into memory; say nothing where memory can't be read."""
    others = [other for other in evaluation.models if other != name]
    preflight.check_fits(name, [f"leave it out with --model {other}" for other in others[:1]], found)


def computed(evaluation: Evaluation, keys: list[dict], progress: Progress) -> Iterator[tuple[dict, dict, dict]]:
    """(key, values, seconds) of each row, the models one after another; each begins with an empty prefix cache.

    So a row does not depend on those before it: it counts and computes the same after an interrupt.
    """
    keys, count = sorted(keys, key=lambda key: evaluation.models.index(key["model"])), 0
    for name, group in groupby(keys, lambda key: key["model"]):
        check_memory(evaluation, name)
        progress.step(f"load {name}")
        model = evaluation.load(name)
        progress.done()
        for key in group:
            count += 1
            progress.step(f"{count} of {len(keys)}: {label(key)}")
            model.cache.clear()
            yield key, *one(evaluation, model, key, progress)
        del model
        gc.collect()


def one(evaluation: Evaluation, model: Any, key: dict, progress: Progress) -> tuple[dict, dict]:
    """(values, seconds) of one row; what goes wrong says in which."""
    start = perf_counter()
    try:
        values, seconds = evaluation.compute(model, key, progress.tell)
    except MemoryError as error:
        raise Stop(f"Memory ran out in the row {label(key)}: close other programs and give the same command again; "
                   "the rows before it are kept.") from error
    except Exception as error:
        error.add_note(f"in the row {label(key)} of the evaluation {evaluation.name}; the rows before it are kept")
        raise
    return values, {"seconds": round(perf_counter() - start, 1), **seconds}


def compare(evaluation: Evaluation, store: Store, chosen: list[str], count: int) -> int:
    """Compute `count` rows of the committed file again, chosen at random; 1 if one differs, 0 if none does."""
    document, keys = store.document(), evaluation.keys()
    rows = {label(key): row for row in document["rows"] for key in keys if key.items() <= row.items()}
    picked = check.pick([key for key in keys if label(key) in rows and key["model"] in chosen], count)
    if not picked:
        raise Stop(f"{store.shown(store.file)} holds no such row: run `python3 -m lib evaluate {evaluation.name}`.")
    if document.get("code") != origin.of(evaluation).code:
        bars.say(f"The code has changed since {store.shown(store.file)} was written.")
    prepare(evaluation, [key["model"] for key in picked])
    progress, different = Progress(), []
    for key, values, _ in computed(evaluation, picked, progress):
        if says := check.difference(rows[label(key)], {**key, **values}):
            different.append(label(key))
        progress.done(says or "as in the file")
    bars.say(f"{evaluation.name}: {len(picked)} of {len(document['rows'])} rows were computed again; "
             + (f"not as in the file: {'; '.join(different)}." if different else "all are as in the file."))
    return int(bool(different))
