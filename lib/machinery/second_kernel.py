"""Measures what a second kernel on the same model costs in memory: two processes load it and run one step each."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from lib.machinery import Stop, environment, notebooks

KERNEL = """
from lib.models import load
model = load({name!r})
model.generate(model.encode([{{"role": "user", "content": "Hello"}}]), max_new_tokens=1)
print("loaded", flush=True)
input()
"""


class Cost(NamedTuple):
    """Bytes: what only the second process holds, and what it shares with the first."""

    own: int
    shared: int


def measure(name: str) -> Cost:
    """The cost of the second of two processes on the model `name`; Stop where they don't get to loading it."""
    processes: list[subprocess.Popen] = []
    try:
        for _ in range(2):
            processes.append(_start(name))
        return cost(processes[1].pid)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _start(name: str) -> subprocess.Popen:
    """A process that has loaded the model and run it once, and waits."""
    process = subprocess.Popen([sys.executable, "-c", KERNEL.format(name=name)], cwd=environment.ROOT,
                               env=notebooks.child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace")
    if process.stdout.readline().strip() != "loaded":
        process.kill()
        last = (process.communicate()[1].strip().splitlines() or ["it ended without a word"])[-1]
        raise Stop(f"A process that was to load {name} did not ({last}).")
    return process


def cost(pid: int) -> Cost:
    """What a running process holds alone, and the rest of what it has in memory."""
    rollup = Path(f"/proc/{pid}/smaps_rollup")
    if rollup.exists():
        return from_rollup(rollup.read_text(encoding="utf-8"))
    import psutil
    facts = psutil.Process(pid).memory_full_info()
    return Cost(facts.uss, max(0, facts.rss - facts.uss))


def from_rollup(text: str) -> Cost:
    """Linux's own account of a process: Private_* is its alone, the rest of Rss others have mapped too."""
    facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines() if line.endswith("kB")}
    own = facts.get("Private_Clean", 0) + facts.get("Private_Dirty", 0) + facts.get("Private_Hugetlb", 0)
    return Cost(own, max(0, facts["Rss"] - own))
