"""What has been fed once need not be fed again: keys and values of earlier prompts, found by their token ids."""
from __future__ import annotations

from dataclasses import dataclass

from transformers import DynamicCache

KEPT_TOKENS = 8192  # how many tokens the cache keeps in all; 24.6 kB each on the 0.5B, 46 kB on the 135M


@dataclass
class Fed:
    """Token ids that went through the network, and the keys and values they left behind in every layer."""
    ids: list[int]
    kv: DynamicCache

    def head(self, length: int) -> Fed:
        """A copy of the first `length` tokens, which can grow on its own."""
        kv = DynamicCache()
        for number, layer in enumerate(self.kv.layers if length else []):
            kv.update(layer.keys[..., :length, :], layer.values[..., :length, :], number)
        return Fed(self.ids[:length], kv)


class PrefixCache:
    """The sequences fed last, newest first, so that a prompt which begins like one of them feeds only the rest."""

    def __init__(self, kept_tokens: int = KEPT_TOKENS):
        self.kept_tokens = kept_tokens
        self.entries: list[Fed] = []

    def longest(self, ids: list[int]) -> Fed:
        """A copy of the longest stored prefix of `ids`, short of its last token, which has to be fed anyway."""
        lengths = [common_prefix(entry.ids, ids[:-1]) for entry in self.entries]
        best = max(lengths, default=0)
        return self.entries[lengths.index(best)].head(best) if best else Fed([], DynamicCache())

    def store(self, fed: Fed) -> None:
        """Keep `fed` as the newest entry; drop what it contains, then the oldest beyond `kept_tokens`."""
        others = [entry for entry in self.entries if common_prefix(entry.ids, fed.ids) < len(entry.ids)]
        self.entries, total = [], 0
        for entry in [fed, *others]:
            total += len(entry.ids)
            if total <= self.kept_tokens or not self.entries:
                self.entries.append(entry)

    def clear(self) -> None:
        """Forget everything: the next prompt is fed whole."""
        self.entries.clear()


def common_prefix(a: list[int], b: list[int]) -> int:
    """How many leading items two lists share."""
    for length, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return length
    return min(len(a), len(b))
