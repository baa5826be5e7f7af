"""The calculator: Python's arithmetic on fractions, refusals at once, and nothing that is ever run as code."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from time import process_time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lib import calculator, expression
from lib.calculator import Calculation, calculate, written
from lib.expression import BITS, HINTS, Token, tokens

OWN = Path(__file__).parent / "cases" / "calculator.jsonl"


@pytest.mark.parametrize("text, code", [
    ("", "empty"), (" \n", "empty"), ("một", "word"), ("٣", "unicode_digit"), ("−1", "operator"), ("（1）", "syntax"),
    ("👋", "syntax"), ("e\u0301", "word"), ("\ufeff1", "syntax"), ("1\x00", "syntax"), ("\ud800", "syntax"),
    ("\ufdd0", "syntax"),
])
def test_empty_and_odd_texts(text, code):
    found = calculate(text)
    assert (found.value, found.shown, found.refused) == (None, "", code) and found.hint


def test_a_sum_by_hand():
    """(12 + 30) * 7: the parentheses give 42, and 42 * 7 = 294."""
    assert calculate("(12 + 30) * 7") == Calculation(Fraction(294), "294")
    assert tokens("(1.5") == [Token("sign", "("), Token("number", "1.5"), Token("end", "")]


def test_every_code_has_a_case_and_a_hint_that_can_be_read():
    cases = [json.loads(line) for line in OWN.read_text(encoding="utf-8").splitlines()]
    assert {case["expected"].get("refused") for case in cases} - {None} == HINTS.keys()
    for case in cases:
        found = calculate(case.get("expression") or eval(case.get("expression_repr", "''")))
        assert (found.hint == "") == (found.refused is None) and "{" not in found.hint


@pytest.mark.parametrize("text, said", [
    ("12 apples", "'apples' is no number"), ("sqrt(2)", "'sqrt' cannot be called"), ("3 × 4", "'×' is no operator"),
    ("1 +", "its end is not expected"), ("2 3", "'3' is not expected"), ("٣", "'٣' is no digit"),
    ("50,1", "'50,1' is not read as one number"), ("{0}", "'{' is not expected"),
])
def test_a_hint_names_what_stands_there(text, said):
    assert said in calculate(text).hint


def test_what_hints_advise_is_read():
    advice = {code: re.findall(r"\d[\d.,]*(?: ?[*/%]+ ?\d[\d.,]*)*\d|\(12 \+ 30\) \* 7", hint)
              for code, hint in HINTS.items() if code in ("percent", "caret", "group_separator", "function", "empty")}
    advice["percent"].remove("17")  # of what is refused
    advice["percent"].remove("2450")
    for code, examples in advice.items():
        assert examples, code
        for example in examples:
            assert calculate(example.rstrip(",")).refused is None, (code, example)


@pytest.mark.parametrize("wrong", [None, 5, b"1", ["1"]])
def test_only_a_text_is_an_expression(wrong):
    with pytest.raises(TypeError, match="a text"):
        calculate(wrong)


def test_no_expression_is_run_as_code():
    for room in (calculator, expression):
        source = Path(room.__file__).read_text(encoding="utf-8")
        assert not re.search(r"\b(eval|exec|ast|literal_eval|__import__)\b|(?<!re\.)compile", source)


# --- Python's arithmetic ----------------------------------------------------

NUMBERS = st.integers(0, 99).map(str) | st.decimals(0, 99, places=2).map(str) | st.sampled_from(["1e2", "5.", ".5"])
SPACES = st.sampled_from(["", " ", "  "])


def powers(atom):
    """A base with up to two exponents, small enough for Python to compute at once."""
    first, second = st.sampled_from(["0", "1", "2", "3", "-1", "-2", "+3"]), st.sampled_from(["0", "1", "2"])
    return atom | st.tuples(atom, first).map("**".join) | st.tuples(atom, first, second).map("**".join)


def sums(atom):
    """Terms with signs of every kind between them, and perhaps before them."""
    term = st.tuples(st.sampled_from(["", "", "-", "+"]), powers(atom)).map("".join)
    sign = st.tuples(SPACES, st.sampled_from(["+", "-", "*", "/", "//"]), SPACES).map("".join) | st.just(" % ")
    more = st.lists(st.tuples(sign, term).map("".join), max_size=3).map("".join)
    return st.tuples(term, more).map("".join).map(lambda text: f"({text})")


EXPRESSIONS = st.recursive(NUMBERS, sums, max_leaves=12).map(lambda text: text.removeprefix("(").removesuffix(")")
                                                             if re.fullmatch(r"\([^()]*\)", text) else text)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_every_expression_is_worth_what_python_makes_of_it(text):
    assume(len(text) <= 200)
    found = calculate(text)
    assume(found.refused != "too_large")
    in_fractions = re.sub(r"[\d.]+(?:e\d+)?", lambda match: f"Fraction({match[0].rstrip('.')!r})", text)
    try:
        expected = Fraction(eval(in_fractions, {"Fraction": Fraction}))
    except ZeroDivisionError:
        assert found.refused == "zero_division"
    else:
        assert found.value == expected and found.exact


@settings(max_examples=200, deadline=None)
@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-10**20, max_value=10**20).map(
    Fraction))
def test_a_value_is_written_in_full_or_with_15_digits(value):
    text = written(value)
    if pow(10, BITS, value.denominator) == 0:
        assert Fraction(text) == value and "e" not in text and not re.search(r"\.0*$", text)
        assert calculate(text).value == value or len(text) > 200
    else:
        assert abs(Fraction(text) - value) <= abs(value) * Fraction(5, 10**15)
        assert len(re.sub(r"e.*|\D", "", text).lstrip("0")) <= 15 and not re.search(r"\.\d*0(e|$)|\.$", text)


@pytest.mark.parametrize("value, text", [
    (Fraction(0), "0"), (Fraction(-12), "-12"), (Fraction(1, 2), "0.5"), (Fraction(75, 19), "3.94736842105263"),
    (Fraction(-1, 3), "-0.333333333333333"), (Fraction(1, 3 * 10**9), "3.33333333333333e-10"),
    (Fraction(10**6), "1000000"), (Fraction(10**30 + 1), "1" + "0" * 29 + "1"),
    (Fraction(1, 10**12), "0." + "0" * 11 + "1"),
    (Fraction(10**15 - 1, 10**15) + Fraction(1, 3 * 10**17), "0.999999999999999"),
    (Fraction(3 * 10**16 - 1, 3 * 10**16), "1"),
])
def test_how_values_are_written(value, text):
    assert written(value) == text


@pytest.mark.parametrize("power", range(1, 40))
def test_roots_of_powers_are_exact(power):
    for base in (2, 3, 10, Fraction(2, 3)):
        found = calculate(f"({base})**{power}")
        assert calculate(f"(({base})**{power})**(1/{power})") == calculate(f"({base})") != found or power == 1
    assert not calculate(f"(3**{power} + 1)**(1/{power})").exact or power == 1


# --- refusals ---------------------------------------------------------------

HEAVY = ["9**9**9", "9**9**9**9", "(" * 300, "(" * 31, "2**-(10**9)", "10**400//3", "0.1**4000", "1e999999999",
         "1e-999999999", "1e" + "9" * 190, "0e" + "9" * 190, "3999999**999999", "99999**99999", "9**9**6", "-" * 200,
         "2**" * 66 + "2", "(1/3)**(10**1200)", "1**(10**1200)", "(10**1200)**(1/10**1200)", "2**(1/3**700)",
         "*".join(["9" * 19] * 10), "1<<100000000", "9" * 200, "9" * 10**7, "1 " * 10**6, "1.5e300**1e300",
         "(1,)*9**9"]


@pytest.mark.parametrize("text", HEAVY, ids=lambda text: text[:20])
def test_whatever_it_is_it_comes_at_once(text):
    start = process_time()
    found = calculate(text)
    assert process_time() - start < 0.5 and (found.refused is None) == bool(found.shown)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-*/%().,eE ^x=_√×٣²**//()", max_size=40) | st.text())
def test_any_text_has_a_value_or_a_code(text):
    found = calculate(text)
    assert (found.refused in HINTS) == (found.value is None) == (not found.shown) == bool(found.hint)
    assert calculate(text) == found


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-*/%().,e ^x!", max_size=30), st.sampled_from([" + 2^3", " ٣", " * 1/0 x("]))
def test_what_stands_right_of_a_fault_changes_nothing(text, more):
    code = calculate(text).refused
    assume(code not in (None, "syntax", "empty"))  # of an end that is missing nobody knows
    assert calculate(text + more).refused == code


@pytest.mark.parametrize("bits", [2, 3, 64, 4095, 4096])
def test_the_limit_of_bits_is_met_exactly(bits):
    whole = 2 ** (bits - 1)
    assert calculate(f"2**{bits - 1}").value == whole
    assert calculate(f"(2**{bits - 1} - 1) * 2 + 1").value == 2 * whole - 1
    assert calculate(f"1 / 2**{bits - 1}").value == Fraction(1, whole)
    assert (calculate(f"2**{bits - 1} * 2").refused == "too_large") == (bits == BITS)
    assert (calculate(f"1 / 2**{bits - 1} / 2").refused == "too_large") == (bits == BITS)
    assert (calculate(f"2**{bits}").refused == "too_large") == (bits == BITS)
