"""Text that may still become a tool call is held back, so that a reader sees the answer and never half a call."""
from __future__ import annotations

import re
from collections.abc import Callable

from lib.reader import FENCES, MARK

BARE = re.compile(r"[\[\s]*(?:\{|$)|(?:j|js|jso|t|to|too|tool|tool_\w{0,4}|(?:json|tool_call)\s*)$")
_WORD = "tool_call>"
_BEGUN = "|".join(_WORD[:length] for length in range(len(_WORD), 0, -1))
MAY_BE_CALL = re.compile(
    MARK.pattern                                        # a tag of ours, of thinking or of an invented result
    + r"|<$|</[^<>]{0,40}$"                             # the beginning of any tag
    + r"|<[^<>\s/][^<>]{0,40}(?:$|>\s*(?:$|[\[{]))"     # another tag, with JSON after it or nothing yet
    + r"|<function=|<invoke name=|<tool_call\s|<[|\uff5c]"
    + r"|\[[A-Z_]{0,10}$|\[TOOL_CALLS?\]\s*(?:$|[\[{])"
    + rf"|(?<![\w/<])(?:{_WORD}\s*(?:$|[\[{{])|(?:{_BEGUN})$)")


def certain(text: str) -> int:
    """How many characters of a reply, read so far, are an answer's whatever follows; white space at the end waits."""
    if BARE.match(text, FENCES.match(text).end()):  # the whole reply may be a call in bare JSON
        return 0
    mark = MAY_BE_CALL.search(text)
    return len(text[:mark.start() if mark else None].rstrip())


class Held:
    """One reply on its way to a reader; `sent` is what the reader has of it."""

    def __init__(self, send: Callable[[str], None]):
        self.send, self.text, self.sent = send, "", ""

    def add(self, piece: str) -> None:
        """Take a piece of the reply, and send what is certain."""
        self.text += piece
        lead = len(self.text) - len(self.text.lstrip())
        self._send(self.text[lead:certain(self.text)])

    def close(self, answer: str) -> str:
        """Send the rest of `answer`; what had been sent and is no beginning of it comes back, to be taken back."""
        wrong, self.sent = ("", self.sent) if answer.startswith(self.sent) else (self.sent, "")
        if not wrong:
            self._send(answer)
        return wrong

    def _send(self, text: str) -> None:
        """Send what `text`, a beginning of the reply, has beyond what has been sent."""
        if len(text) > len(self.sent):
            self.send(text[len(self.sent):])
            self.sent = text
