"""Drift without any model: what is drawn, when a factor counts, what a verdict is, what file and README say."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import pytest

from lib.machinery import Stop, drift, ledger, notebooks, stages
from lib.machinery.drift import factors, readme, report, sample, verdict
from lib.machinery.drift.factors import FACTORS, Factor
from lib.machinery.drift.sample import Budget, Recording

REFERENCE, ONE, BF16 = FACTORS[0], Factor("1 thread", {"threads": "1"}), FACTORS[-1]


def made(lengths: list[int], prompts: list[int] | None = None, ties: set = frozenset()) -> Recording:
    prompts = prompts or [10] * len(lengths)
    generations = [{"model": "m", "prompt_ids": [1] * prompt, "ids": [7] * length}
                   for length, prompt in zip(lengths, prompts, strict=True)]
    return Recording("01", generations, frozenset(ties), "abc")


def token(place: int, gap: float, change: float | None = None, chosen: int = 7, generation: int = 1) -> dict:
    return {"generation": generation, "token": place, "id": 7, "chosen": chosen, "gap": gap, "change": change}


def found(*tokens: dict, **facts: str) -> dict:
    return {"facts": {"threads": "2", **facts}, "tokens": list(tokens)}


def row(*tokens: dict, gaps: list[float] = (0.5, 0.2), ties: set = frozenset(), factor: Factor = ONE) -> verdict.Row:
    """The row of these tokens; `gaps` are the reference's, of generation 1."""
    known = {(1, place): gap for place, gap in enumerate(gaps, start=1)}
    return verdict.row(made([len(gaps)], ties=ties), factor, found(*tokens), known)


# --- what is looked at -------------------------------------------------------

def test_the_whole_is_every_token_in_order():
    items = sample.items(made([3, 0, 2]), sample.WHOLE)
    assert [(item["generation"], item["steps"]) for item in items] == [(1, [0, 1, 2]), (3, [0, 1])]
    assert items[0]["ids"] == [7] * 3 and items[0]["prompt_ids"] == [1] * 10 and items[0]["model"] == "m"


def test_a_sample_keeps_to_its_budget_and_is_the_same_each_time():
    recording = made([9] * 20, [100] * 20)
    items = sample.items(recording, Budget(12, 5, 10_000, 2))
    assert sorted(len(item["ids"]) for item in items) == [2, 5, 5]
    assert items == sample.items(recording, Budget(12, 5, 10_000, 2))
    assert [item["generation"] for item in items] == sorted(item["generation"] for item in items)
    assert len(sample.items(recording, Budget(12, 5, 250, 2))) == 2
    other = sample.items(replace(recording, number="02"), Budget(12, 5, 10_000, 2))
    assert [item["generation"] for item in other] != [item["generation"] for item in items]


def test_where_no_prompt_fits_the_shortest_is_taken():
    assert [item["generation"] for item in sample.items(made([4] * 3, [900, 700, 800]), sample.SAMPLE)] == [2]


@pytest.mark.parametrize("length, count, places", [
    (0, 4, []), (1, 4, [0]), (3, 4, [0, 1, 2]), (4, 4, [0, 1, 2, 3]), (10, 4, [0, 3, 6, 9]), (10, 2, [0, 9]),
    (10, 1, [0]), (2, 1, [0])])
def test_steps_are_spread_from_the_first_to_the_last(length, count, places):
    assert sample.spread(length, count) == places


def test_only_what_is_fed_anew_for_each_token_is_thinned_out():
    recording = made([30])
    assert sample.items(recording, sample.WHOLE, "afresh")[0]["steps"] == [0, 10, 19, 29]
    assert len(sample.items(recording, sample.WHOLE, "one pass")[0]["steps"]) == 30


def test_a_recording_is_read_with_its_ties(tmp_path):
    one = {"model": "m", "prompt_ids": [1], "ids": [3, 4], "stop_reason": "eos", "gaps": [0.5, 0.0004]}
    ledger.write(tmp_path, "01", [one])
    ledger.write(tmp_path, "02", [one | {"ids": [], "gaps": []}])
    recording = sample.recording(tmp_path, "01")
    assert recording.ties == {(1, 2)} and recording.generations[0]["ids"] == [3, 4] and len(recording.hash) == 12
    assert sample.recording(tmp_path, "02") is None and sample.recording(tmp_path, "03") is None
    ledger.write(tmp_path, "01", [one | {"ids": [3, 5]}])
    assert sample.recording(tmp_path, "01").hash != recording.hash


