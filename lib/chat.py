"""Messages become text, and text becomes token ids, with a note on each id of who wrote it.

A chat template pours the messages into one text. What a user typed and what the template wrote then look alike:
a typed `<|im_end|>` would end the turn. Here the text stays in pieces that know their writer, and only the
template's own pieces may hold control tokens.
"""
from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from typing import NamedTuple

from tokenizers import Tokenizer

ROLES = {"system": "system", "user": "user", "assistant": "model", "tool": "tool"}  # role -> who wrote it
WRITERS = ("template", "system", "user", "tool", "model")
DATA_WRITERS = ("system", "user", "tool")  # a message may name one of them as its `writer`, whatever its role
NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]  # Unicode keeps these 32 out of all text
NO_TEXT = re.compile("[\ud800-\udfff\ufdd0-\ufdef]")  # half characters, and the 32 that are used as marks below


class Piece(NamedTuple):
    """A stretch of the prompt's text by one writer."""
    writer: str
    text: str


@dataclass(frozen=True)
class Span:
    """One token of the prompt: its id, the text it stands for, and who wrote it."""
    id: int
    text: str
    writer: str


# --- messages to text -------------------------------------------------------

def render(messages: list[dict], tokenizer, tools: list[dict] | None = None, prompt: bool = True) -> list[Piece]:
    """The prompt's text in pieces, in order; joined they are exactly what the chat template writes.

    `prompt` ends the text with the opening of the model's turn. Raises ValueError for an unknown role or a
    template that ignores the tools or rewrites a message.
    """
    check_messages(messages)
    marks = _unused_characters(messages, tools)
    marked = _apply(tokenizer, [_mark_message(message, marks) for message in messages],
                    _mark_strings(tools, "tool", marks), prompt)
    pieces = _split(marked, marks)
    _check_rendering("".join(piece.text for piece in pieces), messages, tokenizer, tools, prompt)
    return pieces


def check_messages(messages: list[dict]) -> None:
    """Raises ValueError unless every message has a known role and a text (or tool calls) as content."""
    if not messages:
        raise ValueError("no messages: give at least one, such as {'role': 'user', 'content': 'Hello'}")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str) or message["role"] not in ROLES:
            raise ValueError(f"message {number} needs a role, one of {', '.join(ROLES)}: {message!r}")
        if message.get("writer", "user") not in DATA_WRITERS:
            raise ValueError(f"message {number}: a writer is one of {', '.join(DATA_WRITERS)}: {message!r}")
        if any("\ud800" <= character <= "\udfff" for text in _strings(message) for character in text):
            raise ValueError(f"message {number} holds half a character (a lone surrogate), which no text may")
        if not isinstance(message.get("content"), str) and not message.get("tool_calls"):
            raise ValueError(f"message {number} needs a text as content: {message!r}")


def _apply(tokenizer, messages: list[dict], tools: list[dict] | None, prompt: bool) -> str:
    return tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=prompt)


def _check_rendering(text: str, messages: list[dict], tokenizer, tools: list[dict] | None, prompt: bool) -> None:
    plain = _apply(tokenizer, messages, tools, prompt)
    if text != plain:
        raise ValueError("this model's chat template rewrites the messages, so their writers cannot be told apart")
    if tools and plain == _apply(tokenizer, messages, None, prompt):
        raise ValueError("this model's chat template ignores tools: take a model of the Qwen family, "
                         "or describe the tools in the system message")


# Each writer's text goes through the template between two characters that occur nowhere else.

def _unused_characters(messages: list[dict], tools: list[dict] | None) -> dict[str, str]:
    """One marker per writer and one that closes, none of which occurs in the input."""
    used = set("".join(_strings([messages, tools])))
    free = [character for character in NONCHARACTERS if character not in used]
    if len(free) < len(WRITERS):
        raise ValueError("the messages use up the characters U+FDD0 to U+FDEF, which Unicode reserves: remove them")
    return dict(zip([*WRITERS[1:], "end"], free, strict=False))


