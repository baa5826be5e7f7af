"""One factor on a tiny model, in this process: forced tokens, the model's state, and what shows its effect."""

from __future__ import annotations

import json

import numpy
import pytest
import torch

from lib import fast_linear
from lib.machinery.drift import measure, probe, settings
from lib.machinery.drift.factors import REFERENCE, Factor
from lib.machinery.drift.forced import FEEDINGS
from lib.machinery.drift.measure import Measurement
from lib.machinery.drift.sample import WHOLE, items
from lib.tests import drifting, tiny


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def measured(tmp_path, capfd):
    """Measures a factor beside the reference; what the two kept."""
    recording = drifting.recording()

    def one(factor: Factor, load=drifting.load, is_reference: bool = False, reference: dict | None = None) -> dict:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        notebook = {"folder": str(tmp_path), "file": str(file), "items": items(recording, WHOLE, factor.feeding)}
        Measurement({"factor": vars(factor), "is_reference": is_reference, "reference": reference,
                     "notebooks": [notebook]}, load).run()
        return json.loads(file.read_text(encoding="utf-8"))

    reference = one(REFERENCE, is_reference=True)
    yield reference, lambda factor, load=drifting.load: one(factor, load, reference=reference["facts"])


# --- forced tokens -----------------------------------------------------------

@torch.inference_mode()
@pytest.mark.parametrize("feeding", FEEDINGS)
def test_forced_tokens_give_the_logits_of_decoding(feeding):
    model, prompt = tiny.model(), list(range(5, 50))
    ids = model.generate(prompt, max_new_tokens=8).ids
    model.cache.clear()
    found = list(FEEDINGS[feeding](model, prompt, ids, list(range(len(ids)))))
    assert [int(logits.argmax()) for logits in found] == ids
    for step, logits in enumerate(found):
        expected = model.network(torch.tensor([prompt + ids[:step]])).logits[0, -1]
        assert logits.shape == expected.shape and torch.allclose(logits, expected, atol=1e-5)
    some = list(FEEDINGS[feeding](model, prompt, ids, [2, 7]))
    assert len(some) == 2 and torch.allclose(some[1], found[7], atol=1e-5)


@torch.inference_mode()
def test_the_recorded_tokens_are_fed_and_not_the_models_own():
    model, prompt, ids = tiny.model(), list(range(5, 50)), [9, 8, 7]
    for feeding in FEEDINGS.values():
        last = list(feeding(model, prompt, ids, [0, 1, 2]))[-1]
        assert torch.allclose(last, model.network(torch.tensor([[*prompt, 9, 8]])).logits[0, -1], atol=1e-5)


# --- the model's state, and what shows it ------------------------------------

@pytest.mark.parametrize("asked, feeding, shown", [
    ({}, "cached", {"attention": "sdpa", "cache": "on", "dtype": "float32"}),
    ({}, "afresh", {"cache": "off"}), ({}, "one pass", {"cache": "off"}),
    ({"threads": 1}, "cached", {"threads": "1"}), ({"threads": 4}, "cached", {"threads": "4"}),
    ({"attention": "eager"}, "cached", {"attention": "eager"}),
    ({"linear": "default"}, "cached", {"linear": "default"}),
    ({"dtype": "bfloat16"}, "cached", {"dtype": "bfloat16"})])
def test_what_is_asked_for_is_found(asked, feeding, shown, threads):
    model = drifting.load("tiny")
    settings.apply(model, asked)
    facts = probe.facts(model, FEEDINGS[feeding])
    assert {name: facts[name] for name in shown} == shown and not model.cache.entries
    if fast_linear.available() and "linear" not in asked and asked.get("dtype") is None:
        assert facts["linear"] == "oneDNN" and facts["oneDNN's kernel"]


def test_what_libraries_say_is_understood():
    mkl = "MKL_VERBOSE SGEMM(T,N,40,24,64,0x1) 1.2us CNR:COMPATIBLE Dyn:0 FastMM:1 TID:0  NThr:4\n"
    onednn = ("onednn_verbose,v1,info,cpu,isa:Intel AVX2\n"
              "onednn_verbose,v1,primitive,exec,cpu,inner_product,brg_matmul:avx2,forward_inference,src:f32,1\n"
              "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32,1\n")
    assert probe.heard(mkl + onednn) == {"MKL branch": "COMPATIBLE", "MKL threads": "4", "oneDNN": "Intel AVX2",
                                         "oneDNN's kernel": "brg_matmul:avx2", "linear": "oneDNN"}
    assert probe.heard("") == {"linear": "default"}
    assert probe.heard("onednn_verbose,v1,info,cpu,isa:Intel AVX2\n") == {"linear": "default"}  # it computed nothing


