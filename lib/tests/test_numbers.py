"""Numbers in digits and in words: their values, and what is no number."""
from decimal import Decimal

import pytest

from lib.machinery.structure.numbers import letters, numbers


def found(text: str) -> list[Decimal]:
    return [number.value for number in numbers(letters(text))]


@pytest.mark.parametrize("text, values", [
    ("", []), ("no number", []), ("32", [32]), ("1,062 and 3.5", [1062, Decimal("3.5")]), ("0.50", [Decimal("0.5")]),
    ("1e-3", [Decimal("0.001")]), ("3–5", [3, 5]), ("3-5", [3, 5]), ("32-token", [32]), ("43k", [43000]),
    ("2M rows", [2000000]), ("2 million", [2000000]), ("3 hundred", [300]), ("43 000", [43000]),
    ("[32, 1, 1]", [32, 1, 1]),
    ("1\u202f062", [1062]),
    ("1’062", [1062]), ("32.000", [32000]), ("0.000", [0]), ("4\u200b3", [43]), ("４３", [43]),
    ("٤٣", [43]), ("10³", [10, 3]), ("½", [1, 2]), ("-3 points, −4", [-3, -4]), ("a - 3", [3]),
    ("BM25, Qwen2.5-0.5B, top-1, utf-8 and k1", [])])
def test_in_digits(text, values):
    assert found(text) == values


@pytest.mark.parametrize("text, values", [
    ("three of six", [3, 6]), ("None of the five", [0, 5]), ("twenty-four", [24]), ("ninety nine", [99]),
    ("a dozen", [12]), ("half a dozen", [6]), ("a hundred and six", [106]), ("two thousand three hundred", [2300]),
    ("a thousand tokens", [1000]), ("a three-turn episode", [3]), ("tenfold", [10]), ("threefold", [3]),
    ("someone, often, weight, tens and nonetheless", [])])
def test_in_words(text, values):
    assert found(text) == values


def test_places_and_writing_are_kept():
    first, second = numbers("It took 1,062 or three.")
    assert (first.start, first.end, first.in_words) == (8, 13, False)
    assert (second.start, second.end, second.in_words) == (17, 22, True)


def test_long_texts_take_no_time():
    assert found("x" * 300_000) == []
    assert len(found("two " * 20_000)) == 20_000