# --- whether a factor took effect --------------------------------------------

@pytest.mark.parametrize("facts, reference, reason", [
    ({"threads": "1"}, {"threads": "2"}, ""), ({"threads": "2"}, {"threads": "2"}, "threads is 2 and not 1"),
    ({}, {"threads": "2"}, "threads is None and not 1"),
    ({"threads": "1"}, {"threads": "1"}, "the reference runs like this here"), ({"threads": "1"}, None, "")])
def test_a_factor_counts_only_if_it_is_found_to_differ(facts, reference, reason):
    assert ONE.missed(facts, reference) == reason


def test_every_factor_says_what_shows_it_and_there_is_one_control():
    without = [factor.name for factor in FACTORS if not factor.wanted]
    assert without == ["as the notebooks run", "the same again, in another process"]
    assert [factor.name for factor in FACTORS if factor.is_control] == ["control: bfloat16"]
    assert len({factor.name for factor in FACTORS}) == len(FACTORS)
    asked = {name for factor in FACTORS for name in factor.variables} - {"MKL_DYNAMIC"}
    assert asked == {"ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA"}
    assert {factor.settings.get("threads") for factor in FACTORS} == {None, 1, 2, 4}
    assert factors.FACTORS[0].feeding == "cached"
    assert [factor.name.split(":")[0] for factor in FACTORS if factor.in_part] == [
        "MKL's compatible branch", "oneDNN with SSE4.1", "no cache", "PyTorch's own linear layer"]


# --- the verdict -------------------------------------------------------------

def test_a_row_holds_largest_change_smallest_gap_and_their_ratio():
    one = row(token(1, 0.5, 1e-5), token(2, 0.2, 4e-5))
    assert (one.tokens, one.largest_change, one.smallest_gap, one.flipped) == (2, 4e-5, 0.2, [])
    assert one.ratio == pytest.approx(5000) and verdict.fault(one) == ""


def test_a_flip_is_red_and_named():
    one = row(token(1, 0.5, 1e-5), token(2, 0.2, 4e-5, chosen=8))
    assert one.flipped == [(1, 2, 0.2)]
    assert verdict.fault(one) == "1 of 2 tokens flipped outside near ties: token 2 of generation 1 (gap 0.200)"


@pytest.mark.parametrize("gaps, ties", [([0.5, 0.0009], set()), ([0.5, 0.3], {(1, 2)})])
def test_a_near_tie_is_excused_and_counted_and_no_smallest_gap(gaps, ties):
    one = row(token(1, 0.5, 1e-5), token(2, 0.2, 4e-5, chosen=8), gaps=gaps, ties=ties)
    assert (one.flipped, one.near_ties_flipped, one.smallest_gap, verdict.fault(one)) == ([], 1, 0.5, "")


def test_a_near_tie_elsewhere_excuses_nothing():
    one = row(token(2, 0.2, 4e-5, chosen=8), ties={(1, 1), (2, 2)})
    assert verdict.fault(one).startswith("1 of 1 tokens flipped")


@pytest.mark.parametrize("change, fault", [
    (0.019, ""), (0.021, "the smallest gap, 0.2000, is only 9.5 times the largest change, 2.1e-02; it has to be 10"),
    (float("inf"), "a logit is no number"), (0.0, "")])
def test_the_smallest_gap_has_to_be_ten_times_the_largest_change(change, fault):
    assert verdict.fault(row(token(1, 0.5, 0.0), token(2, 0.2, change))).startswith(fault)
    assert bool(verdict.fault(row(token(2, 0.2, change)))) == bool(fault)


def test_nothing_compared_is_a_fault_and_not_measured_is_none():
    assert verdict.fault(row()) == "no token was compared"
    assert verdict.fault(verdict.Row("01", "x", {}, not_measured="no MKL")) == ""


