"""Server-sent events: an event becomes a line of JSON, and a reader who leaves stops what is made for it.

The form: https://html.spec.whatwg.org/multipage/server-sent-events.html (`data: …` and an empty line; `:` a comment).
"""
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress

from starlette.responses import StreamingResponse

from lib.machinery.serve import SEND_SECONDS

PING = b": still here\n\n"


def sse(event: dict) -> bytes:
    """An event as its reader gets it; letters stay letters, half a character becomes `?`."""
    if event.get("type") == "ping":
        return PING
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode(errors="replace")


async def encoded(events: AsyncGenerator[dict]) -> AsyncGenerator[bytes]:
    """The events as bytes; closing this closes them."""
    async with aclosing(events):
        async for event in events:
            yield sse(event)


async def unless_gone(receive: Callable[[], Awaitable[dict]], work: Coroutine):
    """What `work` returns, or None where the reader leaves first: it is cancelled then."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Callable[[], Awaitable[dict]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(StreamingResponse):
    """A stream of which the first event is there already, so that whatever forbids an answer still has its status."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes]):
        super().__init__(rest, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self.first = first

    async def __call__(self, scope, receive, send) -> None:
        """Send until the stream ends, its reader leaves, or takes longer than SEND_SECONDS for one piece."""
        async with aclosing(self.body_iterator):
            with suppress(TimeoutError):
                await unless_gone(receive, self._send(send))

    async def _send(self, send: Callable[[dict], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _part(send, self.first)
        async for part in self.body_iterator:
            await _part(send, part)
        await _part(send, b"", more=False)


async def _part(send: Callable[[dict], Awaitable[None]], body: bytes, more: bool = True) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": more})
