"""Re-executes notebooks under the strict plugin, in a process of its own, and demands that every cell was run."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lib.machinery import notebooks, orphan

CELL_TIMEOUT = 600  # seconds
START_TIMEOUT = 120  # seconds for a kernel to start
SETTINGS = Path(__file__).parent / "strict" / "settings.ini"


@dataclass
class Verdict:
    """How a strict run ended: cells passed, failed and compared, what is wrong in each notebook, pytest's code."""
    passed: int = 0
    failed: int = 0
    compared: int = 0
    faults: dict[Path, list[str]] = field(default_factory=dict)
    code: int = 0


def reexecute(paths: list[Path], junit: Path | None = None, quiet: bool = False, root: Path = notebooks.ROOT,
              cell_timeout: int = CELL_TIMEOUT) -> Verdict:
    """Runs every cell of `paths` (which lie under `root`); any cell that was not run or not compared is a fault."""
    if not paths:  # pytest would look for some by itself
        return Verdict()
    with tempfile.TemporaryDirectory(prefix="course-strict-", ignore_cleanup_errors=True) as folder:
        report = Path(folder, "report.json")
        # Below `root` no name needs care; in a whole path pytest would take [ and :: for parts of a test's name.
        command = [*strict_command(root, cell_timeout), "--strict-report", str(report),
                   *([f"--junitxml={junit.resolve()}"] if junit else []),
                   *(path.resolve().relative_to(root.resolve()).as_posix() for path in paths)]
        code = call(command, quiet, root, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return judge(paths, told, code)


def strict_command(root: Path, cell_timeout: int) -> list[str]:
    """The one command line of a strict run: no settings, plugins or conftest of anybody else."""
    return [sys.executable, "-m", "pytest", "-c", str(SETTINGS), "--rootdir", str(root), "--noconftest",
            "-p", "no:cacheprovider", "-p", "lib.machinery.strict", "--nbval", "--nbval-current-env",
            f"--nbval-cell-timeout={cell_timeout}", f"--nbval-kernel-startup-timeout={START_TIMEOUT}",
            "--tb=no", "-rN", "-v", "--no-header"]


def call(command: list[str], quiet: bool = False, cwd: Path = notebooks.ROOT, **variables: str | Path) -> int:
    """Runs a process of our own, its exit code; when we are ended before it, it gets the time to end its kernels.

    When we are killed, it finds out (see `orphan`), if it is one that looks.
    """
    environment = notebooks.child_environment(PYTHONUNBUFFERED="1", **orphan.mark(), **variables)
    output = subprocess.DEVNULL if quiet else None
    sys.stdout.flush()
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=cwd)
    try:
        return process.wait()
    except BaseException as ending:
        if not isinstance(ending, KeyboardInterrupt):  # an interrupt from the terminal has reached it already
            process.terminate()
        _wait_and_end(process)
        raise


def _wait_and_end(process: subprocess.Popen) -> None:
    for end in (process.terminate, process.kill):
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            return
        end()
    process.wait()


def judge(paths: list[Path], told: dict[str, dict], code: int) -> Verdict:
    """What the report of a strict run proves about `paths`; what it does not prove is a fault."""
    verdict = Verdict(code=code)
    told = {os.path.realpath(name): counts for name, counts in told.items()}
    for path in paths:
        counts = told.get(os.path.realpath(path), {})
        verdict.passed += counts.get("passed", 0)
        verdict.compared += counts.get("checked", 0)
        found = counts.get("faults") or unproven(path, counts)
        if found:
            verdict.faults[path] = found
            verdict.failed += max(counts.get("failed", 0), 1)
    if code != 0 and not verdict.failed:
        verdict.failed += 1
        verdict.faults[notebooks.ROOT] = [f"the strict run ended with code {code}"]
    return verdict


def unproven(path: Path, counts: dict) -> list[str]:
    """Why a report does not prove that each cell of a notebook ran and, unless it is listed, was compared."""
    cells = notebooks.code_cells(notebooks.read(path))
    unchecked = sum(notebooks.is_unchecked(cell) for cell in cells)
    wanted = {"code_cells": len(cells), "checked": len(cells) - unchecked, "unchecked": unchecked,
              "passed": len(cells), "failed": 0}
    if not counts:
        return ["not one of its cells was run"]
    return [f"{name.replace('_', ' ')}: {counts.get(name)} instead of {number}"
            for name, number in wanted.items() if counts.get(name) != number]
