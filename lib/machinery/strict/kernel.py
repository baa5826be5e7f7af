"""nbval's kernel made strict: this environment's Python, its replies kept, its death noticed."""
from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from queue import Empty

import psutil
from nbval.kernel import RunningKernel

from lib.machinery import kernels, ledger, notebooks
from lib.machinery.results import copy_aside

HASH_SEED = 1  # recordings are made with 0: an output that hangs on the order of a set comes out as another
_GLANCE = 0.5  # seconds between two looks at whether the kernel lives
_PATIENCE = 5.0  # seconds for a kernel to obey an interrupt
_OUTPUTS = {"stream", "display_data", "execute_result", "error"}


class KernelDied(Exception):
    """The kernel's process has ended while an answer was awaited."""


class StrictKernel(RunningKernel):
    """Runs one notebook, which writes to a copy of the course's results/; its generations are kept."""

    def __init__(self, cwd: Path, startup_timeout: float) -> None:
        self.reply: dict = {}
        self.kinds: set[str] = set()
        self.strays: set[str] = set()  # kinds of outputs that came late, of a cell that had ended
        self.request, self.patience = "", float("inf")
        self.workshop = kernels.Workshop()
        self.lines = self.workshop.folder / "ledger.jsonl"
        self.process, self.kc = None, None
        try:
            self._start(cwd, startup_timeout)
        except BaseException:
            self.stop()
            raise

    def _start(self, cwd: Path, startup_timeout: float) -> None:
        copies = self.workshop.folder / "results"
        copy_aside(cwd.parent / "results", copies)
        environment = notebooks.child_environment(COURSE_STRICT="1", COURSE_LEDGER=self.lines, COURSE_RESULTS=copies,
                                                  PYTHONHASHSEED=HASH_SEED)
        self.km = self.workshop.manager()
        self.km.start_kernel(**self.workshop.start_options(cwd, environment))
        self.process = psutil.Process(self.km.provisioner.pid)
        self.kc = self.km.client()
        self.kc.start_channels()
        self.kc.wait_for_ready(timeout=startup_timeout)
        self._ensure_iopub_up()

    def generations(self) -> list[dict]:
        """What the models have generated in this kernel so far."""
        return ledger.read(self.lines)

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """As JupyterLab sends a cell: with history, so that `Out[1]` and a trailing `;` mean what they mean there."""
        self.reply, self.kinds, self.strays = {}, set(), set()
        self.request = self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)
        return self.request

    def get_message(self, stream: str, timeout: float | None = None) -> dict:
        """The next message; Empty after `timeout` seconds; KernelDied as soon as none can come any more."""
        end = time.monotonic() + min(float("inf") if timeout is None else timeout, self.patience)
        while True:
            alive = self.is_alive()
            try:
                return self._noted(super().get_message(stream, timeout=min(_GLANCE, max(end - time.monotonic(), 0))))
            except Empty:
                if not alive:
                    raise KernelDied from None
                if time.monotonic() >= end:
                    raise

    def interrupt(self) -> None:
        """Interrupts the cell that took too long; from now on the kernel is not waited for any more."""
        self.patience = _PATIENCE
        super().interrupt()

    def _noted(self, message: dict) -> dict:
        self.kinds.add(message["msg_type"])
        if message["msg_type"] in _OUTPUTS and message["parent_header"].get("msg_id") != self.request:
            self.strays.add(message["msg_type"])
        if message["msg_type"] == "execute_reply":
            self.reply = message["content"]
        return message

    def stop(self) -> None:
        """Ends the kernel with all its children, dead or alive, and removes its files; may be called twice."""
        family = kernels.family_of(self.process)
        if self.kc is not None:
            self.kc.stop_channels()
        if hasattr(self, "km"):
            with suppress(RuntimeError):
                self.km.shutdown_kernel(now=True)
            del self.km
        kernels.end(self.process, family)
        self.workshop.close()
