"""Turns a GGUF file into a folder that transformers maps into memory: float32 weights, tokenizer, settings.

Done once; every kernel then shares the same pages. The bytes are the same on every machine, and are checked.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.quants import dequantize

from .. import models
from . import Stop, folders
from .gguf import Header, read_header
from .vocabulary import write_tokenizer
from .weights import Weight, by_rows, write_weights

CLASSES = {"qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM"}
OUTSIDE_LAYERS = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
IN_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
Advance = Callable[[int], None]


def convert(source: Path, folder: Path, name: str, advance: Advance = lambda count: None) -> None:
    """Fill the empty `folder` with the model `name` from the GGUF file `source`; Stop where the result is wrong."""
    entry = models.entry(name)
    try:
        gguf = read_header(source)
        folders.write_json(folder / "config.json", config(gguf.metadata))
        write_vocabulary(folder, gguf.metadata, entry["eos"])
        weights = weights_of(gguf)
    except (ValueError, KeyError) as error:
        raise Stop(f"{source.name} could not be converted: {error}") from error
    parameters = sum(weight.size for weight in weights)
    folders.check_parameters(name, parameters)
    digest = write_weights(folder / folders.WEIGHTS, weights, advance)
    origin = {"file": entry["file"], "sha256": entry["file_sha256"]}
    folders.finish(folder, name, origin, parameters, {folders.WEIGHTS: digest})


def write_vocabulary(folder: Path, metadata: dict[str, Any], eos: list[str]) -> None:
    """Write the tokenizer's files and generation_config.json; the first of `eos` ends a turn, all end a reply."""
    length = metadata[f"{metadata['general.architecture']}.context_length"]
    write_tokenizer(folder, metadata, eos[0], length)
    tokens = metadata["tokenizer.ggml.tokens"]
    pad = metadata["tokenizer.ggml.padding_token_id"]
    folders.write_json(folder / "generation_config.json",
                       folders.generation_config([tokens.index(token) for token in eos], pad))


def weights_of(gguf: Header) -> list[Weight]:
    """The model's weights, in the order a forward pass meets them.

    `output.weight`, where the file has one, stands for the embedding too: it is the same tied matrix of the
    original model, which the quantiser stored a second time and with more bits.
    """
    names = [name for name in gguf.tensors if name != "output.weight"]
    return [_weight(gguf, name) for name in sorted(names, key=_place)]


def torch_name(name: str) -> str:
    """The name that transformers gives to the tensor that GGUF calls `name`; KeyError for an unknown one."""
    if name in OUTSIDE_LAYERS:
        return OUTSIDE_LAYERS[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{IN_LAYER[part]}.{kind}"


def _place(name: str) -> tuple:
    """Where a tensor stands in the file: the embedding, the layers, the last norm."""
    if layer := re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name):
        return 1, int(layer[1]), list(IN_LAYER).index(layer[2]), layer[3]
    return (0,) if name == "token_embd.weight" else (2, name)


def _weight(gguf: Header, name: str) -> Weight:
    """One weight and the jobs that make its float32 values."""
    stored = "output.weight" if name == "token_embd.weight" and "output.weight" in gguf.tensors else name
    tensor = gguf.tensors[stored]
    if gguf.metadata["general.architecture"] == "llama" and re.search(r"\.attn_[qk]\.", name):
        jobs = [lambda: dequantize(unpermuted(gguf.rows(name), heads(gguf.metadata, name)), tensor.type)]
    else:
        jobs = by_rows(prod(tensor.shape[:-1]), tensor.shape[-1],
                       lambda start, stop: dequantize(gguf.rows(stored, start, stop), tensor.type))
    return Weight(torch_name(name), tensor.shape, jobs)


def heads(metadata: dict[str, Any], name: str) -> int:
    """How many heads the query or key matrix `name` has."""
    return metadata["llama.attention.head_count" + ("_kv" if ".attn_k." in name else "")]


def unpermuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """A llama query or key matrix in transformers' order of rows (halves of a head, not pairs, are rotated)."""
    pairs = rows.reshape(heads, len(rows) // heads // 2, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def config(metadata: dict[str, Any]) -> dict:
    """The content of config.json."""
    architecture = metadata["general.architecture"]
    if architecture not in CLASSES:
        raise ValueError(f"the architecture {architecture!r} is not one of {', '.join(CLASSES)}")
    facts = {key.removeprefix(architecture + "."): value for key, value in metadata.items()}
    return {
        "architectures": [CLASSES[architecture]], "model_type": architecture, "dtype": "float32",
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata["tokenizer.ggml.padding_token_id"],
        "hidden_act": "silu", "hidden_size": facts["embedding_length"],
        "intermediate_size": facts["feed_forward_length"],
        "max_position_embeddings": facts["context_length"],
        "num_attention_heads": facts["attention.head_count"], "num_hidden_layers": facts["block_count"],
        "num_key_value_heads": facts["attention.head_count_kv"],
        "rms_norm_eps": _decimal(facts["attention.layer_norm_rms_epsilon"]),
        "rope_theta": _decimal(facts["rope.freq_base"]), "tie_word_embeddings": True, "use_cache": True,
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
    }


def _decimal(value: float) -> float:
    """The shortest decimal of a float32: 1e-06, where its exact value is 9.99999997e-07."""
    return float(str(np.float32(value)))
