"""What a reply of a model holds: candidate calls with their verdicts, and what is left as an answer."""
from __future__ import annotations

from dataclasses import dataclass

OPEN, CLOSE, RESPONSE = "<tool_call>", "</tool_call>", "<tool_response>"
SENTENCES = {
    "truncated": "the reply was cut at the token limit inside a call; nothing of it was run",
    "wrong_tag": f"a call must stand between {OPEN} and {CLOSE}; nothing was run",
    "bare_json": f"a call must stand between {OPEN} and {CLOSE}, not alone; nothing was run",
    "fenced_json": f"a call must stand between {OPEN} and {CLOSE}, not in a code fence; nothing was run",
    "call_in_thinking": "a call inside the thinking part is not run",
    "fabricated_result": "results come from the tools: what you wrote from <tool_response> on was removed",
    "bad_json": "what stands there is no valid JSON; write one object with name and arguments",
    "non_finite": "NaN, Infinity and numbers too large to be kept are not allowed in a call",
    "duplicate_key": "a key is given twice",
}


@dataclass(frozen=True)
class Call:
    """A tool's name and the arguments the model gives it."""
    name: str
    arguments: dict


@dataclass(frozen=True)
class Finding:
    """One judged stretch of a reply, from character `start` to `end`; its calls run only if `message` is empty."""
    start: int
    end: int
    codes: tuple[str, ...]  # none: a call without fault
    message: str            # why nothing runs, for the model to read
    calls: tuple[Call, ...] = ()
    claim: str | None = None  # the result that the model wrote beside its call: kept, never used


@dataclass(frozen=True)
class Reply:
    """What a reply holds: its text (up to an invented result), the findings in order, and the words around them."""
    text: str
    findings: tuple[Finding, ...]
    prose: str  # the text outside calls and thinking

    @property
    def calls(self) -> list[Call]:
        """The calls that may run, in order."""
        return [call for finding in self.findings if not finding.message for call in finding.calls]

    @property
    def codes(self) -> list[str]:
        """Every code of the reply once, in order."""
        return list(dict.fromkeys(code for finding in self.findings for code in finding.codes))

    @property
    def candidates(self) -> list[Finding]:
        """The findings that are or were meant as calls."""
        return [finding for finding in self.findings if is_candidate(finding)]

    @property
    def is_answer(self) -> bool:
        """Whether nothing in the reply is meant as a call."""
        return not self.candidates

    @property
    def answer(self) -> str | None:
        """The words that answer the question; None where something was meant as a call, invented or empty."""
        invented = "fabricated_result" in self.codes
        return self.prose or None if self.is_answer and not invented else None

    @property
    def is_whole(self) -> bool:
        """Whether the answer ended before a cut at the token limit: of free text nobody knows."""
        return False


def is_candidate(finding: Finding) -> bool:
    """Whether a finding is or was meant as a call: thinking and invented results are not."""
    return not {"call_in_thinking", "fabricated_result"} & {*finding.codes}
