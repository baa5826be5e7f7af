"""The peers: libraries of lib/tests/extras.txt that `test --all` and `bench` hold beside our own code.

They lie in a folder of their own below results/run/, apart from the course's packages: nothing else sees them.
"""
from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

from lib.machinery import Stop, environment, folders, lock, pip, preflight
from lib.machinery.progress import Progress

PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!_-]*)(?:; *(.+))?")
WAITING = "Another process installs the peers; waiting for it to end ..."


def pins() -> dict[str, str]:
    """{name: version} of the peers in lib/tests/extras.txt that this machine can have.

    Stop names a line that can't be read, or says that there is none.
    """
    found = {}
    for line in filter(None, map(str.strip, _list().read_text(encoding="utf-8").splitlines())):
        if not (match := PIN.fullmatch(line)):
            raise Stop(f"lib/tests/extras.txt: {line!r} is not of the form 'name==version'; correct it.")
        if _is_for_here(line, match[3]):
            found[match[1]] = match[2]
    if not found:
        raise Stop("lib/tests/extras.txt names no peer; restore it (git checkout lib/tests/extras.txt).")
    return found


def folder(progress: Progress | None = None) -> Path:
    """The folder that holds every peer, for PYTHONPATH; installed first if need be, Stop says what stands in the way.

    Its name is a hash of the list and of this Python, and it takes its place whole or not at all.
    """
    wanted, place = pins(), environment.ROOT / "results" / "run" / "extras" / _hash()
    place.parent.mkdir(parents=True, exist_ok=True)
    preflight.check_writable(place.parent)
    progress = progress or Progress()
    with lock.held(place.parent / "extras.lock", lambda: progress.note(WAITING)) as descriptor:
        if not is_whole(place, wanted):
            _install(place, wanted, progress, descriptor)
            _forget_others(place)
    return place


def is_whole(place: Path, wanted: dict[str, str]) -> bool:
    """Whether a folder holds each peer in its version."""
    return place.is_dir() and all(environment.installed(name, [str(place)]) == version
                                  for name, version in wanted.items())


def _install(place: Path, wanted: dict[str, str], progress: Progress, descriptor: int) -> None:
    """Install into a folder beside `place`, which then takes its place."""
    progress.step(f"install {', '.join(map(' '.join, wanted.items()))} (lib/tests/extras.txt)")
    log = place.parent / "install.log"
    log.unlink(missing_ok=True)
    try:
        with folders.put_in_place(place) as unfinished:
            pip.install(Path(sys.executable), ["--target", str(unfinished), "--no-deps", "--only-binary", ":all:",
                                               *map("==".join, wanted.items())],
                        len(wanted), progress, descriptor, log)
            if not is_whole(unfinished, wanted):
                raise Stop(f"pip came to its end and did not install all of lib/tests/extras.txt (log: "
                           f"{log.relative_to(environment.ROOT).as_posix()}): run the same command again.")
    except OSError as error:
        raise Stop(f"The peers of lib/tests/extras.txt can't be kept in results/run/extras ({error.strerror}): make "
                   "room there, make the folder your own, and run the same command again.") from error
    progress.done()


def _forget_others(place: Path) -> None:
    """Remove what older lists, another Python or a killed run left."""
    for other in place.parent.iterdir():
        if other.is_dir() and other != place:
            shutil.rmtree(other, ignore_errors=True)


def _is_for_here(line: str, marker: str | None) -> bool:
    """Whether a line's environment marker (PEP 508), where it has one, holds on this machine."""
    try:
        return marker is None or Marker(marker).evaluate()
    except (InvalidMarker, UndefinedEnvironmentName) as error:
        raise Stop(f"lib/tests/extras.txt: the condition in {line!r} can't be read; correct it.") from error


def _list() -> Path:
    return environment.ROOT / "lib" / "tests" / "extras.txt"


def _hash() -> str:
    text = f"{sorted(pins().items())} {sys.platform} {sys.version_info[:2]}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
