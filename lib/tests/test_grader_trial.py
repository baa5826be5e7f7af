"""The trial of graders: replies that are right or wrong by construction, and how often each grader errs on them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lib.evaluations import load_questions
from lib.grader_trial import (
    GRADERS,
    RIGHT,
    WRONG,
    Errors,
    Gold,
    Trial,
    by_template,
    errors,
    is_within,
    last_number,
    localised,
    normalised_exact,
    ours,
    substring,
    trials,
    wrong_answer,
)
from lib.quantities import numeral

NUMBER = {"id": "size", "language": "en", "question": "How many MB?",
          "gold": {"number": "1485.5", "unit": "MB", "tolerance": "0"}}
TEXT = {"id": "proxy", "language": "en", "question": "Which proxy?",
        "gold": {"text": ["Caddy"], "rejected": ["Nginx"]}}
NAMED = {"id": "tree", "language": "vi", "question": "Cây gì?", "gold": {"text": ["cây đa"], "rejected": []}}
OTHER = NAMED | {"id": "river", "gold": {"text": ["sông Hồng"], "rejected": ["sông Đà"]}}
WEIGHT = {"id": "weight", "language": "vi", "question": "Nặng bao nhiêu?",
          "gold": {"number": "12500", "unit": None, "tolerance": "0.02"}}
ALL = load_questions("notes-en") + load_questions("notes-vi")
AGENT = [row for row in load_questions("agent") if "gold" in row]


def replies(question: dict) -> dict[str, str]:
    return {each.template: each.reply for each in trials([question, OTHER]) if each.question == question}


@pytest.mark.parametrize("number, language, plain, grouped", [
    ("0", "en", "0", "0"), ("1485.5", "en", "1485.5", "1,485.5"), ("1485.5", "vi", "1485,5", "1.485,5"),
    ("0.03", "vi", "0,03", "0,03"), ("1543714304", "en", "1543714304", "1,543,714,304")])
def test_a_number_as_a_language_writes_it(number, language, plain, grouped):
    assert (localised(number, language), localised(number, language, groups=True)) == (plain, grouped)
    assert {numeral(plain, language), numeral(grouped, language)} == {Fraction(number)}


def test_the_replies_for_a_number_by_hand():
    made = replies(NUMBER)
    assert made["bare"] == "1485.5" and made["in a sentence"] == "The answer is 1485.5 MB."
    assert made["thousands mark"] == "1,485.5" and made["more zeros"] == "1485.50"
    assert made["not X but the answer"] == "It is not 1485.6 MB, but 1485.5 MB."
    assert made["digits behind it"] == "1485.57" and made["digits before it"] == "71485.5"
    assert made["another unit"] == "1485.5 GB" and made["sign flipped"] == "-1485.5"
    assert not {"capitals", "letters behind it", "with the calculation"} & {*made}


def test_the_replies_for_a_text_in_vietnamese_by_hand():
    made = replies(NAMED)
    assert made["denied"] == "Không phải cây đa." and made["capitals"] == "CÂY ĐA"
    assert made["a wrong one beside it"] == "Là cây đa hoặc sông Hồng." and made["letters behind it"] == "cây đaoid"
    assert replies(TEXT)["not the answer but X"] == "It is not Caddy, but Nginx."


def test_a_wrong_number_lies_beyond_the_tolerance():
    assert wrong_answer(WEIGHT, [WEIGHT]) == "13500"  # 12600 would be within two in a hundred
    assert is_within("12600", WEIGHT["gold"]) and not is_within("13500", WEIGHT["gold"])
    assert "digits behind it" in replies(WEIGHT)
    near = NUMBER | {"gold": NUMBER["gold"] | {"tolerance": "0.01"}}
    assert "digits behind it" not in replies(near)  # 1485.57 is right


def test_all_replies_are_what_their_templates_say():
    made = trials(ALL)
    assert {each.template for each in made if each.right} == {*RIGHT}
    assert {each.template for each in made if not each.right} == {*WRONG} and not {*RIGHT} & {*WRONG}
    assert len({(each.template, each.question["id"]) for each in made}) == len(made)
    assert {each.question["id"] for each in made} == {row["id"] for row in ALL if row["gold"]}
    for each in made:
        if each.template in ("another answer", "a digit off"):
            gold = Gold(each.question, "")
            assert each.reply not in {gold.frame("sentence", text) for text in each.question["gold"].get("text", [])}
            assert "number" not in each.question["gold"] or each.reply != gold.frame("sentence", gold.answer)


@pytest.mark.parametrize("template", [*RIGHT])
def test_the_rules_refuse_no_right_reply_for_the_words_around_it(template):
    made = [each for each in trials(ALL + AGENT) if each.template == template]
    assert made and not [each.reply for each in made if not ours(each.reply, each.question)]


def test_a_text_without_a_wrong_one_is_said():
    with pytest.raises(ValueError, match="no other question has a text that would be wrong for tree"):
        trials([NAMED, WEIGHT])
    assert trials([]) == [] == trials([NUMBER | {"gold": None}])


@pytest.mark.parametrize("grader, reply, question, right", [
    (substring, "not caddy", TEXT, True), (substring, "", TEXT, False), (substring, "21485.57", NUMBER, True),
    (substring, "1,485.5", NUMBER, False), (normalised_exact, " the **Caddy**. ", TEXT, True),
    (normalised_exact, "It is Caddy", TEXT, False), (normalised_exact, "CÂY ĐA", NAMED, True),
    (normalised_exact, "-1485.5", NUMBER, False), (normalised_exact, "", NUMBER, False),
    (last_number, "1 or 1,485.5 MB", NUMBER, True), (last_number, "1,485.5 or 1", NUMBER, False),
    (last_number, "", NUMBER, False), (last_number, "-1485.5", NUMBER, False), (last_number, "12.600", WEIGHT, True),
    (last_number, "Caddy", TEXT, None), (ours, "1,485.5", NUMBER, True), (ours, "not Caddy", TEXT, False)])
def test_the_graders_by_hand(grader, reply, question, right):
    assert grader(reply, question) is right


def test_errors_by_hand():
    made = [Trial("bare", TEXT, "Caddy", True), Trial("denied", TEXT, "not Caddy", False),
            Trial("thousands mark", NUMBER, "1,485.5", True)]
    found = errors(made)
    assert found["substring"] == Errors(1, 2, 1, 1) and found["normalised exact"] == Errors(1, 2, 0, 1)
    assert found["last number"] == Errors(0, 1, 0, 0) and found["ours"] == Errors(0, 2, 0, 1)
    assert errors([])["ours"] == Errors(0, 0, 0, 0) and [*found] == [*GRADERS]
    assert [*by_template(made)] == ["bare", "thousands mark", "denied"]
    assert by_template(iter(made))["denied"]["substring"] == Errors(0, 0, 1, 1)


def test_each_grader_errs_and_the_parts_sum_to_the_whole():
    made = trials(ALL)
    whole, parts = errors(made), by_template(made)
    for name, found in whole.items():
        columns = zip(*(part[name] for part in parts.values()), strict=True)
        assert found == Errors(*map(sum, columns))
        assert found.refused + found.accepted > 0
    right = sum(each.right for each in made)
    assert (whole["ours"].right, whole["ours"].wrong) == (right, len(made) - right)
