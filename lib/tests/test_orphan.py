"""Processes that end with the one that started them."""
import os
import subprocess
import sys
import time

import psutil
import pytest

from lib.machinery import notebooks, orphan

SLEEPS = "import time\nfrom lib.machinery import orphan\nprint(bool(orphan.watch()), flush=True)\ntime.sleep(100)"


def started(**variables: str) -> subprocess.Popen:
    """A process that watches, if it is told whom, and sleeps."""
    made = subprocess.Popen([sys.executable, "-c", SLEEPS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, encoding="utf-8", env=notebooks.child_environment(**variables))
    made.said = made.stdout.readline().strip()
    return made


def test_who_lives():
    mine = psutil.Process()
    assert orphan.lives(mine.pid, mine.create_time())
    assert not orphan.lives(mine.pid, mine.create_time() - 3600), "a number given to another process"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not orphan.lives(ended.pid, time.time())


def test_who_cannot_be_looked_at_is_taken_to_live(monkeypatch):
    def refused(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(orphan.psutil, "Process", refused)
    assert orphan.lives(1, 0.0)


@pytest.mark.skipif(os.name == "nt", reason="there are no zombies on Windows")
def test_a_process_that_nobody_has_buried_does_not_live():
    child = subprocess.Popen([sys.executable, "-c", ""])
    end = time.monotonic() + 60
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
        time.sleep(0.05)
    assert not orphan.lives(child.pid, psutil.Process(child.pid).create_time())
    child.wait()


def test_it_ends_soon_after_its_parent_and_not_before():
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    tie = f"{parent.pid} {psutil.Process(parent.pid).create_time()}"
    child = started(COURSE_PARENT=tie)
    try:
        assert child.said == "True"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=2)
        parent.kill()
        parent.communicate()
        assert child.wait(timeout=60) != 0
    finally:
        parent.kill(), child.kill()
        child.communicate()


@pytest.mark.parametrize("given", ["", "12"])
def test_without_a_parent_it_lives_on(given):
    child = started(COURSE_PARENT=given)
    try:
        assert child.said == "False" and child.poll() is None
    finally:
        child.kill()
        child.communicate()


def test_the_mark_is_this_process():
    pid, begun = orphan.mark()[orphan.VARIABLE].split()
    assert int(pid) == os.getpid() and orphan.lives(int(pid), float(begun))
