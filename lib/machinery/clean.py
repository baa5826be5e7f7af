"""What the course takes on disk, and its removal: only folders the course made itself, and never through a link."""
from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lib.machinery import environment, lock, machine, preflight
from lib.machinery.machine import gigabytes

EDITS = "your working copies (results/lab)"  # removed only on a person's yes


class Group(NamedTuple):
    """Paths below `base` that are removed together, and what that costs."""

    name: str
    base: Path
    paths: list[Path]
    price: str


def groups(root: Path = environment.ROOT, cache: Path | None = None) -> list[Group]:
    """Everything the course may have left on disk, whether it is there or not."""
    cache = cache or machine.cache_folder()
    made = [Group("the packages (.venv)", root, [root / ".venv"], "set-up runs again, minutes"),
            Group("executed copies (results/run)", root, [root / "results" / "run"], "the next run makes them"),
            Group(EDITS, root, [root / "results" / "lab"], "your own edits are lost")]
    models = [Group(f"model {name}", cache, [cache / "models" / name], "fetched and converted again when needed")
              for name in preflight.registry()]
    rest = [Group("downloads of models", cache, [cache / "downloads"], "needed only if a model is converted again"),
            Group("vectors of texts", cache, [cache / "vectors"], "computed again when needed"),
            Group("what tools and killed runs left behind", root, leftovers(root), "nothing")]
    return made + models + rest


def leftovers(root: Path) -> list[Path]:
    """Caches of tools and half-written files that no command needs."""
    names = (".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", "notebooks/.ipynb_checkpoints")
    return [root / name for name in names] + sorted((root / "lib").rglob("__pycache__"))


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib clean`: list, then ask for each group (in a terminal); `--yes` removes all but the edits."""
    there = [(group, size) for group in groups() if (size := sum(map(machine.disk_used, group.paths)))]
    show(there)
    if not there:
        return 0
    if arguments.yes:
        ask: Callable[[Group], bool] = lambda group: group.name != EDITS  # noqa: E731
    elif sys.stdin.isatty():
        ask = asked
    else:
        print("Nothing was removed; --yes removes all of it but your working copies.")
        return 0
    freed = sum(size for group, size in there if ask(group) and remove(group))
    print(f"{gigabytes(freed)} freed.")
    return 0


def show(there: list[tuple[Group, int]]) -> None:
    """Print a line for each group that takes room, and the total."""
    for group, size in there:
        print(f"{gigabytes(size):>8}  {group.name}; once removed: {group.price}")
    print(f"{gigabytes(sum(size for _, size in there)):>8}  in all")


def asked(group: Group) -> bool:
    """Whether the person at the terminal wants a group removed; anything but a yes is a no."""
    try:
        return input(f"Remove {group.name}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def remove(group: Group) -> bool:
    """Remove a group's folders; False, with a word, where one is a link or in use."""
    return all([remove_folder(path, group.base) for path in group.paths])


def remove_folder(path: Path, base: Path) -> bool:
    """Remove one folder whole; a link, or a folder that is reached from `base` by one, is left alone."""
    inner = [path, *path.parents][:len(path.relative_to(base).parts)]
    if any(step.is_symlink() for step in inner):
        print(f"{path} is or lies behind a link and was left alone; remove what it names yourself.")
        return False
    if (path / "course.lock").exists():
        return _remove_unused(path)
    shutil.rmtree(path, onerror=_make_writable) if path.is_dir() else path.unlink(missing_ok=True)
    return True


def _remove_unused(venv: Path) -> bool:
    """Remove .venv unless a set-up is at work in it."""
    with lock.attempt(venv / "course.lock") as free:
        if not free:
            print(f"A set-up is at work in {venv}; it was left alone.")
            return False
        if os.name != "nt":
            shutil.rmtree(venv)
    if os.name == "nt":  # there an open file can't be removed
        shutil.rmtree(venv, onerror=_make_writable)
    return True


def _make_writable(function: Callable, path: str, error: tuple) -> None:
    """Windows won't remove a file that is marked read-only: mark it otherwise and try once more."""
    os.chmod(path, stat.S_IWRITE)
    function(path)
