"""An arithmetic expression cut into tokens: numbers, the signs that are offered, and the first fault."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

LONGEST, DEEPEST, BITS = 200, 30, 4096  # characters; levels of parentheses; of numerator and denominator at each step
HINTS = {  # what is refused, and a sentence for the model
    "percent": "% is no percent sign here: 17% of 2450 is 2450 * 17 / 100, and 8 % 3 is the remainder",
    "caret": "^ is not read; a power is written 2**10",
    "group_separator": "{} is not read as one number; write 1234567.5 or 1,234,567.5",
    "word": "{} is no number; write numbers, + - * / // % ** and parentheses only",
    "function": "{} cannot be called, there are no functions; a square root is written 2**0.5",
    "unicode_digit": "{} is no digit from 0 to 9; write those",
    "too_large": f"a number would have more than {BITS:,} bits, so it was not computed",
    "too_deep": f"there are more than {DEEPEST} levels of parentheses; write a simpler expression",
    "too_long": f"the expression has more than {LONGEST} characters; compute it in parts",
    "not_real": "a negative number to the power of a fraction is no real number",
    "not_finite": "the result is infinite, or out of the range of floating-point numbers",
    "zero_division": "a number is divided by 0",
    "empty": "there is nothing to compute; write an expression such as (12 + 30) * 7",
    "operator": "{} is no operator here; the operators are + - * / // % **",
    "syntax": "this is no whole expression: {} is not expected there",
}
_EXPONENT = r"(?:[eE][-+]?[0-9]+)?"
_NUMBER = re.compile(rf"(?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]*)?{_EXPONENT}"
                     rf"|\.[0-9]+{_EXPONENT}")
_GROUPS = re.compile(r"[0-9]{1,3}(?:(?:\.[0-9]{3}){2,}|(?: [0-9]{3})+)(?![0-9])")  # 1.234.567 and 1 234
_MARK = re.compile("[,_'\u2019\u00a0\u2009\u202f](?=[0-9])")  # directly after a digit
_SIGN = re.compile(r"\*\*|//|[-+*/()]|%(?=\s*(?:\(|\.?[0-9]))|(?<=\s)%(?=\s*[-+](?:\(|\.?[0-9]))")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FAULTS = {"^": "caret", "＾": "caret", "%": "percent", "％": "percent", "٪": "percent", "∞": "not_finite",
           **dict.fromkeys("&!@·•‐‑‒–—―＊／", "operator")}


class Token(NamedTuple):
    """A piece of an expression: number, sign, end, or a fault, whose kind is then its code in HINTS; and its text."""
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    """The tokens of an expression. The first fault is the last token: nothing is read after it.

    A number has ASCII digits, commas only between groups of three, at most one dot, and an optional exponent. % is
    an operator where a number or parenthesis follows, or its sign if written as in `8 % -3`, and else a percent sign.
    """
    return list(_walk(text))


def _walk(text: str) -> Iterator[Token]:
    place, kind = 0, ""
    while kind != "end" and kind not in HINTS:
        place += len(text[place:]) - len(text[place:].lstrip())
        kind, length = _next(text, place)
        yield Token(kind, text[place:place + length])
        place += length


def _next(text: str, at: int) -> tuple[str, int]:
    """(kind, length) of the token that begins there."""
    if at == len(text):
        return "end", 0
    if groups := _GROUPS.match(text, at):
        return "group_separator", len(groups[0])
    if number := _NUMBER.match(text, at):
        mark = _MARK.match(text, number.end())
        return ("group_separator", len(number[0]) + 2) if mark else ("number", len(number[0]))
    if sign := _SIGN.match(text, at):
        return "sign", len(sign[0])
    return _fault(text, at)


def _fault(text: str, at: int) -> tuple[str, int]:
    """(code, length) of what is neither a number nor a sign that is offered."""
    category, name = unicodedata.category(text[at]), _NAME.match(text, at)
    if category.startswith("N"):  # digits of other scripts, and the like of ² and ½
        return "unicode_digit", 1
    if name:
        return "function" if text.startswith("(", name.end()) else "word", len(name[0])
    if text[at] == "," and _MARK.match(text, at):
        return "group_separator", 2  # ,5
    return _FAULTS.get(text[at], "operator" if category == "Sm" else "syntax"), 1
