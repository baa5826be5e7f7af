"""What long work shows: steps with their seconds, one moving line in a terminal, a line now and then in a log."""
from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO


class Progress:
    """Shows one step after another on `stream`; in a log it speaks at most every `every` seconds."""

    def __init__(self, stream: TextIO | None = None, every: float = 15.0):
        self.stream = stream or sys.stdout
        self.terminal = self.stream.isatty()
        self.every = every
        self.title = ""
        self.begun = self.spoken = time.monotonic()

    def step(self, title: str) -> None:
        """Begin a step."""
        self.title, self.begun, self.spoken = title, time.monotonic(), time.monotonic()
        self._show("") if self.terminal else self._line(f"{title} ...")

    def tell(self, state: str) -> None:
        """Say how far the step is, as often as the stream can bear."""
        now = time.monotonic()
        if now - self.spoken < (0.2 if self.terminal else self.every):
            return
        self.spoken = now
        self._show(state) if self.terminal else self._line(f"    {state}, {now - self.begun:.0f} s")

    def done(self, what: str = "done") -> None:
        """End the step with the seconds it took."""
        self.clear()
        self._line(f"{self.title}: {what}, {time.monotonic() - self.begun:.0f} s")

    def note(self, sentence: str) -> None:
        """A sentence of its own, above the moving line."""
        self.clear()
        self._line(sentence)

    def clear(self) -> None:
        """Take the moving line away."""
        if self.terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _show(self, state: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        text = f"{self.title}  {state}  {time.monotonic() - self.begun:.0f} s"
        self.stream.write("\r\x1b[K" + text[:width])
        self.stream.flush()

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()
