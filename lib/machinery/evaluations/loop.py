"""The evaluation `loop`: the article's three questions with two tools, on two models, under three conditions."""
from __future__ import annotations

from lib.agent import Protocol, run_agent
from lib.evaluations import load_questions
from lib.machinery.evaluations import Evaluation, Tell, keep
from lib.tools import tool

MODELS = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
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
WORKED = (  # an exchange in front of the question
    {"role": "user", "content": "17 nhân 23 bằng bao nhiêu?"},
    {"role": "assistant",
     "content": '<tool_call>\n{"name": "multiply", "arguments": {"a": 17, "b": 23}}\n</tool_call>'},
    {"role": "tool", "content": "391"},
    {"role": "assistant", "content": "17 nhân 23 bằng 391."},
)
CONDITIONS = {"strict": Protocol(TOOLS), "lenient": Protocol(TOOLS, policy="lenient"),
              "worked": Protocol(TOOLS, policy="lenient", examples=WORKED)}


def keys() -> list[dict]:
    """Every question under every condition on every model."""
    return [{"model": model, "condition": condition, "question": question["id"]}
            for model in MODELS for condition in CONDITIONS for question in load_questions("loop")]


def asked(key: dict) -> str:
    """The text of a row's question."""
    return {question["id"]: question["question"] for question in load_questions("loop")}[key["question"]]


def compute(model, key: dict, tell: Tell) -> tuple[dict, dict]:
    """The episode of one row, and its seconds."""
    teller = keep.Teller(tell)
    episode = run_agent(model, asked(key), CONDITIONS[key["condition"]], **LIMITS,
                        on_token=teller.on_token, on_turn=teller.on_turn)
    return {"episode": keep.values(episode)}, keep.seconds(episode)


SETTINGS = {**LIMITS, "conditions": {name: protocol.settings() for name, protocol in CONDITIONS.items()}}
EVALUATION = Evaluation("loop", __file__, MODELS, SETTINGS, keys, asked, compute,
                        lambda values: keep.summary(values["episode"]))
