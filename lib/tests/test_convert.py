"""Conversion: the same numbers, the same tokenizer, the same settings as the original; wrong sources are refused."""
import hashlib
import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from lib import models
from lib.machinery import Stop, convert, fetch
from lib.tests import sources

ARCHITECTURES = ["qwen2", "llama"]
REAL = ["qwen2.5-coder-0.5b", "smollm2-135m"]
TEXTS = [
    "", " ", "Xin chào, tôi là một mô hình ngôn ngữ.", "👩\u200d👩\u200d👧 🇻🇳 ❤️", "def f(x):\n\treturn x*2  # ok\r\n",
    "a  b . , ? !", "\x00\x01\x1b\x7f\u200b\ufeff", "1234567890 ½ ⅷ", "I'm they'll 'S", "中文、日本語", "\n\n \n"]


@pytest.fixture(params=ARCHITECTURES)
def converted(request, tmp_path, monkeypatch):
    """A tiny model's architecture, folder and expected values, after conversion."""
    source, folder = tmp_path / "tiny.gguf", tmp_path / "made"
    expected = sources.write_gguf(source, request.param)
    monkeypatch.setitem(models.MODELS, "tiny", sources.entry(source, expected))
    folder.mkdir()
    convert.convert(source, folder, "tiny")
    return request.param, folder, expected


def test_every_tensor_is_the_dequantised_one(converted):
    _, folder, expected = converted
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not any(report.values()), report
    state = dict(model.named_parameters())
    assert state.keys() == expected.keys()
    for name, values in expected.items():
        assert torch.equal(state[name], torch.from_numpy(values.reshape(state[name].shape))), name


def test_logits_equal_those_of_a_model_built_from_the_arrays(converted):
    _, folder, expected = converted
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    built = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    built.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in expected.items()}, strict=False)
    built.tie_weights()
    ids = torch.arange(20).reshape(1, 20)
    with torch.inference_mode():
        assert torch.equal(loaded.eval()(ids).logits, built.eval()(ids).logits)


def test_settings_are_explicit_and_decimal(converted):
    architecture, folder, _ = converted
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["rms_norm_eps"] == {"qwen2": 1e-06, "llama": 1e-05}[architecture]
    assert (config["rope_theta"], config["max_position_embeddings"]) == (10000.0, 128)
    assert (config["tie_word_embeddings"], config["dtype"]) == (True, "float32")
    loaded = AutoConfig.from_pretrained(folder)
    assert loaded.rope_parameters == {"rope_theta": 10000.0, "rope_type": "default"}
    generation = GenerationConfig.from_pretrained(folder)
    tokens = sources.vocabulary(architecture)[0]
    assert (generation.do_sample, generation.repetition_penalty) == (False, 1.0)
    assert generation.eos_token_id == [tokens.index(token) for token in sources.EOS]


def test_the_manifest_names_every_file(converted):
    _, folder, expected = converted
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert manifest["files"].keys() == names == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja"}
    for file, facts in manifest["files"].items():
        assert facts == {"bytes": (folder / file).stat().st_size, "sha256": sources.digest(folder / file)}
    assert manifest["parameters"] == sum(values.size for values in expected.values())
    assert manifest["header_sha256"] == models.header_hash(folder / "model.safetensors")


def test_the_tokenizer_loads_and_gives_back_what_it_was_given(converted):
    architecture, folder, _ = converted
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.is_fast
    kept = [token for token, kind in zip(*sources.vocabulary(architecture), strict=True) if kind != 5]
    assert len(tokenizer) == len(kept)
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.model_max_length) == (
        "<|im_end|>", "<|endoftext|>", 128)
    for text in TEXTS:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == normal(text, architecture)
    assert tokenizer.chat_template == sources.TEMPLATE


def normal(text: str, architecture: str) -> str:
    """What the tokenizer of the architecture reads a text as."""
    return unicodedata.normalize("NFC", text) if architecture == "qwen2" else text


