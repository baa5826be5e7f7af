"""Mutations: small defects in copies of the notebooks and of `lib`, each of which has to turn the gate red.

The copies of notebooks are compared with one execution, that of their recording anew, by the code of the strict run.
"""
from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from lib.machinery import Stop, changes, compare, mutants, notebooks, structure
from lib.machinery.results import copy_aside

SEED_VARIABLE = "COURSE_SEED"  # another seed changes other places
# Which half has to see what; a picture's bytes differ between platforms, so either half may be the one.
HALVES = {"a letter changed": {"strict"}, "an output emptied": {"strict"}, "an output removed": {"strict"},
          "a picture mirrored": {"strict", "bytes"}, "a figure of the prose changed": {"structure"}}
_ALWAYS = ("a letter changed", "an output emptied", "an output removed")


class Mutations(NamedTuple):
    """What came of the controls and of the mutations, each a name and its fault (empty: as it should be)."""
    controls: list[tuple[str, str]]
    mutations: list[tuple[str, str]]


def seed() -> str:
    """The seed of the places that are changed."""
    return os.environ.get(SEED_VARIABLE) or "1"


def mutations(paths: list[Path], anew: dict[Path, Path], folder: Path,
              constants: list[mutants.Mutant] | None = None) -> Mutations:
    """Plants them all in a copy of the course under `folder`; `anew` holds the notebooks as they came just now."""
    constants = mutants.MUTANTS if constants is None else constants
    course = copy_course(notebooks.ROOT, folder / "mutated")
    found = Mutations([], [])
    for path in paths:
        control, changed = in_recording(course / "notebooks" / path.name, anew.get(path))
        found.controls.append((f"{path.stem}, unchanged", control))
        found.mutations.extend((f"{path.stem}, {name}", fault) for name, fault in changed)
    controls, of_lib = mutants.cases(course, [notebooks.number(path) for path in paths], constants)
    return Mutations(found.controls + controls, found.mutations + of_lib)


def in_recording(path: Path, anew: Path | None) -> tuple[str, list[tuple[str, str]]]:
    """What is wrong with the notebook itself, and with each change of it; one that is not sound is not changed."""
    if anew is None:
        return "it could not be recorded anew, so there is nothing to compare with", []
    recorded, now = notebooks.read(path), notebooks.read(anew)
    if red := seen(path, recorded, now, anew):
        told = "; ".join(f"{half}: {says}" for half, says in red.items())
        return f"it is red without any change: {told}", []
    made = []
    for kind, change in changes.KINDS.items():
        changed = change(recorded, random.Random(f"{seed()} {path.stem} {kind}"))
        if changed is not None:
            halves, fault = judged(path, kind, changed.notebook, now, anew)
            made.append((f"{kind}: {changed.where} (seen by {halves})", fault))
        elif kind in _ALWAYS:
            made.append((kind, "there is nothing in the notebook that could be changed"))
    return "", made


def judged(path: Path, kind: str, changed: NotebookNode, now: NotebookNode, anew: Path) -> tuple[str, str]:
    """(the halves that see a change, why it does not count as caught: empty when it does)."""
    before, text = path.read_bytes(), notebooks.dumps(changed).encode()
    if text == before:
        return "nothing", "the change changed nothing"
    try:
        path.write_bytes(text)
        red = seen(path, changed, now, anew)
    finally:
        path.write_bytes(before)
    told = ", ".join(red) or "nothing"
    return told, "" if red.keys() & HALVES[kind] else f"it has to be seen by {' or '.join(sorted(HALVES[kind]))}"


def seen(path: Path, recorded: NotebookNode, now: NotebookNode, anew: Path) -> dict[str, str]:
    """What each half of the gate has against the notebook that lies at `path`: its name and the first fault."""
    cells, others = notebooks.code_cells(recorded), notebooks.code_cells(now)
    strict = [f"{notebooks.label(place, cell)}: {fault}" for place, (cell, other)
              in enumerate(zip(cells, others, strict=True), start=1) if (fault := compare.fault(cell, other.outputs))]
    try:
        of_structure = structure.faults(path)
    except Stop as stop:
        of_structure = [str(stop)]
    differs = ["it is another when recorded anew"] if path.read_bytes() != anew.read_bytes() else []
    found = {"strict": strict, "structure": of_structure, "bytes": differs}
    return {half: faults[0] for half, faults in found.items() if faults}


def copy_course(root: Path, into: Path) -> Path:
    """A copy of what notebooks use, link to and write, under `into`; nothing compiled, nothing hidden."""
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    into.mkdir(parents=True)
    for folder in ("lib", "data", "notebooks"):
        if (root / folder).exists():
            shutil.copytree(root / folder, into / folder, ignore=hidden)
    for file in root.iterdir():
        if file.is_file() and not file.name.startswith("."):
            shutil.copyfile(file, into / file.name)
    copy_aside(root / "results", into / "results")
    return into
