"""What the figures of the notes are read from: configs, tokenizers, templates, weights of models that are ready."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

from lib import models
from lib.chat import Span, render, spans, without_controls

QWEN, SMOL = "qwen2.5-coder-0.5b", "smollm2-135m"
ALWAYS = (QWEN, SMOL)  # every run of the tests has these; the others may be missing


class NotReady(Exception):
    """A figure needs a model that is not on this machine."""


@lru_cache
def path(name: str) -> Path:
    """The folder of a ready model; NotReady where it is missing."""
    if not models.is_ready(name):
        raise NotReady(f"{name} is not ready: run `python3 -m lib fetch {name}`")
    return models.folder(name)


@lru_cache
def config(name: str) -> SimpleNamespace:
    """config.json of a model, as attributes."""
    return SimpleNamespace(**json.loads((path(name) / "config.json").read_text(encoding="utf-8")))


@lru_cache
def tokenizer(name: str):
    """The model's tokenizer as transformers loads it, chat template included."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path(name), local_files_only=True)


@lru_cache
def tokenizer_json(name: str) -> dict:
    """tokenizer.json of a model: normaliser, pre-tokeniser, vocabulary, merges, added tokens."""
    return json.loads((path(name) / "tokenizer.json").read_text(encoding="utf-8"))


@lru_cache
def tensors(name: str) -> dict[str, SimpleNamespace]:
    """The header of a model's weights: tensor name to dtype, shape and bytes."""
    with open(path(name) / "model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__", None)
    return {
        key: SimpleNamespace(
            dtype=fact["dtype"], shape=tuple(fact["shape"]), bytes=fact["data_offsets"][1] - fact["data_offsets"][0]
        )
        for key, fact in header.items()
    }


def ids(name: str, text: str) -> list[int]:
    """The token ids of a text encoded at once, control tokens in it included."""
    return tokenizer(name)(text, add_special_tokens=False)["input_ids"]


def typed(name: str, text: str) -> list[int]:
    """The token ids of a text as data: control tokens in it are spelt out."""
    return without_controls(tokenizer(name)).encode(text, add_special_tokens=False).ids


def count(name: str, text: str) -> int:
    """The number of tokens of a text encoded at once."""
    return len(ids(name, text))


def pieces(name: str, text: str) -> list[str]:
    """The tokens of a text as they read, one string each; bytes that are no whole character show as \ufffd."""
    return [tokenizer(name).decode([id]) for id in ids(name, text)]


def prompt(name: str, messages: list[dict], tools: list[dict] | None = None) -> list[Span]:
    """The prompt of some messages, one Span a token, as the course feeds it."""
    return spans(render(messages, tokenizer(name), tools), tokenizer(name))


def vietnamese(number: str) -> str:
    """A number in English digits as Vietnamese writes it: 7,006,652 as 7.006.652, 0.69 as 0,69."""
    return number.translate({ord(","): ".", ord("."): ","})


def user(text: str) -> list[dict]:
    """A conversation of one message by the user."""
    return [{"role": "user", "content": text}]
