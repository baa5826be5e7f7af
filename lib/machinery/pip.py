"""One call of pip: watched while it works, its output kept in a log, its failure put into one sentence."""
from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lib.machinery import environment, machine
from lib.machinery.pip_failures import PipFailure
from lib.machinery.progress import Progress

NAMED = re.compile(r"(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9_.-]+)")


class Watch:
    """What pip has said so far, and how far it therefore is."""

    def __init__(self, total: int, count_installed: Callable[[], int], count_fetched: Callable[[], int] = lambda: 0):
        self.total, self.count_installed, self.count_fetched = total, count_installed, count_fetched
        self.lines: list[str] = []
        self.named: set[str] = set()
        self.last, self.installing, self.retrying = "", False, False

    def hear(self, line: str) -> None:
        """Take in one line of pip's output."""
        self.lines.append(line.rstrip())
        text = line.strip()
        self.installing |= text.startswith("Installing collected packages")
        self.retrying = "Retrying (" in text
        if match := NAMED.match(text):
            self.named.add(environment.normalised(match[1]))
            self.last = match[1]
        elif text.startswith("Downloading ") and ".metadata" not in text:
            self.last = text[len("Downloading "):]

    def state(self) -> str:
        """The progress in a few words."""
        if not self.total:
            return "at work"
        if self.retrying:
            return "the package index does not answer; pip tries again"
        if self.installing:
            return f"installing, {min(self.count_installed(), self.total)} of {self.total}"
        fetched = self.count_fetched() // 1_000_000
        amount = f", {fetched} MB so far" if fetched else ""
        return f"fetching, {min(len(self.named), self.total)} of {self.total}, {self.last}{amount}"


def install(python: Path, arguments: list[str], total: int, progress: Progress, lock: int, log: Path) -> None:
    """Run `pip install` with `arguments` on `python`, showing progress; PipFailure says in one sentence why not."""
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar",
               "off", *arguments]
    packages = environment.packages_of(environment.VENV, environment.version_of(python) or "")
    before = _count(packages)
    watch = Watch(total, lambda: _count(packages) - before, lambda: machine.disk_used(environment.VENV / "tmp"))
    code = run(command, watch, progress, lock, log)
    if code != 0:
        raise PipFailure("\n".join(watch.lines), log.relative_to(environment.ROOT).as_posix())


def run(command: list[str], watch: Watch, progress: Progress, lock: int, log: Path) -> int:
    """The exit code of `command`, whose output goes to `log` and `watch`; an interrupt ends it first."""
    # a killed parent's pip keeps the lock until it ends; its group is its own, so that we can end all of it
    inherit = {"pass_fds": [lock], "process_group": 0} if os.name != "nt" else {}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, encoding="utf-8", errors="replace", env=variables(), cwd=environment.ROOT,
                               **inherit)
    listener = threading.Thread(target=_listen, args=(process, watch, log), daemon=True)
    listener.start()
    try:
        while listener.is_alive():
            listener.join(0.2)
            progress.tell(watch.state())
        return process.wait()
    finally:
        _end(process)


def variables() -> dict[str, str]:
    """pip's variables: the user's own, except those that would put the packages elsewhere."""
    result = {name: value for name, value in os.environ.items() if name not in environment.FOREIGN}
    scratch = str(environment.VENV / "tmp")
    return result | {"PIP_USER": "0", "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "TMPDIR": scratch,
                     "TEMP": scratch, "TMP": scratch}


def _listen(process: subprocess.Popen, watch: Watch, log: Path) -> None:
    """Pass every line on; a full disk must not keep pip from saying so."""
    with open(log, "a", encoding="utf-8") as file:
        for line in process.stdout:
            watch.hear(line)
            try:
                file.write(line)
                file.flush()
            except OSError:
                pass


def _end(process: subprocess.Popen) -> None:
    """Make sure that a child is gone, and what it started too: nothing may write into .venv behind our back."""
    if process.poll() is None:
        for force in (False, True):
            _signal(process, force)
            try:
                process.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue
        _signal(process, force=True)
    process.stdout.close()


def _signal(process: subprocess.Popen, force: bool) -> None:
    """Ask a child and its own children to end, or make them; on Windows the console's Ctrl-C has reached those."""
    if os.name == "nt":
        return process.kill() if force else process.terminate()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)
        for _ in range(20 * force):  # until nobody is left
            time.sleep(0.05)
            os.killpg(process.pid, 0)


def _count(packages: Path) -> int:
    try:
        return sum(name.endswith(".dist-info") for name in os.listdir(packages))
    except OSError:
        return 0
