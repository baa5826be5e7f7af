"""The conditions of the agent's evaluation: the questions, each rung of the ladder, the first move, and its rows."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from lib import conditions
from lib.conditions import CONDITIONS, LADDER, LIMITS, MAIN, core, extended, notes, protocol, right_actions
from lib.episode import Episode
from lib.lines import SYSTEM, WORKED
from lib.machinery.evaluations import agent, keep, origin
from lib.tests import tiny
from lib.tests.scripted import ScriptedModel

NOTE, SUM = "embedding-of-smollm", "difference-compute"
BOTH, ALONE, UNKNOWN = "line-at-300-tokens", "min-p-bar", "year-of-unicode"
QUESTIONS = {**core(), **extended()}


def after_the_examples(condition: str, name: str) -> list[tuple[str, str]]:
    opening = protocol(condition, QUESTIONS[name]).opening(QUESTIONS[name]["question"])
    return [(message["role"], message["content"]) for message in opening[1 + len(WORKED):]]


# --- the questions ----------------------------------------------------------

def test_the_core_has_six_questions_about_the_notes_and_four_calculations():
    assert len(core()) == 10 and all(name == row["id"] for name, row in core().items())
    assert Counter(row["kind"] == "arithmetic" for row in core().values()) == {False: 6, True: 4}
    assert all(row["gold"] and row["language"] == "en" for row in core().values())


def test_the_extended_questions_are_the_others():
    assert not core().keys() & extended().keys()
    answered = [row for row in extended().values() if row["gold"]]
    assert len(answered) >= 40 and len(extended()) - len(answered) >= 10


# --- the conditions ---------------------------------------------------------

def test_without_tools_the_question_stands_alone():
    question = core()[SUM]
    assert protocol("direct", question).opening("Sao?") == [{"role": "user", "content": "Sao?"}]
    model = ScriptedModel(["", "21592"])
    assert conditions.ask(model, question, "direct").status == "max_turns" and len(model.prompts) == 1
    episode = conditions.ask(ScriptedModel([{"text": " It is 21592, and", "truncated": True}]), question, "direct")
    assert (episode.status, episode.answer, episode.protocol["name"]) == ("answered", "It is 21592, and", "direct")
    assert episode.protocol["tools"] == [] and {**episode.limits, **conditions.DIRECT_LIMITS} == episode.limits


def test_a_call_is_no_call_where_there_are_no_tools():
    call = '<tool_call>{"name": "calc", "arguments": {"expression": "1"}}</tool_call>'
    assert conditions.ask(ScriptedModel([call]), core()[SUM], "direct").answer == call


@pytest.mark.parametrize("condition, examples, rules", [("v1", 0, False), ("v2", len(WORKED), True)])
def test_the_two_versions(condition, examples, rules):
    lines = protocol(condition, core()[NOTE])
    assert [message["content"] for message in lines.opening("Ai?")][::1 + examples][0] == SYSTEM
    assert (len(lines.examples), lines.repeat_rule, lines.accepts_claim) == (examples, rules, rules)
    assert len(lines.opening("Ai?")) == 2 + examples


def test_a_search_brings_the_first_passage_of_bm25():
    question = core()[NOTE]
    episode = conditions.ask(ScriptedModel([f"SEARCH: {question['question']}", "ANSWER: 28,311,552"]), question, "v2")
    assert episode.turns[0].results[0].text == notes()[question["gold_passages"][0]]
    assert episode.limits["max_turns"] == LIMITS["max_turns"] and len(conditions.search("token", 3)) == 3
    assert conditions.search("漢字") == []


# --- the ladder -------------------------------------------------------------

@pytest.mark.parametrize("name, hint", [(NOTE, "Begin with a SEARCH: line."), (SUM, "Begin with a CALC: line."),
                                        (ALONE, "Begin with a CALC: line."),
                                        (BOTH, "Begin with a SEARCH: line. Then write a CALC: line.")])
def test_told_names_the_tools_in_their_order(name, hint):
    assert after_the_examples("told", name) == [("user", f"{QUESTIONS[name]['question']}\n{hint}")]


@pytest.mark.parametrize("name", [name for name, row in QUESTIONS.items() if row["kind"] == "arithmetic"])
def test_the_right_input_of_a_calculation_gives_the_gold_value(name):
    for condition in ("input", "result"):
        *_, (role, line), (_, result) = after_the_examples(condition, name)
        assert (role, line) == ("assistant", f"CALC: {QUESTIONS[name]['expression']}")
        gold = QUESTIONS[name]["gold"]
        value, right = float(result.removeprefix("RESULT: ")), float(gold["number"])
        assert abs(value - right) <= float(gold["tolerance"]) * right + 1e-9


@pytest.mark.parametrize("name", [name for name, row in core().items() if row["kind"] != "arithmetic"])
def test_input_has_what_the_search_finds_and_result_the_passage(name):
    asked = QUESTIONS[name]["question"]
    found, right = (after_the_examples(condition, name) for condition in ("input", "result"))
    assert found[:2] == right[:2] == [("user", asked), ("assistant", f"SEARCH: {asked}")]
    assert found[2] == ("user", f"RESULT: {conditions.search(asked)[0]}")
    assert right[2:] == [("user", f"RESULT: {notes()[QUESTIONS[name]['gold_passages'][0]]}")]


def test_both_rungs_are_one_where_nothing_is_looked_up():
    assert after_the_examples("input", SUM) == after_the_examples("result", SUM)
    assert [line.partition(":")[0] for line in right_actions(QUESTIONS[BOTH])] == ["SEARCH", "CALC"]


def test_what_was_given_is_in_the_record_and_not_among_the_turns():
    episode = conditions.ask(ScriptedModel(["ANSWER: 21592"]), core()[SUM], "input")
    episode = Episode.from_json(episode.to_json())
    given = episode.protocol["given"]
    assert [(each["line"], each["text"], each["seconds"]) for each in given] == [
        ("CALC: 318407 - 296815", "21592", 0.0)]
    assert len(episode.turns) == 1 and episode.question == core()[SUM]["question"]
    assert episode.protocol["hint"] == "" and episode.turns[0].by_writer["tool"] > 0


@pytest.mark.parametrize("condition", ["", "v3", "Direct", "đúng"])
def test_an_unknown_condition_is_met_with_the_known_ones(condition):
    with pytest.raises(ValueError, match=f"the conditions are {', '.join(CONDITIONS)}, not"):
        protocol(condition, core()[SUM])


@pytest.mark.parametrize("condition", LADDER)
def test_there_is_no_ladder_where_nothing_leads_to_an_answer(condition):
    with pytest.raises(ValueError, match="nothing leads to an answer of year-of-unicode"):
        protocol(condition, extended()[UNKNOWN])


# --- the first move ---------------------------------------------------------

def test_a_probability_is_the_product_over_the_tokens():
    model, ids = tiny.model(), [1, 40, 50]
    tokens = model.tokenizer("Là:", add_special_tokens=False)["input_ids"]
    by_hand, so_far = 0.0, list(ids)
    for token in tokens:
        scores = model.logits(so_far).tolist()
        by_hand += scores[token] - math.log(sum(map(math.exp, scores)))
        so_far.append(token)
    assert len(tokens) == 4 and conditions.log_probability(model, ids, "Là:") == pytest.approx(by_hand, abs=1e-4)
    assert conditions.log_probability(model, ids, "") == 0.0 and ids == [1, 40, 50]


def test_the_first_move_is_asked_of_the_prompt_of_the_episode():
    model = tiny.model(context=20_000)
    moves = conditions.first_move(model, core()[SUM], "v1")
    opening = protocol("v1", core()[SUM]).opening(core()[SUM]["question"])
    assert [*moves] == ["SEARCH", "CALC", "ANSWER"] and all(value < 0 for value in moves.values())
    assert moves["CALC"] == pytest.approx(
        conditions.log_probability(model, model.encode(opening), "CALC:"), abs=1e-4)
    assert moves != conditions.first_move(model, core()[SUM], "told")


# --- the evaluation ---------------------------------------------------------

def test_the_rows():
    keys = agent.EVALUATION.keys()
    assert len({tuple(key.values()) for key in keys}) == len(keys)
    count = Counter((key["model"], key["condition"]) for key in keys)
    for model in agent.MODELS:
        each = len(core()) if model == agent.LARGER else len(QUESTIONS)
        assert [count[model, condition] for condition in MAIN] == [each] * 3
        assert len({count[model, condition] for condition in LADDER}) == 1
    assert not any(count[agent.LARGER, condition] for condition in LADDER)
    on_ladder = {key["question"] for key in keys if key["condition"] == "told"}
    assert on_ladder == core().keys() | {name for name, row in QUESTIONS.items() if row["kind"] == "arithmetic"}


def test_no_grader_decides_a_row():
    files = origin.of(agent.EVALUATION).code_files
    assert "lib/conditions.py" in files and "lib/lines.py" in files and "lib/retrieval.py" in files
    assert not {f"lib/{name}.py" for name in ("grading", "failures", "quantities", "claims", "denials", "agent_log")
                } & {*files}


def test_what_a_key_stands_for_changes_with_the_notes_and_the_question(monkeypatch):
    note, direct = ({"model": "m", "condition": condition, "question": NOTE} for condition in ("v2", "direct"))
    before = agent.inputs(note), agent.inputs(direct)
    monkeypatch.setattr(agent, "notes_hash", lambda: "other notes")
    assert agent.inputs(note) != before[0] and agent.inputs(direct) == before[1]
    assert agent.inputs(note | {"question": SUM})["opening"] != before[0]["opening"]
    assert json.loads(json.dumps(before[0])) == before[0]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_row_keeps_its_episode_and_the_first_move(condition, monkeypatch):
    monkeypatch.setattr(conditions, "first_move", lambda model, question, condition: {"SEARCH": -0.123456})
    told = []
    model = ScriptedModel(["ANSWER: 21592"])
    values, seconds = agent.compute(model, {"model": "m", "condition": condition, "question": SUM}, told.append)
    assert values.get("first_move") == ({"SEARCH": -0.1235} if condition in conditions.FIRST_MOVES else None)
    assert values["episode"]["status"] == "answered" and len(seconds["decode_seconds"]) == 1 and told
    assert agent.EVALUATION.summary(values) == keep.summary(values["episode"])
