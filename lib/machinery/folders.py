"""What the folder of a ready model holds besides its weights, and how it is put in place all at once."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import models
from . import Stop

WEIGHTS, MANIFEST = "model.safetensors", "manifest.json"
BLOCK = 1 << 20


def write_json(path: Path, content: dict) -> None:
    """Write `content` as JSON, indented by two, ending in a newline."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def generation_config(eos: list[int], pad: int) -> dict:
    """The content of generation_config.json: greedy, nothing hidden; every setting that could differ is named."""
    return {"do_sample": False, "repetition_penalty": 1.0, "eos_token_id": eos, "pad_token_id": pad}


def check_parameters(name: str, found: int) -> None:
    """Stop unless the model has as many parameters as the registry says."""
    expected = models.entry(name).get("parameters", found)
    if found != expected:
        raise Stop(f"{name} has {found:,} parameters, not {expected:,}: its source is another model than the "
                   "registry means; nothing was kept.")


def finish(folder: Path, name: str, source: dict[str, str], parameters: int, known: dict[str, str]) -> None:
    """Check the files against the registry's `converted` hashes and write the manifest, last of all.

    `known` holds hashes that are known from writing, so that a large file is not read again.
    """
    files = {file: {"bytes": path.stat().st_size, "sha256": known.get(file) or sha256(path)}
             for file, path in _files(folder)}
    for file, found, expected in unlike_registry(name, files):
        raise Stop(f"{file} of {name} came out otherwise than recorded (SHA-256 {found[:12]}…, not "
                   f"{expected[:12]}…); nothing was kept: check that the pinned packages are installed.")
    write_json(folder / MANIFEST, {
        "name": name, "source": source, "conversion": models.CONVERSION, "parameters": parameters,
        "files": files, "header_sha256": models.header_hash(folder / WEIGHTS)})


def unlike_registry(name: str, files: dict[str, dict]) -> list[tuple[str, str, str]]:
    """(file, its SHA-256, the registry's) of each file in a manifest whose hash is not the registry's `converted`."""
    found = [(file, files.get(file, {}).get("sha256", "none"), expected)
             for file, expected in models.entry(name).get("converted", {}).items()]
    return [each for each in found if each[1] != each[2]]


def read_manifest(folder: Path) -> dict:
    """The manifest of a ready model."""
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Every file under `folder`: its name from there, with forward slashes, and its path."""
    return [(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file()]


@contextmanager
def put_in_place(final: Path) -> Iterator[Path]:
    """A new folder beside `final` that takes its place at the end, or is removed where the work fails."""
    unfinished = final.with_name(final.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        for _, path in _files(unfinished):
            sync(path)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(unfinished, final)
        sync(final.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` whose file takes its place at the end, or is removed where the work fails."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        yield part
        sync(part)
        os.replace(part, target)
        sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have the disk hold what was written to a file or folder (folders: where the system can)."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path, advance: Callable[[int], Any] = lambda count: None) -> str:
    """The SHA-256 of a file; `advance` is told of bytes as they are read."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            advance(len(block))
    return digest.hexdigest()
