"""The calculator: an expression that a model wrote becomes an exact number, or a code that says why it is refused.

Nothing is ever run as code: the tokens are read from left to right by rules of precedence and computed with
fractions. What could grow without bound is judged before it is computed.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from lib.expression import BITS, DEEPEST, HINTS, LONGEST, Token, tokens

DIGITS = 15  # significant ones of a result that does not terminate
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
              "//": operator.floordiv, "%": operator.mod}


@dataclass(frozen=True)
class Calculation:
    """What came of an expression: a value and how it is written, or the code of the refusal and a hint."""
    value: Fraction | None
    shown: str = ""             # all digits where they end, else 15 significant ones
    refused: str | None = None  # a code of HINTS
    hint: str = ""              # a sentence for the model
    exact: bool = True          # False: a root that is no fraction was computed in floating-point numbers


def calculate(expression: str) -> Calculation:
    """The value of an expression with + - * / // % ** and parentheses as in Python, or why it is refused.

    Limits: 200 characters, 30 levels of parentheses, 4,096 bits. Length is checked first, then the leftmost fault
    decides; a refusal comes at once. Raises TypeError for what is no text.
    """
    if not isinstance(expression, str):
        raise TypeError(f"an expression is a text, not {expression!r}")
    try:
        _check(len(expression) <= LONGEST, "too_long")
        _check(bool(expression.strip()), "empty")
        reader = _Reader(tokens(expression))
        value = reader.whole()
    except _Refused as refusal:
        return Calculation(None, "", refusal.code, HINTS[refusal.code].format(refusal.found))
    return Calculation(value, written(value, reader.exact), exact=reader.exact)


def written(value: Fraction, exact: bool = True) -> str:
    """All digits of a value if they end, else (or if it is not exact) 15 significant ones, rounded half to even."""
    if exact and pow(10, BITS, value.denominator) == 0:  # no prime but 2 and 5 divides the denominator
        return format(_quotient(value, 2 * BITS), "f")
    text, mark, power = format(_quotient(value, DIGITS), "g").partition("e")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + mark + power


def _quotient(value: Fraction, digits: int) -> Decimal:
    return Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator))


class _Refused(Exception):
    """Ends a calculation with a code; `found` is what stands at the fault."""

    def __init__(self, code: str, found: str = ""):
        self.code, self.found = code, found


def _check(holds: bool, code: str) -> None:
    if not holds:
        raise _Refused(code)


# --- reading ----------------------------------------------------------------

class _Reader:
    """Computes while it reads, so that the leftmost fault is the first that it meets."""

    def __init__(self, found: list[Token]):
        self.tokens, self.place, self.depth, self.exact = found, 0, 0, True

    def whole(self) -> Fraction:
        """The value of all tokens."""
        value = self._sum()
        return value if self.tokens[self.place].kind == "end" else self._refuse()

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._take("+", "-"):
            value = compute(sign, value, self._product())
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            value = compute(sign, value, self._signed())
        return value

    def _signed(self) -> Fraction:
        minus = 0
        while sign := self._take("+", "-"):
            minus += sign == "-"
        value = self._power()
        return -value if minus % 2 else value

    def _power(self) -> Fraction:
        """A power binds tighter than a sign before it, and its exponent is read first."""
        base = self._number()
        if not self._take("**"):
            return base
        exponent = self._signed()
        if exponent.denominator == 1:
            return whole_power(base, exponent.numerator)
        value, exact = fractional_power(base, exponent)
        self.exact = self.exact and exact
        return value

    def _number(self) -> Fraction:
        """A number, or a whole sum in parentheses."""
        kind, text = self.tokens[self.place]
        if kind == "number":
            self.place += 1
            return number(text)
        if not self._take("("):
            self._refuse()
        self.depth += 1
        _check(self.depth <= DEEPEST, "too_deep")
        value = self._sum()
        if not self._take(")"):
            self._refuse()
        self.depth -= 1
        return value

    def _take(self, *signs: str) -> str | None:
        """The next token's text, taken, if it is one of these signs."""
        kind, text = self.tokens[self.place]
        if kind != "sign" or text not in signs:
            return None
        self.place += 1
        return text

    def _refuse(self):
        """Refuse the next token, which is a fault or stands where it cannot."""
        kind, text = self.tokens[self.place]
        raise _Refused(kind if kind in HINTS else "percent" if text == "%" else "syntax",
                       repr(text) if text else "its end")


# --- computing --------------------------------------------------------------

def number(text: str) -> Fraction:
    """The value of a number such as 1,234.5e-6, judged by its exponent before it is computed."""
    digits, _, exponent = text.replace(",", "").lower().partition("e")
    whole, _, decimals = digits.partition(".")
    mantissa, power = int(whole + decimals), int(exponent or 0) - len(decimals)
    _check(not mantissa or abs(power) <= BITS, "too_large")
    return _bounded(mantissa * Fraction(10) ** power) if mantissa else Fraction(0)


def compute(sign: str, left: Fraction, right: Fraction) -> Fraction:
    """One step; two numbers within the limit of bits make at most about twice as many, which costs nothing."""
    _check(bool(right) or sign not in ("/", "//", "%"), "zero_division")
    return _bounded(Fraction(OPERATIONS[sign](left, right)))


def whole_power(base: Fraction, exponent: int) -> Fraction:
    """A power with a whole exponent, judged before it is computed: n bits to the k have more than (n - 1) k bits."""
    _check(bool(base) or exponent >= 0, "zero_division")
    bits = max(abs(base.numerator), base.denominator).bit_length()
    _check((bits - 1) * abs(exponent) < BITS, "too_large")
    return _bounded(base ** exponent)


def fractional_power(base: Fraction, exponent: Fraction) -> tuple[Fraction, bool]:
    """(value, whether it is exact): the root is a fraction, or else floating-point numbers come closest."""
    _check(base >= 0, "not_real")
    degree = exponent.denominator
    root = Fraction(_root(base.numerator, degree), _root(base.denominator, degree))
    if whole_power(root, degree) == base:
        return whole_power(root, exponent.numerator), True
    try:
        value = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        value = 0.0
    _check(value > 0, "not_finite")
    return Fraction(value), False


def _root(n: int, degree: int) -> int:
    """The largest whole number whose power of this degree is at most n, found bit by bit."""
    root = 0
    for bit in reversed(range(n.bit_length() // degree + 1)):
        root += (root + (1 << bit)) ** degree <= n and 1 << bit
    return root


def _bounded(value: Fraction) -> Fraction:
    _check(max(abs(value.numerator), value.denominator).bit_length() <= BITS, "too_large")
    return value
