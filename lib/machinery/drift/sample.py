"""Which recorded tokens are looked at: all of them, or a few of each notebook, drawn with a stated seed."""
from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lib.machinery import ledger

SEED = 9


class Budget(NamedTuple):
    """How much is looked at in each notebook; `steps` is for the factor that feeds everything anew for each token."""
    tokens: int        # generated tokens in all
    each: int          # and of one generation
    prompts: int       # tokens of prompts in all
    steps: int         # of one generation


WHOLE = Budget(10**9, 10**9, 10**9, 4)
PART = Budget(48, 24, 800, 2)  # of a whole measurement, for factors of which a part will do; of a sample, for the
                               # control: it has to change a token, so it needs more of them
SAMPLE = Budget(12, 6, 300, 2)


@dataclass(frozen=True)
class Recording:
    """The recorded generations of a notebook, which of their tokens are near ties, and the hash of the file."""
    number: str
    generations: list[dict]
    ties: frozenset[tuple[int, int]]  # (generation, token), counted from 1
    hash: str


def recording(root: Path, number: str) -> Recording | None:
    """What is recorded of notebook `number`; None when it generates nothing."""
    path = ledger.generations_path(root, number)
    if not path.exists():
        return None
    generations = ledger.read_json(path)
    if not any(generation["ids"] for generation in generations):
        return None
    ties = [tie for tie in ledger.read_json(ledger.near_ties_path(root)) if tie["notebook"] == number]
    return Recording(number, generations, frozenset((tie["generation"], tie["token"]) for tie in ties),
                     hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()[:12])


def items(found: Recording, budget: Budget, feeding: str = "cached") -> list[dict]:
    """The generations to force, in the notebook's order, each with the steps (from 0) whose logits are compared."""
    chosen = {place: min(count, budget.each) for place, count in _drawn(found, budget)}
    result = []
    for place in sorted(chosen):
        generation, ids = found.generations[place - 1], found.generations[place - 1]["ids"][:chosen[place]]
        steps = spread(len(ids), budget.steps if feeding == "afresh" else len(ids))
        result.append({"generation": place, "model": generation["model"], "prompt_ids": generation["prompt_ids"],
                       "ids": ids, "steps": steps})
    return result


def _drawn(found: Recording, budget: Budget) -> list[tuple[int, int]]:
    """(generation, tokens) drawn at random until the budget is used up; at least one, the shortest if need be."""
    there = [(place, generation) for place, generation in enumerate(found.generations, start=1) if generation["ids"]]
    random.Random(f"{SEED} {found.number}").shuffle(there)
    there.sort(key=lambda each: max(0, len(each[1]["prompt_ids"]) - budget.prompts))  # the too long ones last
    chosen, tokens, prompts = [], budget.tokens, budget.prompts
    for place, generation in there:
        count, prompt = min(len(generation["ids"]), budget.each, tokens), len(generation["prompt_ids"])
        if count > 0 and (prompt <= prompts or not chosen):
            chosen.append((place, count))
            tokens, prompts = tokens - count, prompts - prompt
    return chosen


def spread(length: int, count: int) -> list[int]:
    """`count` of the places 0 to length-1, evenly spread, first and last among them; all where they are fewer."""
    if count >= length or length < 2:
        return list(range(length))
    return sorted({round(number * (length - 1) / (count - 1)) for number in range(count)}) if count > 1 else [0]
