"""The endpoint's limits: what it binds to, how many wait, how long an answer may be and take.

The notes on how the endpoint is run quote these values, and a test holds the two together.
"""
from __future__ import annotations

HOST = "127.0.0.1"       # only this machine, unless told otherwise
PORT = 8000
WAITING = 8              # readers who wait for the model, one is served at a time; the next one is told 503
RETRY_AFTER = 10         # seconds, the header of a 503
MAX_BODY = 65_536        # bytes of a request
MAX_QUESTION = 2_000     # characters of a question; a longer one is told 413
MAX_TOKENS = 256         # of an answer
MAX_SECONDS = 60         # of an answer, from its first step on
PASSAGES = 3             # of the notes, given to the model with a question
PIECES = MAX_TOKENS      # of an answer, in the queue to its reader: a whole answer fits, so the model never waits
SEND_SECONDS = 30        # that a reader may take to accept one piece; after them it counts as gone
PING = 15                # seconds without an event after which a comment keeps the connection open
