"""The registry, where models lie, and what load says when it cannot."""

from __future__ import annotations

import hashlib
import json

import pytest

from lib import models
from lib.dense import ENCODERS


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    return tmp_path


def pretend(name: str, parameters: int = 10) -> None:
    """Lay out a model's folder with a manifest that fits its small files."""
    path = models.folder(name)
    path.mkdir(parents=True)
    header = b"{}      "
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"weights")
    (path / "config.json").write_bytes(b"{0}")
    facts = {
        "parameters": parameters,
        "header_sha256": models.header_hash(path / "model.safetensors"),
        "files": {
            "model.safetensors": {"bytes": 23},
            "config.json": {"bytes": 3, "sha256": hashlib.sha256(b"{0}").hexdigest()},
        },
    }
    (path / "manifest.json").write_text(json.dumps(facts), encoding="utf-8")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match="smollm2-135m"):
        models.load("gpt-17")


def test_the_registry_is_complete():
    assert models.DEFAULT in models.MODELS
    for name, model in models.MODELS.items():
        assert ("wheels" in model) or ("hub" in model), name
        assert model.get("eos") or name in ENCODERS


def test_a_folder_is_keyed_by_the_source_and_the_conversion(cache):
    path = models.folder("smollm2-135m")
    assert path.is_relative_to(cache) and path.name == f"b179c9523d0e-{models.CONVERSION}"
    assert models.folder("qwen2.5-0.5b").name.startswith("7ae557604adf")


def test_ready_is_what_the_manifest_says(cache):
    assert not models.is_ready("smollm2-135m")
    pretend("smollm2-135m")
    assert models.is_ready("smollm2-135m")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: (path / "model.safetensors").write_bytes(b"short"),
        lambda path: (path / "model.safetensors").write_bytes((8).to_bytes(8, "little") + b"{'x':1} weights"),
        lambda path: (path / "model.safetensors").unlink(),
        lambda path: (path / "manifest.json").write_text("{", encoding="utf-8"),
        lambda path: (path / "manifest.json").write_text("{}", encoding="utf-8"),
        lambda path: (path / "manifest.json").write_text("[]", encoding="utf-8"),
        lambda path: (path / "manifest.json").write_text('{"files": null}', encoding="utf-8"),
        lambda path: (path / "config.json").write_text("{1}", encoding="utf-8"),
        lambda path: (path / "manifest.json").unlink(),
    ],
)
def test_a_damaged_model_is_not_ready(cache, spoil):
    pretend("smollm2-135m")
    spoil(models.folder("smollm2-135m"))
    assert not models.is_ready("smollm2-135m")


def test_a_model_that_cannot_be_had_names_the_command(cache, monkeypatch):
    calls = []
    monkeypatch.setattr(models.subprocess, "run", lambda command, **_: calls.append(command))
    with pytest.raises(FileNotFoundError, match="python3 -m lib fetch smollm2-135m"):
        models.load("smollm2-135m")
    assert calls[0][1:] == ["-m", "lib", "fetch", "smollm2-135m"]


def test_too_little_memory_is_said_with_the_numbers(cache):
    pretend("smollm2-135m", parameters=10**13)
    with pytest.raises(MemoryError, match=r"smollm2-135m needs 40000\.5 GB"):
        models.load("smollm2-135m")


@pytest.mark.parametrize("name", ENCODERS)
def test_a_model_that_writes_no_text_is_refused_before_anything_is_fetched(cache, monkeypatch, name):
    monkeypatch.setattr(models.subprocess, "run", lambda *_, **__: pytest.fail("it was fetched"))
    with pytest.raises(ValueError, match=f"{name} turns texts into vectors"):
        models.load(name)


def test_the_variable_chooses_the_model(cache, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "no-such-model")
    with pytest.raises(KeyError, match="no-such-model"):
        models.load()