def course(one: dict, control: dict) -> list[tuple[str, str]]:
    reference = found(token(1, 0.5), token(2, 0.2))
    measured = {("01", REFERENCE.name): reference, ("01", ONE.name): one, ("01", BF16.name): control}
    return verdict.cases(verdict.rows([made([2])], [REFERENCE, ONE, BF16], measured))


STILL, FLIPPED = found(token(1, 0.5, 1e-5)), found(token(1, 0.5, 0.7, chosen=8), token(2, 0.5, None))
UNTOUCHED = {"facts": {}, "not_measured": "threads is 2 and not 1"}


def test_green_needs_a_control_that_flips_and_a_factor_that_took_effect():
    assert not any(fault for _, fault in course(STILL, FLIPPED))
    assert [name for name, _ in course(STILL, FLIPPED)] == [
        "01, as the notebooks run", "01, 1 thread", "the control", "the factors"]
    blind = dict(course(STILL, found(token(1, 0.5, 0.7))))
    assert blind["the control"].startswith("bfloat16 flipped no token outside near ties")
    none = dict(course(UNTOUCHED, FLIPPED))
    assert none["the factors"].startswith("not one of them took effect") and "01, 1 thread" not in none
    assert dict(course(found(token(1, 0.5, 1e-5, chosen=9)), FLIPPED))["01, 1 thread"].startswith("1 of 1 tokens")


def test_the_reference_has_to_say_what_is_recorded():
    reference = found(token(1, 0.5, chosen=9), token(2, 0.2))
    rows = verdict.rows([made([2])], [REFERENCE], {("01", REFERENCE.name): reference})
    assert dict(verdict.cases(rows))["01, as the notebooks run"].startswith("1 of 2 tokens flipped")


def test_the_table_shows_what_was_measured_and_lines_what_was_not(capsys):
    report.show([*measured(), *measured(notebook="02")])
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["01", "1", "thread", "1200", "4.3e-05", "0.2000", "4,629", "0", "1"] in shown
    assert ["02", "control:", "bfloat16", "1200", "7.0e-01", "0.2000", "0", "31", "0"] in shown
    assert shown.count("not measured: MKL (MKL branch is None and not COMPATIBLE)".split()) == 1
    assert not any(line[1:2] == ["MKL"] for line in shown)


# --- the file and the README -------------------------------------------------

def measured(**change: object) -> list[verdict.Row]:
    rows = [verdict.Row("01", REFERENCE.name, {"threads": "2"}, tokens=1_200, smallest_gap=0.2),
            verdict.Row("01", ONE.name, {"threads": "1"}, tokens=1_200, largest_change=4.321e-5, smallest_gap=0.2,
                        near_ties_flipped=1),
            verdict.Row("01", "MKL", {}, not_measured="MKL branch is None and not COMPATIBLE"),
            verdict.Row("01", BF16.name, {}, True, "", 1_200, 0.7, 0.2, [(1, 2, 0.2)] * 31)]
    return [replace(each, **change) for each in rows]


def document(old: dict, rows: list[verdict.Row], numbers: list[str] = ("01",), hash: str = "abc") -> dict:
    recordings = [replace(made([2]), number=number, hash=hash) for number in numbers]
    return report.document(old, rows, recordings, ["01", "02"])


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setattr(report.origin, "model_facts", lambda name: {"weights_sha256": name})
    monkeypatch.setattr(report.machine, "processor", lambda: ("A Processor", {"avx2", "sse"}))
    monkeypatch.setattr(report.work, "code", lambda: "0" * 64)
    return report.read(tmp_path)


def test_the_file_is_read_as_it_was_written(empty, tmp_path):
    new = document(empty, measured())
    report.write(tmp_path, new)
    assert report.read(tmp_path) == new
    text = report.path(tmp_path).read_text(encoding="utf-8")
    assert sum(line.startswith('{"machine"') for line in text.splitlines()) == 4 and str(tmp_path) not in text
    assert new["rows"][1] == {
        "machine": report.this_machine(), "notebook": "01", "factor": "1 thread", "facts": {"threads": "1"},
        "is_control": False, "tokens": 1200, "largest_change": 4.32e-05, "smallest_gap": 0.2, "flipped": [],
        "near_ties_flipped": 1, "recording": "abc"}
    facts = new["machines"][report.this_machine()]
    assert facts["flags"] == ["avx2"] and facts["models"] == {"m": "m"} and set(facts["versions"]) == {
        "python", "torch", "transformers"}


