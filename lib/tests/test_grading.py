"""The grader, which the case files test too; intervals and the paired test against their formulas."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction
from math import comb, sqrt

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from lib.evaluations import load_questions
from lib.grader_trial import localised
from lib.grading import VERDICTS, Verdict, grade, is_right, mcnemar, smallest_difference, wilson
from lib.quantities import quantities, tidy

Z = 1.959963984540054


def given(*strategies):
    """Hypothesis's own, with the same examples each time and no limit of time for one."""
    return lambda test: settings(deadline=None, derandomize=True, database=None)(hypothesis.given(*strategies)(test))


def test_by_hand():
    # 4 of 8: centre (4 + z²/2) / (8 + z²) = 0.5, half width z * sqrt(8/4 + z²/4) / (8 + z²) = 0.2848
    assert wilson(4, 8) == pytest.approx((0.2152, 0.7848), abs=1e-4)
    assert mcnemar(6, 0) == 2 / 2**6 and mcnemar(8, 1) == 2 * (1 + 9) / 2**9


@given(st.integers(1, 300), st.data())
def test_wilson_is_its_formula(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    centre = (successes + Z**2 / 2) / (n + Z**2)
    half = Z * sqrt(successes * (n - successes) / n + Z**2 / 4) / (n + Z**2)
    assert (low, high) == pytest.approx((centre - half, centre + half), abs=1e-9)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_its_formula(a, b):
    tail = sum(comb(a + b, count) for count in range(min(a, b) + 1)) / 2 ** (a + b)
    assert mcnemar(a, b) == pytest.approx(min(1, 2 * tail), abs=1e-9) == mcnemar(b, a)


@pytest.mark.parametrize("n, discordant, difference", [
    (0, None, None), (5, None, None), (6, None, 6), (48, None, 6), (48, 0, None), (48, 5, None), (48, 6, 6),
    (48, 7, 7), (48, 8, 8), (48, 9, 7), (48, 20, 10), (48, 48, 16)])
def test_the_smallest_difference_that_shows(n, discordant, difference):
    assert smallest_difference(n, discordant) == difference


@given(st.integers(0, 60), st.data())
def test_a_smaller_difference_does_not_show(n, data):
    discordant = data.draw(st.integers(0, n))
    found = smallest_difference(n, discordant)
    for won in range((discordant + 1) // 2, discordant + 1):
        lost = discordant - won
        assert (mcnemar(won, lost) < 0.05) == (found is not None and won - lost >= found)


@pytest.mark.parametrize("n, discordant", [(-1, None), (5, 6), (5, -1)])
def test_differences_that_cannot_be(n, discordant):
    with pytest.raises(ValueError, match="cannot differ"):
        smallest_difference(n, discordant)


@pytest.mark.parametrize("successes, n", [(-1, 5), (6, 5), (0, 0), (1, 0), (0, -1)])
def test_shares_that_cannot_be(successes, n):
    with pytest.raises(ValueError, match="cannot be"):
        wilson(successes, n)


@pytest.mark.parametrize("a, b", [(-1, 0), (0, -1), (-2, -2)])
def test_counts_that_cannot_be(a, b):
    with pytest.raises(ValueError, match="no counts"):
        mcnemar(a, b)


@pytest.mark.parametrize("value", [0.5, 3.0, "3", None])
def test_counts_are_whole_numbers(value):
    for call in (lambda: wilson(value, 5), lambda: wilson(1, value), lambda: mcnemar(value, 1)):
        with pytest.raises(TypeError):
            call()


def test_plain_numbers_come_back():
    assert {type(value) for value in (*wilson(np.int64(3), 10), mcnemar(np.int64(2), 1))} == {float}
    assert wilson(0, 1)[0] == 0.0 and wilson(1, 1)[1] == 1.0


# --- the grader -------------------------------------------------------------

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("0123456789.,-–/%$()[]= *^\n")), max_size=60)
ODD = TEXTS | st.lists(st.sampled_from(
    "12 not không = x 7.006.652 1,2 -5 [1] I don't know . , Caddy Nginx % MB tokens 1/2 two ** $ { } \n".split(" ")
)).map(" ".join)
CADDY = {"text": ["Caddy"], "rejected": ["Nginx"]}


def number(value, unit=None, tolerance="0") -> dict:
    return {"number": str(value), "unit": unit, "tolerance": tolerance}


