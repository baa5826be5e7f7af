"""Text out of token ids as they come: a character may take several tokens, a stop string too."""
from __future__ import annotations

from collections.abc import Callable


class TextStream:
    """Text as ids come in: whole characters only, nothing that may still turn out to be a stop string."""

    def __init__(self, decode: Callable, stop: tuple[str, ...], on_token: Callable | None):
        self.decode, self.stop, self.on_token = decode, stop, on_token  # ids -> text; strings; text -> None
        self.text, self.sent = "", 0

    def update(self, ids: list[int]) -> bool:
        """Take all ids so far; True once a stop string has come, which then ends the text."""
        self.text = self.decode(ids)
        found = [place for place in map(self.text.find, self.stop) if place >= 0]
        self.text = self.text[:min(found)] if found else self.text
        self._send(len(self.text) if found else len(self.text) - self._held_back())
        return bool(found)

    def close(self) -> str:
        """Send what was held back; returns the whole text."""
        self._send(len(self.text))
        return self.text

    def _held_back(self) -> int:
        """Length of the tail that has to wait: half a character, or the beginning of a stop string."""
        half = len(self.text) - len(self.text.rstrip("\ufffd"))
        begun = [n for word in self.stop for n in range(1, len(word)) if self.text.endswith(word[:n])]
        return max([half, *begun])

    def _send(self, end: int) -> None:
        if self.on_token and end > self.sent:
            piece, self.sent = self.text[self.sent:end], end
            self.on_token(piece)
