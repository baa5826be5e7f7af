"""The log of an evaluation of agents: verdict, class and counts of each row, held against the schema."""

from __future__ import annotations

import json

import pytest

from lib import conditions
from lib.agent_log import adherence, agent_log, check_row, discordant, verdict_on, with_given, without_seconds
from lib.conditions import core, extended
from lib.episode import Episode
from lib.failures import CLASSES, tally
from lib.tests.scripted import ScriptedModel

QUESTIONS = {**core(), **extended()}
NOTE, SUM, UNKNOWN = "embedding-of-smollm", "difference-compute", "year-of-unicode"
MOVE = {"SEARCH": -0.5, "CALC": -1.5, "ANSWER": -4.25}


def row(condition: str, name: str, *replies: str, **more) -> dict:
    """A row as `load_evaluation` gives it."""
    episode = conditions.ask(ScriptedModel(list(replies)), QUESTIONS[name], condition)
    return {"model": "m", "condition": condition, "question": name, "made_from": "0" * 16,
            "episode": Episode.from_json(episode.to_json()), **more}


def only(*rows: dict) -> dict:
    return agent_log(rows, QUESTIONS)[0]


SEARCHED = f"SEARCH: {QUESTIONS[NOTE]['question']}"


@pytest.mark.parametrize("condition, name, replies, verdict, failure", [
    ("direct", SUM, ["21592"], "correct", None), ("direct", SUM, ["It is 21,593."], "wrong", "no_evidence"),
    ("direct", SUM, [""], None, "limit"), ("direct", UNKNOWN, ["I do not know."], "abstained", None),
    ("direct", UNKNOWN, ["In 1991."], "wrong", "false_answer"),
    ("v1", SUM, ["Hm."] * 3, None, "format"), ("v2", SUM, ["CALC: 1 + 1"] * 3, None, "loop"),
    ("v1", SUM, ["CALC: 1 + 1"] * 4, None, "limit"),
    ("v2", SUM, ["CALC: 318407 - 296815 = 1", "ANSWER: 21592"], "correct", None),
    ("v2", NOTE, [SEARCHED, "ANSWER: 28,311,552"], "correct", None),
    ("v2", NOTE, [SEARCHED, "ANSWER: 134,515,008"], "wrong", "misread"),
    ("told", SUM, ["SEARCH: difference", "ANSWER: 12"], "wrong", "wrong_tool"),
    ("input", SUM, ["ANSWER: 12"], "wrong", "result_not_used"), ("result", NOTE, ["ANSWER: 12"], "wrong",
                                                                 "evidence_not_used"),
    ("result", NOTE, ["ANSWER: 28,311,552"], "correct", None),
])
def test_a_row_has_its_verdict_and_class(condition, name, replies, verdict, failure):
    logged = only(row(condition, name, *replies))
    assert (logged["verdict"], logged["class"]) == (verdict, failure)
    assert logged["counts"]["turns"] == len(replies) and logged["made_from"] == "0" * 16


def test_what_was_given_counts_for_the_class_and_not_as_done():
    given = row("result", NOTE, "ANSWER: 12")
    logged = only(given)
    assert (logged["counts"]["searches"], logged["counts"]["gold_passages_seen"]) == (0, 0)
    before = with_given(given["episode"])
    assert [turn.text for turn in before.turns] == [SEARCHED, "ANSWER: 12"] and len(given["episode"].turns) == 1
    plain = row("v2", SUM, "ANSWER: 1")["episode"]
    assert with_given(plain) is plain


def test_the_classes_sum_to_the_failures():
    rows = [row("v2", SUM, "ANSWER: 21592"), row("v2", SUM, "ANSWER: 1"), row("v1", NOTE, *["Hm."] * 3)]
    counts = tally(logged["class"] for logged in agent_log(rows, QUESTIONS))
    assert sum(counts.values()) == 2 and (counts["no_evidence"], counts["format"]) == (1, 1)
    assert [*counts] == [*CLASSES]
    assert agent_log([], QUESTIONS) == []


