"""The evaluations: long runs whose rows are committed with their date and hashes.

Each is a module in this folder that holds an `EVALUATION`. The frame does all the rest:
origin      what decides a row: code, model, settings, versions; its hash tells whether a row is still the one wanted
store       the rows on disk: the committed file, the one that grows while the work goes on, the seconds
check       how a row computed again differs from the committed one
keep        what is kept of an episode
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib import models
from lib.machinery import Stop

Tell = Callable[[str], None]  # takes a few words on how far a row is


@dataclass(frozen=True)
class Evaluation:
    """One evaluation; a row's key is a dict of plain values that names it, and one of them is its `model`."""
    name: str
    file: str                                              # its module's __file__
    models: tuple[str, ...]                                # in the order in which they are loaded
    settings: dict                                         # plain values that decide every row
    keys: Callable[[], list[dict]]                         # of all rows, in the order of the file
    inputs: Callable[[dict], Any]                          # key to the plain values it stands for, such as a question
    compute: Callable[[Any, dict, Tell], tuple[dict, dict]]  # (model, key, tell) to (values kept, seconds by name)
    summary: Callable[[dict], str]                         # the values kept to a few words
    load: Callable[[str], Any] = models.load


def names() -> list[str]:
    """The evaluations there are."""
    return [path.stem for path in sorted(Path(__file__).parent.glob("*.py"))
            if "\nEVALUATION = " in path.read_text(encoding="utf-8")]


def find(name: str) -> Evaluation:
    """The evaluation `name`, imported only now; Stop with all names for an unknown one."""
    if name not in names():
        raise Stop(f"There is no evaluation {name!r}; there are: {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name}").EVALUATION


def label(key: dict) -> str:
    """How messages name a row."""
    return ", ".join(map(str, key.values()))
