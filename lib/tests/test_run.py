"""The main job: executed copies, sentences for failures, and no kernel left behind."""
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from lib.machinery import notebooks, run, watch
from lib.tests.canaries.make import stdout
from lib.tests.toys import WRITES, course, sources


def kernels_of(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children(recursive=True) if "ipykernel_launcher" in " ".join(child.cmdline())]


def test_a_notebook_runs_where_it_lies_and_writes_beside_its_copy(tmp_path, capsys):
    path = sources(tmp_path, WRITES, "os.path.basename(os.getcwd())", "import lib.machinery, sys\nsys.executable")
    assert run.run([path], tmp_path / "out") == 0
    cells = notebooks.code_cells(notebooks.read(tmp_path / "out" / path.name))
    assert cells[1].outputs[0].data["text/plain"] == "'notebooks'"
    assert cells[2].outputs[0].data["text/plain"] == repr(sys.executable)
    assert (tmp_path / "out" / "table.txt").read_text(encoding="utf-8") == "42"
    assert "01-toy" in capsys.readouterr().out and not kernels_of(psutil.Process())


@pytest.mark.parametrize("source, sentence", [
    ("1 / 0", "cell 2 (cell-2): ZeroDivisionError: division by zero"),
    ("%nosuch", "cell 2 (cell-2): UsageError: Line magic function `%nosuch` not found."),
    ("import os\nos._exit(3)", "the kernel died in cell 2 (cell-2); often too little memory")])
def test_a_failure_is_one_line_and_the_copy_is_kept(tmp_path, source, sentence):
    path = course(tmp_path, ("1", []), (source, []), ("print(6 * 7)", [stdout("42\n")]))
    outcome = run.execute(path, tmp_path / "out")
    assert (outcome.failure, outcome.cells, outcome.total) == (sentence, 1, 3)
    kept = notebooks.code_cells(notebooks.read(tmp_path / "out" / path.name))
    assert kept[0].outputs and not kept[2].outputs and kept[2].execution_count is None
    assert not kernels_of(psutil.Process())


@pytest.mark.skipif(os.name == "nt", reason="there are no process groups there")
def test_a_dead_kernel_leaves_no_children(tmp_path):
    source = ("import os, subprocess, sys\nsleep = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
              "child = subprocess.Popen(sleep)\nopen('child', 'w').write(str(child.pid))")
    path = sources(tmp_path, source, "os._exit(3)")
    assert run.execute(path, tmp_path / "out").failure.startswith("the kernel died")
    child = int((path.parent / "child").read_text(encoding="utf-8"))
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_one_failure_does_not_keep_the_others_from_running(tmp_path, monkeypatch):
    outcomes = {"01-a": "cell 1: E: no", "02-b": ""}
    ran = []

    def execute(path, into):
        ran.append(path.stem)
        return watch.Outcome(path, 1, 1, failure=outcomes[path.stem])

    monkeypatch.setattr(run, "execute", execute)
    assert run.run([tmp_path / "01-a.ipynb", tmp_path / "02-b.ipynb"], tmp_path) == 1
    assert ran == ["01-a", "02-b"]


@pytest.mark.skipif(os.name == "nt", reason="an interrupt is sent in another way there")
def test_an_interrupt_ends_the_kernel_and_says_so(tmp_path):
    path = sources(tmp_path, "import time\nopen('started', 'w').close()\ntime.sleep(60)")
    code = ("import sys; from pathlib import Path; from lib.machinery import run;"
            f"sys.exit(run.run([Path({str(path)!r})], Path({str(tmp_path / 'out')!r})))")
    runner = psutil.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=notebooks.child_environment())
    begun = time.monotonic()
    while not (path.parent / "started").exists() and time.monotonic() - begun < 60:
        time.sleep(0.1)
    kernels = kernels_of(runner)
    runner.send_signal(signal.SIGINT)
    out, err = runner.communicate(timeout=30)
    assert (runner.returncode, err) == (130, "")
    assert "interrupted in cell 1 (cell-1)" in out and len(kernels) == 1
    assert not [kernel for kernel in kernels if kernel.is_running() and kernel.status() != psutil.STATUS_ZOMBIE]


def test_a_log_names_a_cell_that_is_slow(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(watch, "SLOW", 0.3)
    with watch.Watch(watch.Outcome(tmp_path / "01-a.ipynb", 3, cells=1, at="cell 2 (two)")):
        time.sleep(1)
    assert capsys.readouterr().out.count("cell 2 (two), of 3, still runs") >= 2
