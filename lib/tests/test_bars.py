"""What long work shows: seldom lines in a log, a bar in a terminal, and how a folder grows."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lib.machinery import bars

ROOT = Path(__file__).parents[2]


def test_a_log_has_a_first_and_a_last_line_and_one_in_ten_seconds(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: now[0])
    with bars.bar("tiny: download", 90_000_000, 30_000_000) as advance:
        for _ in range(4):
            now[0] += 5
            advance(10_000_000)
    assert capsys.readouterr().out.splitlines() == [
        "tiny: download: 90 MB, of which 30 are here", "  50 of 90 MB, 2.0 MB/s", "  70 of 90 MB, 2.0 MB/s",
        "tiny: download: done, 20 s"]


def test_work_that_fails_is_not_called_done(capsys):
    with pytest.raises(ValueError), bars.bar("tiny: join", 10):
        raise ValueError
    assert "done" not in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_gets_one_bar_with_speed_and_time_left():
    import pty
    ours, theirs = pty.openpty()
    program = ("from lib.machinery import bars\nimport time\n"
               "with bars.bar('tiny: download', 2_000_000) as advance:\n"
               "    for _ in range(4):\n        advance(500_000); time.sleep(0.2)")
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=theirs,
                             env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
    os.close(theirs)
    shown = everything(ours)
    assert child.wait(30) == 0
    assert "tiny: download" in shown and "2.0/2.0 MB" in shown and "MB/s" in shown


def everything(terminal: int) -> str:
    """What a program writes to the terminal until it ends."""
    parts = []
    try:
        while part := os.read(terminal, 10_000):
            parts.append(part)
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(terminal)
    return b"".join(parts).decode()


def test_a_folder_that_grows_is_followed_up_to_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(bars, "LOOK", 0.01)
    told = []
    (tmp_path / "before").write_bytes(b"x" * 50)
    with bars.growth(tmp_path, 100, told.append):
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "part").write_bytes(b"x" * 60)
        deadline = time.monotonic() + 10
        while sum(told) < 60 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sum(told) == 60
        (tmp_path / "copy").write_bytes(b"x" * 60)
    assert sum(told) == 100


def test_where_the_work_fails_no_more_is_counted_than_was_there(tmp_path):
    told = []
    with pytest.raises(OSError), bars.growth(tmp_path, 100, told.append):
        raise OSError
    assert sum(told) == 0


@pytest.mark.parametrize("folder", ["there", "not there"])
def test_the_size_of_an_empty_or_missing_folder_is_nothing(tmp_path, folder):
    (tmp_path / "there").mkdir()
    assert bars.size(tmp_path / folder) == 0