@torch.inference_mode()
def test_bfloat16_rounds_weights_and_activations_and_sums_in_float32():
    layer, x = torch.nn.Linear(64, 8), torch.randn(3, 64)
    weight, bias = layer.weight.clone(), layer.bias.clone()
    network = torch.nn.Sequential(layer)
    settings.to_bfloat16(network)
    expected = (x.bfloat16().float() @ weight.bfloat16().float().T + bias.bfloat16().float()).bfloat16()
    assert network(x.bfloat16()).dtype == torch.bfloat16 and torch.equal(network(x.bfloat16()), expected)


# --- a measurement -----------------------------------------------------------

def test_the_reference_says_what_was_recorded_and_keeps_its_logits(measured, tmp_path):
    reference, _ = measured
    assert [(token["generation"], token["token"]) for token in reference["tokens"]] == [
        (generation, token) for generation in (1, 2) for token in range(1, 13)]
    assert all(token["chosen"] == token["id"] and token["change"] is None for token in reference["tokens"])
    logits = numpy.load(tmp_path / "logits-2.npy")
    assert logits.dtype == numpy.float32 and logits.shape == (12, tiny.model().vocabulary)
    assert logits.argmax(1).tolist() == [token["id"] for token in reference["tokens"][12:]]


@pytest.mark.parametrize("factor, least, most", [
    (Factor("again"), 0, 0), (Factor("eager", {"attention": "eager"}, settings={"attention": "eager"}), 0, 1e-5),
    (Factor("one pass", {"cache": "off"}, settings={"feeding": "one pass"}), 0, 1e-5),
    (Factor("bf16", {"dtype": "bfloat16"}, settings={"dtype": "bfloat16"}), 1e-4, 1)])
def test_changes_are_those_of_the_factor(measured, factor, least, most):
    _, one = measured
    found = one(factor)
    changes = [token["change"] for token in found["tokens"]]
    assert len(changes) == 24 and least <= max(changes) <= most


def test_fed_afresh_only_some_steps_are_compared_each_with_its_own(measured):
    _, one = measured
    found = one(Factor("afresh", {"cache": "off"}, settings={"feeding": "afresh"}))
    assert [token["token"] for token in found["tokens"]] == [1, 5, 8, 12] * 2
    assert max(token["change"] for token in found["tokens"]) < 1e-5


def test_a_planted_drift_is_seen(measured, monkeypatch):
    _, one = measured
    monkeypatch.setenv(drifting.PLANTED, "0.01")
    assert min(token["change"] for token in one(Factor("planted"))["tokens"]) > 1e-3


def test_a_factor_without_effect_is_not_measured(measured):
    _, one = measured
    found = one(Factor("MKL", {"MKL branch": "NO_SUCH"}))
    assert found.keys() == {"facts", "not_measured"} and found["not_measured"].endswith("and not NO_SUCH")
    same = one(Factor("sdpa", {"attention": "sdpa"}, settings={"attention": "sdpa"}))
    assert same["not_measured"] == "the reference runs like this here"


def test_tokens_that_the_reference_did_not_look_at_have_no_change(measured, tmp_path):
    _, one = measured
    numpy.save(tmp_path / "logits-1.npy", numpy.load(tmp_path / "logits-1.npy")[:3])
    (tmp_path / "logits-2.npy").unlink()
    changes = [token["change"] for token in one(Factor("again"))["tokens"]]
    assert changes == [0.0] * 3 + [None] * 21


def test_a_logit_that_is_no_number_is_the_largest_change_of_all():
    assert measure.largest(torch.tensor([1.0, float("nan")]), numpy.ones(2, "float32")) == float("inf")
    assert measure.largest(torch.tensor([1.0, 3.5]), numpy.ones(2, "float32")) == 2.5
