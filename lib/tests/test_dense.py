"""Dense retrieval: its vectors beside a forward pass written out here, the 256-token limit, and the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from lib import dense, models
from lib.dense import LIMIT, Dense, Embedding, TextCut

needs_model = pytest.mark.model
LONG = "retrieval " * 400
TEXTS = ["The cache keeps keys and values.", "A cat sat on the mat.", "", "Bánh mì và cà phê", "🎉 !", "x",
         "Memory bandwidth limits how fast tokens are generated, one after another. " * 6, LONG]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of vectors of its own; the model stays where it is."""
    monkeypatch.setattr(dense, "_place", lambda text, model: tmp_path / "vectors" / str(hash(text)))
    return tmp_path / "vectors"


@pytest.fixture
def ready():
    if not models.is_ready(dense.MODEL):
        pytest.skip("minilm is not ready")


def pretend(vectors: dict[str, list[float]], monkeypatch, left_out: dict[str, int] | None = None) -> None:
    """Let `embed` give these vectors, filled up with zeros."""
    def embed(text, model, kind="passage"):
        vector = np.zeros(dense.WIDTH, np.float32)
        vector[:len(vectors[text])] = vectors[text]
        return Embedding(vector, (left_out or {}).get(text, 0))

    monkeypatch.setattr(dense, "embed", embed)


# --- without the model ------------------------------------------------------


def test_the_closest_come_first_ties_by_index(monkeypatch):
    pretend({"east": [1, 0], "north": [0, 1], "also east": [1, 0], "west": [-1, 0], "go": [0.6, 0.8]}, monkeypatch)
    index = Dense(text for text in ["east", "", "north", "also east", "?!", "west"])
    assert index.search("go", 9) == [(2, 0.8), (0, 0.6), (3, 0.6), (5, -0.6)]
    assert index.search("go", 2) == [(2, 0.8), (0, 0.6)] and index.search("go", 0) == []
    assert index.search("") == index.search(" ?! ") == Dense([]).search("go") == Dense(["", " "]).search("go") == []
    for query in ("go", ""):
        with pytest.raises(ValueError, match="k must be 0 or more"):
            index.search(query, -1)


def test_what_is_no_corpus_is_said():
    for wrong in ("one string", ["tea", None], [7]):
        with pytest.raises(TypeError):
            Dense(wrong)


def test_a_text_that_was_cut_is_reported(monkeypatch):
    pretend({"short": [1], "long": [0, 1], "asked": [1]}, monkeypatch, {"long": 30, "asked": 2})
    with pytest.warns(TextCut, match="1 of 3 documents are longer than 256 tokens"):
        index = Dense(["short", "", "long"])
    assert index.left_out == {2: 30}
    with pytest.warns(TextCut, match="the last 2 tokens of the query"):
        index.search("asked")


def unit(*values: float) -> np.ndarray:
    vector = np.zeros(dense.WIDTH, np.float32)
    vector[:len(values)] = values
    return vector


def test_an_embedding_is_computed_once_for_every_form_of_a_text(cache, monkeypatch):
    asked = []
    monkeypatch.setattr(dense, "compute", lambda text, model: asked.append(text) or Embedding(unit(0.6, 0.8), 3))
    for text in ("bệnh", unicodedata.normalize("NFD", "bệnh"), "bệnh"):
        vector, left_out = dense.embed(text)
        assert left_out == 3 and vector.dtype == np.float32 and np.array_equal(vector, unit(0.6, 0.8))
    assert asked == ["bệnh"] and len([*cache.iterdir()]) == 1
    assert dense.embed("half a character \ud800").left_out == 3


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * dense._RECORD.itemsize, b"\xff" * dense._RECORD.itemsize,
                                    b"\0" * (2 * dense._RECORD.itemsize)])
def test_a_damaged_file_is_written_anew(cache, monkeypatch, damage):
    monkeypatch.setattr(dense, "compute", lambda text, model: Embedding(unit(1), 0))
    dense.embed("tea")
    [file] = cache.iterdir()
    file.write_bytes(damage)
    assert np.array_equal(dense.embed("tea").vector, unit(1))
    assert [*cache.iterdir()] == [file] and file.stat().st_size == dense._RECORD.itemsize


def test_a_cache_that_cannot_be_written_costs_time_only(cache, monkeypatch):
    monkeypatch.setattr(dense, "compute", lambda text, model: Embedding(unit(1), 0))
    cache.parent.joinpath("vectors").write_text("a file where the folder should be", encoding="utf-8")
    assert np.array_equal(dense.embed("tea").vector, unit(1))

    def full(*_):
        raise OSError(28, "No space left on device")

    cache.unlink()
    monkeypatch.setattr(dense.os, "replace", full)
    assert dense.embed("tea").left_out == 0 and [*cache.iterdir()] == []


