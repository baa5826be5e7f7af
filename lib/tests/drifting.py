"""Tiny models for the measurement of drift, as its processes load them, and recordings of what they say."""

from __future__ import annotations

import os

import torch

from lib import fast_linear
from lib.generation import Model
from lib.machinery.drift.sample import Recording
from lib.tests import tiny

LOADER = "lib.tests.drifting:load"
PLANTED = "COURSE_PLANTED_DRIFT"  # by how much the weights of a process are moved


def load(name: str) -> Model:
    """The tiny model, whatever its name, with the course's linear layer; its weights moved if that is asked for."""
    model = tiny.model()
    with torch.no_grad():
        for number, weight in enumerate(model.network.parameters()):
            torch.manual_seed(number)
            weight += float(os.environ.get(PLANTED, "0")) * torch.randn_like(weight)
    fast_linear.install(model.network)
    return model


def recording(number: str = "01", count: int = 2, tokens: int = 12) -> Recording:
    """What the tiny model says to `count` prompts that begin alike."""
    model, generations = load("tiny"), []
    for last in range(count):
        prompt = [*range(5, 30), 40 + last]
        ids = model.generate(prompt, max_new_tokens=tokens).ids
        generations.append({"model": "tiny", "prompt_ids": prompt, "ids": ids})
    return Recording(number, generations, frozenset(), "0" * 12)