def _strings(value) -> list[str]:
    """Every string inside nested lists and dicts, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [text for item in value for text in _strings(item)] if isinstance(value, list | tuple) else []


def _mark_message(message: dict, marks: dict[str, str]) -> dict:
    writer = message.get("writer", ROLES[message["role"]])
    keys = [key for key in ("content", "tool_calls") if message.get(key)]
    marked = {key: _mark_strings(message[key], writer, marks) for key in keys}
    return {"content": "", **message, **marked}


def _mark_strings(value, writer: str, marks: dict[str, str]):
    """The same nested value with every string in it (keys excepted) between its writer's mark and the end mark."""
    if isinstance(value, str):
        return f"{marks[writer]}{value}{marks['end']}" if value else value
    if isinstance(value, dict):
        return {key: _mark_strings(item, writer, marks) for key, item in value.items()}
    return [_mark_strings(item, writer, marks) for item in value] if isinstance(value, list | tuple) else value


def _split(marked: str, marks: dict[str, str]) -> list[Piece]:
    """Cut a marked text at its marks; what stands between no marks is the template's."""
    writers = {mark: writer for writer, mark in marks.items()} | {marks["end"]: "template"}
    pieces, writer, start = [], "template", 0
    for end, character in enumerate(marked + marks["end"]):
        if character in writers:
            pieces.append(Piece(writer, marked[start:end]))
            writer, start = writers[character], end + 1
    return [piece for piece in pieces if piece.text]


# --- text to ids ------------------------------------------------------------

def spans(pieces: list[Piece], tokenizer) -> list[Span]:
    """One Span per token id of the pieces; control tokens only where the template wrote them.

    Between two control tokens the text is encoded as a whole, so the ids are those of the plain text, unless data
    holds a control token: that is then spelt out in ordinary tokens. A token that reaches over two pieces counts
    for the first. A tool call's tags, as plain added tokens, are also the model's to write.
    """
    result = []
    for is_control, group in groupby(_cut_at_controls(pieces, tokenizer), key=lambda cut: cut[0]):
        cuts = [piece for _, piece in group]
        result += [_control_span(piece, tokenizer) for piece in cuts] if is_control else _data_spans(cuts, tokenizer)
    return result


def _cut_at_controls(pieces: list[Piece], tokenizer) -> list[tuple[bool, Piece]]:
    """(is a control token, piece) in order, with the writer's own control tokens cut out of the text."""
    added = tokenizer.added_tokens_decoder.values()
    allowed = {"template": {token.content for token in added},
               "model": {token.content for token in added if not token.special}}
    cuts = []
    for piece in pieces:
        for text in _cut(piece.text, allowed.get(piece.writer, set())):
            cuts.append((text in allowed.get(piece.writer, ()), Piece(piece.writer, text)))
    return cuts


def _cut(text: str, words: set[str]) -> list[str]:
    """`text` cut before and after each of `words`, longest first; joined the parts are the text."""
    if not words:
        return [text]
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return [part for part in re.split(f"({pattern})", text) if part]


def _control_span(piece: Piece, tokenizer) -> Span:
    return Span(tokenizer.convert_tokens_to_ids(piece.text), piece.text, piece.writer)


def _data_spans(pieces: list[Piece], tokenizer) -> list[Span]:
    """Encode neighbouring pieces as one text without control tokens; offsets say whose each token is."""
    text = "".join(piece.text for piece in pieces)
    starts = list(accumulate((len(piece.text) for piece in pieces[:-1]), initial=0))
    encoding = without_controls(tokenizer).encode(text, add_special_tokens=False)
    result, start = [], 0
    for token, (_, end) in zip(encoding.ids, encoding.offsets, strict=True):
        owner = pieces[bisect_right(starts, min(start, len(text) - 1)) - 1].writer
        result.append(Span(token, text[start:end], owner))  # the later bytes of one character stand for ""
        start = max(start, end)
    return result


@lru_cache(maxsize=8)
def without_controls(tokenizer) -> Tokenizer:
    """The tokenizer with no added tokens at all: to it `<|im_end|>` is six ordinary tokens."""
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    return Tokenizer.from_str(json.dumps(description | {"added_tokens": [], "post_processor": None}))
