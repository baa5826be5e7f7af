"""Chat completions in OpenAI's form: the model's text, and the calls in it as structured data."""
from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from lib.generation import Generation
from lib.machinery.serve import MAX_TOKENS
from lib.machinery.serving.answer import Desk, Work, prompt
from lib.machinery.serving.events import PING, sse
from lib.machinery.serving.guard import error_form
from lib.machinery.serving.held import Held
from lib.machinery.serving.line import CLOSING, ENDS, Full, Ticket
from lib.machinery.serving.wanted import Wanted
from lib.replies import Call
from lib.tools import parse_reply

DONE = b"data: [DONE]\n\n"


def completing(desk: Desk, wanted: Wanted) -> Work:
    """One reply to the conversation; its last event holds the message, why it ended, and its tokens."""
    tools = wanted.offered
    ids = prompt(desk.model, wanted.conversation, [tool.schema for tool in tools] or None)

    def work(ticket: Ticket) -> None:
        held = Held(ticket.piece)
        result = desk.model.generate(ids, wanted.limit(MAX_TOKENS), wanted.stops, cancel=ticket.cancel,
                                     on_token=held.add if tools else ticket.piece)
        ticket.tokens = len(result.ids)
        message, finish = message_of(result, tools)
        if ticket.reason != CLOSING:
            ticket.emit({"type": "done", "message": message, "rest": rest(message, held) if tools else "",
                         "finish": finish, "usage": usage(result)})
    return work


def rest(message: dict, held: Held) -> str:
    """What a stream still lacks of a message; what it should not have sent it can no longer take back."""
    content = message["content"] or ""
    return content[len(held.sent):] if content.startswith(held.sent) else f"\n\n{content}"


def message_of(result: Generation, tools: list) -> tuple[dict, str]:
    """(message, finish_reason) of a reply. A call that cannot be run is no answer: it stands under `refusal`.

    An answer that took too many seconds ends like one of too many tokens, with `length`: OpenAI has no other word.
    """
    cut = result.stop_reason in ("length", "cancelled")
    finish = "length" if cut else "stop"
    if not tools:
        return {"role": "assistant", "content": result.text, "refusal": None}, finish
    reply = parse_reply(result.text, tools, "lenient", cut)
    faults = [finding.message for finding in reply.candidates if finding.message]
    faults += ["it made up a result"] if "fabricated_result" in reply.codes else []
    message = {"role": "assistant", "content": reply.prose or None, "refusal": None}
    if reply.is_answer and not faults:
        message["content"] = reply.prose
    if faults:
        message |= {"content": None, "refusal": f"No call, and no answer: {'; '.join(faults)}. It was: {result.text}"}
    if reply.calls:
        message["tool_calls"] = [tool_call(call) for call in reply.calls]
        finish = finish if cut else "tool_calls"
    return message, finish


def tool_call(call: Call) -> dict:
    """A call as structured data; its arguments are JSON in a string."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function",
            "function": {"name": call.name, "arguments": arguments}}


def usage(result: Generation) -> dict:
    """The tokens that were read and written."""
    return {"prompt_tokens": result.prompt_tokens, "completion_tokens": len(result.ids),
            "total_tokens": result.prompt_tokens + len(result.ids),
            "prompt_tokens_details": {"cached_tokens": result.cached_tokens}}


async def _events(desk: Desk, wanted: Wanted) -> AsyncGenerator[dict]:
    work = await desk.line.prepared(completing, desk, wanted)
    async with aclosing(desk.line.serve(work)) as events:
        async for event in events:
            yield event


def _head(desk: Desk, kind: str) -> dict:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()),
            "model": desk.model.name}


async def whole(desk: Desk, wanted: Wanted) -> dict:
    """The completion as one object, or an error in its place; raises Full where the endpoint ends."""
    async with aclosing(_events(desk, wanted)) as events:
        last = [event async for event in events][-1]
    if last is ENDS:
        raise Full(last["message"])
    if last["type"] == "error":
        return {"error": error_form(last["message"], 500)}
    choice = {"index": 0, "message": last["message"], "logprobs": None, "finish_reason": last["finish"]}
    return {**_head(desk, "chat.completion"), "choices": [choice], "usage": last["usage"]}


async def chunks(desk: Desk, wanted: Wanted) -> AsyncGenerator[bytes]:
    """The completion as server-sent chunks: the role, the text as it comes, calls whole at the end, [DONE]."""
    writer = _Chunks(desk, bool(wanted.stream_options and wanted.stream_options.include_usage))
    async with aclosing(_events(desk, wanted)) as events:
        async for event in events:
            for part in writer.of(event):
                yield part


class _Chunks:
    """Turns events into chunks of one completion."""

    def __init__(self, desk: Desk, with_usage: bool):
        self.head, self.with_usage = _head(desk, "chat.completion.chunk"), with_usage
        self.begun = False

    def of(self, event: dict) -> list[bytes]:
        """The chunks of one event; a comment where there is nothing to tell yet."""
        if not self.begun:
            self.begun = True
            return [self._chunk({"role": "assistant", "content": ""})]
        if event["type"] == "piece":
            return [self._chunk({"content": event["text"]})]
        if event["type"] == "error":
            return [sse({"error": error_form(event["message"], 500)})]
        return self._end(event) if event["type"] == "done" else [PING]

    def _end(self, event: dict) -> list[bytes]:
        """What is left of the message, why it ended, and the usage where it was asked for."""
        message = event["message"]
        calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", []))]
        deltas = [{"content": event["rest"]}] if event["rest"] else []
        deltas += [{"refusal": message["refusal"]}] if message["refusal"] else []
        deltas += [{"tool_calls": calls}] if calls else []
        tail = [sse({**self.head, "choices": [], "usage": event["usage"]})] if self.with_usage else []
        return [*map(self._chunk, deltas), self._chunk({}, event["finish"]), *tail, DONE]

    def _chunk(self, delta: dict, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**self.head, "choices": [choice], **({"usage": None} if self.with_usage else {})})
