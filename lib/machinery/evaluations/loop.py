"""The evaluation `loop`: the article's three questions with two tools, on two models, under both policies."""
from __future__ import annotations

from lib.agent import Protocol, run_agent
from lib.evaluations import load_questions
from lib.machinery.evaluations import Evaluation, Tell, keep
from lib.tools import tool

MODELS = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
POLICIES = ("strict", "lenient")
LIMITS = {"max_turns": 5, "max_new_tokens": 256}


@tool
def multiply(a: float, b: float) -> float:
    """Multiply two numbers exactly."""
    return a * b


@tool
def add(a: float, b: float) -> float:
    """Add two numbers exactly."""
    return a + b


TOOLS = (multiply, add)


def keys() -> list[dict]:
    """Every question under every policy on every model."""
    return [{"model": model, "policy": policy, "question": question["id"]}
            for model in MODELS for policy in POLICIES for question in load_questions("loop")]


def asked(key: dict) -> str:
    """The text of a row's question."""
    return {question["id"]: question["question"] for question in load_questions("loop")}[key["question"]]


def compute(model, key: dict, tell: Tell) -> tuple[dict, dict]:
    """The episode of one row, and its seconds."""
    teller = keep.Teller(tell)
    episode = run_agent(model, asked(key), Protocol(tools=TOOLS, policy=key["policy"]), **LIMITS,
                        on_token=teller.on_token, on_turn=teller.on_turn)
    return {"episode": keep.values(episode)}, keep.seconds(episode)


EVALUATION = Evaluation("loop", __file__, MODELS, {**LIMITS, "tools": [tool.schema for tool in TOOLS]}, keys, asked,
                        compute, lambda values: keep.summary(values["episode"]))
