"""Classes of failure: an episode for each, one and only one for any, and the rows of a log that hold them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lib.agent import Protocol, run_agent
from lib.agent_log import judged
from lib.failures import CLASSES, RULES, STATUSES, VERDICTS, Evidence, classify, holds, is_gold, numbers, tally
from lib.lines import make_lines
from lib.machinery import evaluations
from lib.tests.scripted import ScriptedModel
from lib.tests.test_cases import STATUSES as CASE_STATUSES
from lib.tools import Result, shorten, tool

PASSAGES = {
    "web/0": "The website runs behind Caddy, which asks for certificates by itself.",
    "web/1": "The service listens on port 8080 and answers within 0.25 seconds.",
    "book/0": "The book has 51,297 tokens; 5,129 of them are held out.",
    "book/1": 'Every message adds 5 tokens of frame, "the envelope", and the opening 3 more.',
    **{f"other/{number}": f"Of the weather on day {number} the notes say nothing." for number in range(16)},
}
PROXY = {"id": "proxy", "kind": "same words", "question": "Which reverse proxy does the website use?",
         "gold_passages": ["web/0"], "gold": {"text": ["Caddy"], "rejected": ["Nginx"]}}
WHICH = PROXY | {"question": "Which reverse proxy is used?"}
BOOK = {"id": "book", "kind": "name or number", "question": "How many tokens does the book have?",
        "gold_passages": ["book/0"], "gold": {"number": "51297", "unit": None, "tolerance": "0"}}
FRAME = {"id": "frame", "kind": "arithmetic", "question": "How many tokens of frame have 12 messages?",
         "gold_passages": ["book/1"], "gold": {"number": "63", "unit": None, "tolerance": "0"}}
PRODUCT = {"id": "product", "kind": "arithmetic", "question": "What is 1500 * 32 * 128?",
           "gold": {"number": "6144000", "unit": None, "tolerance": "0"}}
ALONE = FRAME | {"id": "alone", "self_contained": True}
YEAR = {"id": "year", "kind": "unanswerable", "question": "In which year was it built?", "gold_passages": [],
        "gold": None}
CAPITAL = {"id": "capital", "kind": "general", "question": "Thủ đô của Việt Nam là gì?",
           "gold": {"text": ["Hà Nội"], "rejected": []}}


def search(query: str, k: int) -> list[str]:
    """Gives the passages whose ids the query names."""
    return [PASSAGES[name] for name in query.split() if name in PASSAGES][:k]


def play(*replies, k: int = 2, **options):
    return run_agent(ScriptedModel(list(replies)), "Ai?", make_lines(search, k=k), **{"max_turns": 8} | options)


def cut(text: str) -> dict:
    return {"text": text, "truncated": True}


EXAMPLES = [  # class, question, verdict, replies
    ("cut", PROXY, None, [cut("and so on")] * 3),
    ("format", PROXY, None, ["Caddy.", "Caddy!", "It is Caddy."]),
    ("loop", PROXY, None, ["SEARCH: web/0"] * 3),
    ("limit", PROXY, None, [f"SEARCH: {name}" for name in [*PASSAGES][:8]]),
    ("false_answer", YEAR, "wrong", ["SEARCH: web/0", "ANSWER: 1998"]),
    ("false_answer", YEAR, "no_answer", ["ANSWER: In the year of the dragon."]),
    ("no_evidence", PROXY, "wrong", ["ANSWER: Nginx"]),
    ("no_evidence", PRODUCT, "wrong", ["ANSWER: 512000"]),
    ("no_evidence", CAPITAL, "wrong", ["ANSWER: Hồ Chí Minh"]),
    ("no_evidence", PROXY, "wrong", ["CALC: 80 * 2", "ANSWER: 160"]),
    ("no_evidence", FRAME, "wrong", ["CALC: 12 * 5", "ANSWER: 60"]),
    ("no_evidence", BOOK, "wrong", ["SEARCH:", "ANSWER: 5129"]),
    ("retrieval_miss", PROXY, "wrong", ["SEARCH: web/1", "ANSWER: port 8080"]),
    ("retrieval_miss", PROXY, "abstained", ["SEARCH: web/1", "ANSWER: I do not know."]),
    ("retrieval_miss", FRAME, "wrong", ["SEARCH: book/0", "CALC: 12 * 5", "ANSWER: 60"]),
    ("retrieval_miss", PROXY, "wrong", ["SEARCH: nothing", "ANSWER: Nginx"]),
    ("misread", BOOK, "wrong", ["SEARCH: book/0", "ANSWER: 5,129 tokens"]),
    ("misread", BOOK, "ambiguous", ["SEARCH: book/0", "ANSWER: 51,297, of them 5,129 held out"]),
    ("misread", PROXY, "wrong", ["SEARCH: web/1 web/0", "ANSWER: It asks for certificates."]),
    ("evidence_not_used", BOOK, "wrong", ["SEARCH: book/0", "ANSWER: 40000"]),
    ("evidence_not_used", BOOK, "no_answer", ["SEARCH: book/0", "ANSWER: many held out"]),
    ("evidence_not_used", BOOK, "abstained", ["SEARCH: book/0", "ANSWER: I do not know, 5,129 are held out."]),
    ("evidence_not_used", PROXY, "wrong", ["SEARCH: web/0", "ANSWER: The website uses Nginx."]),
    ("evidence_not_used", WHICH, "wrong", ["SEARCH: web/0", "ANSWER: It is the one of the notes."]),
    ("wrong_tool", PRODUCT, "wrong", ["SEARCH: web/1", "ANSWER: 8080"]),
    ("wrong_tool", FRAME, "wrong", ["SEARCH: book/1", "ANSWER: 60"]),
    ("wrong_tool", ALONE, "wrong", ["SEARCH: web/1", "ANSWER: 60"]),
    ("wrong_input", PRODUCT, "wrong", ["CALC: 1500 * 32", "ANSWER: 48000"]),
    ("wrong_input", PRODUCT, "wrong", ["CALC: 1500 times 32", "ANSWER: 48000"]),
    ("wrong_input", FRAME, "wrong", ["SEARCH: book/1", "CALC: 12 * 5", "ANSWER: 60"]),
    ("wrong_input", ALONE, "wrong", ["CALC: 12 * 5", "ANSWER: 60"]),
    ("wrong_input", PRODUCT, "wrong", ["CALC: 1500 * 32 = 512000", "ANSWER: 512000"]),
    ("claim_mismatch", PRODUCT, "wrong", ["CALC: 1500 * 32 * 128 = 512000", "ANSWER: 512000"]),
    ("claim_mismatch", PRODUCT, "ambiguous", ["CALC: 1500 * 32 * 128 = 512,000", "ANSWER: 512000 or 6144000"]),
    ("claim_mismatch", PRODUCT, "wrong", ["CALC: 1500*32*128 = 48000*128 = 512000", "ANSWER: It is 512,000."]),
    ("claim_mismatch", PRODUCT, "wrong", ["CALC: 1500 * 32 * 128 = 512000 tokens\nRESULT: 512000", "ANSWER: 512000"]),
    ("result_not_used", PRODUCT, "wrong", ["CALC: 1500 * 32 * 128", "ANSWER: 614400"]),
    ("result_not_used", PRODUCT, "wrong", ["CALC: 1500 * 32 * 128 = 512000", "ANSWER: 614400"]),
    ("result_not_used", PRODUCT, "wrong", ["CALC: 1500 * 32 * 128 = 6144000", "ANSWER: 61440"]),
    ("result_not_used", PRODUCT, "abstained", ["CALC: 1500 * 32 * 128 = 512000", "ANSWER: I do not know."]),
    ("result_not_used", FRAME, "wrong", ["SEARCH: book/1", "CALC: 12 * 5 + 3", "ANSWER: 60"]),
    (None, PROXY, "correct", ["SEARCH: web/0", "ANSWER: Caddy"]),
    (None, PROXY, "correct", ["ANSWER: Caddy"]),
    (None, YEAR, "abstained", ["SEARCH: web/0", "ANSWER: I do not know."]),
]


@pytest.mark.parametrize("name, question, verdict, replies", EXAMPLES)
def test_an_example_of_each_class(name, question, verdict, replies):
    assert classify(play(*replies), question, verdict, PASSAGES) == name


def test_an_episode_that_was_stopped():
    @tool
    def search(query: str):
        """Search the notes."""
        return object()

    broken = run_agent(ScriptedModel(["SEARCH: a"]), "Ai?", replace(make_lines(lambda query, k: []), tools=(search,)))
    assert broken.status == "tool_fault"
    for status in ("tool_fault", "cancelled", "running"):
        assert classify(replace(broken, status=status), PROXY, None, PASSAGES) == "stopped"


def test_every_class_has_an_example_a_sentence_and_its_place():
    assert {name for name, *_ in EXAMPLES} | {"stopped"} == {*CLASSES, None}
    assert [*CLASSES] == [rule.name for rule in RULES] and len(CLASSES) == len(RULES)
    assert all(sentence and not sentence.endswith(".") for sentence in CLASSES.values())
    assert CASE_STATUSES < STATUSES


@pytest.mark.parametrize("status, name", [
    ("truncated", "cut"), ("token_limit", "cut"), ("repeated_format_error", "format"), ("loop", "loop"),
    ("max_turns", "limit"), ("time_limit", "limit"),
])
@pytest.mark.parametrize("question", [PROXY, PRODUCT, YEAR])
def test_without_an_answer_the_status_decides(status, name, question):
    episode = replace(play("SEARCH: web/0", "ANSWER: a"), status=status, answer=None)
    assert {classify(episode, question, verdict, PASSAGES) for verdict in (None, *VERDICTS)} == {name}


def test_the_tools_protocol_is_classified_too():
    @tool
    def multiply(a: float, b: float):
        """Multiply two numbers."""
        return a * b

    call = '<tool_call>{"name": "multiply", "arguments": {"a": %s, "b": 4096.0}}</tool_call>'
    for factor, name in ((1500.0, "result_not_used"), (15, "wrong_input")):
        episode = run_agent(ScriptedModel([call % factor, "614400"]), "Ai?", Protocol((multiply,)))
        assert classify(episode, PRODUCT, "wrong", PASSAGES) == name


def test_a_class_is_decided_from_the_written_episode_alone():
    for name, question, verdict, replies in EXAMPLES:
        episode = play(*replies)
        assert classify(type(episode).from_json(episode.to_json()), question, verdict, PASSAGES) == name


@pytest.mark.parametrize("change, said", [
    ({"status": "fine"}, "status 'fine'"), ({"verdict": "right"}, "not 'right'"), ({"verdict": None}, "not None"),
    ({"passages": {}}, "no passage web/0"),
])
def test_what_is_not_known_is_refused(change, said):
    episode = replace(play("ANSWER: Nginx"), status=change.get("status", "answered"))
    with pytest.raises(ValueError, match=said):
        classify(episode, PROXY, change.get("verdict", "wrong"), change.get("passages", PASSAGES))


# --- disjoint and complete --------------------------------------------------

REPLIES = st.sampled_from([*(f"SEARCH: {name}" for name in [*PASSAGES][:5]), "SEARCH: web/0 book/0", "SEARCH:",
                           "CALC: 12 * 5 + 3", "CALC: 1500 * 32 * 128 = 512000", "CALC: x", "CALC: 2 + 2", "Hm.", "",
                           "SEARCH: web/0\nRESULT: a", "ANSWER: Caddy", "ANSWER: 512000", "ANSWER: 5,129",
                           "ANSWER: 63", "ANSWER: I do not know.", cut("SEARCH: a"), cut("ANSWER: a\nb")])
QUESTIONS = [PROXY, BOOK, FRAME, PRODUCT, ALONE, YEAR, CAPITAL]


@settings(max_examples=150, deadline=None)
@given(st.lists(REPLIES, min_size=5, max_size=5), st.sampled_from(VERDICTS))
def test_any_episode_that_is_not_right_has_one_class_and_counts_sum_up(replies, verdict):
    episode = play(*replies, max_turns=5)
    names = [classify(episode, question, verdict, PASSAGES) for question in QUESTIONS]
    right = [episode.status == "answered" and verdict == ("abstained" if question["gold"] is None else "correct")
             for question in QUESTIONS]
    assert [name is None for name in names] == right and {*names} <= {*CLASSES, None}
    assert sum(tally(names).values()) == len(QUESTIONS) - sum(right)
    for name, question in zip(names, QUESTIONS, strict=True):
        if name is not None:
            assert first_that_holds(Evidence(episode, question, verdict, PASSAGES)) == name


def first_that_holds(seen: Evidence) -> str:
    """The class by the words of its sentences, written down a second time."""
    status, gold_ids = seen.episode.status, seen.question.get("gold_passages") or []
    by_status = {"truncated": "cut", "repeated_format_error": "format", "loop": "loop", "max_turns": "limit"}
    if status != "answered":
        return by_status[status]
    if seen.question["kind"] == "unanswerable":
        return "false_answer"
    ran = [(result.call.name, result.text) for turn in seen.episode.turns for result in turn.results if result.ran]
    found = " ".join(text for name, text in ran if name == "search")
    must_search = seen.question["kind"] != "arithmetic" or (gold_ids and not seen.question.get("self_contained"))
    if not ran or (must_search and not found):
        return "no_evidence"
    if must_search and not any(PASSAGES[name] in found for name in gold_ids):
        return "retrieval_miss"
    if seen.question["kind"] != "arithmetic":
        took = {"proxy": "Caddy", "book": "5,129"}[seen.question["id"]] in seen.episode.answer
        return "misread" if took and seen.verdict != "abstained" else "evidence_not_used"
    computed = [text for name, text in ran if name == "calc"]
    if not computed or seen.question["gold"]["number"] not in computed:
        return "wrong_input" if computed else "wrong_tool"
    is_claim = "512000" in seen.episode.answer and "6144000" in computed and seen.question is PRODUCT
    return "claim_mismatch" if is_claim else "result_not_used"


def test_a_tally_has_every_class_and_no_other():
    assert tally([]) == dict.fromkeys(CLASSES, 0)
    counts = tally(["loop", None, "cut", "loop"])
    assert (counts["loop"], counts["cut"], sum(counts.values()), [*counts]) == (2, 1, 3, [*CLASSES])
    with pytest.raises(ValueError, match="no classes: lost"):
        tally(["loop", "lost"])


# --- what the trace shows ---------------------------------------------------

@pytest.mark.parametrize("text, found", [
    ("", []), ("none", []), ("12 of 51,297", [12, 51297, Fraction(51297, 1000)]), ("0.25 s", [Fraction(1, 4)]),
    ("0,25 giây", [Fraction(1, 4)]), ("7.006.652 và 7,006,652", [7006652]), ("-5, 10-12", [5, 10, 12]),
    ("qwen2.5-coder-0.5b", [Fraction(1, 2)]), ("It is 12.", [12]), ("1.2.3", []), ("٣", []),
    ("1.500", [1500, Fraction(3, 2)]),
])
def test_numbers_of_a_text(text, found):
    assert numbers(text) == set(map(Fraction, found))


@pytest.mark.parametrize("text, gold, right", [
    ("63", {"number": "63", "tolerance": "0"}, True), ("63.0", {"number": "63", "tolerance": "0"}, True),
    ("60", {"number": "63", "tolerance": "0"}, False), ("4.3", {"number": "4.25", "tolerance": "0.02"}, True),
    ("4.4", {"number": "4.25", "tolerance": "0.02"}, False), ("-63", {"number": "63", "tolerance": "0"}, False),
    ("no number", {"number": "63", "tolerance": "0"}, False), ("Caddy", {"text": ["Caddy"], "rejected": []}, True),
    ("-4.2", {"number": "-4.25", "tolerance": "0.02"}, True), ("0", {"number": "0", "tolerance": "0.1"}, True),
])
def test_a_result_that_is_the_gold_value(text, gold, right):
    assert is_gold(text, gold) is right


LONG = "A long passage. " + "Words and words. " * 20


@pytest.mark.parametrize("text, limit, seen", [
    (LONG, 8000, True), (f"Title: {LONG}", 8000, True), (f"{PASSAGES['web/0']}\n\n{LONG}", 8000, True),
    (LONG[:200], 8000, False), (LONG, 200, True), (f"{'x' * 100}{LONG}", 300, True),
    (f"{'x' * 300}{LONG}", 200, False),
    (f"{LONG[:60]}, but other words then {'x' * 300}", 300, False), ("", 8000, False),
])
def test_a_passage_is_recognised_in_a_result(text, limit, seen):
    shown, left_out = shorten(text, limit)
    assert holds(Result(None, True, shown, left_out), LONG) is seen


def test_a_passage_is_recognised_inside_json():
    passage = PASSAGES["book/1"]
    assert holds(Result(None, True, json.dumps([{"text": passage}], ensure_ascii=False)), passage)


def test_a_failed_search_has_found_nothing():
    episode = play("SEARCH: web/0", "ANSWER: Nginx")
    episode.turns[0].results[0] = replace(episode.turns[0].results[0], ok=False)
    assert classify(episode, PROXY, "wrong", PASSAGES) == "retrieval_miss"


# --- the rows of a log ------------------------------------------------------

SCHEMA = json.loads(Path(evaluations.__file__).with_name("agent.schema.json").read_text(encoding="utf-8"))
Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = Draft202012Validator(SCHEMA)


def row(question: dict, verdict: str | None, replies: list) -> dict:
    key = {"model": "scripted", "condition": "version 2", "question": question["id"], "made_from": "0" * 16}
    return json.loads(json.dumps(key | judged(play(*replies), question, verdict, PASSAGES)))


def test_every_row_is_as_the_schema_says():
    rows = [row(question, verdict, replies) for _, question, verdict, replies in EXAMPLES]
    for each in rows:
        VALIDATOR.validate(each)
    assert Counter(each["class"] for each in rows) == Counter(name for name, *_ in EXAMPLES)


def test_the_schema_knows_the_classes_verdicts_and_statuses():
    properties, episode = SCHEMA["properties"], SCHEMA["$defs"]["episode"]["properties"]
    assert properties["class"]["enum"] == [*CLASSES, None]
    assert properties["verdict"]["enum"] == [*VERDICTS, None]
    assert {*episode["status"]["enum"]} == STATUSES


def test_counts_by_hand():
    found = row(BOOK, "wrong", ["Hm.", "SEARCH: book/0", "SEARCH: book/0", "CALC: 1 + 1", "SEARCH:", "ANSWER: 5129"])
    counts, turns = found["counts"], found["episode"]["turns"]
    assert {name: counts[name] for name in [*counts][:5]} == {
        "turns": 6, "searches": 2, "calculations": 1, "format_errors": 2, "corrections": 1}
    assert counts["gold_passages_seen"] == 1 and counts["prompt_tokens"] == sum(t["prompt_tokens"] for t in turns)
    assert counts["generated_tokens"] == len("Hm.SEARCH: book/0SEARCH: book/0CALC: 1 + 1SEARCH:ANSWER: 5129") + 6


@pytest.mark.parametrize("spoil", [
    lambda row: row.pop("class"), lambda row: row.update({"class": "lost"}), lambda row: row.update(more=1),
    lambda row: row.update(verdict="right"), lambda row: row["episode"].update(status="fine"),
    lambda row: row["episode"].update(answer=None), lambda row: row["episode"].update(status="loop"),
    lambda row: row["counts"].update(turns=-1), lambda row: row["counts"].pop("searches"),
    lambda row: row["episode"]["turns"][0].pop("spans"), lambda row: row["episode"]["turns"][0]["spans"][0].append(1),
    lambda row: row["episode"]["turns"][0]["spans"][0].__setitem__(2, "nobody"),
    lambda row: row["episode"]["turns"][0]["findings"][0].pop("claim"),
    lambda row: row["episode"]["turns"][0]["results"][0].update(ok=1), lambda row: row.update(made_from="new"),
    lambda row: row.update(first_move={}), lambda row: row.update(first_move=dict.fromkeys(
        ("SEARCH", "CALC", "ANSWER"), 0.5)),
])
def test_the_schema_refuses_a_spoilt_row(spoil):
    whole = row(PROXY, "wrong", ["SEARCH: web/0", "ANSWER: Nginx"])
    assert VALIDATOR.is_valid(whole)
    spoil(whole)
    assert not VALIDATOR.is_valid(whole)
