"""A loaded model brought into the state that a factor asks for."""
from __future__ import annotations

from collections.abc import Iterator
from types import MethodType

import torch
from torch.nn import functional

from lib.generation import Model


def apply(model: Model, settings: dict[str, str | int]) -> None:
    """Set threads, attention, linear layers and number format as `settings` say; what it doesn't name stays."""
    if "threads" in settings:
        torch.set_num_threads(settings["threads"])
    if "attention" in settings:
        model.network.set_attn_implementation(settings["attention"])
    if settings.get("linear") == "default":
        for layer in linears(model.network):
            layer.__dict__.pop("forward", None)  # what lib.fast_linear has put there
    if settings.get("dtype") == "bfloat16":
        to_bfloat16(model.network)


def linears(network: torch.nn.Module) -> Iterator[torch.nn.Linear]:
    """The linear layers of a network."""
    return (module for module in network.modules() if isinstance(module, torch.nn.Linear))


@torch.inference_mode()
def to_bfloat16(network: torch.nn.Module) -> None:
    """Round weights and activations to bfloat16; products are summed in float32, as processors that know it do.

    PyTorch's own products of bfloat16 are tens of times slower on processors that don't; the values are of a kind.
    """
    wide = {layer: (rounded(layer.weight), rounded(layer.bias)) for layer in linears(network)}
    network.to(torch.bfloat16)
    for layer, (weight, bias) in wide.items():
        layer.wide_weight, layer.wide_bias = weight, bias
        layer.forward = MethodType(forward, layer)


def rounded(values: torch.Tensor | None) -> torch.Tensor | None:
    """The values of bfloat16 nearest to `values`, kept in float32."""
    return None if values is None else values.detach().bfloat16().float()


def forward(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """x @ weight.T + bias in bfloat16, with float32 sums; shapes [..., in] to [..., out]."""
    return functional.linear(x.float(), layer.wide_weight, layer.wide_bias).bfloat16()
