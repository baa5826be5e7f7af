"""The registry of models, where each lies once made ready, and how one is loaded."""
from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import platformdirs

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
    """Whether the model's files are all there, by their sizes and the hash of the weights' header (no full read)."""
    path = folder(name)
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        sizes = all((path / file).stat().st_size == facts["bytes"] for file, facts in manifest["files"].items())
        return sizes and header_hash(path / "model.safetensors") == manifest["header_sha256"]
    except (OSError, ValueError, KeyError):
        return False


def header_hash(weights: Path) -> str:
    """SHA-256 of a safetensors file's header: 8 bytes of length (little-endian), then that many of JSON."""
    with open(weights, "rb") as file:
        length = file.read(8)
        return hashlib.sha256(length + file.read(int.from_bytes(length, "little"))).hexdigest()