def test_two_conversions_are_byte_for_byte_equal(converted, tmp_path):
    _, folder, _ = converted
    again = tmp_path / "again"
    again.mkdir()
    convert.convert(tmp_path / "tiny.gguf", again, "tiny")
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("change, words", [
    ({"parameters": 7}, "not 7"),
    ({"converted": {"model.safetensors": "0" * 64}}, "model.safetensors of tiny came out otherwise"),
    ({"converted": {"tokenizer.json": "0" * 64}}, "tokenizer.json of tiny came out otherwise"),
])
def test_another_result_than_recorded_is_refused_and_named(tmp_path, monkeypatch, change, words):
    source, folder = tmp_path / "tiny.gguf", tmp_path / "made"
    expected = sources.write_gguf(source)
    monkeypatch.setitem(models.MODELS, "tiny", sources.entry(source, expected) | change)
    folder.mkdir()
    with pytest.raises(Stop, match=words):
        convert.convert(source, folder, "tiny")
    assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize("old, new, words", [
    (b"qwen2", b"qwen9", "qwen9"), (b"blk.1.ffn_up", b"blk.1.ffn_xx", "ffn_xx"), (b"gpt2", b"gptx", "tokenizer"),
    (b"qwen2.block_count", b"qwen2.block_xount", "block_count"), (b"GGUF", b"PKXX", "GGUF")])
def test_an_unknown_kind_of_file_is_refused_in_one_sentence(tmp_path, monkeypatch, old, new, words):
    source, folder = tmp_path / "tiny.gguf", tmp_path / "made"
    expected = sources.write_gguf(source)
    monkeypatch.setitem(models.MODELS, "tiny", sources.entry(source, expected))
    source.write_bytes(source.read_bytes().replace(old, new))
    folder.mkdir()
    with pytest.raises(Stop, match=words):
        convert.convert(source, folder, "tiny")


def test_rows_of_a_head_are_put_back_in_order():
    rows = np.arange(8, dtype=np.uint8).reshape(8, 1)
    assert convert.unpermuted(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]  # by hand: pairs to halves
    assert np.array_equal(convert.unpermuted(sources.permuted(rows, 2), 2), rows)


@pytest.fixture(params=REAL)
def real(request):
    """A real model's name and folder."""
    if not models.is_ready(request.param):
        pytest.skip(f"{request.param} is not ready: python3 -m lib fetch")
    return request.param, models.folder(request.param)


@pytest.mark.model
def test_real_vocabulary_and_merges_are_the_originals(real):
    """The hashes are those of the files that the models' makers published."""
    name, folder = real
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    model = json.loads(text)["model"]
    vocabulary = json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":"))
    merges = "\n".join(model["merges"]) + "\n"
    found = [hashlib.sha256(part.encode()).hexdigest() for part in (vocabulary, merges, text)]
    if name == "qwen2.5-coder-0.5b":  # its vocab.json and merges.txt
        assert found[:2] == ["ca10d7e9fb3ed18575dd1e277a2579c16d108e32f27439684afa0e10b1440910",
                             "599bab54075088774b1733fde865d5bd747cbcc7a547c5bc12610e874e26f5e3"]
    else:  # its tokenizer.json
        assert found[2] == "9ca9acddb6525a194ec8ac7a87f24fbba7232a9a15ffa1af0c1224fcd888e47c"


@pytest.mark.model
def test_real_tokenizers_behave_as_the_originals(real):
    name, folder = real
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    architecture = "qwen2" if name.startswith("qwen") else "llama"
    for text in TEXTS + [unicodedata.normalize("NFD", text) for text in TEXTS]:
        ids = tokenizer(text)["input_ids"]
        assert ids == plain.encode(text).ids
        assert tokenizer.decode(ids) == normal(text, architecture)
    assert len(tokenizer("1234567890")["input_ids"]) == 10
    assert len(tokenizer) == {"qwen2": 151665, "llama": 49152}[architecture]


