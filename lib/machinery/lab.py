"""JupyterLab on the working copy of the notebooks."""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from lib.machinery import notebooks
from lib.machinery.copies import LAB, Copies


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib lab [NN]`: bring the copies up to date and run JupyterLab there until it is stopped."""
    from lib.machinery.ready import make_ready
    chosen = notebooks.select(arguments.notebooks) if arguments.notebooks else []
    make_ready()
    for sentence in Copies().refresh(notebooks.select([])):
        print(sentence)
    print("JupyterLab works on copies in results/lab; end it with Ctrl-C.", flush=True)
    return serve(command(LAB, chosen, arguments.no_browser, arguments.port), LAB)


def reset(arguments: argparse.Namespace) -> int:
    """`python3 -m lib reset NN`: bring one copy back; an edited one is kept under another name."""
    for original in notebooks.select(arguments.notebooks):
        print(Copies().reset(original))
    return 0


def command(folder: Path, chosen: list[Path], no_browser: bool = False, port: int | None = None) -> list[str]:
    """The command line that starts JupyterLab in `folder`, opened at the first of `chosen`."""
    options = [f"--ServerApp.root_dir={folder}", "--ServerApp.answer_yes=True",  # Ctrl-C ends it without a question
               # it asks no server of news, releases or extensions, and so no reader either
               "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
               "--LabApp.extension_manager=readonly"]
    options += ["--no-browser"] if no_browser else []
    options += [f"--port={port}"] if port is not None else []
    options += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # a container's only user
    return [sys.executable, "-m", "jupyterlab", *options, *(str(folder / path.name) for path in chosen[:1])]


def serve(line: list[str], folder: Path) -> int:
    """Run JupyterLab; 0 when it was ended by Ctrl-C, its own code otherwise. It never outlives this process."""
    surroundings = notebooks.child_environment(COURSE_RESULTS=folder / "results")
    process = subprocess.Popen(line, cwd=folder, env=surroundings)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        end(process)


def end(process: subprocess.Popen, patience: float = 15) -> None:
    """Ask a JupyterLab that still runs to shut its kernels down and end; make it, should it not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
