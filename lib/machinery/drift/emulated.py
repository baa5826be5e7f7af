"""`drift --emulated`: forty tokens of the small model on instruction sets that this machine doesn't have, by QEMU.

What runs is the course's own code with real builds of PyTorch; only the processor is emulated, instruction by
instruction, so that other kernels are chosen and sums are taken in another order.
"""
from __future__ import annotations

import argparse
import hashlib
import importlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from lib.machinery import Stop, bars, fetch, notebooks
from lib.machinery.drift import arm, report, verdict
from lib.machinery.drift.factors import REFERENCE, Factor
from lib.machinery.drift.readme import renew, together
from lib.machinery.drift.sample import Recording
from lib.machinery.drift.work import LOADER, Run

MODEL, TOKENS = "smollm2-135m", 40
MESSAGES = [{"role": "user", "content": "What is a token?"}]
QEMU_IS_IN = "the package qemu-user of Debian or Ubuntu"


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib drift --emulated`: 1 if a token flips or a gap is narrow; Stop where there is no emulator."""
    if arguments.notebooks or arguments.whole:
        raise Stop("--emulated looks at one text of the small model: give no notebooks and no --whole with it.")
    fetch.ensure([MODEL])
    factors = list(available())
    if not factors:
        raise Stop("No other instruction set can be emulated here: install what the lines above name.")
    rows = measure(factors)
    report.show(rows)
    cases = verdict.cases(rows)
    if not any(fault for _, fault in cases):
        keep(rows)
    for name, fault in cases:
        bars.say(f"{name}: {fault or 'sound'}")
    return int(any(fault for _, fault in cases))


def available() -> Iterator[Factor]:
    """The emulated processors that can be had here; a line says what another one lacks."""
    for name, find in (("x86-64 without AVX", without_avx), ("ARM", on_arm)):
        try:
            yield find()
        except Stop as stop:
            bars.say(f"{name}: not measured: {stop}")


def without_avx() -> Factor:
    """This very Python and PyTorch on an Intel processor of 2008, which has SSE4.2 and no AVX."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Stop("it needs Linux on x86-64.")
    return Factor(f"x86-64 without AVX, emulated (Nehalem, {version('qemu-x86_64')})",
                  {"capability": "DEFAULT", "oneDNN": "Intel SSE4.1"}, slow=30,
                  command=("qemu-x86_64", "-cpu", "Nehalem", sys.executable))


def on_arm() -> Factor:
    """The course's code on an ARM processor without SVE, with PyTorch's build for ARM (of arm.TORCH)."""
    qemu, place = version("qemu-aarch64"), arm.folder()
    return Factor(f"ARM, emulated (Neoverse N1, {qemu}, PyTorch {arm.TORCH})", {"machine": "aarch64"},
                  arm.variables(place), slow=30,
                  command=("qemu-aarch64", "-cpu", "neoverse-n1", "-L", str(place / "root"), str(arm.python(place))))


def version(program: str) -> str:
    """Name and version of an emulator; Stop where it isn't installed."""
    if shutil.which(program) is None:
        raise Stop(f"{program} is not there; it is in {QEMU_IS_IN}.")
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, encoding="utf-8")
    return "QEMU " + answer.stdout.split("version ")[-1].split()[0]


def measure(factors: list[Factor], loader: str = LOADER, **options: object) -> list[verdict.Row]:
    """The rows of the reference, which runs here, and of emulated processors; `options` are those of Run."""
    text, chosen = spoken(loader), [REFERENCE, *factors]
    run = Run([text], True, chosen, loader, **options)
    rows = verdict.rows([text], chosen, run.measure())
    run.forget()
    return rows


def spoken(loader: str) -> Recording:
    """What the small model says here, as a recording of which no token is known to be a near tie."""
    module, name = loader.split(":")
    model = getattr(importlib.import_module(module), name)(MODEL)
    prompt = model.encode(MESSAGES)
    ids = model.generate(prompt, max_new_tokens=TOKENS).ids
    generation = {"model": MODEL, "prompt_ids": prompt, "ids": ids}
    digest = hashlib.sha256(repr(generation).encode()).hexdigest()[:12]
    return Recording("emulated", [generation], frozenset(), digest)


def keep(rows: list[verdict.Row]) -> None:
    """Write the rows into results/drift.json, in the place of those of the same processors, and renew the README."""
    document, date = report.read(notebooks.ROOT), datetime.now(UTC).date().isoformat()
    new = [{**together(row.factor, [report.as_row("", row)]), "model": MODEL, "date": date, "facts": row.facts}
           for row in rows if row.factor != REFERENCE.name and not row.not_measured]
    document["emulated"] = [row for row in document["emulated"] if kind(row) not in set(map(kind, new))] + new
    report.write(notebooks.ROOT, document)
    renew(notebooks.ROOT / "README.md", document)
    bars.say("The measurement is written to results/drift.json, and the table in README.md is renewed.")


def kind(row: dict) -> str:
    """Which processor a row is about, whatever the versions."""
    return row["factor"].split(" (")[0]
