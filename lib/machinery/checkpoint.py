"""A checkpoint as the hub has it becomes the folder of a ready model: float32, tied weights once, nothing hidden."""
from __future__ import annotations

import json
import shutil
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .. import models
from . import Stop, bars, folders
from .vocabulary import tokenizer_config
from .weights import Weight, by_rows, write_weights

STORED = {"BF16": np.dtype("<u2"), "F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


def write_model(name: str, checkpoint: Path, folder: Path) -> None:
    """Fill `folder` with the model `name` from the hub's files in `checkpoint`; Stop where they are not it."""
    settings = _read(checkpoint / "config.json")
    weights = weights_of(checkpoint, tied=settings.get("tie_word_embeddings", False))
    parameters = sum(weight.size for weight in weights)
    folders.check_parameters(name, parameters)
    settings.pop("torch_dtype", None)
    folders.write_json(folder / "config.json", {**settings, "dtype": "float32"})
    try:
        write_texts(checkpoint, folder, models.entry(name)["eos"])
    except KeyError as error:
        raise Stop(f"The files of {name} in {checkpoint} lack {error}: its source is another model than the registry "
                   "means.") from error
    with bars.bar(f"{name}: convert", 4 * parameters) as advance:
        digest = write_weights(folder / folders.WEIGHTS, weights, advance)
    place = models.entry(name)["hub"]
    source = {"repository": place["repository"], "revision": place["revision"]}
    folders.finish(folder, name, source, parameters, {folders.WEIGHTS: digest})


def weights_of(checkpoint: Path, tied: bool) -> list[Weight]:
    """All weights of the checkpoint's files; without the output matrix where it is the embedding itself."""
    weights = [weight for path in sorted(checkpoint.glob("*.safetensors")) for weight in _weights_in(path)]
    return [weight for weight in weights if not (tied and weight.name == "lm_head.weight")]


def _weights_in(path: Path) -> list[Weight]:
    """The weights of one safetensors file, in the order of their bytes."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            entries = json.loads(file.read(length))
            entries.pop("__metadata__", None)
            placed = sorted(entries.items(), key=lambda entry: entry[1]["data_offsets"])
            if 8 + length + placed[-1][1]["data_offsets"][1] != path.stat().st_size:
                raise ValueError("its size is not the one its header gives")
            return [_weight(path, 8 + length, name, facts) for name, facts in placed]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Stop(f"{path} is damaged ({error}): delete it and give the command again.") from error


def _weight(path: Path, start: int, name: str, facts: dict[str, Any]) -> Weight:
    """One weight and the jobs that make its float32 values; ValueError for a type of numbers that is not known."""
    if facts["dtype"] not in STORED:
        raise ValueError(f"{name} is stored as {facts['dtype']}; known are {', '.join(STORED)}")
    kind, first, shape = STORED[facts["dtype"]], start + facts["data_offsets"][0], tuple(facts["shape"])

    def make(begin: int, end: int) -> np.ndarray:
        stored = np.memmap(path, kind, "r", first + begin * kind.itemsize, (end - begin,))
        return _from_bf16(stored) if facts["dtype"] == "BF16" else stored.astype(np.float32)

    return Weight(name, shape, by_rows(prod(shape), 1, make))


def _from_bf16(values: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits: the upper half of theirs."""
    return (values.astype(np.uint32) << 16).view(np.float32)


def write_texts(checkpoint: Path, folder: Path, eos: list[str]) -> None:
    """Write the tokenizer's files and generation_config.json; the first of `eos` ends a turn, all end a reply."""
    settings = _read(checkpoint / "tokenizer_config.json")
    added = _read(checkpoint / "tokenizer.json")["added_tokens"]
    ids = {token["content"]: token["id"] for token in added}
    special = [token["content"] for token in added if token["special"]]
    pad = _text(settings.get("pad_token")) or eos[-1]
    length = _read(checkpoint / "config.json")["max_position_embeddings"]
    shutil.copyfile(checkpoint / "tokenizer.json", folder / "tokenizer.json")
    (folder / "chat_template.jinja").write_text(_template(checkpoint, settings), encoding="utf-8", newline="\n")
    folders.write_json(folder / "tokenizer_config.json", tokenizer_config(special, eos[0], pad, length))
    folders.write_json(folder / "generation_config.json",
                       folders.generation_config([ids[token] for token in eos], ids[pad]))


def _template(checkpoint: Path, settings: dict) -> str:
    """The chat template: a file of its own, or, in older repositories, a setting of the tokenizer."""
    path = checkpoint / "chat_template.jinja"
    return path.read_text(encoding="utf-8") if path.is_file() else settings["chat_template"]


def _text(token: str | dict | None) -> str | None:
    """A special token's text, in either form that tokenizer_config.json knows."""
    return token["content"] if isinstance(token, dict) else token


def _read(path: Path) -> dict:
    """The JSON file's content; Stop where it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Stop(f"{path} is damaged ({error}): delete it and give the command again.") from error
