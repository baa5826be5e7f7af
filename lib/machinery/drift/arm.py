"""A Python for ARM and what the course needs on it, in a folder of its own: nothing of the system is changed.

The interpreter and its libraries come out of Debian's packages, unpacked and not installed; the packages with
compiled parts from the package index, in the course's versions. Pure Python is shared with this environment.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from lib.machinery import Stop, environment, folders, lock, pip, preflight
from lib.machinery.progress import Progress

TORCH = "2.10.0"  # the newest build for ARM on the package index that does without a graphics card's libraries
COMPILED = ("numpy", "scipy", "tokenizers", "safetensors", "psutil", "regex", "PyYAML", "MarkupSafe", "pillow",
            "rpds-py")
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"  # pure packages are shared: it has to be ours
PACKAGES = (f"{PYTHON}-minimal", f"lib{PYTHON}-stdlib", "libstdc++6", "libgomp1", "zlib1g")
DISK = 1_200_000_000
WAITING = "Another process makes the Python for ARM; waiting for it to end ..."
SETTINGS = """APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Debug::NoLocking "true";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
"""


def folder(progress: Progress | None = None) -> Path:
    """The folder with `root` (Debian's files) and `site` (packages), made first if need be; Stop says what lacks."""
    digest = hashlib.sha256(repr(wanted()).encode()).hexdigest()[:12]
    place = environment.ROOT / "results" / "run" / "arm64" / f"{PYTHON}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    progress = progress or Progress()
    with lock.held(place.parent / "arm64.lock", lambda: progress.note(WAITING)) as descriptor:
        if not python(place).exists():
            check()
            with folders.put_in_place(place) as unfinished:
                progress.step("fetch a Python for ARM (0.2 GB, once)")
                debian(unfinished)
                packages(unfinished, progress, descriptor)
                progress.done()
    return place


def check() -> None:
    """Stop where the Debian tools that fetch and unpack packages are missing, or room."""
    lacking = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if lacking:
        raise Stop(f"{' and '.join(lacking)} is not there: a Python for ARM comes out of Debian's packages.")
    preflight.check_disk(environment.ROOT, DISK, "A Python for ARM")


def python(place: Path) -> Path:
    """The interpreter for ARM in the folder."""
    return place / "root" / "usr" / "bin" / PYTHON


def variables(place: Path) -> dict[str, str]:
    """Where that interpreter finds packages: the compiled ones first, then this environment's pure ones."""
    paths = [environment.ROOT, place / "site", sysconfig.get_paths()["purelib"]]
    return {"PYTHONPATH": os.pathsep.join(map(str, paths))}


def debian(place: Path) -> None:
    """Unpack Debian's Python for ARM into `place`/root."""
    apt = place / "apt"
    for name in ("state", "lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(SETTINGS.replace("{folder}", str(apt)), encoding="utf-8")
    get = ("apt-get", "-c", str(apt / "apt.conf"))
    call(*get, "update")
    call(*get, "install", "-y", "--no-install-recommends", "--download-only", *PACKAGES)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        call("dpkg-deb", "-x", str(package), str(place / "root"))
    shutil.rmtree(apt)


def call(*command: str) -> None:
    """Run one of Debian's tools; Stop with its last words when it fails."""
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if answer.returncode != 0:
        last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
        raise Stop(f"{command[0]} did not bring {PYTHON} for ARM ({''.join(last)}); Debian 12 has it.")


def wanted() -> list[str]:
    """The packages with compiled parts, each with its version."""
    pins = environment.pins()
    return [f"torch=={TORCH}", *(f"{name}=={pins[environment.normalised(name)]}" for name in COMPILED)]


def packages(place: Path, progress: Progress, descriptor: int) -> None:
    """Install the packages with compiled parts into `place`/site, in their builds for ARM."""
    platforms = [part for name in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
                 for part in ("--platform", f"{name}_aarch64")]
    tag = PYTHON.replace("python", "cp").replace(".", "")
    pip.install(Path(sys.executable),
                ["--target", str(place / "site"), "--no-deps", "--no-compile", "--only-binary", ":all:",
                 "--implementation", "cp", "--python-version", PYTHON.removeprefix("python"),
                 "--abi", tag, "--abi", "abi3", "--abi", "none", *platforms, *wanted()],
                len(wanted()), progress, descriptor, place.parent / "install.log")
