"""What really ran: asked of PyTorch, MKL and oneDNN during a short pass, not of the variables that were set."""
from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.nn import functional

from lib.generation import Model
from lib.machinery.drift.forced import Feeding

PROMPT, REPLY = list(range(5, 29)), [5, 6]  # any ids: more of them than lib.fast_linear's FEW, then one at a time


@torch.inference_mode()
def facts(model: Model, feeding: Feeding) -> dict[str, str]:
    """What a short pass of `model` ran on, by name; what can't be found out is left out."""
    said: list[str] = []
    with watched(model.network) as seen, listened(said):
        logits = list(feeding(model, PROMPT, REPLY, [0, 1]))
    model.cache.clear()
    return {"machine": platform.machine(), "capability": torch.backends.cpu.get_cpu_capability(),
            "threads": str(torch.get_num_threads()), "dtype": str(logits[0].dtype).removeprefix("torch."),
            **seen, **heard("".join(said))}


def heard(text: str) -> dict[str, str]:
    """What MKL and oneDNN said of themselves while they computed."""
    mkl, isa = re.search(r"CNR:(\w+).* NThr:(\d+)", text), re.search(r"cpu,isa:(.+)", text)
    kernels = sorted(set(re.findall(r"exec,cpu,(?:inner_product|matmul),([^,]+),", text)))
    return {**({"MKL branch": mkl[1], "MKL threads": mkl[2]} if mkl else {}),
            **({"oneDNN": isa[1].strip()} if isa and kernels else {}),  # it names its instructions once a process
            **({"oneDNN's kernel": ", ".join(kernels)} if kernels else {}),
            "linear": "oneDNN" if kernels else "default"}


@contextmanager
def watched(network: torch.nn.Module) -> Iterator[dict[str, str]]:
    """Notes whether attention is PyTorch's own function, and whether keys and values were handed on."""
    seen, original = {"attention": "eager", "cache": "off"}, functional.scaled_dot_product_attention

    def attention(*arguments, **options) -> torch.Tensor:
        seen["attention"] = "sdpa"
        return original(*arguments, **options)

    def before(module: torch.nn.Module, arguments: tuple, options: dict) -> None:
        if options.get("past_key_values") is not None:
            seen["cache"] = "on"

    handle = network.register_forward_pre_hook(before, with_kwargs=True)
    functional.scaled_dot_product_attention = attention
    try:
        yield seen
    finally:
        functional.scaled_dot_product_attention = original
        handle.remove()


@contextmanager
def listened(said: list[str]) -> Iterator[None]:
    """Puts into `said` what the libraries print, beneath Python, in the block; they are made to talk there."""
    sys.stdout.flush()
    standard = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            with talking():
                yield
        finally:
            flush()
            os.dup2(standard, 1)
            os.close(standard)
        file.seek(0)
        said.append(file.read().decode("utf-8", "replace"))


@contextmanager
def talking() -> Iterator[None]:
    """Makes MKL and oneDNN say what they do, where this build of PyTorch has them."""
    with ExitStack() as stack:
        for library in (torch.backends.mkl, torch.backends.mkldnn):
            if library.is_available():
                stack.enter_context(library.verbose(library.VERBOSE_ON))
        yield


def flush() -> None:
    """Writes out what C has kept of its standard output."""
    (ctypes.cdll.ucrtbase if os.name == "nt" else ctypes.CDLL(None)).fflush(None)
