"""The port, the start and the end: uvicorn in this thread (a command) or in one of its own (a notebook, a test)."""
from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

import uvicorn

from lib.machinery import Stop
from lib.machinery.serve import HOST
from lib.machinery.serving.answer import Desk
from lib.machinery.serving.app import create_app
from lib.machinery.serving.connection import Connection
from lib.machinery.serving.line import Line
from lib.machinery.serving.notes import Notes

PATIENCE = 15  # seconds that a start or an end may take


class Server(uvicorn.Server):
    """uvicorn that sends its readers away before it waits for them to go; `desk` is what answers them."""

    def __init__(self, model, listening: socket.socket, notes: Notes | None = None, names: Iterable[str] = ()):
        self.desk, self.listening = Desk(model, notes or Notes(), Line()), listening
        super().__init__(uvicorn.Config(
            create_app(self.desk, names), http=Connection, ws="none", loop="asyncio", lifespan="off", log_config=None,
            log_level="critical", access_log=False, server_header=False, proxy_headers=False,  # no line of a question
            timeout_graceful_shutdown=3))

    def serve_here(self) -> None:
        """Serve until Ctrl-C or `should_exit`."""
        self.run(sockets=[self.listening])

    async def shutdown(self, sockets=None) -> None:
        """Stop what is under way, then what uvicorn does; whoever takes no answer is cut off."""
        await self.desk.line.close()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # they learn of it


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections already, which wait for the model; Stop says what stands in the way."""
    if not 0 <= port <= 65_535:
        raise Stop(f"There is no port {port}: choose one from 1024 to 65535 with --port N (0: any that is free).")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        raise Stop(cannot_listen(host, port, getattr(error, "errno", None))) from error


def cannot_listen(host: str, port: int, code: int | None) -> str:
    """Why the port cannot be had, and what to do."""
    if code == errno.EADDRINUSE:
        return (f"Port {port} is in use, perhaps by an endpoint that still runs: end that one with Ctrl-C, or take "
                "another port with --port N (0: any that is free).")
    if code in (errno.EACCES, errno.EPERM):
        return f"Port {port} is not yours to take: choose one from 1024 on with --port N (0: any that is free)."
    return f"This machine has no address {host!r}: leave --host out for this machine alone, or give one of its own."


def address(listening: socket.socket) -> str:
    """The address that a browser on this machine is given."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_open(listening: socket.socket) -> bool:
    """Whether other machines can reach it."""
    return not ipaddress.ip_address(listening.getsockname()[0].split("%")[0]).is_loopback


@contextmanager
def running(model, port: int = 0, host: str = HOST, notes: Notes | None = None) -> Iterator[str]:
    """The endpoint in a thread of its own, for as long as the block runs; yields its address.

    Port 0 is any that is free. Raises Stop where the port cannot be had, RuntimeError where it doesn't start or end.
    """
    with listen(host, port) as listening:
        server = Server(model, listening, notes)
        thread = threading.Thread(target=server.serve_here, name="endpoint", daemon=True)
        thread.start()
        try:
            _wait_for(lambda: server.started or not thread.is_alive())
            if not server.started:
                raise RuntimeError("the endpoint has not started")
            yield address(listening)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    if thread.is_alive():
        raise RuntimeError("the endpoint has not ended")


def _wait_for(holds, patience: float = PATIENCE) -> None:
    end = monotonic() + patience
    while not holds() and monotonic() < end:
        sleep(0.01)
