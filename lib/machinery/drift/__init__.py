"""The command `drift`: how far a logit moves on other threads, kernels and instructions, and whether a token does.

factors    what is varied, and what shows that it took effect
sample     which recorded tokens are looked at
work       a fresh process for each factor, what is done kept, progress
measure    that process, with settings (the model's state), forced (the recorded tokens fed to it), probe (what ran)
verdict    numbers per notebook and factor, and what is wrong with them
report     the table, and results/drift.json; readme: the table in the README
emulated   other instruction sets, by QEMU
"""
from __future__ import annotations

import argparse

from lib.machinery import Stop, bars, fetch, notebooks
from lib.machinery.drift import report, verdict
from lib.machinery.drift.factors import FACTORS
from lib.machinery.drift.readme import renew
from lib.machinery.drift.sample import SAMPLE, SEED, Recording, recording
from lib.machinery.drift.work import Run


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib drift [NN …] [--whole] [--emulated]`: 1 if a token flips, or none could have been seen to."""
    if arguments.emulated:
        from lib.machinery.drift import emulated
        return emulated.main(arguments)
    found = recorded(arguments.notebooks)
    if not found:
        raise Stop(f"Of {', '.join(arguments.notebooks) or 'the notebooks'} no generation is recorded: name another.")
    return conclude(compared(found, arguments.whole))


def checked(numbers: list[str]) -> list[tuple[str, str]]:
    """(check, fault) of a sample of some notebooks and of the committed file, for the gate."""
    if found := recorded(numbers):
        return [*compared(found), *committed(found)]
    return [("no generation is recorded", "")]


def compared(recordings: list[Recording], whole: bool = False) -> list[tuple[str, str]]:
    """(check, fault) of a measurement of some notebooks, its table printed; a whole one that is sound is kept."""
    fetch.ensure(sorted({generation["model"] for each in recordings for generation in each.generations}))
    if not whole:
        bars.say(f"A sample, drawn with seed {SEED}: {SAMPLE.tokens} generated tokens of each notebook and factor, "
                 f"at most {SAMPLE.each} of a generation; --whole takes all, under most factors.")
    run = Run(recordings, whole)
    rows = verdict.rows(recordings, FACTORS, run.measure())
    report.show(rows)
    cases = verdict.cases(rows)
    if not whole or not any(fault for _, fault in cases):
        _keep(rows, recordings) if whole else None
        run.forget()
    return cases


def recorded(numbers: list[str]) -> list[Recording]:
    """The recordings of those of some notebooks (all when none is given) that generate something."""
    found = [recording(notebooks.ROOT, notebooks.number(path)) for path in notebooks.select(numbers)]
    return [each for each in found if each]


def committed(recordings: list[Recording]) -> list[tuple[str, str]]:
    """(check, fault): whether results/drift.json measured the generations that are recorded now."""
    stale = report.stale(notebooks.ROOT, recordings)
    says = (f"what it measured of {', '.join(stale)} is not what is recorded now: run "
            f"python3 -m lib drift {' '.join(stale)} --whole")
    return [("results/drift.json", says if stale else "")]


def _keep(rows: list[verdict.Row], recordings: list[Recording]) -> None:
    """Write results/drift.json and the README's table."""
    there = [notebooks.number(path) for path in notebooks.select([])]
    document = report.document(report.read(notebooks.ROOT), rows, recordings, there)
    report.write(notebooks.ROOT, document)
    renew(notebooks.ROOT / "README.md", document)
    bars.say("The measurement is written to results/drift.json, and the table in README.md is renewed.")


def conclude(cases: list[tuple[str, str]]) -> int:
    """Say what is wrong, or that nothing is; the exit code."""
    faults = [f"{name}: {fault}" for name, fault in cases if fault]
    for fault in faults:
        bars.say(fault)
    bars.say(f"{len(cases) - len(faults)} passed, {len(faults)} failed")
    return int(bool(faults))
