"""What is kept of an episode or a reply: all but its seconds, which have a file of their own; gaps to four digits."""
from __future__ import annotations

import json
from collections.abc import Callable

from lib.episode import Episode, Turn
from lib.generation import Generation

DIGITS = 4  # of a gap: float32 moves a logit by about 5e-5 anyway


def values(episode: Episode) -> dict:
    """A finished episode as plain data without seconds, which Episode.from_json reads; a broken program raises."""
    if episode.fault:
        raise RuntimeError(f"the program around a tool is broken: {episode.fault}")
    data = json.loads(episode.to_json())
    for turn in data["turns"]:
        turn |= {"first_token_seconds": None, "decode_seconds": 0.0, "tool_seconds": 0.0,
                 "gaps": [round(gap, DIGITS) for gap in turn["gaps"]],
                 "results": [result | {"seconds": 0.0} for result in turn["results"]]}
    return data


def seconds(episode: Episode) -> dict:
    """The seconds of an episode, a number per turn."""
    names = ("first_token_seconds", "decode_seconds", "tool_seconds")
    return {name: [round(getattr(turn, name) or 0.0, 3) for turn in episode.turns] for name in names}


def reply(generation: Generation) -> dict:
    """A single reply as plain data without seconds."""
    names = ("text", "ids", "stop_reason", "prompt_tokens", "cached_tokens")
    return {**{name: getattr(generation, name) for name in names},
            "gaps": [round(gap, DIGITS) for gap in generation.gaps]}


def reply_seconds(generation: Generation) -> dict:
    """The seconds of a single reply."""
    return {"first_token_seconds": round(generation.first_token_seconds or 0.0, 3),
            "decode_seconds": round(generation.decode_seconds, 3)}


def summary(episode: dict) -> str:
    """What came of a kept episode: its status, the calls that ran, its answer."""
    calls = [result["call"]["name"] for turn in episode["turns"] for result in turn["results"] if result["ran"]]
    answer = f", {episode['answer']!r}" if episode["answer"] else ""
    turns = f"{len(episode['turns'])} turn{'s' * (len(episode['turns']) != 1)}"
    return f"{episode['status']}, {turns}, calls: {', '.join(calls) or 'none'}{answer}"


class Teller:
    """Tells, while an episode runs, in which turn it is and the end of what the model has written."""

    def __init__(self, tell: Callable[[str], None], width: int = 40):
        self.tell, self.width, self.turn, self.text = tell, width, 1, ""

    def on_token(self, text: str) -> None:
        """Takes a bit of the reply."""
        self.text = (self.text + text)[-self.width:]
        self.tell(f"turn {self.turn}: {repr(self.text)[1:-1]}")

    def on_turn(self, turn: Turn) -> None:
        """Takes a finished turn."""
        self.turn, self.text = self.turn + 1, ""
