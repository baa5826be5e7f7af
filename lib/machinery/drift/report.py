"""The measurement as a table for the reader of the command, and as the committed file results/drift.json."""
from __future__ import annotations

import json
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from lib.machinery import ledger, machine, notebooks
from lib.machinery.drift import work
from lib.machinery.drift.sample import PART, SEED, Recording
from lib.machinery.drift.verdict import MARGIN, Row
from lib.machinery.evaluations import origin, store

# the processor's flags that decide which kernels run
VECTORS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def table(rows: list[Row]) -> Table:
    """The measured rows to look at: the largest change, the smallest gap, how many times it is the change, flips."""
    shown = Table("", "varied", "tokens", "change", "gap", "ratio", "flips", "near", box=box.SIMPLE)
    for notebook, group in groupby(rows, lambda row: row.notebook):
        shown.add_section()
        for row in group:
            if not row.not_measured:
                shown.add_row(notebook, row.factor, str(row.tokens), number(row.largest_change, ".1e"),
                              number(row.smallest_gap, ".4f"), number(row.ratio, ",.0f"), str(len(row.flipped)),
                              str(row.near_ties_flipped))
    return shown


def unmeasured(rows: list[Row]) -> list[str]:
    """A line for each factor that did not take effect, with the reason."""
    return list(dict.fromkeys(f"not measured: {row.factor} ({row.not_measured})" for row in rows if row.not_measured))


def show(rows: list[Row]) -> None:
    """Print the rows: a table, and what was not measured."""
    Console(highlight=False).print(table(rows))
    print("flips: tokens that changed outside near ties; near: near ties that changed, which they may\n", flush=True)
    for line in unmeasured(rows):
        print(line, flush=True)


def number(value: float | None, form: str) -> str:
    """`value` in a form; a dash where there is none."""
    return "-" if value is None else format(value, form)


def path(root: Path) -> Path:
    """Where the measurement is kept."""
    return root / "results" / "drift.json"


def read(root: Path) -> dict:
    """The committed measurement; an empty one where there is none."""
    there = path(root)
    empty = {"name": "drift", "machines": {}, "recordings": {}, "emulated": [], "rows": []}
    return json.loads(there.read_text(encoding="utf-8")) if there.exists() else empty


def this_machine() -> str:
    """How the file names this machine: system, architecture, processor, Python."""
    return f"{platform.system()} {platform.machine()}, {machine.processor()[0]}, Python {platform.python_version()}"


def machine_facts(recordings: list[Recording]) -> dict:
    """What is kept of this machine, and of what was measured on it."""
    names = sorted({generation["model"] for each in recordings for generation in each.generations})
    flags = machine.processor()[1]
    return {"date": datetime.now(UTC).date().isoformat(), "versions": work.versions(), "system": platform.system(),
            "architecture": platform.machine(), "flags": [flag for flag in VECTORS if flag in flags],
            "cores": machine.cores(), "code": work.code()[:12],
            "models": {name: origin.model_facts(name)["weights_sha256"] for name in names}}


def document(old: dict, rows: list[Row], recordings: list[Recording], there: list[str]) -> dict:
    """The file with new rows in the place of those of the same machine and notebooks; `there` are all notebooks."""
    name, new = this_machine(), {each.number: each.hash for each in recordings}
    hashes = {**old["recordings"], **new}
    kept = [row for row in old["rows"] if row["notebook"] in there and row["recording"] == hashes[row["notebook"]]
            and not (row["machine"] == name and row["notebook"] in new)]
    added = [{**as_row(name, row), "recording": new[row.notebook]} for row in rows]
    rows = sorted(kept + added, key=lambda row: (row["machine"], row["notebook"]))
    used = {row["machine"] for row in rows}
    machines = {**old["machines"], name: machine_facts(recordings)}
    return {"name": "drift", "seed": SEED, "margin": MARGIN, "near_tie": ledger.NEAR_TIE,
            "in_part": PART._asdict(),
            "machines": {name: facts for name, facts in machines.items() if name in used},
            "recordings": {name: hash for name, hash in sorted(hashes.items()) if name in there},
            "emulated": old["emulated"], "rows": rows}


def as_row(name: str, row: Row) -> dict:
    """A row as the file holds it."""
    facts = {key: value for key, value in asdict(row).items() if key not in ("notebook", "factor", "not_measured")}
    facts |= {"largest_change": rounded(row.largest_change), "smallest_gap": rounded(row.smallest_gap),
              "flipped": [[generation, token, rounded(gap)] for generation, token, gap in row.flipped]}
    head = {"machine": name, "notebook": row.notebook, "factor": row.factor}
    return {**head, "not_measured": row.not_measured} if row.not_measured else {**head, **facts}


def rounded(value: float | None) -> float | None:
    """Three significant digits."""
    return None if value is None else float(f"{value:.3g}")


def write(root: Path, content: dict) -> None:
    """Keep the measurement, a row a line; whole or not at all."""
    notebooks.write_atomically(path(root), store.text(content))


def stale(root: Path, recordings: list[Recording]) -> list[str]:
    """The notebooks whose recorded generations are others than those that the committed file measured."""
    kept = read(root)["recordings"]
    return [each.number for each in recordings if kept.get(each.number) != each.hash]
