"""What happened in an agent's episode, token by token: kept as data, written as JSON, read back as it was."""
from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lib.chat import Span
from lib.replies import Call, Finding
from lib.tools import Result


@dataclass
class Turn:
    """One reply of the model, what was made of it, and what it cost. Seconds are wall-clock times."""
    spans: list[Span]            # the tokens that this turn added: those of new messages, then the reply's
    reply_tokens: int            # how many of them, at the end, are the reply's
    text: str                    # the reply, up to a result that the model invented
    findings: list[Finding]      # every candidate call with its verdict
    results: list[Result]        # one per call that ran or was refused: what the model reads next
    notices: list[str]           # what the loop told the model besides: a cut reply, a repeated action
    stop_reason: str             # why the reply ended: eos, length, stop, cancelled
    prompt_tokens: int           # tokens the model was given, all turns before included
    cached_tokens: int           # of these, what the prefix cache still held
    generated_tokens: int        # tokens the model wrote, what was cut off included
    by_writer: dict[str, int]    # the prompt's tokens by who wrote them
    gaps: list[float]            # per token the model wrote: top-1 minus top-2 logit
    first_token_seconds: float | None
    decode_seconds: float
    tool_seconds: float

    @property
    def fed_tokens(self) -> int:
        """Tokens of the prompt that went through the network in this turn."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def codes(self) -> list[str]:
        """Every code of the reply once, in order."""
        return list(dict.fromkeys(code for finding in self.findings for code in finding.codes))


@dataclass
class Episode:
    """A question and all that came of it. `answer` is None unless the status is 'answered'."""
    question: str
    model: str
    protocol: dict                # the protocol's settings
    limits: dict                  # max_turns, max_new_tokens, max_tokens, max_seconds
    status: str = "running"
    answer: str | None = None
    fault: str | None = None      # what is broken, if a tool's program is
    turns: list[Turn] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """The calls that ran, in order; a call that raised has run, one that was refused has not."""
        return [result.call for turn in self.turns for result in turn.results if result.ran]

    @property
    def codes(self) -> list[str]:
        """Every code of the episode once, in order."""
        return list(dict.fromkeys(code for turn in self.turns for code in turn.codes))

    def to_json(self) -> str:
        """The whole episode as one JSON object; a token is [id, text, writer]."""
        data = asdict(self)
        for turn, kept in zip(data["turns"], self.turns, strict=True):
            turn["spans"] = [[span.id, span.text, span.writer] for span in kept.spans]
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Episode:
        """The episode that `to_json` wrote."""
        data = json.loads(text)
        return cls(**data | {"turns": [_turn(turn) for turn in data["turns"]]})

    def save(self, path: Path | str) -> None:
        """Write the episode to `path`, whole or not at all."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            beside.write_text(self.to_json() + "\n", encoding="utf-8", newline="\n")
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def load_episode(path: Path | str) -> Episode:
    """The episode in the file `path`; ValueError that names the file if it holds none."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        return Episode.from_json(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} holds no episode of this course: {type(error).__name__}: {error}") from error


def _turn(data: dict) -> Turn:
    findings = [Finding(**f | {"codes": tuple(f["codes"]), "calls": tuple(map(_call, f["calls"]))})
                for f in data["findings"]]
    results = [Result(**r | {"call": _call(r["call"]), "codes": tuple(r["codes"])}) for r in data["results"]]
    spans = [Span(*span) for span in data["spans"]]
    return Turn(**data | {"findings": findings, "results": results, "spans": spans})


def _call(data: dict | None) -> Call | None:
    return Call(**data) if data else None
