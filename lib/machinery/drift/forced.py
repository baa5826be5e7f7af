"""Teacher forcing: the model is given the recorded tokens, whatever it would have said, and its logits are read.

So one changed token does not hide what comes after it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from lib.generation import Model

Feeding = Callable[[Model, list[int], list[int], Sequence[int]], Iterator[torch.Tensor]]


def cached(model: Model, prompt: list[int], ids: list[int], steps: Sequence[int]) -> Iterator[torch.Tensor]:
    """The logits before ids[step], for each of `steps`, as the course decodes: token by token, through its cache."""
    for step in range(max(steps) + 1):
        logits = model.logits(prompt + ids[:step])
        if step in steps:
            yield logits


def afresh(model: Model, prompt: list[int], ids: list[int], steps: Sequence[int]) -> Iterator[torch.Tensor]:
    """The same logits, the whole sequence fed anew for each of them and nothing kept."""
    for step in steps:
        yield uncached(model, prompt + ids[:step], 1)[-1]


def one_pass(model: Model, prompt: list[int], ids: list[int], steps: Sequence[int]) -> Iterator[torch.Tensor]:
    """The same logits, all out of one pass over prompt and answer."""
    logits = uncached(model, prompt + ids[:-1], len(ids))
    yield from (logits[step] for step in steps)


def uncached(model: Model, ids: list[int], count: int) -> torch.Tensor:
    """The logits after each of the last `count` ids, shape [count, vocabulary]; no keys or values are kept."""
    return model.network(torch.tensor([ids]), use_cache=False, logits_to_keep=count).logits[0]


FEEDINGS: dict[str, Feeding] = {"cached": cached, "afresh": afresh, "one pass": one_pass}
