"""Who may ask at all: names and origins against other web sites, and the size and form of a request.

A server on this machine can be reached by every page in its browser. Two ways are closed here: a page that posts
across sites (its Origin is not ours, and JSON cannot be posted without asking first, which is never granted), and one
whose own name is made to point here (DNS rebinding): the Host it sends is a name that nobody gave this server.
"""
from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from lib.machinery.serve import MAX_BODY, READ_SECONDS
from lib.machinery.serving.line import log, where
from lib.strict_json import MAX_DEPTH, decode_whole

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
}
JSON_FAULTS = {
    "bad_json": f"The body is no JSON in UTF-8, or is nested more than {MAX_DEPTH} deep, or holds half a character.",
    "duplicate_key": "The body is no plain JSON: an object in it has a key twice.",
    "non_finite": "The body is no plain JSON: a number in it is none, or too large.",
}
FAULT = "The endpoint failed at this request; its own log says where."
HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[\w.-]+)(?::[0-9]{0,5})?")  # a name or an address, and a port
KINDS = {404: "not_found_error", 500: "server_error", 503: "overloaded_error"}


def error_form(message: str, status: int, param: str | None = None) -> dict:
    """An error as OpenAI's clients read it."""
    return {"message": message, "type": KINDS.get(status, "invalid_request_error"), "param": param, "code": status}


def error_response(error: HTTPException, param: str | None = None) -> JSONResponse:
    """What the sender of a request that was refused gets."""
    form = error_form(error.detail, error.status_code, param)
    return JSONResponse({"error": form}, error.status_code, error.headers)


class Guard:
    """Wraps the application: only a request that may ask, read whole, gets through to it."""

    def __init__(self, app, names: Iterable[str] = ()):
        self.app = app
        self.names = {name.lower() for name in ("localhost", socket.gethostname(), *names)}

    async def __call__(self, scope, receive, send) -> None:
        """One request; every response gets the security headers."""
        if scope["type"] != "http":
            return
        send, headers = Sender(send), Headers(scope=scope)
        try:
            body = await read(receive, headers)
            self.check(scope["method"], headers)
            check_json(body)
        except HTTPException as error:
            await error_response(error)(scope, receive, send)
            return
        try:
            await self.app(scope, again(body, receive), send)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log.error("%s", where(error.__cause__ or error))  # its place goes to the log, nothing of it to the reader
            if not send.begun:  # else the answer breaks off
                await error_response(HTTPException(500, FAULT))(scope, receive, send)

    def check(self, method: str, headers: Headers) -> None:
        """Raises HTTPException for a name that is not this server's, a foreign origin, a body that is no JSON."""
        host = headers.get("host", "").lower()
        if not self.is_ours(host):
            raise HTTPException(421, "This server has another name: use its address, or start it with --name.")
        if method in ("GET", "HEAD"):
            return
        origin = headers.get("origin", "").lower()
        if origin and origin.partition("://")[2] != host:
            raise HTTPException(403, "A page of another site may not ask here.")
        if method == "POST" and headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "Send JSON, with the header Content-Type: application/json.")

    def is_ours(self, host: str) -> bool:
        """Whether a Host names this server: an IP address, localhost, this machine's name or one that was given."""
        found = HOST.fullmatch(host)
        return bool(found) and (found["name"] in self.names or is_address(found["name"].strip("[]")))


def is_address(name: str) -> bool:
    """Whether a name is an IP address, which no one can make point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def read(receive, headers: Headers) -> bytes:
    """The whole body; HTTPException for one that is too long or too slow, after which the connection closes.

    One that is too long is read to its end and thrown away, for as long as any other may take: a sender who is
    still sending would not hear the refusal.
    """
    close, length = {"Connection": "close"}, headers.get("content-length", "0")
    too_long = not length.isdecimal() or int(length) > MAX_BODY
    body, more = b"", True
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
                too_long = too_long or len(body) > MAX_BODY
                body = b"" if too_long else body
    if too_long:
        raise HTTPException(413, f"A request has at most {MAX_BODY:,} bytes.", close)
    if more:
        raise HTTPException(408, f"A request has to be here within {READ_SECONDS} seconds.", close)
    return body


def check_json(body: bytes) -> None:
    """HTTPException for a body that is no JSON as the standard has it; nothing of it is quoted."""
    try:
        code = decode_whole(body.decode("utf-8-sig"))[1] if body else ""
    except UnicodeDecodeError:
        code = "bad_json"
    if code:
        raise HTTPException(422, JSON_FAULTS[code])


def again(body: bytes, receive):
    """`receive` with a body that has been read already."""
    read = [{"type": "http.request", "body": body, "more_body": False}]

    async def first_the_body() -> dict:
        return read.pop() if read else await receive()
    return first_the_body


class Sender:
    """`send` that adds the security headers to a response; `begun` once there is one."""

    def __init__(self, send):
        self.send, self.begun = send, False

    async def __call__(self, message: dict) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            self.begun = True
            MutableHeaders(scope=message).update(HEADERS)
        await self.send(message)
