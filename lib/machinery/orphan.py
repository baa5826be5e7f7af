"""A process that was started by another one ends soon after it, even when that one is killed and can say nothing."""
from __future__ import annotations

import _thread
import os
import signal
import threading
import time

import psutil

VARIABLE = "COURSE_PARENT"  # "PID TIME": the process to live as long as, and when it was started
GLANCE = 1.0                # seconds between two looks
GRACE = 10.0                # seconds for an orderly end
_JITTER = 5.0               # seconds by which two processes may read a third one's start differently


def mark() -> dict[str, str]:
    """The variable that ties a child to this process."""
    return {VARIABLE: f"{os.getpid()} {psutil.Process().create_time()}"}


def lives(pid: int, started: float) -> bool:
    """Whether the process that was started then still runs, as far as can be seen; its number alone is no proof."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < _JITTER and process.status() != psutil.STATUS_ZOMBIE
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def watch() -> threading.Thread | None:
    """From now on a thread ends this process when the one that VARIABLE names is gone; None where it names none."""
    given = os.environ.get(VARIABLE, "").split()
    if len(given) != 2:
        return None
    thread = threading.Thread(target=_look, args=(int(given[0]), float(given[1])), daemon=True)
    thread.start()
    return thread


def _look(pid: int, started: float) -> None:
    while lives(pid, started):
        time.sleep(GLANCE)
    if os.name == "nt":
        _thread.interrupt_main()
    else:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(1)
