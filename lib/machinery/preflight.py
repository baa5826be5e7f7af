"""What must hold before anything is installed, fetched or run; each failure is one sentence."""
from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

from lib.machinery import Stop, machine
from lib.machinery.machine import gigabytes

WORKING_MEMORY = 870_000_000       # what a notebook takes beside the weights (measured: 07, 2.83 GB in all)
DEEPEST_PATH = 196                 # characters of the longest path in .venv, measured
SMALL_MODEL = "smollm2-135m"       # what a small machine can run instead
EMBEDDING_MODELS = ("minilm", "multilingual-e5-small")  # sentences to vectors, in the lesson on retrieval


def registry() -> dict:
    """The registry of models, read without importing lib.models (which needs a package)."""
    return json.loads(Path(__file__).with_name("models.json").read_text(encoding="utf-8"))


def model_in_use() -> str:
    """COURSE_MODEL, or the default: the registry's first entry."""
    models = registry()
    name = os.environ.get("COURSE_MODEL") or next(iter(models))
    if name not in models:
        raise Stop(f"COURSE_MODEL names {name!r}, which is no model of the course; there are: {', '.join(models)}.")
    if "eos" not in models[name]:
        raise Stop(f"COURSE_MODEL names {name}, which turns texts into vectors and writes none; there are: "
                   f"{', '.join(other for other in models if 'eos' in models[other])}.")
    return name


def check_memory(found: machine.Memory | None = None) -> None:
    """Stop where the model in use would not fit into memory; say nothing where memory can't be read."""
    name = model_in_use()
    check_fits(name, [f"set COURSE_MODEL={SMALL_MODEL}"] if name != SMALL_MODEL else [], found)


def check_fits(name: str, instead: list[str], found: machine.Memory | None = None) -> None:
    """Stop where the model `name` would not fit into memory; `instead` says what else can be done than closing."""
    need = registry()[name]["parameters"] * 4 + WORKING_MEMORY
    found = found or machine.memory()
    if found is None or found.available >= need:
        return
    too_small = found.total < need
    amount = f"has {gigabytes(found.total)} in all" if too_small else f"has {gigabytes(found.available)} free"
    advice = ([] if too_small else ["close other programs"]) + instead
    raise Stop(f"The model {name} needs {gigabytes(need)} of memory and this machine {amount}: "
               f"{' or '.join(advice) or 'use a machine with more'}.")


def check_disk(folder: Path, need: int, what: str) -> None:
    """Stop where the disk of `folder` has fewer than `need` bytes left for `what`."""
    free = machine.disk_free(folder)
    if free < need:
        raise Stop(f"{what} needs {gigabytes(need)} of disk and {folder} has {gigabytes(free)} free: make room "
                   f"(python3 -m lib clean shows what the course itself takes) and run the same command again.")


def models_needed() -> list[str]:
    """The models that the notebooks load: the one in use, the small one, and those that embed sentences."""
    return list(dict.fromkeys([model_in_use(), SMALL_MODEL, *EMBEDDING_MODELS]))


def model_disk() -> int:
    """Bytes that the models will still take: each its source and its float32 weights; 0 for one that is there."""
    entries = {name: registry()[name] for name in models_needed()}
    return sum(entry.get("file_bytes", 0) + entry["parameters"] * 4 for name, entry in entries.items()
               if not any((machine.cache_folder() / "models" / name).glob("*/manifest.json")))


def check_home() -> None:
    """Stop for an account without a home folder, as some containers have: Jupyter and the models' cache need one."""
    if not os.path.isabs(os.path.expanduser("~")):
        raise Stop("This account has no home folder, which Jupyter and the models need: let the variable HOME name a "
                   "folder of yours and run the same command again.")


def check_writable(folder: Path) -> None:
    """Stop where no file can be made in `folder`, found out by making one."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Stop(f"Nothing can be written to {folder} ({error.strerror}): make it writable for you, or copy the "
                   f"course to a folder of your own, and run the same command there.") from error


def check_venv_module() -> None:
    """Stop where this Python can't make a virtual environment, as Debian's without its extra package."""
    lacking = [name for name in ("venv", "ensurepip") if not _is_there(name)]
    if lacking:
        raise Stop(without_venv(f"lacks the module {' and '.join(lacking)}"))


def _is_there(module: str) -> bool:
    """Whether a module can be imported; a folder left behind by an uninstalled package doesn't count."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None


def without_venv(fault: str) -> str:
    """What to do with a Python that can't make a virtual environment."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (f"This Python {fault}, so that it can't make a virtual environment: on Debian or Ubuntu run 'sudo apt "
            f"install python{version}-venv', elsewhere take a whole Python (python.org, conda), and run the same "
            "command again.")


def check_path_length(root: Path | None = None) -> None:
    """Stop on a Windows that allows no more than 260 characters, where the packages' paths would get longer."""
    root = root or Path(__file__).resolve().parents[2]
    if sys.platform == "win32" and len(str(root)) + DEEPEST_PATH > 259 and not long_paths():
        raise Stop(f"The path {root} is too long for this Windows, which allows 260 characters in all: move the "
                   "course to a short one such as C:\\course, or let an administrator set LongPathsEnabled, and run "
                   "the same command again.")


def long_paths() -> bool:
    """Whether this Windows was set to allow paths of any length."""
    import winreg
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:
            return winreg.QueryValueEx(key, "LongPathsEnabled")[0] == 1
    except OSError:
        return False
