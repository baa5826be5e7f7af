"""The registry of models, where each lies once made ready, and how one is loaded."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import psutil

MODELS = json.loads((Path(__file__).parent / "machinery" / "models.json").read_text(encoding="utf-8"))
DEFAULT = "qwen2.5-coder-0.5b"
CONVERSION = 1  # raised whenever machinery/fetch.py would write other bytes


def cache_folder() -> Path:
    """The folder that holds downloads and models: the variable COURSE_CACHE, or the user's cache folder."""
    return Path(os.environ.get("COURSE_CACHE") or platformdirs.user_cache_dir("llm-applications", appauthor=False))


def entry(name: str) -> dict:
    """The registry's entry for `name`; KeyError with all names for an unknown one."""
    if name not in MODELS:
        raise KeyError(f"no model is called {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]


def folder(name: str) -> Path:
    """Where the ready model `name` lies: keyed by the source's own hash (or hub revision) and the conversion."""
    model = entry(name)
    source = model.get("file_sha256") or model["hub"]["revision"]
    return cache_folder() / "models" / name / f"{source[:12]}-{CONVERSION}"


def is_ready(name: str) -> bool:
    """Whether the model's files are all there, by their sizes and hashes (of the weights only the header's)."""
    path = folder(name)
    try:
        facts = manifest(name)
        return (all(is_whole(path / file, fact) for file, fact in facts["files"].items())
                and header_hash(path / "model.safetensors") == facts["header_sha256"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def is_whole(path: Path, facts: dict) -> bool:
    """Whether a file has the size in the manifest and, weights excepted, the SHA-256."""
    if path.stat().st_size != facts["bytes"] or path.suffix == ".safetensors":
        return path.stat().st_size == facts["bytes"]
    return hashlib.sha256(path.read_bytes()).hexdigest() == facts["sha256"]


def manifest(name: str) -> dict:
    """What the conversion wrote down about a ready model: source, parameter count, files with sizes and hashes."""
    return json.loads((folder(name) / "manifest.json").read_text(encoding="utf-8"))


def header_hash(weights: Path) -> str:
    """SHA-256 of a safetensors file's header: 8 bytes of length (little-endian), then that many of JSON."""
    with open(weights, "rb") as file:
        length = file.read(8)
        return hashlib.sha256(length + file.read(int.from_bytes(length, "little"))).hexdigest()


def load(name: str | None = None):
    """The model called `name` (default: the variable COURSE_MODEL, or `DEFAULT`), in float32 on the CPU.

    Maps the converted weights into memory: a matter of seconds, and the pages are shared with every other kernel.
    KeyError for an unknown name, ValueError for one that writes no text, MemoryError where the weights cannot fit.
    """
    name = name or os.environ.get("COURSE_MODEL") or DEFAULT
    check_writes(name)
    make_ready(name)
    check_memory(name)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when transformers is imported, so before that
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from lib import fast_linear
    from lib.generation import Model

    torch.set_num_threads(min(torch.get_num_threads(), usable_cores()))
    path = folder(name)
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    network = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, dtype=torch.float32,
                                                   attn_implementation="sdpa").eval()
    fast_linear.install(network)
    eos = tuple(tokenizer.convert_tokens_to_ids(token) for token in entry(name)["eos"])
    return Model(name, network, tokenizer, eos, network.config.max_position_embeddings)


def check_writes(name: str) -> None:
    """Raises ValueError for a model that writes no text, KeyError for an unknown one."""
    if "eos" not in entry(name):
        raise ValueError(f"{name} turns texts into vectors and writes none: lib.dense uses it")


def make_ready(name: str) -> None:
    """Downloads and converts a model that is not on this machine yet, in a process of its own that shows progress."""
    if not is_ready(name):
        subprocess.run([sys.executable, "-m", "lib", "fetch", name], cwd=Path(__file__).parents[1], check=False)
    if not is_ready(name):
        raise FileNotFoundError(f"the model {name} is not on this machine: run `python3 -m lib fetch {name}`")


def check_memory(name: str) -> None:
    """Raises MemoryError when the weights (four bytes a parameter) and half a gigabyte beside them cannot fit."""
    needed, there = 4 * manifest(name)["parameters"] + 0.5e9, psutil.virtual_memory().total
    if there < needed:
        raise MemoryError(f"{name} needs {needed / 1e9:.1f} GB of memory and this machine has {there / 1e9:.1f} GB: "
                          "take the smaller model with COURSE_MODEL=smollm2-135m")


def usable_cores() -> int:
    """The cores this process may use: a thread more than that slows every step down."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
