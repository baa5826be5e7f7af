"""Makes .venv, or brings a half-made or outdated one to its end; can be killed at any moment and run again."""
from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from lib.machinery import Stop, environment, lock, machine, pip, preflight
from lib.machinery.environment import ROOT, VENV
from lib.machinery.pip_failures import PipFailure, kind
from lib.machinery.progress import Progress

ENVIRONMENT_BYTES = 1_720_000_000   # measured: .venv on Linux, CPU build of torch
SCRATCH_BYTES = 400_000_000         # the largest wheels while they are unpacked
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
ESTIMATE = "once, about 4 minutes, 1.7 GB; more on a slow line"
WAITING = "Another set-up is at work in this folder; waiting for it to end ..."
KEPT = {"course.lock", "course.json"}  # stay while all else is cleared: somebody may wait at the one, and the
                                       # other says that what a killed clearing left behind is ours to clear


def make(progress: Progress | None = None) -> Path:
    """The interpreter of a whole .venv, made first if need be; Stop says what stands in the way."""
    progress = progress or Progress()
    preflight.check_venv_module()
    preflight.check_path_length()
    preflight.check_writable(ROOT)
    check_space()
    VENV.mkdir(exist_ok=True)
    preflight.check_writable(VENV)
    with lock.held(VENV / "course.lock", lambda: progress.note(WAITING)) as descriptor:
        if python := environment.ready():
            return python
        return _set_up(progress, descriptor)


def check_space() -> None:
    """Stop where the disk won't hold what the environment still lacks, and the model if it goes to the same disk."""
    here = max(0, ENVIRONMENT_BYTES - machine.disk_used(VENV)) + SCRATCH_BYTES
    cache, models = machine.cache_folder(), preflight.model_disk()
    if machine.same_disk(cache, ROOT):
        preflight.check_disk(ROOT, here + models, "The course (packages and model)")
        return
    preflight.check_disk(ROOT, here, "The set-up of the packages")
    preflight.check_disk(cache, models, "The model")


def _set_up(progress: Progress, descriptor: int) -> Path:
    """All steps, under the lock; the last writes the stamp that makes .venv count."""
    begun = time.monotonic()
    pins = environment.pins()
    progress.note(f"Setting up {len(pins)} packages in the folder .venv ({ESTIMATE}). An interrupt does no harm: the "
                  "same command goes on.")
    log = VENV / "setup.log"
    log.unlink(missing_ok=True)
    scratch()
    python = base(progress, descriptor, log)
    sweep(environment.packages_of(VENV, environment.version_of(python) or ""))
    environment.write_stamp("made")
    packages(python, pins, progress, descriptor, log)
    course(python, progress, descriptor, log)
    shutil.rmtree(VENV / "tmp", ignore_errors=True)
    _finish()
    progress.note(f"Set up in {time.monotonic() - begun:.0f} s.")
    return python


def scratch() -> None:
    """An empty folder for pip's unpacking: the system's own is often too small for torch."""
    shutil.rmtree(VENV / "tmp", ignore_errors=True)
    (VENV / "tmp").mkdir()


def _finish() -> None:
    """Write the last stamp, once everything else is on the disk."""
    if hasattr(os, "sync"):
        os.sync()
    environment.write_stamp("whole")
    if fault := environment.venv_fault():
        environment.write_stamp("made")
        raise Stop(f"Set-up came to its end and .venv is still not right: {fault}; run python3 -m lib doctor.")


def base(progress: Progress, descriptor: int, log: Path) -> Path:
    """The interpreter of a .venv that runs and has pip: the one there, or a new one in its place."""
    python = environment.python_of(VENV)
    if not usable_base():
        environment.write_stamp("making")
        clear()
        scratch()
        progress.step(f"1/4 virtual environment (Python {sys.version.split()[0]})")
        _create(progress, descriptor, log)
        progress.done()
    return python


def usable_base() -> bool:
    """Whether .venv can be completed; Stop if it is somebody else's and can't."""
    facts, others = environment.stamp(), set(os.listdir(VENV)) - KEPT - {"tmp"}
    runs = environment.version_of(environment.python_of(VENV)) is not None
    if facts:
        return facts.get("stage") in ("made", "whole") and facts.get("checkout") == str(ROOT) and runs and _has_pip()
    if others and not (runs and _has_pip()):
        raise Stop("The folder .venv was not made by this course and can't be completed (its Python doesn't run or "
                   "has no pip): move it away and run the same command again.")
    return bool(others)


