"""Toy courses for the tests of the machinery: a folder with one tiny notebook, executed without any model."""
from __future__ import annotations

from pathlib import Path

from lib.machinery import notebooks
from lib.tests.canaries.make import notebook

GENERATES = """import json, os
ids = [3, 4]
entry = {"model": "m", "prompt_ids": [1, 2], "ids": ids, "text": "",
         "stop_reason": "eos", "gaps": [0.5, 0.00042]}
with open(os.environ["COURSE_LEDGER"], "a", encoding="utf-8") as lines:
    print(json.dumps(entry), file=lines)
print(ids)"""
WRITES = """import os, pathlib
folder = pathlib.Path(os.environ["COURSE_RESULTS"])
_ = (folder / "table.txt").write_text("42")"""


def course(root: Path, *cells: tuple, name: str = "01-toy", **options: str) -> Path:
    """A notebook of `cells` (source, recorded outputs, metadata) under `root`/notebooks; its path."""
    path = root / "notebooks" / f"{name}.ipynb"
    notebooks.write_atomically(path, notebooks.dumps(notebook(*cells, **options)))
    return path


def sources(root: Path, *texts: str, name: str = "01-toy") -> Path:
    """A notebook of code cells without outputs; its path."""
    return course(root, *((text, []) for text in texts), name=name)


def change(path: Path, old: str, new: str) -> None:
    """Replaces a text that stands exactly once in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def tree(root: Path) -> dict[str, bytes]:
    """Every file under `root` with its bytes."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
