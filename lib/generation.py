"""Greedy decoding, one token at a time, that never feeds the same prefix twice.

`Model` turns messages into ids and ids into a `Generation`; `Conversation` keeps the ids of a whole exchange.
The network is any causal language model of transformers: ids in, one logit per word of the vocabulary out.
"""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import torch

from lib.chat import NO_TEXT, Piece, Span, render, spans
from lib.prefix_cache import Fed, PrefixCache
from lib.text_stream import TextStream

CHUNK = 256  # tokens of a prompt that are fed in one pass; a cancel waits for one pass at most


@dataclass
class Generation:
    """What one call brought: the new text, its ids (an end token included), and how it came about."""
    text: str
    ids: list[int]
    prompt_tokens: int
    cached_tokens: int                # of the prompt's tokens, those that had been fed before
    first_token_seconds: float | None = None  # from the call to the first token; None if there was none
    decode_seconds: float = 0.0       # from the first token to the last
    gaps: list[float] = field(default_factory=list)  # per new token: top-1 minus top-2 logit
    stop_reason: str = "length"       # eos, length, stop or cancelled


# --- the model --------------------------------------------------------------

class Model:
    """A causal language model with its tokenizer: messages or ids in, a Generation out."""

    def __init__(self, name: str, network, tokenizer, eos: tuple[int, ...], context: int):
        self.name, self.network, self.tokenizer = name, network, tokenizer
        self.eos, self.context = eos, context  # ids that end an answer; the most tokens that fit
        self.vocabulary = network.config.vocab_size
        self.cache = PrefixCache()
        self._busy = threading.RLock()

    def spans(self, messages: list[dict], tools: list[dict] | None = None) -> list[Span]:
        """The prompt token by token: id, text, writer."""
        return spans(render(messages, self.tokenizer, tools), self.tokenizer)

    def encode(self, messages: list[dict], tools: list[dict] | None = None) -> list[int]:
        """The prompt's token ids; ValueError where the template ignores tools."""
        return [span.id for span in self.spans(messages, tools)]

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, control tokens included."""
        return self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def reply(self, messages: list[dict], tools: list[dict] | None = None, **options) -> Generation:
        """The model's answer to `messages`; options are those of `generate`."""
        return self.generate(self.encode(messages, tools), **options)

    @torch.inference_mode()
    def generate(self, ids: list[int], max_new_tokens: int = 256, stop: tuple[str, ...] = (),
                 on_token: Callable[[str], None] | None = None, cancel: threading.Event | None = None) -> Generation:
        """Greedy continuation of `ids`: the most likely token each time, until an end token or a limit.

        `stop` holds strings that end the text (and are cut off it); `on_token` gets the text as it comes, whole
        characters only; `cancel` ends it within one pass. Raises ValueError for a prompt that is empty or too long.
        """
        start = perf_counter()
        ids, stop = [int(id) for id in ids], (stop,) if isinstance(stop, str) else tuple(stop)
        self.check(ids, max_new_tokens, stop)
        with self._busy, self._feeding(ids) as fed:
            result = Generation("", [], len(ids), len(fed.ids))
            stream = TextStream(self._decode_answer, stop, on_token)
            limit = min(max_new_tokens, self.context - len(ids))
            self._run(result, self._tokens(fed, ids, cancel), stream, limit, start)
        result.text = stream.close()
        log(self.name, ids, result)
        return result

    @torch.inference_mode()
    def logits(self, ids: list[int]) -> torch.Tensor:
        """The logit of every token as the next after `ids`, shape [vocabulary]; feeds only what is new."""
        self.check(ids)
        with self._busy, self._feeding(ids) as fed:
            waiting = ids[len(fed.ids):]
            for start in range(0, len(waiting), CHUNK):
                logits = self._feed(fed, waiting[start:start + CHUNK])
        return logits

    def _run(self, result: Generation, tokens: Iterator, stream: TextStream, limit: int, start: float) -> None:
        """Take tokens into `result` until something ends it; `start` is the time of the call."""
        first = start
        result.stop_reason = "cancelled"  # what it stays when the tokens run dry
        for token, gap in tokens:
            first = perf_counter() if not result.ids else first
            result.ids.append(token)
            result.gaps.append(gap)
            stopped = stream.update(result.ids)
            result.stop_reason = ("eos" if token in self.eos else "stop" if stopped else
                                  "length" if len(result.ids) == limit else "cancelled")
            if result.stop_reason != "cancelled":
                break
        result.first_token_seconds = first - start if result.ids else None
        result.decode_seconds = perf_counter() - first if result.ids else 0.0

    def _tokens(self, fed: Fed, ids: list[int], cancel: threading.Event | None) -> Iterator[tuple[int, float]]:
        """(token, gap) without end; ends only when cancelled."""
        waiting = ids[len(fed.ids):]
        while not (cancel and cancel.is_set()):
            logits = self._feed(fed, waiting[:CHUNK])
            waiting = waiting[CHUNK:]
            if not waiting:
                token, (first, second) = int(logits.argmax()), logits.topk(2).values.tolist()
                yield token, first - second
                waiting = [token]

    def _feed(self, fed: Fed, ids: list[int]) -> torch.Tensor:
        """One pass through the network; returns the logits after the last of `ids`, shape [vocabulary]."""
        output = self.network(torch.tensor([ids]), past_key_values=fed.kv, use_cache=True, logits_to_keep=1)
        fed.ids += ids
        return output.logits[0, -1]

    @contextmanager
    def _feeding(self, ids: list[int]) -> Iterator[Fed]:
        """What has been fed of `ids`; kept for the next prompt, even after an interrupt in mid-pass."""
        fed = self.cache.longest(ids)
        try:
            yield fed
        finally:
            if fed.ids:
                self.cache.store(fed.head(len(fed.ids)))

    def _decode_answer(self, ids: list[int]) -> str:
        return self.decode(ids[:-1] if ids and ids[-1] in self.eos else ids)

    def check(self, ids: list[int], max_new_tokens: int = 1, stop: tuple[str, ...] = ()) -> None:
        """Raises ValueError unless `ids` is a prompt that this model can continue under these limits."""
        if not ids:
            raise ValueError("the prompt is empty: give at least one token id")
        if min(ids) < 0 or max(ids) >= self.vocabulary:
            raise ValueError(f"token ids go from 0 to {self.vocabulary - 1}; the prompt has {min(ids)} to {max(ids)}")
        if len(ids) >= self.context:
            raise ValueError(f"the prompt has {len(ids):,} tokens; {self.name} has room for {self.context:,}, "
                             "the answer included")
        if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be a whole number of at least 1, not {max_new_tokens!r}")
        if not all(isinstance(word, str) and word for word in stop):
            raise ValueError(f"a stop string must be a text of at least one character: {stop!r}")


