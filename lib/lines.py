"""The line protocol: a reply is one line, `SEARCH: …`, `CALC: …` or `ANSWER: …`, and results come as `RESULT: …`.

It asks less of a model than JSON in tags, and the same loop runs it: only what a turn looks like is different.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lib.agent import Protocol
from lib.calculator import calculate
from lib.checks import check
from lib.replies import SENTENCES, Finding, Reply
from lib.tools import Result, ToolError, by_name, tool

TOOLS = {"SEARCH": ("search", "query"), "CALC": ("calc", "expression")}  # word -> tool and its argument
ACTION = re.compile(r"^[ \t]*(SEARCH|CALC|ANSWER):([^\n]*)", re.M)
RESULT = re.compile(r"^[ \t]*RESULT:", re.M)
CLAIMED = re.compile(r"([-+]?[0-9.,]*[0-9])[.,]?(?:\s*[^\W\d].*)?", re.S)  # a number, and words after it
CLAIM = re.compile(r"(?<![=<>!:])=(?![=>])")  # an = sign that is no part of == <= >= != := =>
INVENTED = "results come from the tools: what you wrote from RESULT: on was removed"
NO_ACTION = ("No line of your reply starts with SEARCH:, CALC: or ANSWER: and has something after it. "
             "Reply with one such line.")
NOTHING_FOUND = "No passage was found. Search with other words."

SYSTEM = """You answer questions about a set of notes. You have a search over the notes and a calculator. \
Each reply is a single line that begins with one of these words:

SEARCH: words to look for in the notes
CALC: numbers and signs to compute
ANSWER: your answer to the question, as short as possible

After a SEARCH or a CALC line you are given what came out of it, in a message that begins with RESULT:. \
Then reply with the next line. \
When the notes do not say what is asked, reply ANSWER: I do not know."""


def _says(role: str, content: str, **writer: str) -> dict:
    return {"role": role, "content": content, **writer}


WORKED = (  # two exchanges in front of the question; neither is about the notes
    _says("user", "A crate holds 24 jars. How many jars are in 13 crates?"),
    _says("assistant", "CALC: 24 * 13"),
    _says("user", "RESULT: 312", writer="tool"),
    _says("assistant", "ANSWER: 312"),
    _says("user", "On which floor is the reading room of the library?"),
    _says("assistant", "SEARCH: reading room floor"),
    _says("user", "RESULT: The library has 3 floors. The reading room lies on floor 2, beside the map room, and has "
                  "40 seats.", writer="tool"),
    _says("assistant", "ANSWER: floor 2"),
)


# --- a reply ----------------------------------------------------------------

@dataclass(frozen=True)
class LineReply(Reply):
    """A reply of lines: `given` is what stands after ANSWER:, if that is its action."""
    given: str = ""
    ends: bool = True  # whether the action's line ended before a cut

    @property
    def answer(self) -> str | None:
        """The answer; None if the action is another one, or nothing stands there."""
        return self.given or None

    @property
    def is_whole(self) -> bool:
        """Whether the answer's line ended before a cut at the token limit."""
        return self.ends


def read_lines(text: str, tools: Iterable, accepts_claim: bool = True, truncated: bool = False) -> LineReply:
    """What a reply asks for: the first line that starts with SEARCH:, CALC: or ANSWER:, in capitals and unadorned.

    Blanks may stand before the word, and any text before the line; later lines are not acted on. Text from a line
    that starts with RESULT: on is cut. A line that `truncated` cuts off is not run; an empty one is no action.
    """
    cut = RESULT.search(text)
    kept = text[:cut.start()].rstrip() if cut else text
    findings = []
    if cut and text[cut.end():].strip():
        findings.append(Finding(cut.start(), len(text), ("fabricated_result",), INVENTED))
    action = ACTION.search(kept)
    if action is None:
        return LineReply(kept, tuple(findings), kept)
    word, rest = action[1], action[2].strip()
    ends = not truncated or "\n" in text[action.end():]
    if word != "ANSWER":
        findings.insert(0, _finding(action, rest, tools, accepts_claim and word == "CALC", ends))
    given = rest if word == "ANSWER" and ends else ""
    return LineReply(kept, tuple(findings), kept[:action.start()].strip(), given, ends)


