"""Kernels of this very Python: started without anything from the user's home, and never left behind."""
from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager, KernelManager
from jupyter_core.utils import ensure_event_loop
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from lib.machinery import notebooks

if TYPE_CHECKING:
    from lib.machinery.watch import Outcome, Watch

FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError, RuntimeError, OSError)
_COMMAND = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
            "--HistoryManager.hist_file=:memory:"]


class OwnPython(KernelSpecManager):
    """Answers every request for a kernel with this environment's Python, whatever a home folder has installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The specification of a kernel that runs `sys.executable`."""
        return KernelSpec(argv=[*_COMMAND, *import_path(notebooks.ROOT)], display_name="Python 3", language="python")


def import_path(root: Path) -> list[str]:
    """What a kernel's command needs besides PYTHONPATH, which cannot hold a folder with its own separator in it."""
    given = "os.environ.get('PYTHONPATH', '').startswith(root)"
    line = f"import os, sys; root = {str(root)!r}; {given} and sys.path.insert(0, root); del root, os, sys"
    return [f"--IPKernelApp.exec_lines={[line]!r}"] if os.pathsep in str(root) else []


class Workshop:
    """A temporary folder for one kernel's connection file and IPython profile, so that no home is read or written."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="course-kernel-"))

    def manager(self, kind: type[KernelManager] = KernelManager) -> KernelManager:
        """A manager whose kernel is this environment's Python."""
        ensure_event_loop(prefer_selector_loop=True)  # Windows' own loop would warn that sockets need another
        return kind(kernel_name="python3", kernel_spec_manager=OwnPython(),
                    connection_file=str(self.folder / "kernel.json"))

    def start_options(self, cwd: Path, environment: dict[str, str]) -> dict:
        """What `start_kernel` is given: the folder, the variables, and silence on the runner's own terminal."""
        return {"cwd": str(cwd), "env": {**environment, "IPYTHONDIR": str(self.folder)},
                "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def session(client: NotebookClient, cwd: Path, environment: dict[str, str]) -> Iterator[psutil.Process]:
    """Starts a kernel for `client`, yields its process; the kernel and its children are gone afterwards, always."""
    workshop = Workshop()
    client.km = workshop.manager(AsyncKernelManager)
    client.shutdown_kernel, client.ipython_hist_file = "immediate", ""  # the command above names it already
    process = None
    try:
        client.start_new_kernel(**workshop.start_options(cwd, environment))
        process = psutil.Process(client.km.provisioner.pid)
        client.start_new_kernel_client()
        yield process
    finally:
        family = family_of(process)
        _abandon_tasks()
        if client.km is not None and client.km.has_kernel:
            client._cleanup_kernel()
        end(process, family)
        workshop.close()


def runnable(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells that hold something."""
    return [cell for cell in notebooks.code_cells(notebook) if cell.source.strip()]


def execute(client: NotebookClient, cwd: Path, environment: dict[str, str], outcome: Outcome, shown: Watch,
            after_each: Callable[[], None] = lambda: None) -> None:
    """Executes the cells of `client.nb` in order in a new kernel; one of FAILURES for the first that fails."""
    with session(client, cwd, environment) as kernel:
        shown.watch(kernel)
        for index, cell in enumerate(client.nb.cells):
            if cell.cell_type == "code" and cell.source.strip():
                outcome.at = notebooks.label(outcome.cells + 1, cell)
                client.execute_cell(cell, index, execution_count=outcome.cells + 1)
                outcome.cells += 1
                after_each()
        shown.measure()


def family_of(process: psutil.Process | None) -> list[psutil.Process]:
    """The process and its children, as far as they still live."""
    with suppress(psutil.Error):
        return [process, *process.children(recursive=True)] if process else []
    return []


def end(kernel: psutil.Process | None, family: list[psutil.Process]) -> None:
    """Kills what still runs of a kernel's family, and of its process group, whose leader may be dead already."""
    for process in family:
        with suppress(psutil.Error):
            process.kill()
    if kernel is not None and os.name != "nt":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(kernel.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=5)


def _abandon_tasks() -> None:
    """After an interrupt: cancels what the event loop still waited for, so that it can run the shutdown."""
    loop = ensure_event_loop()
    tasks = [task for task in asyncio.all_tasks(loop) if not task.done()]
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def in_one_line(failure: BaseException, at: str) -> str:
    """What went wrong, and `at` which cell, for a table."""
    if isinstance(failure, KeyboardInterrupt):
        return f"interrupted in {at}"
    if isinstance(failure, DeadKernelError):
        return f"the kernel died in {at}; often too little memory"
    if isinstance(failure, CellTimeoutError):
        return f"{at} took too long"
    if isinstance(failure, CellExecutionError):
        first = (failure.evalue.strip() or "no message").splitlines()[0]
        return f"{at}: {failure.ename}: {first}"[:300]
    return f"{at}: {type(failure).__name__}: {failure}".splitlines()[0][:300]


def memory(process: psutil.Process) -> int:
    """Bytes in memory of a process and its children at their highest, where the system tells; else now."""
    return sum(_highest(member) for member in family_of(process))


def _highest(process: psutil.Process) -> int:
    with suppress(psutil.Error, OSError, ValueError):
        facts = process.memory_info()
        return max(facts.rss, getattr(facts, "peak_wset", 0), _high_water_mark(process.pid))
    return 0


def _high_water_mark(pid: int) -> int:
    status = f"/proc/{pid}/status"
    if not os.path.exists(status):
        return 0
    with open(status, encoding="utf-8", errors="replace") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
