"""The endpoint's limits, and the command that starts it: what it binds to, how many wait, how long an answer may be.

The notes on how the endpoint is run quote these values, and a test holds the two together.
"""
from __future__ import annotations

import argparse

HOST = "127.0.0.1"       # only this machine, unless told otherwise
PORT = 8000
WAITING = 8              # readers who wait for the model, one is served at a time; the next one is told 503
RETRY_AFTER = 10         # seconds, the header of a 503
MAX_BODY = 65_536        # bytes of a request
MAX_QUESTION = 2_000     # characters of a question; a longer one is told 413
MAX_PROMPT = 4_096       # tokens of a prompt; a longer one is told 413
MAX_TOKENS = 256         # of an answer
MAX_SECONDS = 60         # of an answer, from its first step on
TURNS = 5                # of an agent, its answer included
PASSAGES = 3             # of the notes, given to the model with a question
PIECES = MAX_TOKENS      # of an answer, in the queue to its reader: a whole answer fits, so the model never waits
READ_SECONDS = 10        # that a request may take to begin, and then its body to come in; a slow body is told 408
SEND_SECONDS = 30        # that a reader may take to accept what was sent; after them it counts as gone
PING = 15                # seconds without an event after which a comment keeps the connection open
CONNECTIONS = 256        # open at once, idle ones included


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib serve`: take the port, load the model, answer until Ctrl-C."""
    from lib import models
    from lib.machinery import fetch, preflight
    from lib.machinery.serving import server
    with server.listen(arguments.host, PORT if arguments.port is None else arguments.port) as listening:
        fetch.ensure([preflight.model_in_use()])
        print("Loading the model ...", flush=True)
        endpoint = server.Server(models.load(), listening, names=arguments.name)
        if server.is_open(listening):
            print("Everyone who can reach this machine can ask, without a password.", flush=True)
        print(f"{endpoint.desk.model.name} answers at {server.address(listening)} (Ctrl-C ends it).", flush=True)
        try:
            endpoint.serve_here()
        except KeyboardInterrupt:
            return 0
        finally:
            print("The endpoint has ended.", flush=True)
    return 0
