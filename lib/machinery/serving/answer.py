"""The answer to a question, event by event: passages of the notes first, or an agent's steps, then the words.

The events, each a dict with its `type`: waiting (ahead), sources (language, sources), step (name, arguments, written,
ok, result), piece (text), aside (text: streamed before a call, and no answer), done (status, tokens, seconds; from
the notes also cited, the numbers of sources, and unsupported, its figures that are in none) or error (message).
"""
from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import perf_counter

from lib import rag
from lib.agent import Protocol, run_agent
from lib.episode import Turn
from lib.generation import Generation, Model
from lib.machinery.evaluations.loop import TOOLS, WORKED
from lib.machinery.serve import MAX_PROMPT, MAX_TOKENS, PASSAGES, TURNS
from lib.machinery.serving.held import Held
from lib.machinery.serving.line import CLOSING, TOKENS, Line, Ticket
from lib.machinery.serving.notes import Notes
from lib.replies import Call
from lib.tools import tool

RESULT = 2_000  # characters of a tool's result: some 500 tokens of the prompt
CHARACTERS = 8 * MAX_PROMPT  # of a prompt: text has some 4 in a token
Work = Callable[[Ticket], None]


class Unusable(ValueError):
    """A prompt that this model cannot be given, and why: half a character in it, tools that its template ignores."""


class TooLong(Unusable):
    """A prompt of more tokens than the endpoint feeds."""


@dataclass
class Desk:
    """What answers: one model, the notes, and the line of readers."""
    model: Model
    notes: Notes
    line: Line


async def answer(desk: Desk, question: str, mode: str = "rag") -> AsyncGenerator[dict]:
    """The events of an answer; whoever closes the iterator stops the model.

    Raises Full where too many wait, Unusable for what the model cannot be given, TooLong for too much of it.
    """
    work = await desk.line.prepared(MODES[mode], desk, question)  # retrieval, and the prompt
    async with aclosing(desk.line.serve(work)) as events:         # the model in its thread, a bounded queue
        async for event in events:
            yield event


def prompt(model: Model, messages: list[dict], tools: list[dict] | None = None) -> list[int]:
    """The ids of a prompt; Unusable where there are none, TooLong for more than the endpoint feeds."""
    if len(str([messages, tools])) > CHARACTERS:  # looked at before the template and the tokenizer run
        raise TooLong(f"The prompt has more than {CHARACTERS:,} characters; fewer tokens than that are read here.")
    try:
        ids = model.encode(messages, tools)
    except ValueError as error:
        raise Unusable(str(error)) from error
    if len(ids) > (most := min(MAX_PROMPT, model.context - MAX_TOKENS)):
        raise TooLong(f"The prompt has {len(ids):,} tokens; at most {most:,} are read here.")
    return ids


# --- from the notes ---------------------------------------------------------

def from_notes(desk: Desk, question: str) -> Work:
    """One reply to the question and the passages found for it; without a passage the model is not asked."""
    language = desk.notes.language(question)
    sources = rag.distinct(map(rag.source, desk.notes.search(question)))
    prompt(desk.model, rag.rag_messages(question, sources, language))

    def work(ticket: Ticket) -> None:
        start = perf_counter()
        ticket.emit({"type": "sources", "language": language, "sources": [source._asdict() for source in sources]})
        found = rag.answer(desk.model, question, lambda *_: sources, PASSAGES, language, MAX_TOKENS, ticket.piece,
                           ticket.cancel)
        if not found.generation:
            ticket.piece(found.text)
        replies = [found.generation] if found.generation else []
        finish(ticket, ENDINGS.get(found.ending, ticket.reason), start, replies,
               cited=found.citations, unsupported=found.unsupported_numbers)
    return work


ENDINGS = {"whole": "answered", "cut": TOKENS, "not called": "no_source"}


# --- in steps, with tools ---------------------------------------------------

