"""The README's table 'where the outputs were verified, and where never', made of results/drift.json."""
from __future__ import annotations

import re
from pathlib import Path

from lib.machinery import Stop, notebooks
from lib.machinery.drift.report import number

BEGIN, END = "<!-- from results/drift.json: `drift` writes it -->", "<!-- end -->"
HEAD = ("| where and how | tokens | largest change of a logit | smallest gap, in times of it | flipped |\n"
        "|---|---|---|---|---|")


def table(document: dict) -> str:
    """The Markdown of the table: each machine, what was varied on it, what was emulated, and what never was tried."""
    lines = [HEAD]
    for name, facts in document["machines"].items():
        rows = [row for row in document["rows"] if row["machine"] == name]
        lines += [f"| **{heading(name, facts)}** | | | | |", *map(_line, joined(rows))]
    lines += [_line(row) for row in document["emulated"]]
    return "\n".join([*lines, *(f"| {name} | never | | | |" for name in never(document))])


def heading(name: str, facts: dict) -> str:
    """A machine in words."""
    vectors = next((word for flag, word in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in facts["flags"]), "")
    parts = [name, vectors, f"torch {facts['versions']['torch'].split('+')[0]}", facts["date"]]
    return ", ".join(filter(None, parts))


def joined(rows: list[dict]) -> list[dict]:
    """The rows of one machine, all notebooks of a factor in one: sums, the largest change, the smallest gap."""
    result = []
    for name in dict.fromkeys(row["factor"] for row in rows):
        some = [row for row in rows if row["factor"] == name]
        measured = [row for row in some if "not_measured" not in row]
        result.append(together(name, measured) if measured else some[0])
    return result


def together(name: str, rows: list[dict]) -> dict:
    """Rows of one factor as one: how many tokens, the largest change, the narrowest gap in times of its change."""
    pairs = [(row["smallest_gap"], row["largest_change"]) for row in rows]
    return {"factor": name, "is_control": any(row["is_control"] for row in rows),
            "tokens": sum(row["tokens"] for row in rows),
            "largest_change": max((change for _, change in pairs if change is not None), default=None),
            "ratio": min((gap / change for gap, change in pairs if gap and change), default=None),
            "flipped": sum(len(row["flipped"]) for row in rows),
            "near_ties_flipped": sum(row["near_ties_flipped"] for row in rows)}


def _line(row: dict) -> str:
    if "not_measured" in row:
        return f"| {row['factor']} | not measured: {row['not_measured']} | | | |"
    control = ", as it must" if row.get("is_control") else ""
    ties = f" and {row['near_ties_flipped']} near ties" if row["near_ties_flipped"] else ""
    return (f"| {row['factor']} | {row['tokens']:,} | {number(row['largest_change'], '.1e')} | "
            f"{number(row['ratio'], ',.0f')} | {row['flipped']}{ties}{control} |")


def never(document: dict) -> list[str]:
    """The kinds of machines that nothing in the file was measured on."""
    there = document["machines"].values()
    pythons = {".".join(facts["versions"]["python"].split(".")[:2]) for facts in there}
    systems, flags = {facts["system"] for facts in there}, [set(facts["flags"]) for facts in there]
    arm = any(facts["architecture"].lower() in ("arm64", "aarch64") for facts in there)
    return [*(name for name in ("Windows", "macOS") if {"macOS": "Darwin"}.get(name, name) not in systems),
            *([] if arm else ["a real ARM processor"]),
            *([] if any("avx512f" in each for each in flags) else ["a processor with AVX-512"]),
            *([] if any("avx2" in each and "avx512f" not in each for each in flags)
              else ["a processor with AVX2 and no AVX-512 (above, one was told to do without)"]),
            *(f"Python {version}" for version in ("3.11", "3.12", "3.13") if version not in pythons)]


def renew(path: Path, document: dict) -> bool:
    """Put the table between its marks in the README; whether that changed it."""
    old = path.read_text(encoding="utf-8")
    new = f"{BEGIN}\n{table(document)}\n{END}"
    text, count = re.subn(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda match: new, old, flags=re.S)
    if count != 1:
        raise Stop(f"{path.name} has no place for the table of results/drift.json: put the lines {BEGIN} and {END} "
                   "where it belongs.")
    if text != old:
        notebooks.write_atomically(path, text)
    return text != old