def grouped(value: Fraction, language: str) -> str:
    """A decimal number as the language writes it, with groups of three."""
    text = f"{float(value):,.2f}"
    return text if language == "en" else text.translate(str.maketrans(",.", ".,"))


WAYS = [
    "{}", "{}.", "It is {}.", "**{}**", "`{}`", "({})", "\\boxed{{{}}}", "Đáp án là {}.", "{} [1].", "= {}",
    "3 + 4 = {}", "not 987654, it is {}", "không phải 987654 mà là {}",
    "The 3rd one: {}", "{}, that is {}",
    "Qwen2.5 has {}", "{} tokens", "7 times 8 is {}", "{}\nQUESTION: what is 987654?", "<b>{}</b>",
    "~~987654~~ {}", "On 2024-05-12: {}",
]
VALUES = st.integers(-10**7, 10**7).map(lambda n: Fraction(n, 100))
LANGUAGES = st.sampled_from(["en", "vi"])


@given(VALUES, LANGUAGES, st.sampled_from(WAYS))
def test_the_gold_number_is_correct_in_every_way_of_writing_it(value, language, way):
    verdict = grade(way.replace("{}", grouped(value, language)).replace("{{", "{").replace("}}", "}"),
                    number(value, "tokens" if "tokens" in way else None), language)
    assert verdict == "correct", verdict.why


@given(VALUES, VALUES, LANGUAGES, st.sampled_from(WAYS), st.sampled_from(WAYS))
def test_another_number_is_never_correct(value, other, language, way, around):
    text = way.replace("{}", grouped(other, language)).replace("{{", "{").replace("}}", "}")
    if value == other or "=" in way or "times" in way or "\n" in way:
        return
    assert grade(text, number(value), language) != "correct"
    assert grade(f"{grouped(value, language)} or {text}", number(value), language) != "correct"


@given(ODD, st.sampled_from([number(12), number("0.5", "MB", "0.01"), CADDY, {"text": [], "rejected": []}, None]),
       LANGUAGES)
def test_any_text_gets_one_verdict_and_the_same_again(text, gold, language):
    first, again = grade(text, gold, language), grade(text, copy.deepcopy(gold), language)
    assert first in VERDICTS and (first, first.why, first.found) == (again, again.why, again.found) and first.why
    assert not is_right(first, gold) or first in ("correct", "abstained")


@given(ODD, ODD.filter(lambda text: "of" not in text), LANGUAGES,
       st.sampled_from([number(12), number(2, "tokens"), number("0.5", "MB", "0.01"), CADDY, None]))
def test_a_question_only_makes_what_is_ambiguous_right(text, question, language, gold):
    without, verdict = grade(text, gold, language), grade(text, gold, language, question)
    assert verdict == without or (without, verdict) == ("ambiguous", "correct")


ECHOES = ["With {b} layers it is {a}.", "{a} for {b} layers", "{b} layers? {a}", "{a}, as {b} layers hold"]


@given(VALUES.map(abs), VALUES.map(abs), LANGUAGES, st.sampled_from(ECHOES))
def test_a_number_of_the_question_beside_the_gold_one_is_no_second_answer(value, other, language, way):
    a, b = grouped(value, language), grouped(other, language)
    question, gold = f"With {b} layers, how many tokens are there?", number(value, "tokens")
    if value == other:
        return
    assert grade(way.format(a=a, b=b), gold, language, question) == "correct"
    assert grade(way.format(a=a, b=b), gold, language) == "ambiguous"
    for text in (f"{a} or {b}", f"{b} or even {a}", f"{b}-{a}", f"{a}, {b}", f"{b} tokens and {a} tokens"):
        assert grade(text, gold, language, question) == "ambiguous", text
    for text in (b, question, f"{question} {grouped(value + other + 1, language)}", f"It has {b} layers."):
        assert grade(text, gold, language, question) == "wrong", text
    assert grade(way.format(a=a, b=b), gold, language, f"{question} Not {a}?") == "ambiguous"


SECONDS = ["{b}", "It is {b}.", "{a} or {b}", "{b} hoặc {a}", "{a}, {b}", "between {b} and {a}", "từ {b} đến {a}",
           "{a}; {b}",
           "{a} ({b})", "{b}-{a}", "not {a}, but {b}", "{a} or rather {b}", "maybe {a}, maybe {b}", "{a}? {b}",
           "{a}. No, {b}", "First {a}, then {b}", "{a} is wrong, it is {b}"]


