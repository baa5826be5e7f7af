"""The agent loop: ask the model, run what it asks for, add what came of it, ask again, until it answers or must stop.

One loop serves every form of turn; a `Protocol` says what a turn looks like. What happened is kept token by token in
an `Episode`, which is written down after every turn.
"""
from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from lib.episode import Episode, Turn
from lib.generation import Conversation, Generation
from lib.replies import SENTENCES, Call, Finding, Reply
from lib.tools import RESULT_LIMIT, Result, Tool, ToolFault, by_name, parse_reply, refusal, run_call, shorten

IN_A_ROW = 3  # the third reply of a kind in a row ends an episode: cut, repeated, without an action
EMPTY = "Your reply was empty. Call a tool, or answer the question."
CUT = "Your reply was cut at the limit of {} tokens, before it was complete. Write a shorter one."
REPEAT = "You have just done exactly this, with the same result. Do something else, or answer with what you know."


@dataclass(frozen=True)
class Protocol:
    """What a turn looks like: here, tools described by the chat template and calls in `<tool_call>` tags."""
    tools: tuple[Tool, ...] = ()
    system: str | None = None            # None: the template's own
    examples: tuple[dict, ...] = ()      # messages of worked exchanges, before the question
    policy: str = "strict"               # or lenient: see lib.tools.parse_reply
    repeat_rule: bool = True             # whether a repeated action is corrected, then ends the episode
    result_limit: int = RESULT_LIMIT     # characters of a result that the model gets to read
    format_limit: int | None = None      # replies in a row without an action that end the episode
    stop: tuple[str, ...] = ()           # strings that end a reply

    def __post_init__(self):
        object.__setattr__(self, "tools", tuple(by_name(self.tools).values()))

    @property
    def schemas(self) -> list[dict] | None:
        """What the chat template is given to describe."""
        return [tool.schema for tool in self.tools] or None

    def opening(self, question: str) -> list[dict]:
        """The messages that stand before the first reply."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, *self.examples, {"role": "user", "content": question}]

    def read(self, text: str, truncated: bool) -> Reply:
        """What a reply asks for."""
        return parse_reply(text, self.tools, self.policy, truncated)

    def message(self, result: Result) -> dict:
        """The message that brings a result to the model."""
        return {"role": "tool", "content": result.text}

    def reminder(self, reply: Reply) -> str:
        """What the model is told of a reply that asks for nothing and answers nothing."""
        return SENTENCES["fabricated_result"] if "fabricated_result" in reply.codes else EMPTY

    def settings(self) -> dict:
        """Everything that decides how an episode goes, for its record."""
        kept = ("system", "policy", "repeat_rule", "result_limit", "format_limit")
        return {"name": "tools", "tools": [tool.schema for tool in self.tools], "examples": list(self.examples),
                **{name: getattr(self, name) for name in kept}, "stop": list(self.stop)}


def run_agent(model, question: str, protocol: Protocol, max_turns: int = 5, *, max_new_tokens: int = 256,
              max_tokens: int | None = None, max_seconds: float | None = None, path: Path | str | None = None,
              approve: Callable[[Call], bool] | None = None, on_turn: Callable[[Turn], None] | None = None,
              on_token: Callable[[str], None] | None = None, cancel: threading.Event | None = None) -> Episode:
    """The episode that begins with `question`; whatever the model or a tool does wrong is data in it.

    Statuses: answered, max_turns, loop, truncated, repeated_format_error, token_limit (the prompt has reached
    `max_tokens`, by default the model's context), time_limit (looked at between turns), cancelled, tool_fault.
    `approve(call)` decides on tools that need approval; the episode so far is written to `path` after every turn.
    Raises ValueError for a question, limit or protocol that cannot be used.
    """
    limits = {"max_turns": max_turns, "max_new_tokens": max_new_tokens, "max_seconds": max_seconds,
              "max_tokens": model.context if max_tokens is None else min(max_tokens, model.context)}
    loop = _Loop(model, question, protocol, limits, approve)
    while loop.episode.status == "running":
        try:
            loop.turn(on_token=on_token, cancel=cancel)
        finally:
            if path:
                loop.episode.save(path)
        if on_turn:
            on_turn(loop.episode.turns[-1])
    return loop.episode


class _Loop:
    """One episode under way."""

    def __init__(self, model, question: str, protocol: Protocol, limits: dict, approve: Callable | None):
        if not isinstance(protocol, Protocol) or not isinstance(question, str):
            raise TypeError("run_agent(model, question, protocol) takes a text and a Protocol, in this order")
        if not question.strip() or limits["max_turns"] < 1:
            raise ValueError("an episode needs a question and at least one turn")
        protocol.read("", False)  # what cannot be used is refused before anything has run
        shorten("", protocol.result_limit)
        self.protocol, self.approve = protocol, approve
        self.conversation = Conversation(model, protocol.opening(question), protocol.schemas)
        self.episode = Episode(question, model.name, protocol.settings(), limits)
        if len(self.conversation.prompt()) >= limits["max_tokens"]:
            raise ValueError(f"the prompt alone fills the limit of {limits['max_tokens']:,} tokens")
        self.actions: list = []  # per turn: what was done and what came of it; None after a cut reply
        self.start = perf_counter()

    def turn(self, **options) -> None:
        """One reply, what it asks for, and the messages that answer it."""
        before, limits = self.conversation.prompt(), self.episode.limits
        generation = self.conversation.reply(max_new_tokens=limits["max_new_tokens"], stop=self.protocol.stop,
                                             **options)
        reply = self.protocol.read(generation.text, generation.stop_reason == "length")
        if reply.text != generation.text:
            self.conversation.keep(reply.text)
        self.episode.turns.append(self._record(generation, reply, before))
        self.episode.status = self._ending(generation, reply)
        if self.episode.status == "running":
            self._go_on(reply)

    def _record(self, generation: Generation, reply: Reply, prompt: list) -> Turn:
        spans, seen = self.conversation.spans, sum(len(turn.spans) for turn in self.episode.turns)
        return Turn(
            spans=spans[seen:], reply_tokens=len(spans) - len(prompt), text=reply.text,
            findings=list(reply.findings), results=[], notices=[], stop_reason=generation.stop_reason,
            prompt_tokens=generation.prompt_tokens, cached_tokens=generation.cached_tokens,
            generated_tokens=len(generation.ids), by_writer=dict(Counter(span.writer for span in prompt)),
            gaps=generation.gaps, first_token_seconds=generation.first_token_seconds,
            decode_seconds=generation.decode_seconds, tool_seconds=0.0)

    def _ending(self, generation: Generation, reply: Reply) -> str:
        """Run what the reply asks for; returns the status that follows, 'running' if the episode goes on."""
        if generation.stop_reason == "cancelled":
            return "cancelled"
        cut = generation.stop_reason == "length"
        if reply.answer and (reply.is_whole or not cut):
            self.episode.answer = reply.answer
            return "answered"
        try:
            self._act(reply)
        except ToolFault as fault:
            self.episode.fault = str(fault)
            return "tool_fault"
        self.actions.append(None if cut else self._action(reply))
        return self._limit()

    def _act(self, reply: Reply) -> None:
        """One result per call that may run, one per candidate that is refused, in order."""
        turn, start = self.episode.turns[-1], perf_counter()
        for finding in reply.candidates:
            if finding.message:
                turn.results.append(refusal(finding.message, finding.codes, *finding.calls[:1]))
                continue
            for call in finding.calls:
                turn.results.append(run_call(call, self.protocol.tools, self.approve, self.protocol.result_limit))
        turn.tool_seconds = perf_counter() - start

    def _action(self, reply: Reply) -> tuple | None:
        """What makes two turns the same: the calls as values with their results; without calls, the text.

        None without calls where the protocol has a limit for such replies: they are no repeated actions.
        """
        tried = [call for finding in reply.candidates for call in self._tried(finding, reply.text)]
        results = [result.text for result in self.episode.turns[-1].results]
        without = (reply.text,) if self.protocol.format_limit is None else None
        return tuple(zip(tried, results, strict=True)) or without

    def _tried(self, finding: Finding, text: str) -> list[str]:
        """What a candidate asked for, one text per result: its calls as values, or itself if it could not be read."""
        calls = [as_value(call) for call in finding.calls]
        return calls[:1] or [text[finding.start:finding.end].strip()] if finding.message else calls

    def _limit(self) -> str:
        """The limit that ends the episode after this turn, or 'running'."""
        turns, limits, actions = self.episode.turns, self.episode.limits, self.actions
        if is_run_of(turns, lambda turn: turn.stop_reason == "length", IN_A_ROW):
            return "truncated"
        if is_run_of(turns, lambda turn: not any(r.ran for r in turn.results), self.protocol.format_limit):
            return "repeated_format_error"
        if self.protocol.repeat_rule and (is_run_of(actions, lambda action: repeats(action, actions[-1]), IN_A_ROW)
                                          or is_ping_pong(actions)):
            return "loop"
        if limits["max_seconds"] is not None and perf_counter() - self.start >= limits["max_seconds"]:
            return "time_limit"
        return "max_turns" if len(turns) >= limits["max_turns"] else "running"

    def _go_on(self, reply: Reply) -> None:
        """Add the messages that answer the reply; the episode ends if they no longer fit."""
        turn, actions = self.episode.turns[-1], self.actions
        if turn.stop_reason == "length":
            turn.notices.append(CUT.format(self.episode.limits["max_new_tokens"]))
        elif not turn.results:
            turn.notices.append(self.protocol.reminder(reply))
        if self.protocol.repeat_rule and len(actions) > 1 and repeats(actions[-2], actions[-1]):
            turn.notices.append(REPEAT)
        self.conversation.messages += [self.protocol.message(result) for result in turn.results]
        self.conversation.messages += [{"role": "user", "content": notice} for notice in turn.notices]
        if len(self.conversation.prompt()) >= self.episode.limits["max_tokens"]:
            self.episode.status = "token_limit"


def as_value(call: Call) -> str:
    """A call as text that is the same for the same values: keys in order, 3.0 as 3."""
    def number(digits: str) -> float | int:
        return int(float(digits)) if float(digits).is_integer() else float(digits)
    return json.dumps(json.loads(json.dumps([call.name, call.arguments]), parse_float=number), sort_keys=True)


def repeats(action: tuple | None, last: tuple | None) -> bool:
    """Whether two turns did the same and got the same; a cut reply repeats nothing."""
    return action is not None and action == last


def is_run_of(items: list, holds: Callable, length: int | None) -> bool:
    """Whether something holds for each of the last `length` items (None: never)."""
    return length is not None and len(items) >= length and all(map(holds, items[-length:]))


def is_ping_pong(actions: list) -> bool:
    """Whether the last four actions go A B A B."""
    last = actions[-4:]
    return len(last) == 4 and None not in last and last[:2] == last[2:] and last[0] != last[1]
