"""What a report of a difference has to say besides the difference, each in a line: commit, versions, settings.

The line on settings names no secret: a value is shown where it is plain and its variable is one that decides numbers.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from lib.machinery import environment

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
SHOWN = ("COURSE_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "ATEN_", "ONEDNN_", "DNNL_")  # name and value
NAMED = re.compile(r"(?:https?|all|no)_proxy|pip_\w+|hf_(?:endpoint|home|hub_offline)", re.I)  # the name alone
SECRET = re.compile(r"token|key|secret|password", re.I)
PLAIN = re.compile(r"[\w.,:;/\\~+ -]{0,120}")  # neither user@host nor name=value
MOST_FILES = 8  # changed files that are named
COMPUTING = """
import torch
from lib.models import usable_cores
print(torch.backends.cpu.get_cpu_capability(), min(torch.get_num_threads(), usable_cores()))
"""


def commit() -> str:
    """The commit that is checked out, and which of its files are changed; or that git doesn't know."""
    top = git("rev-parse", "--show-toplevel")
    number = git("rev-parse", "--short=12", "HEAD")
    if not (top and number and os.path.exists(top) and os.path.samefile(top, environment.ROOT)):
        return "commit: not known, since this is no git checkout (or git isn't here)"
    lines = (git("status", "--porcelain", "--untracked-files=normal") or "").splitlines()
    changed = [line[3:] for line in lines if not line.startswith("??")]
    new = len(lines) - len(changed)
    return f"commit: {number}, " + (", ".join(filter(None, [_changed(changed), f"{new} not in git" if new else ""]))
                                    or "nothing changed")


def _changed(files: list[str]) -> str:
    more = [f"and {len(files) - MOST_FILES} more"] if len(files) > MOST_FILES else []
    return f"{len(files)} changed: {', '.join(files[:MOST_FILES] + more)}" if files else ""


def git(*arguments: str) -> str | None:
    """What git says about the course's folder, without the last line's end; None where it doesn't."""
    program = shutil.which("git")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run([program or "git", "-C", str(environment.ROOT), *arguments], capture_output=True,
                              text=True, encoding="utf-8", errors="replace", timeout=30, env=surroundings)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip() if done.returncode == 0 else None


def versions() -> str:
    """The versions of the libraries that decide numbers and tokens, with their local part such as +cpu."""
    return "versions: " + ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def computing() -> str:
    """With which instructions and how many threads torch computes in a notebook's kernel, asked in such a process."""
    from lib.machinery import notebooks
    done = subprocess.run([sys.executable, "-c", COMPUTING], env=notebooks.child_environment(), capture_output=True,
                          text=True, encoding="utf-8", errors="replace", timeout=600)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"torch could not be asked how it computes ({last})")
    capability, threads = done.stdout.split()
    return f"torch computes with {capability} and {threads} thread{'s' * (threads != '1')}"


def variables() -> str:
    """The variables that are set and could make a difference: names, and values where they are harmless."""
    shown = [f"{name}={value}" if PLAIN.fullmatch(value) and not SECRET.search(name) else f"{name} (value not shown)"
             for name, value in sorted(os.environ.items()) if name.startswith(SHOWN)]
    named = [f"{name} (value not shown)" for name in sorted(os.environ) if NAMED.fullmatch(name)]
    return "variables: " + (", ".join(shown + named) or "none that matter")


def discreet(text: str) -> str:
    """`text` with the course's folder as `.` and the home folder as `~`, so that it can be shown to others."""
    home = os.path.expanduser("~")
    for path, sign in [(str(environment.ROOT), "."), (home, "~"), (os.path.realpath(home), "~")]:
        if len(Path(path).parts) > 1:  # a home of / is no name
            whole = rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)"
            text = re.sub(whole, sign, text, flags=re.I if os.name == "nt" else 0)
    return text