def test_the_first_move_stays_and_the_seconds_go():
    measured = row("v2", SUM, "CALC: 1", "ANSWER: 1", first_move=MOVE)
    turn = measured["episode"].turns[0]
    turn.decode_seconds, turn.gaps = 1.5, [0.123456]
    logged = only(measured)
    assert logged["first_move"] == MOVE and "first_move" not in only(row("v2", SUM, "ANSWER: 1"))
    written = logged["episode"]["turns"][0]
    assert (written["decode_seconds"], written["gaps"], written["results"][0]["seconds"]) == (0.0, [0.1235], 0.0)
    assert without_seconds(measured["episode"]) == logged["episode"] and json.loads(json.dumps(logged)) == logged


def test_a_log_does_not_change_the_episode():
    measured = row("input", SUM, "ANSWER: 1")
    before = measured["episode"].to_json()
    agent_log([measured], QUESTIONS)
    assert measured["episode"].to_json() == before


@pytest.mark.parametrize("spoil, said", [
    ({"question": "漢字"}, "there is no question '漢字'"), ({"made_from": "now"}, r"at \$\.made_from"),
    ({"first_move": {"SEARCH": 1.0}}, r"at \$\.first_move"),
    ({"model": 3}, r"the row 3, v2, difference-compute is not")])
def test_what_the_schema_does_not_allow_is_said_with_its_place(spoil, said):
    with pytest.raises(ValueError, match=said):
        only(row("v2", SUM, "ANSWER: 1") | spoil)


def test_a_missing_field_is_said():
    logged = only(row("v2", SUM, "ANSWER: 1"))
    check_row(logged)
    del logged["class"]
    with pytest.raises(ValueError, match="'class' is a required property"):
        check_row(logged)


def test_the_verdict_is_in_the_language_of_the_question():
    episode = row("direct", SUM, "1.500")["episode"]
    gold = {"number": "1500", "unit": None, "tolerance": "0"}
    asked = {"gold": gold, "question": "?"}
    assert verdict_on(episode, {**asked, "language": "vi"}) == "correct"
    assert verdict_on(episode, {**asked, "language": "en"}) == "wrong"


def test_a_number_of_the_question_is_no_second_answer():
    question = {"gold": {"number": "198", "unit": "GB", "tolerance": "0"}, "language": "en",
                "question": "How many GB a second does it read if it writes 100 tokens a second?"}
    episode = row("direct", SUM, "198 GB a second for 100 tokens a second.")["episode"]
    assert verdict_on(episode, question) == "correct"
    assert verdict_on(episode, {**question, "question": "How many GB a second does it read?"}) == "ambiguous"


# --- what a table says --------------------------------------------------------

def test_adherence_by_hand():
    rows = [row("v2", SUM, "CALC: 1", "ANSWER: 1"), row("v2", SUM, "Hm.", "ANSWER: 1"), row("v1", SUM, *["Hm."] * 3),
            row("v2", SUM, *["CALC: 1"] * 3)]
    assert adherence(agent_log(rows, QUESTIONS)) == {
        "episodes": 4, "used a tool": 2, "broke the format": 2, "looped": 1, "answered": 2}
    assert set(adherence([]).values()) == {0}


def test_pairs_that_differ():
    rows = [row("direct", SUM, "1"), row("v2", SUM, "ANSWER: 21592"), row("direct", UNKNOWN, "I do not know."),
            row("v2", UNKNOWN, "ANSWER: 1991"), row("direct", NOTE, "28311552"), row("v2", NOTE, "ANSWER: 28311552")]
    log = agent_log(rows, QUESTIONS)
    assert discordant(log, "direct", "v2") == (1, 1) and discordant(log[:2], "direct", "v2") == (0, 1)
    assert discordant([], "direct", "v2") == (0, 0)
    with pytest.raises(ValueError, match="direct and v2 were not asked the same questions"):
        discordant(log[:3], "direct", "v2")