def test_new_rows_take_the_place_of_old_ones_of_the_same_machine_and_notebook(empty, monkeypatch):
    first = document(document(empty, measured()), measured(notebook="02"), ["02"])
    assert [(row["notebook"], row["factor"]) for row in first["rows"]][::4] == [("01", REFERENCE.name),
                                                                               ("02", REFERENCE.name)]
    again = document(first, measured(tokens=7))
    assert [row.get("tokens") for row in again["rows"]] == [7, 7, None, 7, 1200, 1200, None, 1200]
    monkeypatch.setattr(report.machine, "processor", lambda: ("Another", set()))
    both = document(again, measured())
    assert len(both["rows"]) == 12 and len(both["machines"]) == 2


def test_rows_of_another_machine_go_when_the_notebook_is_recorded_otherwise(empty, monkeypatch):
    first = document(empty, measured())
    monkeypatch.setattr(report.machine, "processor", lambda: ("Another", set()))
    second = document(first, measured(), hash="def")
    assert {row["machine"] for row in second["rows"]} == {report.this_machine()} == set(second["machines"])
    assert second["recordings"] == {"01": "def"}


def test_a_stale_file_is_noticed(empty, tmp_path):
    report.write(tmp_path, document(empty, measured()))
    now = [made([2]), replace(made([2]), number="02"), replace(made([2]), hash="def")]
    assert report.stale(tmp_path, now) == ["02", "01"] and report.stale(tmp_path, now[:1]) == []