@pytest.mark.model
def test_qwen_reads_composed_and_decomposed_vietnamese_alike_and_counts_as_the_text_says():
    if not models.is_ready(REAL[0]):
        pytest.skip("python3 -m lib fetch")
    tokenizer = AutoTokenizer.from_pretrained(models.folder(REAL[0]))
    text = "Xin chào, tôi là một mô hình ngôn ngữ."
    assert tokenizer(text)["input_ids"] == tokenizer(unicodedata.normalize("NFD", text))["input_ids"]
    assert tokenizer("<tool_call>")["input_ids"] == [151657]
    assert tokenizer.decode([151657, 151659, 151645], skip_special_tokens=True) == "<tool_call><|fim_prefix|>"
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "Xin chào"}], add_generation_prompt=True,
                                        return_dict=False)
    assert len(ids) == 32


@pytest.mark.model
def test_real_settings_are_those_of_the_originals(real):
    name, folder = real
    config = AutoConfig.from_pretrained(folder)
    common = (config.tie_word_embeddings, config.hidden_act, config.dtype, config.rms_norm_eps)
    sizes = (config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_attention_heads,
             config.num_key_value_heads, config.max_position_embeddings, config.vocab_size)
    theta = config.rope_parameters["rope_theta"]
    if name == "smollm2-135m":
        assert (common, sizes, theta) == ((True, "silu", torch.float32, 1e-05),
                                          (576, 1536, 30, 9, 3, 8192, 49152), 100000.0)
    else:
        assert (common, sizes, theta) == ((True, "silu", torch.float32, 1e-06),
                                          (896, 4864, 24, 14, 2, 32768, 151936), 1000000.0)


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("name", REAL)
def test_tensors_equal_those_of_transformers_own_slow_reader(name):
    """SmolLM2 as transformers loads it from GGUF, whole; of the 0.5B one tensor of each kind and type."""
    source = models.cache_folder() / "downloads" / models.entry(name)["file"]
    if not (models.is_ready(name) and source.is_file()):
        pytest.skip("python3 -m lib fetch")
    model = AutoModelForCausalLM.from_pretrained(models.folder(name), dtype=torch.float32)
    ours = dict(model.named_parameters())
    theirs = reference(source) if name == "smollm2-135m" else samples(source)
    assert len(theirs) == (len(ours) if name == "smollm2-135m" else 13)
    for key, values in theirs.items():
        assert torch.equal(ours[key], values), key


def reference(source) -> dict[str, torch.Tensor]:
    """The parameters as transformers' own reader of GGUF files gives them."""
    config = load_gguf_checkpoint(source)["config"]
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**config))
    return load_gguf_checkpoint(source, return_tensors=True, model_to_load=model)["tensors"]


def samples(source) -> dict[str, torch.Tensor]:
    """Some tensors of the file by way of gguf's own reader."""
    import gguf
    reader = gguf.GGUFReader(source)
    names = {"output.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    for short, long in convert.IN_LAYER.items():
        names[f"blk.3.{short}.weight"] = f"model.layers.3.{long}.weight"
    for short in ("attn_q", "attn_k"):
        names[f"blk.3.{short}.bias"] = f"model.layers.3.{convert.IN_LAYER[short]}.bias"
    return {names[tensor.name]: torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
            for tensor in reader.tensors if tensor.name in names}


@pytest.mark.model
def test_real_folders_hold_the_recorded_bytes(real):
    name, folder = real
    files = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    recorded = models.entry(name)["converted"]
    assert {file: files[file]["sha256"] for file in recorded} == recorded
    assert fetch.verify(name) == []


LOADING = """
import sys, torch
from transformers import AutoModelForCausalLM
def private():
    lines = open("/proc/self/smaps_rollup", encoding="utf-8").read().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) // 1024
AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)  # imports what loading imports
before = private()
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
model(torch.tensor([[1, 2, 3]]))
print(private() - before)
"""


@pytest.mark.model
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read as Linux tells it")
def test_loading_maps_the_weights_and_keeps_no_copy_of_its_own(real):
    _, folder = real
    done = subprocess.run([sys.executable, "-c", LOADING, folder], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0 and int(done.stdout) < 100, done.stdout + done.stderr  # MB, of 538 and 1,976
