"""The evaluation `agent`: questions about the notes and calculations, asked directly, by two protocols, and helped.

A row keeps its episode; verdicts and classes are made of it by whoever reads the file (lib/agent_log.py), so that a
better grader leaves the rows as they are.
"""
from __future__ import annotations

import hashlib
import json
from functools import cache

from lib import conditions
from lib.conditions import CONDITIONS, FIRST_MOVES, LADDER, MAIN
from lib.machinery.evaluations import Evaluation, Tell, keep

LARGER = "qwen2.5-coder-1.5b"  # asked the core questions alone
MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", LARGER, "smollm2-360m", "qwen2.5-0.5b")
DIGITS = 4  # of a log probability


@cache
def questions() -> dict[str, dict]:
    """Every question by its id: the core ones, then the others."""
    return {**conditions.core(), **conditions.extended()}


@cache
def laddered() -> list[str]:
    """The ids of the questions that have a ladder: the core ones and all calculations."""
    return [name for name, question in questions().items()
            if name in conditions.core() or question["kind"] == "arithmetic"]


def keys() -> list[dict]:
    """The rows: every question under the main conditions, some on the ladder; of the larger model the core alone."""
    rows = []
    for model in MODELS:
        asked = conditions.core() if model == LARGER else questions()
        rows += [(model, condition, name) for condition in MAIN for name in asked]
        rows += [(model, condition, name) for condition in LADDER for name in laddered() if model != LARGER]
    return [dict(zip(("model", "condition", "question"), row, strict=True)) for row in rows]


@cache
def notes_hash() -> str:
    """A SHA-256 over the passages that a search can bring."""
    return hashlib.sha256(json.dumps([*conditions.notes().items()]).encode()).hexdigest()


def inputs(key: dict) -> dict:
    """What a row's key stands for: the messages before the first reply, and the notes that can be searched."""
    question, condition = questions()[key["question"]], key["condition"]
    return {"opening": conditions.protocol(condition, question).opening(question["question"]),
            "notes": None if condition == "direct" else notes_hash()}


def compute(model, key: dict, tell: Tell) -> tuple[dict, dict]:
    """The episode of one row, how likely each first move was where it was the model's own, and the seconds."""
    teller, question, condition = keep.Teller(tell), questions()[key["question"]], key["condition"]
    episode = conditions.ask(model, question, condition, on_token=teller.on_token, on_turn=teller.on_turn)
    values = {"episode": keep.values(episode)}
    if condition in FIRST_MOVES:  # after the episode, whose tokens are counted
        moves = conditions.first_move(model, question, condition)
        values["first_move"] = {word: round(value, DIGITS) for word, value in moves.items()}
    return values, keep.seconds(episode)


SETTINGS = {"limits": conditions.LIMITS, "direct_limits": conditions.DIRECT_LIMITS, "k": conditions.K,
            "conditions": CONDITIONS}
EVALUATION = Evaluation("agent", __file__, MODELS, SETTINGS, keys, inputs, compute,
                        lambda values: keep.summary(values["episode"]))
