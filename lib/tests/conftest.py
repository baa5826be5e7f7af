"""What holds for every test."""

from __future__ import annotations

import signal

from lib.machinery import orphan

# A shell starts what it puts in the background with SIGINT ignored, and processes hand that on to their children:
# tests that interrupt something would then wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

orphan.watch()  # who has started the tests may be killed
