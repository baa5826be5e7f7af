"""The evaluation `rag`: questions about the notes, asked alone, with the best k passages, the right one, and all."""
from __future__ import annotations

import re
from functools import cache

from lib.evaluations import load_notes, load_questions
from lib.generation import Generation
from lib.machinery.evaluations import Evaluation, Tell, keep
from lib.prefix_cache import PrefixCache
from lib.rag_prompt import Source, distinct, fit, rag_messages, source
from lib.retrieval import BM25

SMALL, LARGER = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
NEW_TOKENS = 48
FILES = ("notes-en", "article-rag", "notes-vi")
DEPTHS = (1, 3, 5, 10, 30)
READ = (("en", "same words"), ("en", "name or number"))  # questions that the larger model gets its passage for
USUAL = 3     # the depth at which every question is asked
SWEPT = 12    # questions of each language that are asked at every depth
CITED = f"k={USUAL}, citing"  # the same with a demand for the numbers of the passages
WHOLE = "en"  # whose notes are pasted in one after the other, as many as fit into the model's context


@cache
def questions() -> dict[str, dict]:
    """Every question by its id, in order."""
    return {question["id"]: question for name in FILES for question in load_questions(name)}


@cache
def swept(language: str) -> list[str]:
    """The ids of the questions that are asked at every depth: of each kind equally many, spread over the chapters."""
    asked = [each for each in load_questions(f"notes-{language}") if each["gold_passages"]]
    kinds = {kind: [each["id"] for each in asked if each["kind"] == kind] for kind in
             dict.fromkeys(each["kind"] for each in asked)}
    return [name for names in kinds.values() for name in names[::len(names) * len(kinds) // SWEPT]]


def keys() -> list[dict]:
    """The rows: every question alone, with k passages, with its own; some otherwise; the whole notes in one row."""
    asked, chosen = list(questions().values()), {*swept("en"), *swept("vi")}
    rows = []
    for each in asked:
        depths = [f"k={k}" for k in DEPTHS if k == USUAL or each["id"] in chosen]
        more = [CITED] * (each["id"] in chosen) + ["gold"] * bool(each["gold_passages"])
        rows += [(SMALL, condition, each["id"]) for condition in ("alone", *depths, *more)]
    rows += [(SMALL, "whole", WHOLE)]
    rows += [(LARGER, "gold", each["id"]) for each in asked if (each["language"], each["kind"]) in READ]
    return [dict(zip(("model", "condition", "question"), row, strict=True)) for row in rows]


# --- the passages -----------------------------------------------------------

@cache
def sources(language: str) -> tuple[Source, ...]:
    """The passages of the notes in a language."""
    return tuple(map(source, load_notes(language)))


@cache
def index(language: str) -> BM25:
    """The index over them."""
    return BM25(each.text for each in sources(language))


def given(key: dict) -> list[Source]:
    """The passages that a row's prompt is given, best first, as many as there are without regard to room."""
    if key["condition"] == "whole":
        return list(sources(key["question"]))
    question = questions()[key["question"]]
    there = sources(question["language"])
    if key["condition"] == "gold":
        return [next(each for each in there if each.id == question["gold_passages"][0])]
    k = int(re.search(r"\d+", key["condition"])[0])
    return [there[hit.index] for hit in index(question["language"]).search(question["question"], k)]


def inputs(key: dict) -> list:
    """What a row's key stands for: the question or questions, and the texts of the passages."""
    names = swept(WHOLE) if key["condition"] == "whole" else [key["question"]]
    passages = [] if key["condition"] == "alone" else given(key)
    return [[questions()[name]["question"] for name in names], [list(each) for each in passages]]


# --- a row ------------------------------------------------------------------

def compute(model, key: dict, tell: Tell) -> tuple[dict, dict]:
    """The replies of one row with their prompts' sizes, and their seconds."""
    if key["condition"] == "whole":
        return whole(model, key, tell)
    question = questions()[key["question"]]
    messages, used = [{"role": "user", "content": question["question"]}], []
    if key["condition"] != "alone":
        used, _ = fit(model, question["question"], distinct(given(key)), question["language"], NEW_TOKENS)
        messages = rag_messages(question["question"], used, question["language"], key["condition"] == CITED)
    values, seconds = reply(model, messages, tell)
    return {"passages": [each.id for each in used], **values}, seconds


def whole(model, key: dict, tell: Tell) -> tuple[dict, dict]:
    """The notes before each question in turn, on one prefix cache that holds them: only the first one pays."""
    asked = [questions()[name]["question"] for name in swept(key["question"])]
    used, _ = fit(model, max(asked, key=len), list(sources(key["question"])), key["question"], NEW_TOKENS)
    replies, seconds = [], []
    usual, model.cache = model.cache, PrefixCache(kept_tokens=model.context)
    try:
        for name in swept(key["question"]):
            messages = rag_messages(questions()[name]["question"], used, key["question"])
            values, took = reply(model, messages, tell)
            replies.append({"question": name, **values})
            seconds.append({"question": name, **took})
    finally:
        model.cache = usual
    return {"passages": len(used), "replies": replies}, {"replies": seconds}


def reply(model, messages: list[dict], tell: Tell) -> tuple[dict, dict]:
    """One reply as plain values, and its seconds."""
    result: Generation = model.reply(messages, max_new_tokens=NEW_TOKENS, on_token=keep.Teller(tell).on_token)
    return keep.reply(result), keep.reply_seconds(result)


def summary(values: dict) -> str:
    """What came of a row, in a few words."""
    last = values["replies"][-1] if "replies" in values else values
    return f"{last['prompt_tokens']:,} tokens in the prompt, {last['text']!r}"


SETTINGS = {"new_tokens": NEW_TOKENS, "depths": list(DEPTHS), "usual": USUAL, "swept": SWEPT, "whole": WHOLE}
EVALUATION = Evaluation("rag", __file__, (SMALL, LARGER), SETTINGS, keys, inputs, compute, summary)
