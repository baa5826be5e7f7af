"""A model whose replies are written down beforehand: the real loop, conversation and tokens without a network."""

from __future__ import annotations

from lib.generation import Generation, Model
from lib.tests import tiny


class ScriptedModel(Model):
    """Gives `replies` in order: a text, or {"text": …, "truncated": True}; `prompts` keeps the ids it was given."""

    def __init__(self, replies: list, tokenizer=None, context: int = 200_000):
        tokenizer = tokenizer or tiny.tokenizer()
        self.name, self.tokenizer, self.context = "scripted", tokenizer, context
        self.vocabulary, self.eos = len(tokenizer), (tokenizer.convert_tokens_to_ids("<|im_end|>"),)
        self.replies, self.prompts = list(replies), []

    def generate(self, ids, max_new_tokens=256, stop=(), on_token=None, cancel=None) -> Generation:
        self.check(ids, max_new_tokens, stop)
        self.prompts.append(list(ids))
        reply = self.replies[len(self.prompts) - 1]
        reply = reply if isinstance(reply, dict) else {"text": reply}
        if on_token:
            on_token(reply["text"])
        new = self.tokenizer(reply["text"], add_special_tokens=False)["input_ids"]
        cut = reply.get("truncated", False)
        new = new if cut else [*new, self.eos[0]]
        return Generation(reply["text"], new, len(ids), 0, 0.0, 0.0, [1.0] * len(new), "length" if cut else "eos")
