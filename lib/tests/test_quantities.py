"""Numbers in sentences: how each language writes them, what stands around them, and what is no number."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lib.quantities import UNITS, numeral, quantities, tidy, unit_named


def read(text: str, language: str = "en") -> list:
    return [each.value for each in quantities(tidy(text), language)]


@pytest.mark.parametrize("text, language, value", [
    ("0", "en", "0"), ("12", "vi", "12"), ("1,234", "en", "1234"), ("1.234", "en", "1.234"), ("1,234", "vi", "1.234"),
    ("1.234", "vi", "1234"), ("1,234.5", "vi", "1234.5"), ("1.234,5", "en", "1234.5"), ("7,006,652", "vi", "7006652"),
    ("0.690", "vi", "0.69"), ("0,690", "en", "0.69"), (".5", "en", "0.5"), ("12'345", "en", "12345"),
    ("1_000", "en", "1000"), ("007", "en", "7"),
])
def test_numerals(text, language, value):
    assert numeral(text, language) == Fraction(value)


@pytest.mark.parametrize("text", ["", ".", ",", "1.2.3", "1,23,456", "1,234,56", "1,234.5,6", "12a", "-1", "1_00",
                                  "9" * 401])
def test_what_is_no_numeral(text):
    assert numeral(text, "en") is None and numeral(text, "vi") is None


@pytest.mark.parametrize("text, values", [
    ("", []), ("không có số", []), ("UTF-8, Qwen2.5-Coder-0.5B, e5-small and BM25", []), ("10-12", [10, 12]),
    ("-5", [-5]), ("x = −5", [-5]), ("10 -5", [10, 5]), ("âm 5", [-5]), ("-$5", [-5]), ("1/2", [Fraction(1, 2)]),
    ("2½", [Fraction(5, 2)]), ("1/0", [None]), ("2 × 10³", [2000]), ("10^6", [10**6]), ("5²", [None]), ("km²", []),
    ("1,2,3", [1, 2, 3]), ("2024-05-12", [None]), ("12:30", [None]),
    ("1.2.3", [None]), ("494 million", [494 * 10**6]),
    ("1.5B", [15 * 10**8]), ("3 k", [3]), ("１２ and ١٢", [12, 12]), ("7\u00a0006\u00a0652", [7006652]),
    ("1e999", [None]),
    ("1e-3", [Fraction(1, 1000)]), ("~~12~~ 13", [13]), ("$x = 12$", [12]), ("0x1F", [None]),
])
def test_values_in_a_text(text, values):
    assert read(text) == values


@pytest.mark.parametrize("text, unit", [
    ("12", None), ("12 tokens", "token"), ("12 new prompt tokens", "token"), ("12MB", "megabyte"), ("$12", "dollar"),
    ("12 €", "euro"), ("60%", "percent"), ("60 phần trăm", "percent"), ("12 giây", "second"), ("12 in total", None),
    ("12 a day", None), ("12, tokens", None), ("12 clips", "clip"), ("12 previous", None), ("12 GB/s", "gigabyte"),
    ("6 x 8", None), ("6x", "time"), ("20 °C", "celsius"), ("EUR 5", "euro"), ("5 triệu đồng", "dong"),
])
def test_units(text, unit):
    assert quantities(tidy(text))[0].unit == unit


@pytest.mark.parametrize("text", ["The 3rd", "thứ 3", "1. Caddy", "as [1] says", "[1, 2]", "v 1.2.3", "12/05/2024"])
def test_labels(text):
    assert all(each.label for each in quantities(tidy(text))) and quantities(tidy(text))


@pytest.mark.parametrize("one, other", [
    ("MB", "megabytes"), ("%", "percent"), ("s", "giây"), ("tokens", "token"), ("queries", "query"), ("boxes", "box"),
    ("tokens/s", "tokens per second"), ("Parameters", "tham số"),
])
def test_units_with_one_name(one, other):
    assert unit_named(one) == unit_named(other)


def test_every_unit_has_one_name_and_keeps_it():
    assert all(unit_named(name) == unit for name, unit in UNITS.items())
    assert all(unit_named(unit) == unit for unit in UNITS.values())


def test_places_are_those_of_the_tidy_text():
    text = tidy("**From** `12` to \\boxed{345}")
    assert [text[each.start:each.end] for each in quantities(text)] == ["12", "345"]