def _has_pip() -> bool:
    command = [str(environment.python_of(VENV)), "-I", "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, timeout=120).returncode == 0


def clear() -> None:
    """Empty .venv, but for the lock."""
    for entry in os.scandir(VENV):
        if entry.name in KEPT:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _create(progress: Progress, descriptor: int, log: Path) -> None:
    """Run this Python's venv module on .venv."""
    watch = pip.Watch(0, lambda: 0)
    if pip.run([sys.executable, "-m", "venv", str(VENV)], watch, progress, descriptor, log) == 0:
        return
    text = "\n".join(watch.lines)
    if kind(text) == "disk" or machine.disk_free(VENV) < 30_000_000:
        raise Stop("The disk became full while the virtual environment was made: make room and run again.")
    if "ensurepip" in text:
        raise Stop(preflight.without_venv("has a broken ensurepip"))
    last = (text.strip().splitlines() or ["no message"])[-1]
    raise Stop(f"{sys.executable} could not make a virtual environment ({last}): try another Python 3.11 to 3.13 "
               "(log: .venv/setup.log).")


def sweep(packages: Path) -> None:
    """Forget packages that a killed pip left half-written, so that pip installs them again."""
    for folder in packages.glob("*.dist-info"):
        if not folder.name.startswith("pip-") and not is_sound(folder):
            shutil.rmtree(folder)
    for leftover in packages.glob("~*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def is_sound(folder: Path) -> bool:
    """Whether a package's RECORD was finished (pip adds its INSTALLER last) and every file has the size it names."""
    try:
        with open(folder / "RECORD", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row and not row[0].endswith(".pyc")]
        whole = any(row[0].endswith(".dist-info/INSTALLER") for row in rows)
        return whole and all((folder.parent / name).stat().st_size == int(size) for name, _, size in rows if size)
    except (OSError, ValueError):
        return False


def packages(python: Path, pins: dict[str, str], progress: Progress, descriptor: int, log: Path) -> None:
    """Install every pin: torch first and alone, from PyTorch's CPU index where that is another build."""
    requirements = VENV / "requirements.txt"
    requirements.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
    torch(python, pins["torch"], progress, descriptor, log)
    progress.step("3/4 the other packages")
    pip.install(python, ["--only-binary", ":all:", "-r", str(requirements)], len(pins), progress, descriptor, log)
    progress.done()


def torch(python: Path, version: str, progress: Progress, descriptor: int, log: Path) -> None:
    """Install torch alone: the CPU build is a tenth of the one that the usual index has for Linux."""
    here = str(environment.packages_of(VENV, environment.version_of(python) or ""))
    if environment.installed("torch", [here]) == version:
        return
    arguments = ["--no-deps", "--only-binary", ":all:", f"torch=={version}"]
    if sys.platform == "linux" and answers(CPU_INDEX):
        progress.step(f"2/4 torch {version}, from PyTorch's CPU index")
        try:
            pip.install(python, ["--index-url", CPU_INDEX, *arguments], 1, progress, descriptor, log)
            return progress.done()
        except PipFailure as failure:
            if failure.kind not in ("network", "absent"):
                raise
            progress.done("not to be had there")
    if sys.platform == "linux":
        progress.note("PyTorch's own CPU index doesn't answer; the usual index is asked (should it fetch nvidia "
                      "packages, interrupt, and try again where that index can be reached).")
    progress.step(f"2/4 torch {version}, from the usual index")
    pip.install(python, arguments, 1, progress, descriptor, log)
    progress.done()


def answers(url: str, seconds: float = 2.0) -> bool:
    """Whether something answers at `url` within `seconds` in all, name look-up and proxy included."""
    reply: list[bool] = []
    thread = threading.Thread(target=lambda: reply.append(_probe(url, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(reply and reply[0])


def _probe(url: str, seconds: float) -> bool:
    proxy = os.environ.get("PIP_PROXY")
    handlers = [urllib.request.ProxyHandler({"https": proxy})] if proxy else []
    try:
        urllib.request.build_opener(*handlers).open(urllib.request.Request(url, method="HEAD"), timeout=seconds)
        return True
    except urllib.error.HTTPError as error:
        return error.code < 400
    except urllib.error.URLError as error:
        return "CERTIFICATE" in str(error.reason)  # it answers; pip may know the certificate (PIP_CERT)
    except (OSError, ValueError):
        return False


def course(python: Path, progress: Progress, descriptor: int, log: Path) -> None:
    """Make `import lib` work from any folder."""
    progress.step("4/4 the course's own module")
    pip.install(python, ["--no-deps", "--no-build-isolation", "-e", str(ROOT)], 1, progress, descriptor, log)
    progress.done()
