"""The case files: every line of data/cases, or of the folder that the variable CASES names, is run and compared.

A room plugs in with one function: it takes a case, works out what is so, and calls `compare` with one check for each
fact that `expected` may hold. It is then entered in RUNNERS under the name of its file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from lib import models
from lib.agent import REPEAT, Protocol, as_value, run_agent
from lib.calculator import calculate
from lib.expression import HINTS
from lib.grading import VERDICTS, grade, mcnemar, wilson
from lib.lines import TOOLS, LineProtocol, split_claim
from lib.rag import REFUSALS, Source, answer, citations, fit, rag_messages
from lib.replies import Call
from lib.retrieval import (
    BM25,
    hit_at,
    mean_over,
    ndcg_at,
    passages,
    pieces,
    recall_at,
    reciprocal_rank,
    reciprocal_rank_fusion,
    words,
)
from lib.tests.scripted import ScriptedModel
from lib.timing import median_without_warm_up, time_to_first_text
from lib.tools import Tool, ToolError, parse_reply, run_call

OWN = Path(__file__).parents[2] / "data" / "cases"
FOLDER = Path(os.environ.get("CASES") or OWN)
MORE = Path(__file__).parent / "cases"  # of the same kinds, for details that the files of the project leave open
FILES = {
    "agent_loop", "bm25", "calculator", "chunks", "grader", "rag", "retrieval_metrics", "statistics", "tool_calls",
}

# --- reading ----------------------------------------------------------------


def lines(folder: Path | None = None) -> list:
    """(file, line) for every line of every file; a file that is missing, or without a room, has one None."""
    found = []
    for name in sorted(FILES):
        path = (folder or FOLDER) / f"{name}.jsonl"
        texts = path.read_text(encoding="utf-8").split("\n") if path.is_file() and name in RUNNERS else []
        texts = [text for text in texts if text.strip()] or [None]
        found += [pytest.param(name, text, id=f"{name}-{name_of(text)}") for text in texts]
    return found


def name_of(line: str | None) -> str:
    try:
        return str(json.loads(line)["id"])
    except (TypeError, ValueError, KeyError):
        return "unnamed"


def read(line: str) -> dict:
    """The case in a line, its `_repr` fields worked out."""
    case = in_full(json.loads(line))
    for field in ("id", "source", "note"):
        assert isinstance(case.get(field), str), f"a case without {field}: {line[:200]}"
    assert ("expected" in case) != ("any_of" in case), f"{case['id']}: one of expected and any_of is needed"
    return case


def in_full(case: dict) -> dict:
    """A case, or what is expected of it, with each `field_repr` as the plain field."""
    case = {name.removesuffix("_repr"): eval(value, {}) if name.endswith("_repr") else value
            for name, value in case.items()}
    if isinstance(case.get("replies"), list):
        case["replies"] = [in_full(reply) if isinstance(reply, dict) else reply for reply in case["replies"]]
    if isinstance(case.get("expected"), dict):
        case["expected"] = in_full(case["expected"])
    if isinstance(case.get("any_of"), list):
        case["any_of"] = [in_full(option) if isinstance(option, dict) else option for option in case["any_of"]]
    return case


def only(case: dict, *fields: str) -> None:
    """Fails for a case with a field that its room does not know."""
    unknown = case.keys() - {"id", "source", "note", "expected", "any_of", *fields}
    assert not unknown, f"{case['id']}: unknown fields {sorted(unknown)}"


def compare(case: dict, checks: dict[str, Callable]) -> None:
    """Holds every fact that is expected against its check; of `any_of`, one has to pass."""
    options, faults = case.get("any_of") or [case["expected"]], []
    for option in options:
        assert option, f"{case['id']}: nothing is expected"
        assert option.keys() <= checks.keys(), f"{case['id']}: unknown fields {sorted(option.keys() - checks.keys())}"
        unknown = {*option.get("codes", ())} - CODES | {option.get("status", "answered")} - STATUSES
        assert not unknown, f"{case['id']}: unknown codes {sorted(unknown)}"
    for option in options:
        try:
            for name, value in option.items():
                checks[name](value)
            return
        except AssertionError as fault:
            faults.append(f"{name}: {fault}")
    pytest.fail(f"{case['id']} ({case['note']})\n" + "\n".join(faults))


def equals(found) -> Callable:
    """A check for a fact that has to be exactly this."""

    def check(expected):
        assert found == expected and type(found) is type(expected), f"{found!r} where {expected!r} is expected"

    return check


# --- tool_calls -------------------------------------------------------------

CODES = {
    "unclosed_tag", "trailing_text", "alias_key", "decoded_string_arguments", "bad_json", "not_object", "truncated",
    "missing_name", "unknown_tool", "arguments_not_object", "missing_argument", "extra_argument", "wrong_type",
    "non_finite", "duplicate_key", "wrong_tag", "bare_json", "fenced_json", "call_in_thinking", "fabricated_result",
}
TYPES = {
    "add": {"a": "number", "b": "number"}, "multiply": {"a": "number", "b": "number"}, "search": {"query": "string"},
    "note": {"text": "string"}, "save": {"record": "object"}, "now": {},
    "set_flag": {"name": "string", "value": "boolean"}, "count": {"n": "integer"},
}


def parameters(types: dict[str, str]) -> dict:
    properties = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(types), "additionalProperties": False}


def tools(run: Callable[[Call], object]) -> list[Tool]:
    """The tools of every case; what they do is `run`."""

    return [Tool(name, name, parameters(types), does(run, name)) for name, types in TYPES.items()]


def does(run: Callable[[Call], object], name: str) -> Callable:
    """The function of the tool `name`: it gives its call to `run`."""
    return lambda **arguments: run(Call(name, arguments))


def same_calls(found: list[Call]) -> Callable:
    """A check for calls: the same names and values in the same order; 3.0 is 3, and true is not 1."""

    def check(expected):
        assert [as_value(call) for call in found] == [as_value(Call(**call)) for call in expected]

    return check


def same_codes(found: list[str]) -> Callable:
    def check(expected):
        assert len(found) == len(set(found)) and set(found) == set(expected), f"{found} where {expected} is expected"

    return check


def run_tool_calls(case: dict) -> None:
    only(case, "reply", "truncated", "policy")
    ran: list[Call] = []
    offered = tools(lambda call: ran.append(call) or "done")
    reply = parse_reply(case["reply"], offered, case.get("policy", "strict"), case.get("truncated", False))
    results = [run_call(call, offered) for call in reply.calls]
    assert ran == reply.calls and all(result.ok and result.text == "done" for result in results)
    assert reply.is_answer or reply.answer is None
    compare(case, {"calls": same_calls(ran), "codes": same_codes(reply.codes), "is_answer": equals(reply.is_answer)})


# --- agent_loop -------------------------------------------------------------

STATUSES = {"answered", "max_turns", "loop", "repeated_format_error", "truncated", "tool_fault"}


def give(value):
    """What a tool of a case does: it returns the value, or fails as the value says."""
    kind, _, text = value.partition(": ") if isinstance(value, str) else ("", "", "")
    if kind == "raise":
        raise RuntimeError(text)
    if kind == "fail":
        raise ToolError(text)
    return float(text) if kind == "float" else value


def play(case: dict, tokenizer=None, change: Callable = lambda value: value):
    """(episode, prompts) of a case; `change` is done to each tool result before it is given."""
    waiting = [change(value) for value in case["tool_results"]]

    def run(_: Call):
        if not waiting:
            pytest.fail(f"{case['id']}: more tools run than there are tool_results")
        return give(waiting.pop(0))

    for reply in case["replies"]:
        assert isinstance(reply, str) or reply.keys() <= {"text",
                                                          "truncated"}, f"{case['id']}: unknown field in a reply"
    model = ScriptedModel(case["replies"], tokenizer)
    episode = run_agent(model, "What is asked?", protocol(case, run), case["max_turns"])
    return episode, model.prompts


def protocol(case: dict, run: Callable[[Call], object]) -> Protocol:
    if case["protocol"] == "lines":
        return LineProtocol(tuple(Tool(name, name, parameters({argument: "string"}), does(run, name))
                                  for name, argument in TOOLS.values()))
    assert case["protocol"] == "tools", f"{case['id']}: unknown protocol {case['protocol']!r}"
    return Protocol(tuple(tools(run)))


def harmless(value):
    """The same value with its control tokens made plain words."""
    if isinstance(value, dict):
        return {harmless(key): harmless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [harmless(item) for item in value]
    return value.replace("<|", "(").replace("|>", ")") if isinstance(value, str) else value


def starts(case: dict, tokenizer=None) -> Callable:
    """A check for the number of <|im_start|> ids in the last prompt."""

    def count(change: Callable) -> int:
        _, prompts = play(case, tokenizer, change)
        return prompts[-1].count((tokenizer or ScriptedModel([]).tokenizer).convert_tokens_to_ids("<|im_start|>"))

    def check(expected):
        assert expected == "same as with a harmless result", f"{case['id']}: unknown n_im_start_ids {expected!r}"
        assert count(lambda value: value) == count(harmless) > 0

    return check


def run_agent_loop(case: dict) -> None:
    only(case, "protocol", "replies", "tool_results", "evidence", "max_turns")
    episode, _ = play(case)
    results = [result for turn in episode.turns for result in turn.results]
    texts = [result.text for result in results]
    without_action = [turn for turn in episode.turns if not any(result.ran for result in turn.results)]

    def contain(expected):
        assert all(any(text in result for result in texts) for text in expected), texts

    def lack(expected):
        assert not any(text in result for result in texts for text in expected), texts

    def in_order(expected):
        assert len(texts) == len(expected) and all(map(str.__contains__, texts, expected)), texts

    def cut(expected):
        marked = [result for result in results if result.cut]
        assert len(marked) == expected
        assert all(f"{result.cut:,} characters left out" in result.text for result in marked)

    def longest(expected):
        assert texts and max(map(len, texts)) <= expected

    compare(case, {
        "status": equals(episode.status), "answer": equals(episode.answer), "turns": equals(len(episode.turns)),
        "calls": same_calls(episode.calls), "codes": same_codes(episode.codes),
        "results_ok": equals([result.ok for result in results]),
        "results_contain": contain, "results_lack": lack, "results_in_order": in_order,
        "corrections": equals(sum(turn.notices.count(REPEAT) for turn in episode.turns)),
        "format_errors": equals(len(without_action) - (episode.status == "answered")),
        "results_cut": cut, "result_max_length": longest,
        "evidence_seen": equals("evidence" in case and any(case["evidence"] in text for text in texts)),
        "n_im_start_ids": starts(case),
    })


# --- calculator -------------------------------------------------------------


def run_calculator(case: dict) -> None:
    """The protocol splits off the claim, then the calculator has the rest."""
    only(case, "expression", "claim")
    expression, claim = split_claim(case["expression"])
    assert "claim" not in case or claim == str(case["claim"]), f"{case['id']}: the claim is {claim!r}"
    found = calculate(expression)

    def value(expected):
        assert found.value == Fraction(expected), f"{found} where {expected} is expected"

    def refused(expected):
        assert expected in HINTS, f"{case['id']}: unknown code {expected!r}"
        assert (found.value, found.refused) == (None, expected), f"{found} where {expected} is expected"

    case = flat(case)
    compare(case, {"value": value, "shown": equals(found.shown), "refused": refused})


# --- bm25, chunks, retrieval_metrics, rag -----------------------------------


def given(case: dict, *fields: str) -> dict:
    """The `input` of a case, of no other fields than these."""
    values = in_full(case["input"])
    assert values.keys() <= {*fields}, f"{case['id']}: unknown fields {sorted(values.keys() - {*fields})}"
    return values


def near(found) -> Callable:
    """A check for numbers within 0.0001, in lists and tables as well; all else has to be exactly this."""

    def check(expected):
        if isinstance(expected, dict):
            has_them = isinstance(found, dict) and found.keys() == expected.keys()
            assert has_them, f"{found!r} where {expected!r} is expected"
            for name, value in expected.items():
                near(found[name])(value)
        elif isinstance(expected, list):
            is_as_long = isinstance(found, list) and len(found) == len(expected)
            assert is_as_long, f"{found!r} where {expected!r} is expected"
            for one, value in zip(found, expected, strict=True):
                near(one)(value)
        elif isinstance(expected, float | int) and isinstance(found, float | int):
            assert abs(found - expected) <= 0.0001, f"{found!r} where {expected!r} is expected"
        else:
            equals(found)(expected)

    return check


def compare_or_raise(case: dict, checks: Callable[[], dict[str, Callable]], *fields: str) -> None:
    """`compare` for cases that may expect an error; `fields` are the facts that `checks` has where none is raised."""

    def fail(text: str) -> Callable:
        def check(expected):
            raise AssertionError(text)

        return check

    def raised(expected):
        assert expected in [kind.__name__ for kind in type(error).__mro__], f"{error!r} where {expected} is expected"

    try:
        found = checks() | {"raises": fail("nothing was raised")}
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as fault:
        error = fault
        found = dict.fromkeys(fields, fail(f"{fault!r} was raised")) | {"raises": raised}
    compare(flat(case), found)


def flat(case: dict) -> dict:
    """The case with an `any_of` that stands inside `expected` in its place."""
    if "any_of" not in (case.get("expected") or ()):
        return case
    return {name: value for name, value in case.items() if name != "expected"} | case["expected"]


def run_bm25(case: dict) -> None:
    only(case, "input")
    values = given(case, "docs", "docs_generator", "docs_single_string", "query", "k", "texts", "variant")
    if "variant" in values:
        pytest.skip(f"the variant {values['variant']} is not offered")

    def checks() -> dict[str, Callable]:
        if "texts" in values:
            return {"tokens": equals([words(text) for text in values["texts"]])}
        [docs] = [values[name] for name in ("docs", "docs_generator", "docs_single_string") if name in values]
        index = BM25((doc for doc in docs) if "docs_generator" in values else docs)
        hits = index.search(values["query"], values.get("k", 3))
        scores = dict(index.search(values["query"], len(docs)))
        assert all(hit.score == scores[hit.index] > 0 for hit in hits)
        scores = [scores.get(number, 0) for number in range(len(docs))]
        return {"ids": equals([hit.index for hit in hits]), "scores": near(scores), "ratio": near(1.5 + 1),
                "scores_without_factor": near([score / (1.5 + 1) for score in scores])}

    compare_or_raise(case, checks, "tokens", "ids", "scores", "ratio", "scores_without_factor")


def run_chunks(case: dict) -> None:
    only(case, "input")
    values = given(case, "text", "size", "overlap", "doc")
    size, overlap = values.get("size", 800), values.get("overlap", 0)

    def checks() -> dict[str, Callable]:
        found = pieces(values["text"], size, overlap)
        placed = passages(values["text"], values.get("doc", ""), lambda text: pieces(text, size, overlap))
        assert all(piece.strip() and len(piece) <= size for piece in found)

        def longest(expected):
            assert all(len(piece) <= expected for piece in found), found

        def mean_length(expected):
            assert found and sum(map(len, found)) / len(found) > expected, found

        def heading(expected):
            assert len(found) == 1, found
            equals(next((each.heading for each in placed if each.heading), ""))(expected)

        return {"chunks": equals(found), "n": equals(len(found)), "max_len": longest, "mean_len_above": mean_length,
                "ids": equals([[values.get("doc", ""), number] for number in range(len(found))]), "heading": heading}

    compare_or_raise(case, checks, "chunks", "n", "max_len", "mean_len_above", "ids", "heading")


def run_retrieval_metrics(case: dict) -> None:
    only(case, "input")
    values = given(case, "gold", "run", "k")
    metrics = {"hit": hit_at, "mrr": reciprocal_rank, "recall": recall_at, "ndcg": ndcg_at}

    def mean(metric: Callable):
        if isinstance(values["k"], list):
            return [mean_over(metric, values["gold"], values["run"], k) for k in values["k"]]
        return mean_over(metric, values["gold"], values["run"], values["k"])

    compare_or_raise(case, lambda: {name: near(mean(metric)) for name, metric in metrics.items()}, *metrics)


RAG_KINDS = {"no_hits", "refusal", "prompt", "control_tokens", "prefix", "budget", "dedupe", "citation", "rrf",
             "ttft_stream", "ttft_runs"}


def run_rag(case: dict) -> None:
    only(case, "kind", "input")
    assert case["kind"] in RAG_KINDS, f"{case['id']}: unknown kind {case['kind']!r}"
    globals()[f"run_{case['kind']}"](case)


def sources_of(items: list) -> list[Source]:
    """A source for each text of a case, or for each id, whose text says which it is."""
    return [Source(str(item), str(item), f"What {item} says.") for item in items]


def asked(case: dict, *texts: str, tokenizer=None) -> ScriptedModel:
    """A model that was asked the question of a case about passages of these texts; its prompt is in `prompts`."""
    model = ScriptedModel(["It is so [1]."], tokenizer)
    found = [Source(str(number), "a title", text) for number, text in enumerate(texts)]
    answer(model, case["input"].get("question", "which?"), lambda question, k: found, max(1, len(texts)))
    return model


def run_no_hits(case: dict) -> None:
    values, model = given(case, "question", "hits"), ScriptedModel(["It is so."])
    found = answer(model, values["question"], lambda question, k: sources_of(values["hits"]))
    compare(case, {"model_called": equals(bool(model.prompts)),
                   "answer_is_refusal": equals(found.refused and found.text == REFUSALS["en"])})


def run_refusal(case: dict) -> None:
    """Without a model: the fixed sentences; and they have to be recognised as refusals."""
    values = given(case, "question", "context")
    found = [answer(ScriptedModel([]), values["question"], lambda question, k: [], language=language)
             for language in REFUSALS]

    def matches(expected):
        assert all(re.search(expected, each.text) and each.refused for each in found), found

    compare(case, {"answer_matches": matches})


def run_prompt(case: dict) -> None:
    model = asked(case, given(case, "context", "question")["context"])
    text = model.decode(model.prompts[-1])

    def contains(expected):
        assert expected in text and text.count(case["input"]["context"]) == 1, text

    compare(case, {"prompt_contains": contains})


def run_control_tokens(case: dict, tokenizer=None) -> None:
    context = given(case, "context", "question")["context"]

    def count(text: str) -> int:
        model = asked(case, text, tokenizer=tokenizer)
        return model.prompts[-1].count(model.tokenizer.convert_tokens_to_ids("<|im_start|>"))

    def check(expected):
        assert expected == "same as with a harmless context", f"{case['id']}: unknown n_im_start_ids {expected!r}"
        assert count(context) == count(harmless(context)) == count("x") > 0

    compare(case, {"n_im_start_ids": check})


def run_prefix(case: dict) -> None:
    values = given(case, "contexts", "question")
    texts = [context if isinstance(context, list) else [context] for context in values["contexts"]]
    prompts = [asked(case, *each).prompts[-1] for each in texts]
    model = ScriptedModel([])
    fixed = model.encode(rag_messages("?", []))[:-len(model.encode([{"role": "user", "content": "Question: ?"}]))]
    has_them = len(fixed) > 100 and all(prompt[:len(fixed)] == fixed for prompt in prompts)
    compare(case, {"instructions_in_common_prefix": equals(has_them)})


class CountingModel:
    """A model for which a prompt has as many tokens as a case gives to its question and to each passage in it."""

    def __init__(self, question_tokens: int, chunk_tokens: list[int], limit: int):
        self.context, self.tokens = limit, {f"(chunk {place})": count for place, count in enumerate(chunk_tokens)}
        self.tokens["(the question)"] = question_tokens

    def encode(self, messages: list[dict]) -> list[int]:
        text = messages[-1]["content"]
        return [0] * sum(count for part, count in self.tokens.items() if part in text)


def run_budget(case: dict) -> None:
    values = given(case, "context_limit_tokens", "chunk_tokens", "question_tokens")
    model = CountingModel(values["question_tokens"], values["chunk_tokens"], values["context_limit_tokens"])
    chunks = [Source(str(place), "", f"(chunk {place})") for place in range(len(values["chunk_tokens"]))]

    def checks() -> dict[str, Callable]:
        used, dropped = fit(model, "(the question)", chunks, max_new_tokens=0)
        assert [*used, *dropped] == chunks
        whole = rag_messages("(the question)", used)[-1]["content"].endswith("(the question)")
        return {"chunks_used": equals(len(used)), "question_whole": equals(whole)}

    compare_or_raise(case, checks, "chunks_used", "question_whole")


def run_dedupe(case: dict) -> None:
    values = given(case, "hits", "k")
    found = answer(ScriptedModel(["It is so."]), "?", lambda question, k: sources_of(values["hits"]), values["k"])
    compare(case, {"used": equals([each.id for each in found.sources])})


def run_citation(case: dict) -> None:
    values = given(case, "sources", "answer")
    valid, invalid = citations(values["answer"], len(values["sources"]))
    cited = [values["sources"][number - 1] for number in valid]
    compare(case, {"cited": equals(cited), "valid": equals(not invalid)})


def run_ttft_stream(case: dict) -> None:
    compare(case, {"ttft_s": near(time_to_first_text(given(case, "stream")["stream"]))})


def run_ttft_runs(case: dict) -> None:
    (runs,) = case["input"].values()  # whatever it is called
    compare_or_raise(case, lambda: {"ttft_s": near(median_without_warm_up(runs))}, "ttft_s")


def run_rrf(case: dict) -> None:
    values = given(case, "dense", "sparse", "k", "weights", "gold")
    legs = [[hashable(item) for item in values[name]] for name in ("dense", "sparse")]

    def checks() -> dict[str, Callable]:
        fused = reciprocal_rank_fusion(legs, values.get("weights"), values.get("k", 60))
        rankings = [*legs, [hit.index for hit in fused]]

        def ranking(expected):
            scores = dict(fused)
            near(scores)({hashable(item): score for item, score in expected})
            in_order = [scores[hashable(item)] for item, _ in expected]
            assert in_order == sorted(in_order, reverse=True), fused  # which of two with one score is first is open

        def hits_at_1(expected):
            assert "gold" in values, f"{case['id']}: hit1 without gold"
            right = values["gold"]
            one = not isinstance(right, list) or any(hashable(right) in ranking for ranking in rankings)
            right = [hashable(right)] if one else [hashable(item) for item in right]
            found = [hit_at(right, ranking, 1) for ranking in rankings]
            assert len(found) == len(expected), f"{found} where {expected!r} is expected"
            near(found)([*expected.values()] if isinstance(expected, dict) else expected)

        return {"ranking": ranking, "hit1": hits_at_1}

    compare_or_raise(case, checks, "ranking", "hit1")


def hashable(item):
    """An id as it is, or a pair of document and number as a tuple."""
    return tuple(item) if isinstance(item, list) else item


# --- grader -----------------------------------------------------------------


def run_grader(case: dict) -> None:
    only(case, "reply", "gold", "language", "question")
    options = case.get("any_of") or [case["expected"]]
    assert {*options} <= {*VERDICTS}, f"{case['id']}: unknown verdicts {options}"
    given = case["reply"], case["gold"], case.get("language", "en"), case.get("question", "")
    first, second = grade(*given), grade(*given)
    assert (first, first.why, first.found) == (second, second.why, second.found) and first.why
    where = f"{case['id']} ({case['note']}): {first}, because {first.why}: {first.found}"
    assert first in options, where


# --- statistics -------------------------------------------------------------


def run_statistics(case: dict) -> None:
    only(case, "kind", "successes", "n", "only_a", "only_b")
    fields = {"wilson": (wilson, "successes", "n"), "mcnemar_exact": (mcnemar, "only_a", "only_b")}
    assert case["kind"] in fields, f"{case['id']}: unknown kind {case['kind']!r}"
    function, *names = fields[case["kind"]]
    only(case, "kind", *names)

    def checks() -> dict[str, Callable]:
        found = function(*(case[name] for name in names))
        return {"value": near(list(found) if isinstance(found, tuple) else found)}

    expected = case["expected"] if isinstance(case["expected"], dict) else {"value": case["expected"]}
    compare_or_raise(case | {"expected": expected}, checks, "value")


# --- all of them ------------------------------------------------------------

RUNNERS = {
    "tool_calls": run_tool_calls, "agent_loop": run_agent_loop, "calculator": run_calculator, "bm25": run_bm25,
    "chunks": run_chunks, "retrieval_metrics": run_retrieval_metrics, "rag": run_rag, "statistics": run_statistics,
    "grader": run_grader,
}


@pytest.mark.parametrize("name, line", lines())
def test_case(name, line):
    if line is None and not (FOLDER / f"{name}.jsonl").is_file():
        pytest.skip(f"there is no {name}.jsonl in {FOLDER.name}")
    if line is None and name not in RUNNERS:
        pytest.skip(f"no room reads {name}.jsonl yet")
    assert line is not None, f"{name}.jsonl is empty"
    RUNNERS[name](read(line))


@pytest.mark.parametrize("name, line", [each for each in lines(MORE) if each.values[1]])
def test_more_cases(name, line):
    RUNNERS[name](read(line))


def test_nothing_in_the_folder_is_left_out():
    assert FOLDER.is_dir(), "CASES names no folder"
    assert {path.stem for path in FOLDER.glob("*.jsonl")} <= FILES


@cache
def real_tokenizer():
    if not models.is_ready(models.DEFAULT):
        pytest.fail(f"{models.DEFAULT} is not ready: run `python3 -m lib fetch {models.DEFAULT}`")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(models.folder(models.DEFAULT), local_files_only=True)


@pytest.mark.model
@pytest.mark.parametrize(
    "line", [pytest.param(*each.values[1:], id=each.id) for each in lines()
             if each.values[0] == "agent_loop" and "n_im_start_ids" in str(each.values[1])]
)
def test_control_tokens_stay_data_with_the_real_tokenizer(line):
    starts(read(line), real_tokenizer())("same as with a harmless result")


@pytest.mark.model
@pytest.mark.parametrize("line", [pytest.param(*each.values[1:], id=each.id) for each in lines() + lines(MORE)
                                  if each.values[0] == "rag" and '"control_tokens"' in str(each.values[1])])
def test_control_tokens_in_passages_stay_data_with_the_real_tokenizer(line):
    run_control_tokens(read(line), real_tokenizer())


# --- the runner itself ------------------------------------------------------

GOOD = {"id": "x", "source": "here", "note": "why", "reply": "Hi.", "truncated": False,
        "expected": {"calls": [], "codes": [], "is_answer": True}}
BM = {"id": "x", "source": "here", "note": "why", "input": {"docs": ["tea", "pot"], "query": "tea", "k": 2},
      "expected": {"ids": [0]}}
CUT = BM | {"input": {"text": "aa bb", "size": 2, "overlap": 0}, "expected": {"chunks": ["aa", "bb"]}}
RANKED = BM | {"input": {"gold": {"q": ["a"]}, "run": {"q": ["b", "a"]}, "k": 2}, "expected": {"mrr": 0.5}}
FUSED = BM | {"kind": "rrf", "input": {"dense": ["a"], "sparse": ["a", "b"], "k": 60},
              "expected": {"ranking": [["a", 0.03279], ["b", 0.01613]]}}
SUM = {"id": "x", "source": "here", "note": "why", "expression": "1 + 2 = 4", "claim": "4",
       "expected": {"value": "3", "shown": "3"}}
WILSON = {"id": "x", "source": "here", "note": "why", "kind": "wilson", "successes": 0, "n": 10,
          "expected": [0.0, 0.2775]}
LOOP = {"id": "x", "source": "here", "note": "why", "protocol": "tools", "replies": ["Hi."], "tool_results": [],
        "max_turns": 2, "expected": {"status": "answered", "answer": "Hi.", "turns": 1}}


GRADED = {"id": "x", "source": "here", "note": "why", "reply": "12", "expected": "correct",
          "gold": {"number": "12", "unit": None, "tolerance": "0"}}


def rag(kind: str, values: dict, **expected) -> dict:
    return {"id": "x", "source": "here", "note": "why", "kind": kind, "input": values, "expected": expected}


def expecting(case: dict, **facts) -> dict:
    return case | {"expected": case["expected"] | facts}


@pytest.mark.parametrize("name, case", [
    ("tool_calls", expecting(GOOD, codes=["bad_jsn"])),
    ("tool_calls", expecting(GOOD, codes=["bad_json"])),
    ("tool_calls", expecting(GOOD, is_answer=False)),
    ("tool_calls", expecting(GOOD, is_answer=1)),
    ("tool_calls", expecting(GOOD, anwser=True)),
    ("tool_calls", expecting(GOOD, calls=[{"name": "now", "arguments": {}}])),
    ("tool_calls", GOOD | {"replay": "Hi."}),
    ("tool_calls", GOOD | {"expected": {}}),
    ("tool_calls", GOOD | {"any_of": [GOOD["expected"]]}),
    ("tool_calls", {name: value for name, value in GOOD.items() if name != "expected"}),
    ("tool_calls", {name: value for name, value in GOOD.items() if name != "note"}),
    ("tool_calls", GOOD | {"policy": "loose"}),
    ("tool_calls", GOOD | {"reply_repr": "1 +"}),
    ("agent_loop", expecting(LOOP, status="fine")),
    ("agent_loop", expecting(LOOP, status="loop")),
    ("agent_loop", expecting(LOOP, answer="Ho.")),
    ("agent_loop", expecting(LOOP, turns=2)),
    ("agent_loop", expecting(LOOP, results_contain=["x"])),
    ("agent_loop", expecting(LOOP, results_in_order=["x"])),
    ("agent_loop", expecting(LOOP, results_cut=1)),
    ("agent_loop", expecting(LOOP, corrections=1)),
    ("agent_loop", expecting(LOOP, format_errors=1)),
    ("agent_loop", expecting(LOOP, evidence_seen=True)),
    ("agent_loop", expecting(LOOP, n_im_start_ids="some")),
    ("bm25", BM | {"input": BM["input"] | {"top": 2}}),
    ("bm25", BM | {"query": "tea"}),
    ("bm25", expecting(BM, ids=[1])),
    ("bm25", expecting(BM, ids=[])),
    ("bm25", expecting(BM, hits=[0])),
    ("bm25", expecting(BM, scores=[0.6931])),
    ("bm25", expecting(BM, scores=[0.6934, 0])),
    ("bm25", expecting(BM, raises="ValueError")),
    ("bm25", BM | {"expected": {"any_of": [{"ids": [1]}, {"raises": "ValueError"}]}}),
    ("bm25", BM | {"input": BM["input"] | {"k": -1}}),
    ("bm25", BM | {"input": BM["input"] | {"k": -1}, "expected": {"raises": "TypeError"}}),
    ("bm25", BM | {"input": {"texts": ["Tea"]}, "expected": {"tokens": [["Tea"]]}}),
    ("chunks", expecting(CUT, chunks=["aa bb"])),
    ("chunks", expecting(CUT, n=1)),
    ("chunks", expecting(CUT, max_len=1)),
    ("chunks", expecting(CUT, mean_len_above=2)),
    ("chunks", expecting(CUT, heading="")),
    ("chunks", expecting(CUT, ids=[["", 1], ["", 2]])),
    ("chunks", expecting(CUT, pieces=2)),
    ("chunks", CUT | {"input": CUT["input"] | {"overlap": 2}}),
    ("retrieval_metrics", expecting(RANKED, mrr=1.0)),
    ("retrieval_metrics", expecting(RANKED, mrr=[0.5])),
    ("retrieval_metrics", expecting(RANKED, map=0.5)),
    ("rag", expecting(FUSED, ranking=[["b", 0.01613], ["a", 0.03279]])),
    ("rag", expecting(FUSED, ranking=[["a", 0.03279]])),
    ("rag", expecting(FUSED, hit1=[1.0, 1.0, 1.0])),
    ("rag", FUSED | {"kind": "fuse"}),
    ("grader", GRADED | {"expected": "wrong"}),
    ("grader", GRADED | {"expected": "right"}),
    ("grader", GRADED | {"gold": {"number": "12"}}),
    ("grader", GRADED | {"language": "fr"}),
    ("grader", GRADED | {"lang": "en"}),
    ("rag", rag("no_hits", {"question": "a?", "hits": []}, model_called=True)),
    ("rag", rag("no_hits", {"question": "a?", "hits": ["a"]}, answer_is_refusal=True)),
    ("rag", rag("no_hits", {"question": "a?", "hits": ["a"]}, model_called=False)),
    ("rag", rag("refusal", {"question": "a?", "context": "b"}, answer_matches="I know")),
    ("rag", rag("prompt", {"context": "a", "question": "b?"}, prompt_contains="[QUESTION]")),
    ("rag", rag("control_tokens", {"context": "a"}, n_im_start_ids=3)),
    ("rag", rag("prefix", {"contexts": ["a", "b"]}, instructions_in_common_prefix=False)),
    ("rag", rag("budget", {"context_limit_tokens": 9, "chunk_tokens": [5, 5], "question_tokens": 2}, chunks_used=2)),
    ("rag", rag("budget", {"context_limit_tokens": 9, "chunk_tokens": [], "question_tokens": 10}, chunks_used=0)),
    ("rag", rag("dedupe", {"hits": ["a", "a"], "k": 2}, used=["a", "a"])),
    ("rag", rag("citation", {"sources": ["a"], "answer": "[2]"}, cited=[], valid=True)),
    ("rag", rag("citation", {"sources": ["a"], "answer": "[1]"}, cited=["b"])),
    ("rag", rag("ttft_stream", {"stream": [["", 1.0], ["a", 2.0]]}, ttft_s=1.0)),
    ("rag", rag("ttft_runs", {"seconds": [9.0, 1.0, 3.0]}, ttft_s=3.0)),
    ("statistics", WILSON | {"expected": [0.0, 0.3]}),
    ("statistics", WILSON | {"expected": 0.0}),
    ("statistics", WILSON | {"expected": {"raises": "ValueError"}}),
    ("statistics", WILSON | {"kind": "wald"}),
    ("statistics", WILSON | {"only_a": 1}),
    ("calculator", expecting(SUM, value="4")),
    ("calculator", expecting(SUM, shown="3.0")),
    ("calculator", expecting(SUM, refused="syntax")),
    ("calculator", SUM | {"claim": "3"}),
    ("calculator", SUM | {"claims": "4"}),
    ("calculator", SUM | {"expected": {"refused": "word"}}),
    ("calculator", SUM | {"expression": "one", "expected": {"refused": "wrod"}}),
    ("calculator", SUM | {"expression": "one", "claim": None, "expected": {"refused": "word"}}),
    ("calculator", SUM | {"expected": {"any_of": [{"value": "4"}, {"refused": "word"}]}}),
    ("agent_loop", LOOP | {"protocol": "lines", "replies": ["ANSWER: Ho."]}),
    ("agent_loop", LOOP | {"protocol": "lines", "replies": ["CALC: 1", "ANSWER: Hi."]}),
    ("agent_loop", LOOP | {"protocol": "words"}),
    ("agent_loop", LOOP | {"replies": [{"text": "Hi.", "cut": True}]}),
    ("agent_loop", LOOP | {"replies": ['<tool_call>{"name": "now"}</tool_call>', "Hi."]}),
])
def test_the_runner_fails_for_what_is_wrong_or_unknown(name, case):
    with pytest.raises((AssertionError, pytest.fail.Exception, ValueError, SyntaxError)):
        RUNNERS[name](read(json.dumps(case)))


def test_the_runner_takes_one_of_two_and_long_values():
    wrong, right = GOOD["expected"] | {"is_answer": False}, GOOD["expected"]
    case = {name: value for name, value in GOOD.items() if name not in ("expected", "reply")}
    run_tool_calls(read(json.dumps(case | {"reply_repr": "'(' * 300", "any_of": [wrong, right]})))
    with pytest.raises(pytest.fail.Exception):
        run_tool_calls(read(json.dumps(case | {"reply_repr": "'(' * 300", "any_of": [wrong, wrong]})))


def test_the_runner_reads_any_folder_and_says_what_it_skips(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.tests.test_cases.FOLDER", tmp_path)
    wrong = json.dumps(expecting(GOOD, is_answer=False))
    (tmp_path / "tool_calls.jsonl").write_text(f"{json.dumps(GOOD)}\n\n{wrong}\nno json\n", encoding="utf-8")
    (tmp_path / "agent_loop.jsonl").write_text("\n", encoding="utf-8")
    (tmp_path / "retrieval_metrics.jsonl").write_text("{}\n", encoding="utf-8")
    monkeypatch.delitem(RUNNERS, "retrieval_metrics", raising=False)
    found = {}
    for name, line in (each.values for each in lines()):
        try:
            test_case(name, line)
            found.setdefault(name, []).append("ran")
        except (pytest.skip.Exception, pytest.fail.Exception, AssertionError, ValueError) as end:
            found.setdefault(name, []).append(f"{type(end).__name__}: {end}".split("\n")[0])
    assert found["tool_calls"][:2] == ["ran", "Failed: x (why)"] and "JSONDecodeError" in found["tool_calls"][2]
    assert found["agent_loop"] == ["AssertionError: agent_loop.jsonl is empty"]
    assert found["retrieval_metrics"] == ["Skipped: no room reads retrieval_metrics.jsonl yet"]
    assert found["chunks"] == [f"Skipped: there is no chunks.jsonl in {tmp_path.name}"] and found.keys() == FILES


def test_the_runner_knows_what_the_readme_describes():
    text = (OWN / "README.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\.jsonl\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    described = {name: {word for row in re.findall(r"^\| ([\w, ]+?) \|", section, re.M) for word in row.split(", ")}
                 for name, section in sections.items()}
    assert described["tool_calls"] - {"code"} == CODES and described["grader"] - {"verdict"} == {*VERDICTS}
    assert described["agent_loop"] - {"status"} == STATUSES
    assert described["calculator"] - {"code"} == HINTS.keys()
    rows = re.findall(r"^  - (.*)", text.partition("- rag, by `kind`:\n")[2], re.M)
    assert {kind for row in rows for kind in re.findall(r"(?:^|; )(\w+):", row)} == RAG_KINDS
    stated = json.loads(re.search(r"```json\n(.*?)```", sections["tool_calls"], re.S)[1])
    assert stated == [{"name": tool.name, "parameters": tool.parameters} for tool in tools(print)]
    assert set(re.findall(r"(\w+)\.jsonl", "".join(re.findall("^## .*", text, re.M)))) == FILES
