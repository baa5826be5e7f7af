"""A GGUF file's vocabulary becomes the tokenizer its model was trained with, not merely a likely one.

A GGUF file holds tokens and merges, but neither the normaliser nor the rule that splits a text before merging:
only a name for it (`tokenizer.ggml.pre`). The rules below are those of the models' own tokenizer.json files.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # token types; the padding of the matrix is of type 5, unused
QWEN2_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")


class Rule(NamedTuple):
    """What a tokenizer does besides merging, in the form of tokenizer.json."""

    normalizer: dict | None
    pre_tokenizer: dict
    post_processor: dict | None
    decoder: dict
    affix: str | None            # how tokenizer.json spells 'no prefix and no suffix of pieces'
    model: dict                  # further settings of the merging itself
    controls_inside: bool        # whether control tokens are part of the merged vocabulary too
    plain: tuple[str, ...]       # tokens that llama.cpp marks as control but the model's tokenizer keeps plain


def _sequence(*steps: dict) -> dict:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _byte_level(add_prefix_space: bool, trim_offsets: bool, use_regex: bool) -> dict:
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets,
            "use_regex": use_regex}


_BYTES = _byte_level(False, False, False)
_SPLIT = {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False}
_DIGITS = {"type": "Digits", "individual_digits": True}
_FILL_IN = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
RULES = {
    "qwen2": Rule({"type": "NFC"}, _sequence(_SPLIT, _BYTES), _BYTES, _BYTES, "", {}, False, _FILL_IN),
    "smollm": Rule(None, _sequence(_DIGITS, _byte_level(False, True, True)), None, _byte_level(True, True, True),
                   None, {"ignore_merges": False}, True, ()),
}


def write_tokenizer(folder: Path, metadata: dict[str, Any], eos: str, max_length: int) -> None:
    """Write the tokenizer's files into `folder`; ValueError for an unknown pre-tokenizer."""
    pre = metadata.get("tokenizer.ggml.pre")
    if metadata.get("tokenizer.ggml.model") != "gpt2" or pre not in RULES:
        raise ValueError(f"the tokenizer {pre!r} is not one of {', '.join(RULES)}")
    tokenizer = tokenizer_json(metadata, RULES[pre])
    special = [token["content"] for token in tokenizer["added_tokens"] if token["special"]]
    pad = metadata["tokenizer.ggml.tokens"][metadata["tokenizer.ggml.padding_token_id"]]
    settings = tokenizer_config(special, eos, pad, max_length)
    files = {
        "tokenizer.json": json.dumps(tokenizer, indent=2, ensure_ascii=False),
        "tokenizer_config.json": json.dumps(settings, indent=2) + "\n",
        "chat_template.jinja": metadata["tokenizer.chat_template"],
    }
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8", newline="\n")


def tokenizer_json(metadata: dict[str, Any], rule: Rule) -> dict:
    """The content of tokenizer.json."""
    tokens = [(text, id, kind) for id, (text, kind) in enumerate(
        zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"], strict=True))]
    added = [_added(text, id, kind == CONTROL and text not in rule.plain)
             for text, id, kind in tokens if kind in (CONTROL, USER_DEFINED)]
    inside = (NORMAL, CONTROL, USER_DEFINED) if rule.controls_inside else (NORMAL,)
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": rule.affix,
        "end_of_word_suffix": rule.affix, "fuse_unk": False, "byte_fallback": False, **rule.model,
        "vocab": {text: id for text, id, kind in tokens if kind in inside},
        "merges": metadata["tokenizer.ggml.merges"],
    }
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": rule.normalizer, "pre_tokenizer": rule.pre_tokenizer,
            "post_processor": rule.post_processor, "decoder": rule.decoder, "model": model}


def _added(text: str, id: int, special: bool) -> dict:
    """An added token, matched whole before anything else is done; a special one is left out of plain decoding."""
    return {"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special}


def tokenizer_config(special: list[str], eos: str, pad: str, max_length: int) -> dict:
    """The content of tokenizer_config.json: nothing is added to a text, nothing tidied in a reply."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length,
        "bos_token": None, "eos_token": eos, "pad_token": pad, "unk_token": None,
        "extra_special_tokens": [token for token in special if token not in (eos, pad)],
        "add_bos_token": False, "add_eos_token": False, "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
    }
