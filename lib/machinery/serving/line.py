"""The line of readers before the one model: first come, first served, and who leaves holds nobody up.

All of it runs on the event loop's thread, so nothing is locked; only the work itself runs in the model's thread.
"""
from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from lib.machinery.serve import MAX_SECONDS, PIECES, PING, WAITING

ROOM = PIECES + 64  # events in a reader's queue: the pieces of a whole answer, its steps, its places in the line
LEFT, TIME, TOKENS, CLOSING = "left", "time_limit", "token_limit", "closing"  # why work is stopped before its end
LAST = ("done", "error")  # the types of an event after which no other comes
FAULT = {"type": "error", "message": "The endpoint failed at this question; its own log says where."}
ENDS = {"type": "error", "message": "The endpoint is shutting down: ask again once it is back."}
log = logging.getLogger("lib.serve")


class Full(Exception):
    """As many readers wait as may, or the endpoint ends, which its text says; come back later."""


class Ticket:
    """One reader's place in the line: a bounded queue of events, and how the work for it is stopped."""

    def __init__(self, work: Callable[[Ticket], None], room: int = ROOM):
        self.work, self.loop = work, asyncio.get_running_loop()
        self.events: asyncio.Queue[dict] = asyncio.Queue(room)
        self.cancel, self.reason = threading.Event(), ""
        self.tokens, self.ended = 0, False  # computed for this reader; whether the last event is there

    def emit(self, event: dict) -> None:
        """Hand the reader an event, from the model's thread; never waits."""
        with suppress(RuntimeError):  # the loop has ended, and its readers with it
            self.loop.call_soon_threadsafe(self.put, event)

    def piece(self, text: str) -> None:
        """Hand the reader a piece of the answer, from the model's thread."""
        self.emit({"type": "piece", "text": text})

    def put(self, event: dict) -> None:
        """Queue an event; a reader whose queue is full counts as gone."""
        self.ended = self.ended or event["type"] in LAST
        try:
            self.events.put_nowait(event)
        except asyncio.QueueFull:
            self.stop(LEFT)

    def stop(self, reason: str) -> None:
        """Let the work end within one pass of the model; the first reason counts."""
        self.reason = self.reason or reason
        self.cancel.set()

    async def __aiter__(self) -> AsyncIterator[dict]:
        """The events as they come, the last one included; a `ping` where none has come for PING seconds."""
        event = {"type": ""}
        while event["type"] not in LAST and not (self.reason == LEFT and self.events.empty()):
            try:
                async with asyncio.timeout(PING):  # wait_for would miss a cancellation that comes with an event
                    event = await self.events.get()
            except TimeoutError:
                event = {"type": "ping"}
            yield event

    def run(self) -> None:
        """Do the work, in the model's thread; a fault in it is an event and a line in the log, without its text."""
        try:
            self.work(self)
        except BaseException as error:  # the thread is ours alone: nothing else waits for it
            log.error("%s", where(error))
            self.emit(FAULT)
        if self.reason == CLOSING:
            self.emit(ENDS)


def faultless(make: Callable, *given):
    """What `make` returns; whatever would end the whole program becomes an exception that ends one request."""
    try:
        return make(*given)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(where(error)) from error


def where(error: BaseException) -> str:
    """A fault's kind and place; its message is left out, since it may quote a question."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


class Line:
    """Readers in the order in which they came; one is served, at most `limit` wait."""

    def __init__(self, limit: int = WAITING, seconds: float = MAX_SECONDS):
        self.limit, self.seconds = limit, seconds
        self.waiting: deque[Ticket] = deque()
        self.served: Ticket | None = None
        self.tokens, self.closed, self.preparing = 0, False, 0
        self._pool, self._desk = ThreadPoolExecutor(1, "model"), ThreadPoolExecutor(1, "prompts")
        self._free = asyncio.Event()
        self._free.set()

    @property
    def is_full(self) -> bool:
        """Whether the next reader has to be sent away; those whose prompts are being made are here already."""
        here = len(self.waiting) + bool(self.served) + self.preparing
        return self.closed or here > self.limit

    async def prepared(self, make: Callable, *given):
        """What `make` returns, in a thread of its own, one at a time, and only where there is room. Raises Full."""
        self._check_room()
        self.preparing += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._desk, faultless, make, *given)
        finally:
            self.preparing -= 1

    async def serve(self, work: Callable[[Ticket], None]) -> AsyncIterator[dict]:
        """The events of `work`, its places in the line first; closing the iterator stops the work. Raises Full."""
        ticket = self._join(work)
        try:
            async for event in ticket:
                yield event
        finally:
            self._leave(ticket)

    def _check_room(self) -> None:
        if self.is_full:
            raise Full(ENDS["message"] if self.closed else "")

    def _join(self, work: Callable[[Ticket], None]) -> Ticket:
        self._check_room()
        ticket = Ticket(work)
        self.waiting.append(ticket)
        if self.served and not (self.served.ended and len(self.waiting) == 1):  # else it is free in a moment
            ticket.put({"type": "waiting", "ahead": len(self.waiting)})
        self._advance()
        return ticket

    def _leave(self, ticket: Ticket) -> None:
        ticket.stop(LEFT)
        if ticket in self.waiting:
            place = self.waiting.index(ticket)
            self.waiting.remove(ticket)
            self._tell(place)

    def _advance(self) -> None:
        """Give a free model to the reader who waits longest."""
        if self.served is None and self.waiting:
            self.served = ticket = self.waiting.popleft()
            self._free.clear()
            ticket.put({"type": "waiting", "ahead": 0})
            self._tell()
            clock = ticket.loop.call_later(self.seconds, ticket.stop, TIME)
            done = ticket.loop.run_in_executor(self._pool, ticket.run)
            done.add_done_callback(lambda _: (clock.cancel(), self._finished(ticket)))

    def _finished(self, ticket: Ticket) -> None:
        """Only now, when its thread has ended, is the model free: not already when the reader left."""
        self.served, self.tokens = None, self.tokens + ticket.tokens
        self._free.set()
        self._advance()

    def _tell(self, first: int = 0) -> None:
        """Tell everyone from place `first` on how many are ahead."""
        for place, ticket in enumerate(self.waiting):
            if place >= first:
                ticket.put({"type": "waiting", "ahead": place + 1})

    async def close(self, patience: float = 10) -> None:
        """Send everyone away, stop what is under way and wait until the model is at rest."""
        self.closed = True
        for ticket in self.waiting:
            ticket.put(ENDS)
        self.waiting.clear()
        if self.served:
            self.served.stop(CLOSING)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._free.wait()
        for pool in (self._pool, self._desk):
            pool.shutdown(wait=False, cancel_futures=True)
