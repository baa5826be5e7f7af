"""The log of an evaluation of agents: to each episode the verdict on its answer, the class of its failure, counts.

Made of an evaluation's rows whenever it is asked for, so that the grader can become better without a model being run
again. What a row of the log holds, lib/machinery/evaluations/agent.schema.json says.
"""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

from lib.agent import REPEAT
from lib.conditions import notes
from lib.episode import Episode, Turn
from lib.failures import Evidence, classify
from lib.grading import grade
from lib.replies import Call
from lib.tools import Result

SCHEMA = Path(__file__).parent / "machinery" / "evaluations" / "agent.schema.json"
KEY = ("model", "condition", "question", "made_from")


def agent_log(rows: Iterable[dict], questions: dict[str, dict], passages: dict[str, str] | None = None) -> list[dict]:
    """The log of an evaluation's rows, as `load_evaluation` gives them: each held against the schema.

    `questions` are rows of data/questions by id, `passages` the texts of all passages by id (None: those of the
    English notes). ValueError for an unknown question and for a row that the schema does not allow.
    """
    passages = notes() if passages is None else passages
    log = [log_row(row, _known(questions, row["question"]), passages) for row in rows]
    for row in log:
        check_row(row)
    return log


def log_row(row: dict, question: dict, passages: dict[str, str]) -> dict:
    """One row of the log: an evaluation's row with verdict, class and counts."""
    verdict = verdict_on(row["episode"], question)
    more = {"first_move": row["first_move"]} if "first_move" in row else {}
    return {**{name: row[name] for name in KEY}, **more, **judged(row["episode"], question, verdict, passages)}


def verdict_on(episode: Episode, question: dict) -> str | None:
    """What grading says of an episode's answer; None if there is none."""
    if episode.status != "answered":
        return None
    return str(grade(episode.answer, question["gold"], question["language"], question["question"]))


def judged(episode: Episode, question: dict, verdict: str | None, passages: dict[str, str]) -> dict:
    """The episode, its verdict (None without an answer), its class (None if right), counts.

    `question` and `passages` are those of lib.failures.classify. Actions that were written beforehand count as done
    where the class is decided, and not among the counts.
    """
    verdict = verdict if episode.status == "answered" else None
    return {"episode": without_seconds(episode), "verdict": verdict,
            "class": classify(with_given(episode), question, verdict, passages),
            "counts": counts(Evidence(episode, question, verdict, passages))}


def counts(seen: Evidence) -> dict:
    """What is counted of an episode: turns, actions, faults of form, corrections, tokens, gold passages seen."""
    turns, answered = seen.episode.turns, seen.episode.status == "answered"
    without = sum(not any(result.ran for result in turn.results) for turn in turns)
    return {"turns": len(turns), "searches": len(seen.found), "calculations": len(seen.computed),
            "format_errors": without - answered,
            "corrections": sum(turn.notices.count(REPEAT) for turn in turns),
            "prompt_tokens": sum(turn.prompt_tokens for turn in turns),
            "fed_tokens": sum(turn.fed_tokens for turn in turns),
            "generated_tokens": sum(turn.generated_tokens for turn in turns),
            "gold_passages_seen": len(seen.gold_seen)}


def with_given(episode: Episode) -> Episode:
    """The episode with the actions that were written beforehand (lib/conditions.py) as turns in front."""
    turns = [Turn([], 0, given["line"], [], [_result(given)], [], "eos", 0, 0, 0, {}, [], None, 0.0, 0.0)
             for given in episode.protocol.get("given", ())]
    return replace(episode, turns=turns + episode.turns) if turns else episode


def _result(given: dict) -> Result:
    values = {name: value for name, value in given.items() if name != "line"}
    return Result(**values | {"call": Call(**given["call"]), "codes": tuple(given["codes"])})


def without_seconds(episode: Episode) -> dict:
    """An episode as plain data that is the same on every machine: no seconds, gaps to four digits."""
    data = json.loads(episode.to_json())
    for turn in data["turns"]:
        turn |= {"first_token_seconds": None, "decode_seconds": 0.0, "tool_seconds": 0.0,
                 "gaps": [round(gap, 4) for gap in turn["gaps"]],
                 "results": [result | {"seconds": 0.0} for result in turn["results"]]}
    return data


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def check_row(row: dict) -> None:
    """Raises ValueError, with the place and what is wrong there, for a row that the schema does not allow."""
    for error in _validator().iter_errors(json.loads(json.dumps(row))):
        name = ", ".join(str(row.get(part)) for part in KEY[:3])
        raise ValueError(f"the row {name} is not as the schema says at {error.json_path}: {error.message[:200]}")


def _known(questions: dict[str, dict], name: str) -> dict:
    if name not in questions:
        raise ValueError(f"there is no question {name!r}")
    return questions[name]


# --- what a table says of some rows -------------------------------------------

def adherence(log: Iterable[dict]) -> dict[str, int]:
    """Of so many episodes, how many ran a tool, broke the format at least once, looped, and reached an answer."""
    log = list(log)
    return {"episodes": len(log),
            "used a tool": sum(row["counts"]["searches"] + row["counts"]["calculations"] > 0 for row in log),
            "broke the format": sum(row["counts"]["format_errors"] > 0 for row in log),
            "looped": sum(row["episode"]["status"] == "loop" for row in log),
            "answered": sum(row["episode"]["status"] == "answered" for row in log)}


def discordant(log: Iterable[dict], one: str, other: str) -> tuple[int, int]:
    """(only `one` right, only `other` right): on how many questions two conditions of the same model differ.

    ValueError unless both have an episode of the same questions, on each model the same.
    """
    right: dict[str, dict] = {one: {}, other: {}}
    for row in log:
        if row["condition"] in right:
            right[row["condition"]][row["model"], row["question"]] = row["class"] is None
    if right[one].keys() != right[other].keys():
        raise ValueError(f"{one} and {other} were not asked the same questions")
    pairs = [(is_right, right[other][key]) for key, is_right in right[one].items()]
    return sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
