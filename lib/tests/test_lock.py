"""The lock: one at a time, given back by a death, and not fooled by a file that was removed."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lib.machinery import environment, lock

HOLDER = """
import sys, time
from pathlib import Path
from lib.machinery import lock
with lock.held(Path(sys.argv[1]), lambda: print("waits", flush=True)) as descriptor:
    print("holds", flush=True)
    {inside}
    time.sleep(60)
"""
WITH_CHILD = "import subprocess; subprocess.Popen([sys.executable, '-c', 'input()'], pass_fds=[descriptor])"


def holder(path: Path, inside: str = "pass") -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLDER.format(inside=inside), str(path)], cwd=environment.ROOT,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "holds\n"
    return process


def finish(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_second_waits_with_a_word_and_a_kill_sets_it_free(tmp_path):
    path, told = tmp_path / "lock", []
    first = holder(path)
    with lock.attempt(path) as free:
        assert not free
    begun = time.monotonic()

    def waiting():
        told.append("waiting")
        finish(first)
    with lock.held(path, waiting, pause=0.01):
        assert told == ["waiting"] and time.monotonic() - begun < 10
    with lock.attempt(path) as free:
        assert free


def test_a_lock_file_removed_meanwhile_guards_nothing(tmp_path):
    path = tmp_path / "lock"
    first = holder(path)
    path.unlink()
    with lock.attempt(path) as free:  # a new file: nobody holds it
        assert free
    finish(first)


@pytest.mark.skipif(os.name == "nt", reason="Windows gives a lock back with its process")
def test_the_child_of_a_killed_holder_keeps_the_lock_until_it_ends(tmp_path):
    path = tmp_path / "lock"
    first = holder(path, WITH_CHILD)
    time.sleep(0.2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with lock.attempt(path) as free:
        assert not free
    finish(first)  # closes the pipe that the child waits on
    with lock.held(path, lambda: None, pause=0.01):
        pass
