"""Which Python the course runs on: the one that was started, if it holds every pin, or the checkout's own .venv."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

from lib.machinery import Stop

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PIN = re.compile(r"\s+- ([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!_-]*)\s*(#.*)?")
VERSIONS = ("3.11", "3.12", "3.13")
# variables that would lead the environment's Python or pip to somebody else's packages
FOREIGN = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_DRY_RUN")


def normalised(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: Path | None = None) -> dict[str, str]:
    """{normalised name: version} of the pip section of environment.yml; Stop names a line that can't be read."""
    file = file or ROOT / "environment.yml"
    found: dict[str, str] = {}
    for number, line in _pip_section(file):
        match = PIN.fullmatch(line)
        name = normalised(match[1]) if match else ""
        if not match or name in found:
            fault = "stands there twice" if match else "is not of the form '- name==version'"
            raise Stop(f"{file.name}, line {number}: {line.strip()!r} {fault}; correct it and run again.")
        found[name] = match[2]
    if not found:
        raise Stop(f"{file.name} has no pip section with pins; restore it (git checkout {file.name}).")
    return found


def _pip_section(file: Path) -> list[tuple[int, str]]:
    """(number, line) of every line below `- pip:` that says something."""
    section, indent = [], None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        depth = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if indent is not None and depth <= indent:
            break
        if indent is not None:
            section.append((number, line.rstrip()))
        elif line.strip() == "- pip:":
            indent = depth
    return section


def missing(path: list[str] | None = None) -> dict[str, str | None]:
    """{name: version found or None} of the pins that `path` (default: this Python's) doesn't hold exactly."""
    return {name: found for name, version in pins().items() if (found := installed(name, path)) != version}


def installed(name: str, path: list[str] | None = None) -> str | None:
    """The version of a package on `path`, without a local part such as +cpu, or None."""
    found = Distribution.discover(name=name, **({} if path is None else {"path": path}))
    version = next((item.version for item in found), None)
    return version.split("+")[0] if version else None


def python_of(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def version_of(python: Path) -> str | None:
    """'3.12' for an interpreter that runs, is 64-bit and will do for the course; None otherwise."""
    probe = "import sys; print(sys.maxsize > 2**32 and '%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([str(python), "-I", "-S", "-c", probe], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return version if (version := answer.stdout.strip()) in VERSIONS else None


def packages_of(venv: Path, version: str) -> Path:
    """The folder of packages of a virtual environment whose Python is `version`."""
    return venv / ("Lib/site-packages" if os.name == "nt" else f"lib/python{version}/site-packages")


def stamp() -> dict:
    """What set-up last wrote about .venv: {"stage": making | made | whole, "checkout"}; {} where it wrote nothing."""
    try:
        facts = json.loads((VENV / "course.json").read_text(encoding="utf-8"))
        return facts if isinstance(facts, dict) else {}
    except (OSError, ValueError):
        return {}


def write_stamp(stage: str) -> None:
    """Record how far .venv is, in one step: a kill leaves the old stamp or the new one, never half of one."""
    draft = VENV / "course.json.part"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump({"stage": stage, "checkout": str(ROOT)}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, VENV / "course.json")


def venv_fault() -> str | None:
    """Why .venv can't be used as it is, in a few words; None if it can."""
    facts = stamp()
    if not (VENV / "pyvenv.cfg").exists():
        return "it isn't made yet"
    if facts and facts.get("checkout") != str(ROOT):
        return "it was made for another folder"
    if facts and facts.get("stage") != "whole":
        return "its set-up did not come to an end"
    version = version_of(python_of(VENV))
    if version is None:
        return "its Python doesn't run any more"
    lacking = missing([str(packages_of(VENV, version))])
    return f"{len(lacking)} of its packages are missing or of another version" if lacking else None


def inside_venv() -> bool:
    """Whether the Python that runs is .venv's own."""
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def ready() -> Path | None:
    """The interpreter that holds every pin: the running one, else .venv's; None if set-up has to come first."""
    if not inside_venv() and not missing():
        return Path(sys.executable)
    return python_of(VENV) if venv_fault() is None else None


def is_running(python: Path) -> bool:
    """Whether `python` is the interpreter (and environment) that runs now."""
    return inside_venv() if python == python_of(VENV) else True


def variables(python: Path) -> dict[str, str]:
    """The variables for processes on the ready interpreter: its own packages, programs and kernel come first."""
    own = python == python_of(VENV)
    prefix = VENV if own else Path(sys.prefix)
    result = {name: value for name, value in os.environ.items() if not own or name not in FOREIGN}
    programs = str(python.parent)
    result["PATH"] = _first(programs, result.get("PATH", os.defpath))
    result["PYTHONPATH"] = _first(str(ROOT), result.get("PYTHONPATH", ""))
    result["PYTHONUTF8"] = "1"
    # a personal kernel called python3 in the user's home must not be started instead of the environment's
    result["JUPYTER_PREFER_ENV_PATH"] = "1"
    result["JUPYTER_PATH"] = _first(str(prefix / "share" / "jupyter"), result.get("JUPYTER_PATH", ""))
    if own:
        result["VIRTUAL_ENV"] = str(VENV)
    return result


def _first(folder: str, folders: str) -> str:
    """A list of folders, as PATH is one, with `folder` moved to its front."""
    rest = [item for item in folders.split(os.pathsep) if item and item != folder]
    return os.pathsep.join([folder, *rest])
