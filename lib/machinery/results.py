"""The folder results/: copied aside for a kernel to write to, and brought back when all went well."""
from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

IGNORED = ("run", "lab")  # folders of results/ that are no part of the course
OF_COMMANDS = ("evaluations", "bench")  # written by `evaluate` and `bench` alone, perhaps while a notebook runs
TIMES = "timings"  # the folder whose files differ at each run


def copy_aside(source: Path, target: Path) -> None:
    """Copies what earlier notebooks wrote to `source` into the new folder `target`."""
    target.mkdir(parents=True)
    for entry in source.iterdir() if source.exists() else ():
        if entry.is_dir() and entry.name not in IGNORED:
            shutil.copytree(entry, target / entry.name)
        elif entry.is_file():
            shutil.copyfile(entry, target / entry.name)


def bring_back(source: Path, target: Path, times: bool) -> None:
    """Puts the files that changed in `source` into `target`; times only when asked for, or when new."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        inside = file.relative_to(source)
        if inside.parts[0] in OF_COMMANDS:
            continue
        there = target / inside
        same = there.exists() and filecmp.cmp(file, there, shallow=False)
        if not same and (times or inside.parts[0] != TIMES or not there.exists()):
            _replace(there, file)


def _replace(there: Path, file: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    beside = there.with_name(f".{there.name}.{os.getpid()}.part")
    shutil.copyfile(file, beside)
    os.replace(beside, there)