def test_the_gate_names_the_command_for_a_stale_file(empty, tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    assert drift.committed([made([2])]) == [("results/drift.json", (
        "what it measured of 01 is not what is recorded now: run python3 -m lib drift 01 --whole"))]
    report.write(tmp_path, document(empty, measured()))
    assert drift.committed([made([2])]) == [("results/drift.json", "")]


def test_the_readmes_table(empty):
    new = document(empty, [*measured(), *measured(notebook="02", tokens=300)], ["01", "02"])
    new["emulated"] = [{**readme.together("ARM, emulated (x)", [{
        "tokens": 40, "largest_change": 2e-5, "smallest_gap": 0.04, "flipped": [], "near_ties_flipped": 0,
        "is_control": False}]), "facts": {}}]
    lines = readme.table(new).splitlines()
    assert lines[2].startswith("| **") and "A Processor" in lines[2] and ", AVX2, torch 2." in lines[2]
    assert lines[3:8] == [
        "| as the notebooks run | 1,500 | - | - | 0 |",
        "| 1 thread | 1,500 | 4.3e-05 | 4,630 | 0 and 2 near ties |",
        "| MKL | not measured: MKL branch is None and not COMPATIBLE | | | |",
        "| control: bfloat16 | 1,500 | 7.0e-01 | 0 | 62, as it must |",
        "| ARM, emulated (x) | 40 | 2.0e-05 | 2,000 | 0 |"]
    assert "| Windows | never | | | |" in lines and "| a real ARM processor | never | | | |" in lines
    assert "| a processor with AVX-512 | never | | | |" in lines


@pytest.mark.parametrize("system, architecture, flags, python, lacks", [
    ("Linux", "x86_64", ["avx2", "avx512f"], "3.11.7", ["Windows", "macOS", "a real ARM processor",
     "a processor with AVX2 and no AVX-512 (above, one was told to do without)", "Python 3.12", "Python 3.13"]),
    ("Darwin", "arm64", ["asimd"], "3.13.1", ["Windows", "a processor with AVX-512",
     "a processor with AVX2 and no AVX-512 (above, one was told to do without)", "Python 3.11", "Python 3.12"]),
    ("Windows", "AMD64", ["avx2"], "3.12.0", ["macOS", "a real ARM processor", "a processor with AVX-512",
                                             "Python 3.11", "Python 3.13"])])
def test_what_never_was_tried(system, architecture, flags, python, lacks):
    facts = {"system": system, "architecture": architecture, "flags": flags, "versions": {"python": python}}
    assert readme.never({"machines": {"x": facts}}) == lacks


def test_the_table_takes_its_place_in_the_readme(empty, tmp_path):
    path, new = tmp_path / "README.md", document(empty, measured())
    path.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n", encoding="utf-8")
    assert readme.renew(path, new) and not readme.renew(path, new)
    text = path.read_text(encoding="utf-8")
    assert text == f"before\n{readme.BEGIN}\n{readme.table(new)}\n{readme.END}\nafter\n"
    path.write_text("no place", encoding="utf-8")
    with pytest.raises(Stop, match="README.md has no place for the table"):
        readme.renew(path, new)


# --- the command -------------------------------------------------------------

def test_a_notebook_without_generations_is_told_and_is_no_failure_of_the_gate(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(drift, "recorded", lambda numbers: [])
    with pytest.raises(Stop, match="Of 04 no generation is recorded"):
        drift.main(argparse.Namespace(notebooks=["04"], whole=False, emulated=False))
    assert drift.checked(["04"]) == [("no generation is recorded", "")]


def test_the_stage_is_slow_and_made_of_these_cases(monkeypatch):
    stage = stages.drift_on_other_machines
    assert stage in stages.STAGES and stage.slow
    monkeypatch.setattr(drift, "checked", lambda numbers: [("a", ""), ("b", f"wrong in {numbers}")])
    done = stage(stages.Request(notebooks.select(["01"]), True, None))
    assert (done.passed, done.failed, done.faults) == (1, 1, ["b: wrong in ['01']"])


@pytest.mark.parametrize("cases, code, last", [([("a", "")], 0, "1 passed, 0 failed"),
                                               ([("a", ""), ("b", "no")], 1, "b: no\n1 passed, 1 failed")])
def test_how_the_command_ends(cases, code, last, capsys):
    assert drift.conclude(cases) == code and capsys.readouterr().out == last + "\n"


class Measured:
    """A stand-in for the run of all factors: `whole` ones and samples alike come out as given."""
    forgotten = 0

    def __init__(self, recordings: list, whole: bool):
        self.whole = whole

    def measure(self) -> dict:
        return {("01", factor.name): FLIPPED if factor.is_control else found(token(1, 0.5, 1e-5), token(2, 0.2))
                for factor in FACTORS}

    def forget(self) -> None:
        Measured.forgotten += 1


@pytest.mark.parametrize("whole", [False, True])
def test_only_a_whole_measurement_is_written(whole, empty, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "select", lambda numbers: [tmp_path / "01-toy.ipynb"])
    monkeypatch.setattr(drift.fetch, "ensure", lambda names: None)
    monkeypatch.setattr(drift, "Run", Measured)
    (tmp_path / "README.md").write_text(f"{readme.BEGIN}\n{readme.END}\n", encoding="utf-8")
    before = Measured.forgotten
    assert not any(fault for _, fault in drift.compared([made([2])], whole))
    assert report.path(tmp_path).exists() == whole and Measured.forgotten == before + 1
    assert ("| 1 thread |" in (tmp_path / "README.md").read_text(encoding="utf-8")) == whole
    said = capsys.readouterr().out
    assert ("A sample, drawn with seed 9: 12 generated tokens" in said) != whole


def test_a_whole_measurement_that_is_red_is_not_written_and_what_is_measured_is_kept(empty, tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(drift.fetch, "ensure", lambda names: None)
    monkeypatch.setattr(drift, "Run", Measured)
    monkeypatch.setattr(Measured, "measure", lambda self: {("01", factor.name): STILL for factor in FACTORS})
    before = Measured.forgotten
    assert [name for name, fault in drift.compared([made([2])], True) if fault] == ["the control"]
    assert not report.path(tmp_path).exists() and Measured.forgotten == before


@pytest.mark.skipif(not report.path(notebooks.ROOT).exists(), reason="results/drift.json: nothing measured so far")
def test_the_committed_file_is_json_of_this_form():
    kept = report.read(notebooks.ROOT)
    assert kept["rows"]
    assert json.dumps(kept) and {row["machine"] for row in kept["rows"]} == set(kept["machines"])
    assert not any(row["flipped"] for row in kept["rows"] if not row.get("not_measured") and not row["is_control"])
    assert any(row["flipped"] for row in kept["rows"] if row.get("is_control"))