def test_the_place_names_model_limit_and_text(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    one, other = dense._place("tea"), dense._place("tee")
    assert one.parent == other.parent == tmp_path / "vectors" / f"minilm-53aa51172d14-{models.CONVERSION}-{LIMIT}"
    assert one != other
    e5 = dense._place("tea", "multilingual-e5-small")
    assert e5.parent.name == f"multilingual-e5-small-1571fc982750-{models.CONVERSION}-512" and e5.name == one.name


@pytest.mark.parametrize("model, texts", [
    ("minilm", ["bệnh"] * 3), ("multilingual-e5-small", ["passage: bệnh", "query: bệnh", "passage: bệnh"])])
def test_a_model_gets_the_prefixes_it_was_trained_with(cache, monkeypatch, model, texts):
    asked = []
    monkeypatch.setattr(dense, "compute", lambda text, model: asked.append((text, model)) or Embedding(unit(1), 0))
    index = Dense([unicodedata.normalize("NFD", "bệnh")], model)
    index.search("bệnh")
    dense.embed("bệnh", model)
    assert asked == [(text, model) for text in dict.fromkeys(texts)]  # each of them once, then from the cache
    assert dense.prefix(model, "passage") + "bệnh" == texts[0] and dense.prefix(model, "query") + "bệnh" == texts[1]


def test_the_limit_in_the_warning_is_the_models(monkeypatch):
    pretend({"long": [1]}, monkeypatch, {"long": 30})
    with pytest.warns(TextCut, match="1 of 1 documents are longer than 512 tokens"):
        Dense(["long"], "multilingual-e5-small")


@pytest.mark.parametrize("model", ["", "no-such-model", models.DEFAULT])
def test_a_model_that_makes_no_vectors_is_said(model):
    for use in (lambda: Dense([], model), lambda: dense.embed("tea", model), lambda: dense.compute("tea", model)):
        with pytest.raises(ValueError, match=f"'{model}' makes no vectors; these do: minilm, multilingual-e5-small"):
            use()
    with pytest.raises(ValueError, match="query or passage, not 'limit'"):
        dense.embed("tea", kind="limit")


WRITER = """
import sys; import numpy as np; from lib import dense
vector = np.zeros(dense.WIDTH, np.float32); vector[0] = 1
dense.compute = lambda text: dense.Embedding(vector, 7)
for turn in range(300):
    path = dense._place(str(turn % 5))
    dense._keep(path, dense.compute(""))
    kept = dense._read(path)
    assert kept and kept.left_out == 7 or sys.platform == "win32"  # which locks a file while it is replaced
"""


def test_two_processes_share_the_cache(tmp_path):
    variables = {**os.environ, "COURSE_CACHE": str(tmp_path)}
    root = models.Path(models.__file__).parents[1]
    both = [subprocess.Popen([sys.executable, "-c", WRITER], cwd=root, env=variables) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 5


# --- with the model ---------------------------------------------------------


@needs_model
def test_vectors_are_those_of_a_forward_pass_with_an_explicit_mask(ready):
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = models.folder("minilm")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network = AutoModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager").eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    assert batch["input_ids"].shape == (len(TEXTS), 256) and not batch["attention_mask"].all()
    with torch.no_grad():
        hidden = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * mask).sum(1) / mask.sum(1)
    theirs = torch.nn.functional.normalize(mean, dim=1).numpy()
    ours = np.array([dense.compute(text).vector for text in TEXTS])
    assert np.abs(ours - theirs).max() < 1e-5 and np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


@needs_model
def test_the_limit_and_what_it_leaves_out(ready):
    word = "tea "
    assert dense.compute(word * (LIMIT - 2)).left_out == 0  # [CLS] and [SEP] are two of the 256
    longer = dense.compute(word * (LIMIT - 2 + 3))
    assert longer.left_out == 3 and np.array_equal(longer.vector, dense.compute(word * (LIMIT - 2)).vector)
    ends = [dense.compute(word * LIMIT + end).vector for end in ("coffee", "a hospital in Hanoi")]
    assert np.array_equal(*ends)


@needs_model
def test_meaning_is_found_where_no_word_is_shared(ready, cache):
    documents = ["The physician examined her patient.", "Interest rates fell last month.", "Two dogs ran in a park."]
    index = Dense(documents)
    assert [index.search(query, 1)[0].index for query in ("a doctor at work", "the economy", "animals playing")] == [
        0, 1, 2]
    assert index.left_out == {} and -1 <= index.search("money", 3)[-1].score < index.search("money")[0].score <= 1
    again = Dense(documents)  # from the cache this time
    assert np.array_equal(again.matrix, index.matrix)
    assert index.search(documents[0], 1) == [(0, 1.0)]


@needs_model
def test_long_vietnamese_is_cut_and_said(ready, cache):
    text = ("Bệnh viện lớn nhất thành phố mở cửa mỗi ngày từ sáng sớm đến tối. " * 13)[:800]
    with pytest.warns(TextCut):
        index = Dense([text])
    assert 0 < index.left_out[0] < 100
