"""A scripted model that gives its reply piece by piece and can be stopped in between, as the real one can."""

from __future__ import annotations

import threading
from time import sleep

from lib.generation import Generation
from lib.tests.scripted import ScriptedModel


class PacedModel(ScriptedModel):
    """Its replies go round for ever; a reply is a text, cut at blanks, or a number: that many tokens.

    `computed` counts pieces, `most_at_once` its callers.
    """

    def __init__(self, replies: list, pause: float = 0.0, **options):
        super().__init__(replies, **options)
        self.pause, self.computed = pause, 0
        self.at_once = self.most_at_once = 0
        self.begun = threading.Event()

    def generate(self, ids, max_new_tokens=256, stop=(), on_token=None, cancel=None) -> Generation:
        self.check(ids, max_new_tokens, stop)
        reply = self.replies[len(self.prompts) % len(self.replies)]
        self.prompts.append(list(ids))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._paced(reply, len(ids), max_new_tokens, on_token, cancel)
        finally:
            self.at_once -= 1

    def _paced(self, reply, read: int, limit: int, on_token, cancel) -> Generation:
        if isinstance(reply, Exception):
            raise reply
        parts = [f"t{number} " for number in range(reply)] if isinstance(reply, int) else pieces(reply)
        given, reason = [], "cancelled"
        for part in parts[:limit]:
            if cancel and cancel.is_set():
                break
            self.begun.set()
            sleep(self.pause)  # a pass of the network
            self.computed += 1
            given.append(part)
            if on_token:
                on_token(part)
        else:
            reason = "length" if len(parts) > limit else "eos"
        return Generation("".join(given), list(range(len(given))), read, 0, 0.0, 0.0, [1.0] * len(given), reason)


def pieces(text: str) -> list[str]:
    """A text cut after each blank."""
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + words[-1:]
