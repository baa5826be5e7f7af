"""The list of the cells that are run and not compared: a tag in a notebook alone leaves nothing out."""
from __future__ import annotations

import json
from pathlib import Path

from lib.machinery import notebooks

LIST = Path(__file__).with_suffix(".json")


def listed(path: Path, file: Path = LIST) -> dict[str, str]:
    """{id: reason} of the listed cells of a notebook."""
    entries = json.loads(file.read_text(encoding="utf-8"))
    return {entry["cell"]: entry["reason"] for entry in entries if entry["notebook"] == path.stem}


def faults(path: Path, file: Path = LIST) -> list[str]:
    """Where a notebook's tags and the list disagree, each a sentence; empty when they are one."""
    cells = {cell.get("id", ""): notebooks.unchecked_reason(cell)
             for cell in notebooks.code_cells(notebooks.read(path)) if notebooks.is_unchecked(cell)}
    known, name = listed(path, file), f"lib/machinery/{file.name}"
    found = [f"cell {id} is not compared, and {name} does not list it: list it with its reason, or take the tag out"
             for id in cells if id not in known]
    found += [f"cell {id} is listed in {name}, and the notebook compares it or has it no more: take it off the list"
              for id in known if id not in cells]
    return found + [f"cell {id} is not compared for the reason {reason!r}, and {name} gives {known[id]!r}"
                    for id, reason in cells.items() if id in known and known[id] != reason]