def _finding(action: re.Match, rest: str, tools: Iterable, accepts_claim: bool, ends: bool) -> Finding:
    """The verdict on a SEARCH or CALC line."""
    name, argument = TOOLS[action[1]]
    value, claim = split_claim(rest) if accepts_claim else (rest, None)
    codes, message, call = check({"name": name, "arguments": {argument: value} if value else {}}, by_name(tools))
    if not ends:
        codes, message, call = ("truncated",), SENTENCES["truncated"], None
    elif not value:
        codes, message, call = ("missing_argument",), f"{action[1]}: needs something on the same line", None
    return Finding(action.start(), action.end(), codes, message, (call,) if call else (), claim)


def split_claim(text: str) -> tuple[str, str | None]:
    """(expression, what the model claims it is): the text before and after the first = sign; None without one."""
    sign = CLAIM.search(text)
    return (text[:sign.start()].strip(), text[sign.end():].strip()) if sign else (text, None)


def claim_holds(expression: str, claim: str) -> bool | None:
    """Whether a claim is the expression's value, or that rounded to the decimals it shows; None if one is no number.

    Of `6 + 4 = 10 jars` after an = sign, 10 is the claim.
    """
    last = CLAIM.split(claim)[-1].strip()
    last = number[1] if (number := CLAIMED.fullmatch(last)) else last
    true, claimed = calculate(expression).value, calculate(last).value
    if true is None or claimed is None:
        return None
    decimals = re.fullmatch(r"[-+]?[0-9,]*\.([0-9]+)", last)
    return claimed == true or bool(decimals) and 2 * abs(claimed - true) * 10 ** len(decimals[1]) <= 1


# --- the protocol -----------------------------------------------------------

@dataclass(frozen=True)
class LineProtocol(Protocol):
    """Turns of lines: the tools are `search(query)` and `calc(expression)`, described in the system message."""
    accepts_claim: bool = True     # whether text after = in CALC is kept as the model's claim; else it is computed
    format_limit: int | None = 3

    @property
    def schemas(self) -> None:
        """Nothing for the chat template to describe."""
        return None

    def read(self, text: str, truncated: bool) -> LineReply:
        """What a reply asks for."""
        return read_lines(text, self.tools, self.accepts_claim, truncated)

    def message(self, result: Result) -> dict:
        """The message that brings a result to the model: a turn of the user, written by a tool."""
        return _says("user", f"RESULT: {result.text}", writer="tool")

    def reminder(self, reply: Reply) -> str:
        """What the model is told of a reply without an action."""
        return f"{NO_ACTION} And {INVENTED}." if "fabricated_result" in reply.codes else NO_ACTION

    def settings(self) -> dict:
        """Everything that decides how an episode goes, for its record."""
        own = {"name": "lines", "accepts_claim": self.accepts_claim}
        return {name: value for name, value in super().settings().items() if name != "policy"} | own


@tool
def calc(expression: str):
    """Compute an arithmetic expression exactly."""
    found = calculate(expression)
    if found.refused:
        raise ToolError(found.hint, codes=(found.refused,))
    return found.shown


def make_lines(search: Callable[[str, int], Iterable[str]], version: int = 2, k: int = 1) -> LineProtocol:
    """The line protocol over `search(query, k)`, which gives the texts of the best k passages, best first.

    Version 1 has the system message only, and neither reads claims nor notices repeats; version 2 has two worked
    exchanges and does both. ValueError for another version or k below 1.
    """
    if version not in (1, 2) or k < 1:
        raise ValueError(f"there are the versions 1 and 2, and k is at least 1: not version {version!r}, k {k!r}")

    def find(query: str):
        """The passages of the notes that answer a query best."""
        return "\n\n".join(search(query, k)) or NOTHING_FOUND

    find.__name__ = "search"
    later = version == 2
    return LineProtocol((tool(find), calc), SYSTEM, WORKED if later else (), repeat_rule=later, accepts_claim=later)
