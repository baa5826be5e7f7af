"""Claims: which numbers beside an answer are references, totals and repetitions; the cases test the rest."""

from __future__ import annotations

import pytest

from lib.claims import asides, claimed, parts


def aside(line: str, answer: str, question: str = "", language: str = "en", unit: str | None = None) -> list[str]:
    """The numbers beside `answer` that are no second one, as they are written."""
    named = claimed(line, language)
    right = {each for each in named if line[each.start:each.end] == answer}
    assert right, f"no {answer} in {line!r}"
    found = asides(line, named, right, unit, question, language)
    return [line[each.start:each.end] for each in named if each in found]


@pytest.mark.parametrize("text, numbers", [
    ("as passage 3 says", ["3"]), ("in sections 4.1, 4.2 and 5", ["4.1", "4.2", "5"]), ("see Step #3", ["3"]),
    ("notes 2–4", ["2", "4"]), ("table (2)", ["2"]), ("the notes (2).", ["2"]), ("theo Đoạn số 2", ["2"]),
    ("các bước 1 và 2", ["1", "2"]), ("in passage 3, 40 tokens", ["3"]),
    ("in passages 3 and 4, 5 of them", ["3", "4"]),
    ("per page 16", []), ("số trang 30", []), ("mỗi dòng 80", []), ("pages 30", []), ("a step 5 ms", []),
    ("figure 0.42", []), ("page 1,485", []), ("in table 12a", []), ("the postpassage 3", []), ("tokens (12)", []),
    ("tokens (3 of them)", []), ("number 3", []),
])
def test_references(text, numbers):
    assert aside(f"999 is it: {text}", "999") == numbers


@pytest.mark.parametrize("text, numbers", [
    ("7 of 12", ["12"]), ("7 tokens out of all 12 tokens", ["12"]), ("7 trong tổng số 12", ["12"]),
    ("7 trên 12", ["12"]), ("seven of twelve", ["twelve"]), ("7 of 7 and 8", ["7"]), ("7 tokens of 12 layers", []),
    ("7 of 6", []), ("7 and some of 12", []), ("7 in 12", []), ("7, of which 3", []),
])
def test_totals(text, numbers):
    assert aside(text, "seven" if "seven" in text else "7")[-1:] == numbers


def test_a_part_is_no_percentage():
    assert aside("7 of 12", "7", unit="percent") == [] and aside("7 of 12", "7", unit="token") == ["12"]


@pytest.mark.parametrize("text, numbers", [
    ("7 for 10 layers", ["10"]), ("7 for 10", []), ("do 10: 7", ["10"]), ("It is 10. It is 7", []),
    ("7 for 10 tokens", []), ("7 for 11 layers", []),
    ("10 layers, 11 heads: 7", ["10"]), ("7 or 10", []), ("7 or perhaps 10 layers", []), ("7 to 10", []),
    ("10-7", []), ("10, 7", []), ("7; 10", []), ("$7 or $10", []), ("7 tokens or 10 layers", ["10"]), ("7 (10)", []),
    ("7 layers or 10 layers", []), ("10 layers and 10 layers make 7", ["10", "10"]),
    ("7? No, 10", []),
])
def test_what_repeats_a_number_of_the_question(text, numbers):
    assert aside(text, "7", "What do 10 layers make?") == numbers


@pytest.mark.parametrize("line, question, language, read", [
    ("It is 7/12.", "How many of the 12?", "en", "It is 7 of 12."),
    ("7/1.063", "Mấy trong số 1.063?", "vi", "7 of 1.063"),
    ("7/1,063", "How many of its 1,063 tokens?", "en", "7 of 1,063"), ("7/12", "Which is 12?", "en", "7/12"),
    ("7/13", "How many of the 12?", "en", "7/13"), ("7/12/2024", "How many of 12?", "en", "7/12/2024"),
    ("1.5/12", "How many of 12?", "en", "1.5/12"), ("7/12.5", "How many of 12?", "en", "7/12.5"),
    ("7/12", "", "en", "7/12"), ("7/12", "What is the mean of 12?", "en", "7/12"),
])
def test_a_fraction_reads_as_a_part_where_the_question_asks_for_one(line, question, language, read):
    assert parts(line, question, language) == read
