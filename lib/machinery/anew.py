"""Recordings made anew beside the course, compared to the byte with what is kept, and with one another."""
from __future__ import annotations

import json
from pathlib import Path

from lib.machinery import Stop, ledger, notebooks, record, results

TIMES_OVER = 3  # recordings of an unchanged tree that have to be equal
_LEFT_OUT = {("results", name) for name in (*results.IGNORED, results.TIMES)}


def record_all(paths: list[Path], copy: Path, root: Path) -> tuple[list[tuple[str, str]], dict[Path, Path]]:
    """Records `paths` into the new folder `copy`: a case for each, and where those lie that could be recorded."""
    record.copy_course(root, copy, paths)
    cases, made = [], {}
    for path in paths:
        fault = _recorded(path, copy)
        cases.append((path.name, fault))
        if not fault:
            made[path] = copy / "notebooks" / path.name
    return cases, made


def _recorded(path: Path, copy: Path) -> str:
    try:
        record.record(path, copy)
        return ""
    except Stop as stop:
        return str(stop)


def record_again(paths: list[Path], copy: Path, root: Path) -> list[tuple[str, str]]:
    """Records the telling ones of `paths` until there are three recordings of each: all have to equal `copy`'s."""
    cases = []
    for path in telling(paths, root):
        for turn in range(2, TIMES_OVER + 1):
            other = copy.with_name(f"{copy.name}-{notebooks.number(path)}-{turn}")
            made, _ = record_all([path], other, root)
            differing = [name for name, fault in compare_trees(other, copy, results_too=False) if fault]
            fault = made[0][1] or (f"{', '.join(differing)}: not as in the first" if differing else "")
            cases.append((f"{path.name}, recording {turn} of {TIMES_OVER}", fault))
    return cases


def telling(paths: list[Path], root: Path) -> list[Path]:
    """The notebook that is recorded fastest, and the fastest of those in which a model generates."""
    def seconds(path: Path) -> float:
        times = root / "results" / results.TIMES / f"{notebooks.number(path)}.json"
        return json.loads(times.read_text(encoding="utf-8"))["seconds"] if times.exists() else 0.0

    generating = [path for path in paths if ledger.generations_path(root, notebooks.number(path)).exists()]
    return list(dict.fromkeys(min(group, key=seconds) for group in (paths, generating) if group))


def compare_trees(copy: Path, root: Path, results_too: bool = True) -> list[tuple[str, str]]:
    """Each file of the copy and of the course's results, with what is wrong when they differ.

    Times do differ and are left out.
    """
    files = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
    if results_too:
        files |= {path.relative_to(root) for path in (root / "results").rglob("*") if path.is_file()}
    looked_at = sorted(file for file in files if file.parts[:2] not in _LEFT_OUT)
    return [(file.as_posix(), "" if same_bytes(copy / file, root / file) else "is another when recorded anew")
            for file in looked_at]


def same_bytes(one: Path, other: Path) -> bool:
    """Whether both files are there and equal."""
    return one.exists() and other.exists() and one.read_bytes() == other.read_bytes()
