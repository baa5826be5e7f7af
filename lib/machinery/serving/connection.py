"""One connection: what uvicorn leaves open is closed here, so that none is held for nothing.

A request has READ_SECONDS to begin, its reader SEND_SECONDS to take what was sent; a connection on which more comes
while an answer is under way is closed, since a reader who leaves could not be noticed behind those bytes.
"""
from __future__ import annotations

from contextlib import suppress

import h11
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from lib.machinery.serve import CONNECTIONS, READ_SECONDS, RETRY_AFTER, SEND_SECONDS
from lib.machinery.serving.guard import HEADERS, Sender, error_response, read

CLOSE = {"Connection": "close"}


class Connection(H11Protocol):
    """uvicorn's connection, with an end to everything that waits for its reader."""

    idle = stalled = None  # the clocks that run: until a request has begun, until its reader takes what was sent

    @property
    def is_answering(self) -> bool:
        """Whether a request is here whole, and its answer not yet given."""
        return bool(self.cycle) and not self.cycle.more_body and not self.cycle.response_complete

    def connection_made(self, transport) -> None:
        """Wait for a request; one connection too many is told so."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self.app = too_many
        self._wait(READ_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        for clock in filter(None, (self.idle, self.stalled)):
            clock.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and nothing behind it."""
        if not self.is_answering:
            super().data_received(data)
            if self.cycle and not self.cycle.response_complete:
                self.idle.cancel()  # the guard looks after the body
            data = self.conn.trailing_data[0]
        if data and self.is_answering:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Wait for the next request; the end of this answer may still be on its way."""
        super().on_response_complete()
        self._wait(SEND_SECONDS if self.transport.get_write_buffer_size() else READ_SECONDS)

    def pause_writing(self) -> None:
        """The reader is behind: give it a while."""
        super().pause_writing()
        self.stalled = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The reader has caught up."""
        super().resume_writing()
        self.stalled.cancel()

    def send_400_response(self, msg: str) -> None:
        """What was sent is no HTTP: say so in the form of every other error."""
        refusal = error_response(HTTPException(400, "This is no request of HTTP/1.1.", HEADERS | CLOSE))
        with suppress(h11.LocalProtocolError):  # an answer is under way or given already
            head = h11.Response(status_code=400, headers=refusal.raw_headers)
            for event in (head, h11.Data(data=refusal.body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def _wait(self, seconds: float) -> None:
        if self.idle:
            self.idle.cancel()
        self.idle = self.loop.call_later(seconds, self.transport.abort)


async def too_many(scope, receive, send) -> None:
    """The answer to a request on one connection too many."""
    with suppress(HTTPException):
        await read(receive, Headers(scope=scope))
    error = HTTPException(503, f"Too many are connected: try again in {RETRY_AFTER} seconds.",
                          {"Retry-After": str(RETRY_AFTER)} | CLOSE)
    await error_response(error)(scope, receive, Sender(send))
