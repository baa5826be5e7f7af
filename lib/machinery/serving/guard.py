"""Who may ask at all: names and origins against other web sites, and the size and form of a request.

A server on this machine can be reached by every page in its browser. Two ways are closed here: a page that posts
across sites (its Origin is not ours, and JSON cannot be posted without asking first, which is never granted), and one
whose own name is made to point here (DNS rebinding): the Host it sends is a name that nobody gave this server.
"""
from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from lib.machinery.serve import MAX_BODY, READ_SECONDS

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
}
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
        send = with_headers(send)
        try:
            self.check(scope["method"], Headers(scope=scope))
            body = await read(receive, Headers(scope=scope))
        except HTTPException as error:
            await error_response(error)(scope, receive, send)
            return
        await self.app(scope, again(body, receive), send)

    def check(self, method: str, headers: Headers) -> None:
        """Raises HTTPException for a name that is not this server's, a foreign origin, a body that is no JSON."""
        host = headers.get("host", "").lower()
        if not self.is_ours(host):
            raise HTTPException(421, "This server has another name: use its address, or start it with --name.")
        if method in ("GET", "HEAD"):
            return
        if urlsplit(headers.get("origin") or f"//{host}").netloc.lower() != host:
            raise HTTPException(403, "A page of another site may not ask here.")
        if method == "POST" and headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "Send JSON, with the header Content-Type: application/json.")

    def is_ours(self, host: str) -> bool:
        """Whether a Host names this server: an IP address, localhost, this machine's name or one that was given."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or is_address(name)


def is_address(name: str) -> bool:
    """Whether a name is an IP address, which no one can make point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def read(receive, headers: Headers) -> bytes:
    """The whole body; HTTPException for one that is too long or too slow."""
    too_long = HTTPException(413, f"A request has at most {MAX_BODY:,} bytes.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MAX_BODY:
        raise too_long
    body, more = b"", True
    try:
        async with asyncio.timeout(READ_SECONDS):
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
                if len(body) > MAX_BODY:
                    raise too_long
    except TimeoutError:
        raise HTTPException(408, f"A request has to be here within {READ_SECONDS} seconds.") from None
    return body


def again(body: bytes, receive):
    """`receive` with a body that has been read already."""
    read = [{"type": "http.request", "body": body, "more_body": False}]

    async def first_the_body() -> dict:
        return read.pop() if read else await receive()
    return first_the_body


def with_headers(send):
    """`send` that adds the security headers to the response."""
    async def sends(message: dict) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)
    return sends