EXAMPLES = (*WORKED,  # worked exchanges: without one the default model repeats its call instead of answering
            {"role": "user", "content": "What is a logit?"},
            {"role": "assistant",
             "content": '<tool_call>\n{"name": "search_notes", "arguments": {"query": "logit"}}\n</tool_call>'},
            {"role": "tool", "content": "A logit is the number that the network gives each token of the vocabulary."},
            {"role": "assistant", "content": "It is the number that the network gives each token of the vocabulary."})


def agent_protocol(notes: Notes) -> Protocol:
    """The agent's tools and examples; calls in bare JSON count as well, since the default model writes them so."""
    @tool
    def search_notes(query: str) -> str:
        """Search the notes about language models and return the best passages."""
        return "\n\n".join(passage.text for passage in notes.search(query)) or "Nothing was found."
    return Protocol((*TOOLS, search_notes), examples=EXAMPLES, policy="lenient", result_limit=RESULT)


def in_steps(desk: Desk, question: str) -> Work:
    """An agent's episode on the question."""
    protocol = agent_protocol(desk.notes)
    prompt(desk.model, protocol.opening(question), protocol.schemas)

    def work(ticket: Ticket) -> None:
        start, model = perf_counter(), Rationed(desk.model)
        steps = Steps(ticket, protocol, model)
        episode = run_agent(model, question, protocol, TURNS, max_new_tokens=MAX_TOKENS, max_tokens=MAX_PROMPT + 1,
                            on_token=steps.on_token, on_turn=steps.on_turn, cancel=ticket.cancel)
        status = ticket.reason if episode.status == "cancelled" else episode.status
        finish(ticket, status, start, episode.turns)
    return work


class Rationed:
    """A model that writes at most MAX_TOKENS in all its replies; `left` is what remains of them."""

    def __init__(self, model: Model):
        self.model, self.left = model, MAX_TOKENS

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def generate(self, ids: list[int], max_new_tokens: int = MAX_TOKENS, *rest, **options) -> Generation:
        """A reply of the tokens that are left; with none left its caller has been stopped already."""
        result = self.model.generate(ids, max(1, min(max_new_tokens, self.left)), *rest, **options)
        self.left -= len(result.ids)
        return result


class Steps:
    """Turns an agent's tokens and turns into events, and stops it at the limit of tokens for all its turns."""

    def __init__(self, ticket: Ticket, protocol: Protocol, model: Rationed):
        self.ticket, self.protocol, self.model = ticket, protocol, model
        self.held = Held(ticket.piece)

    def on_token(self, text: str) -> None:
        """Stream what is certainly the answer's."""
        self.held.add(text)

    def on_turn(self, turn: Turn) -> None:
        """Close the turn: the rest of its answer, or its steps after words that were none; cut short, it stays."""
        if self.model.left <= 0:
            self.ticket.stop(TOKENS)
        reply = self.protocol.read(turn.text, turn.stop_reason == "length")
        is_answer = reply.answer and turn.stop_reason != "length"
        if turn.stop_reason != "cancelled" and (aside := self.held.close(reply.answer if is_answer else "")):
            self.ticket.emit({"type": "aside", "text": aside})
        for result in turn.results:
            self.ticket.emit({"type": "step", **described(result.call), "ok": result.ok, "result": result.text})
        self.held = Held(self.ticket.piece)


def described(call: Call | None) -> dict:
    """A call as an event has it; `written` holds its arguments as text, since a browser rounds long numbers."""
    if call is None:
        return {}
    written = ", ".join(json.dumps(value, ensure_ascii=False) for value in call.arguments.values())
    return {"name": call.name, "arguments": call.arguments, "written": written}


MODES = {"rag": from_notes, "agent": in_steps}


def finish(ticket: Ticket, status: str, start: float, replies: list[Generation | Turn], **found) -> None:
    """The last event, with the tokens of all replies; left out where the endpoint is about to end, which says so."""
    ticket.tokens = sum(len(reply.gaps) for reply in replies)
    if ticket.reason != CLOSING:
        ticket.emit({"type": "done", "status": status, "tokens": ticket.tokens,
                     "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
                     "cached_tokens": sum(reply.cached_tokens for reply in replies),
                     "seconds": round(perf_counter() - start, 3), **found})
