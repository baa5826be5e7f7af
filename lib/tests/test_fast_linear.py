"""The fast linear layer gives the default's values, and steps aside where it cannot."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from lib import fast_linear
from lib.tests import tiny


@pytest.mark.parametrize("rows", [1, 2, fast_linear.FEW, fast_linear.FEW + 1, 200])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_same_values(rows, bias):
    layer, x = torch.nn.Linear(96, 40, bias=bias), torch.randn(1, rows, 96)
    expected = functional.linear(x, layer.weight, layer.bias)
    assert torch.allclose(fast_linear.forward(layer, x) if fast_linear.available() else expected, expected, atol=1e-5)


def test_installed_it_changes_no_token():
    model, ids = tiny.model(), list(range(3, 40))
    before = model.generate(ids, max_new_tokens=12).ids
    assert fast_linear.install(model.network) == fast_linear.available()
    model.cache.clear()
    assert model.generate(ids, max_new_tokens=12).ids == before


def test_a_build_without_it_keeps_the_default(monkeypatch):
    def missing(*_):
        raise AttributeError("no such operator")

    monkeypatch.setattr(fast_linear, "forward", missing)
    model = tiny.model()
    assert not fast_linear.install(model.network)
    assert model.generate([5, 6], max_new_tokens=2).ids