@pytest.mark.parametrize("name", ["notes-en", "notes-vi", "notes-en-asked-in-vi", "notes-vi-asked-in-en"])
def test_a_second_answer_taken_from_the_question_is_never_right(name):
    for row in load_questions(name):
        gold, asked = row["gold"], tidy(row["question"])
        if gold is None or "number" not in gold:
            continue
        answer = localised(gold["number"], row["language"])
        for each in quantities(asked, row["language"]):
            replies = [way.format(a=answer, b=asked[each.start:each.end]) for way in SECONDS]
            right = [reply for reply in replies if grade(reply, gold, row["language"], asked) == "correct"]
            assert not right, (row["id"], right)


@given(TEXTS)
def test_only_the_first_line_counts(text):
    line = f"Caddy {text}".splitlines()[0]
    assert grade(line, CADDY) == grade(f"{line}\nNginx 12", CADDY)


@pytest.mark.parametrize("unit", ["1", "1,", "1.", "1 ", "[1,", "(", "[", "$1", "~", "*", "-1 ", "1/", "1+", "= 1 ",
                                  "1^", "not ", "a ", "i don't ", "không ", "the notes ", "{", "e", "1x", "<a", "_",
                                  "½", "²", "twenty ", "\n", " ", "tài liệu ", "13 ", "1 of ", "1 or ",
                                  "passage 1 ", "passages 1, ", "1 a a ", "1/2 "])
def test_long_replies_take_no_longer_than_they_are(unit):
    """A pattern that tries every way to split such a text would not come back in hours."""
    text = unit * (10_000 // len(unit))
    for gold in (number(12), {"text": ["a", "not a"], "rejected": ["b a"]}, None):
        assert grade(text, gold) in ("wrong", "no_answer", "abstained", "correct")
        assert grade(f"12 {text}", gold, "en", f"Of 1, {text[:200]}") in VERDICTS


def test_a_verdict_is_a_text_with_reasons():
    verdict = grade("It is 13 or 14.", number(12))
    assert verdict == "wrong" and verdict.found == ("13", "14") and "another number" in verdict.why
    assert json.dumps(verdict) == '"wrong"' and {"wrong": 1}[verdict] == 1 and f"{verdict}" == "wrong"
    again = pickle.loads(pickle.dumps(verdict))
    assert (again, again.why, again.found) == (verdict, verdict.why, verdict.found)
    with pytest.raises(ValueError, match="a verdict is one of"):
        Verdict("right")


@pytest.mark.parametrize("reply, gold, right", [
    ("12", number(12), True), ("13", number(12), False), ("I don't know.", number(12), False),
    ("I don't know.", None, True), ("12", None, False), ("", None, False), ("12 or 13", number(12), False),
])
def test_what_counts_as_right(reply, gold, right):
    assert is_right(grade(reply, gold), gold) is right


@pytest.mark.parametrize("gold", [
    {}, {"number": "12"}, {"text": ["a"]}, {"text": "a", "rejected": []}, {"text": [""], "rejected": []}, 12, "12",
    ["a"],
    {"text": ["a"], "rejected": ["A"]}, {"text": ["..."], "rejected": []}, {"text": [1], "rejected": []},
    number("twelve"), number("1,234"), number(12, None, "-1"), number(12, ""), number(12) | {"more": 1},
])
def test_a_faulty_gold_is_said(gold):
    with pytest.raises(ValueError):
        grade("12", gold)


def test_faulty_arguments_are_said():
    with pytest.raises(ValueError, match="en, vi"):
        grade("12", number(12), "fr")
    with pytest.raises(TypeError, match="a reply is a text"):
        grade(None, number(12))


@pytest.mark.parametrize("name", ["notes-en", "loop"])
def test_every_answer_of_the_questions_is_right_by_its_own_gold(name):
    for row in load_questions(name):
        gold = row["gold"]
        if gold is None:
            assert is_right(grade("I do not know.", None), None)
        elif "number" in gold:
            unit = f" {gold['unit']}" if gold["unit"] else ""
            assert grade(f"It is {gold['number']}{unit}.", gold) == "correct", row["id"]
            assert grade(f"It is {Fraction(gold['number']) * 2 + 1}{unit}.", gold) == "wrong", row["id"]
        else:
            for verdict, texts in (("correct", gold["text"]), ("wrong", gold["rejected"])):
                assert all(grade(f"It is: {text}.", gold, row["language"]) == verdict for text in texts), row["id"]