class Conversation:
    """An exchange whose truth is its token ids: what the model wrote is kept as it came, never encoded again."""

    def __init__(self, model: Model, messages: list[dict], tools: list[dict] | None = None):
        self.model, self.tools = model, tools
        self.messages = list(messages)
        self.spans: list[Span] = []
        self._seen = 0     # messages that are in `spans`
        self._replied = 0  # tokens at the end of `spans` that are the last reply's

    @property
    def ids(self) -> list[int]:
        """All token ids so far."""
        return [span.id for span in self.spans]

    def add(self, role: str, content: str) -> None:
        """Append a message; it becomes tokens with the next reply."""
        self.messages.append({"role": role, "content": content})

    def prompt(self) -> list[Span]:
        """The tokens that the next reply will be given: all so far, those of new messages, the model's opening."""
        return self.spans + self._new_spans()

    def reply(self, **options) -> Generation:
        """Let the model answer; options are those of `Model.generate`."""
        prompt = self.prompt()  # kept only once there is an answer: an interrupt leaves no trace
        result = self.model.generate([span.id for span in prompt], **options)
        self.spans = prompt + [Span(id, self.model.decode([id]), "model") for id in result.ids]
        self.add("assistant", as_content(result.text))
        self._seen, self._replied = len(self.messages), len(result.ids)
        return result

    def keep(self, text: str) -> None:
        """Keep only `text`, the beginning of the last reply, and forget the rest of it, tokens and all."""
        start, content, kept = len(self.spans) - self._replied, self.messages[-1]["content"], as_content(text)
        if not self._replied or not content.startswith(kept):
            raise ValueError(f"the last reply does not begin with {text!r}")
        if kept != content:
            ids = self.ids[start:]
            begun = {count: self.model.decode(ids[:count]) for count in range(len(ids))}
            count = max(count for count, beginning in begun.items() if text.startswith(beginning))
            rest = [Piece("model", text[len(begun[count]):])]
            self.spans[start + count:] = spans(rest, self.model.tokenizer) if rest[0].text else []
            self.messages[-1], self._replied = {"role": "assistant", "content": kept}, 0

    def _new_spans(self) -> list[Span]:
        """The tokens of the messages that have none yet, and the opening of the model's turn."""
        tokenizer = self.model.tokenizer
        pieces = render(self.messages, tokenizer, self.tools)
        if not self._seen:
            return spans(pieces, tokenizer)
        seen = render(self.messages[:self._seen], tokenizer, self.tools, prompt=False)
        known = sum(len(piece.text) for piece in seen) - len(end_of_turn(tokenizer))
        rest = spans(drop(pieces, known), tokenizer)
        return rest[1:] if self.spans[-1].id == rest[0].id else rest  # the model may have ended its turn itself


def as_content(reply: str) -> str:
    """A reply as a message's content, of the same length: what no text may hold becomes U+FFFD."""
    return NO_TEXT.sub("\ufffd", reply)


def end_of_turn(tokenizer) -> str:
    """What the template writes after the model's text, such as `<|im_end|>` and a line break."""
    example = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    return render(example, tokenizer, prompt=False)[-1].text


def drop(pieces: list[Piece], length: int) -> list[Piece]:
    """The pieces without their first `length` characters."""
    kept = []
    for piece in pieces:
        kept.append(Piece(piece.writer, piece.text[length:]))
        length = max(0, length - len(piece.text))
    return [piece for piece in kept if piece.text]


def log(name: str, prompt: list[int], result: Generation) -> None:
    """Append the generation to the file that COURSE_LEDGER names, if it does: recordings keep every one."""
    if path := os.environ.get("COURSE_LEDGER"):
        line = {"model": name, "prompt_ids": prompt, "ids": result.ids, "text": result.text,
                "stop_reason": result.stop_reason, "gaps": result.gaps}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
