"""The run of all factors: what is kept and gone on with, what a process is given, and how its end is told.

The processes here are stand-ins without a model, but for the last test.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace

import pytest

from lib.machinery import Stop, lock, notebooks
from lib.machinery.drift import verdict, work
from lib.machinery.drift.factors import FACTORS, REFERENCE, Factor
from lib.machinery.drift.sample import PART, SAMPLE, WHOLE, Recording
from lib.machinery.drift.work import Run
from lib.machinery.progress import Progress
from lib.tests import drifting

STAND_IN = """
import json, os, sys
task = json.load(open(sys.argv[-1], encoding="utf-8"))
with open({log!r}, "a", encoding="utf-8") as log:
    print(json.dumps([task["factor"]["name"], [each["number"] for each in task["notebooks"]], task["reference"],
                      task["is_reference"], os.environ.get("MKL_CBWR")]), file=log)
for each in task["notebooks"]:
    tokens = [{{"generation": item["generation"], "token": step + 1, "id": 7, "chosen": 7, "gap": 0.5,
               "change": 1e-5}} for item in each["items"] for step in item["steps"]]
    print("a library's own word\\n" + json.dumps({{"tokens": len(tokens)}}), flush=True)
    if each["number"] in {breaks!r}:
        sys.exit("it broke\\nMemoryError: no room")
    with open(each["file"], "w", encoding="utf-8") as file:
        json.dump({{"facts": {{"threads": "2"}}, "tokens": tokens}}, file)
"""


@pytest.fixture
def recordings() -> list[Recording]:
    generations = [{"model": "m", "prompt_ids": [1] * 40, "ids": [7] * 6}] * 3
    return [Recording(number, generations, frozenset(), "abc") for number in ("01", "02")]


def factors(tmp_path, breaks: tuple = ()) -> list[Factor]:
    program = STAND_IN.format(log=str(tmp_path / "log"), breaks=breaks)
    return [Factor(name, command=(sys.executable, "-c", program)) for name in ("reference", "other", "third")]


def run(recordings, tmp_path, breaks: tuple = (), whole: bool = True, **options) -> Run:
    """A run of stand-ins; their program is no part of what names a result."""
    chosen = factors(tmp_path, breaks)
    result = Run(recordings, whole, chosen, root=tmp_path, progress=Progress(io.StringIO(), 0), **options)
    result.file = lambda recording, factor: result.place(recording) / f"{factor.name}.json"
    return result


def log(tmp_path) -> list[list]:
    return [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]


def test_every_factor_has_a_process_and_knows_the_references_facts(recordings, tmp_path, monkeypatch):
    monkeypatch.setenv("MKL_CBWR", "AVX512")
    found = run(recordings, tmp_path).measure()
    both = ["01", "02"]
    assert log(tmp_path) == [["reference", both, None, True, None], ["other", both, {"threads": "2"}, False, None],
                             ["third", both, {"threads": "2"}, False, None]]
    assert len(found) == 6 and len(found["02", "third"]["tokens"]) == 18


def test_an_interrupted_run_goes_on_where_it_was(recordings, tmp_path):
    with pytest.raises(Stop, match="under 'reference': its process ended with code 1 .MemoryError: no room"):
        run(recordings, tmp_path, ("02",)).measure()
    assert len(run(recordings, tmp_path).measure()) == 6
    assert [line[:2] for line in log(tmp_path)] == [["reference", ["01", "02"]], ["reference", ["02"]],
                                                    ["other", ["01", "02"]], ["third", ["01", "02"]]]
    run(recordings, tmp_path).measure()
    assert len(log(tmp_path)) == 4
    run(recordings, tmp_path).forget()
    run(recordings, tmp_path).measure()
    assert len(log(tmp_path)) == 7


@pytest.mark.parametrize("change", [{"hash": "def"}, {"ties": frozenset({(1, 1)})}])
def test_another_recording_is_measured_anew_and_leaves_nothing_of_the_old(recordings, tmp_path, change):
    first = run(recordings, tmp_path)
    first.measure()
    new = [replace(recordings[0], **change), recordings[1]]
    run(new, tmp_path).measure()
    assert [line[1] for line in log(tmp_path)] == [["01", "02"]] * 3 + [["01"]] * 3
    assert not first.place(recordings[0]).exists() and first.place(recordings[1]).exists()


@pytest.mark.parametrize("name", ["code", "versions"])
def test_other_code_or_versions_are_measured_anew(recordings, tmp_path, monkeypatch, name):
    before = run(recordings, tmp_path).place(recordings[0])
    assert before == run(recordings, tmp_path).place(recordings[0])
    monkeypatch.setattr(work, name, lambda: "other")
    assert run(recordings, tmp_path).place(recordings[0]) != before


def test_code_that_is_edited_meanwhile_does_not_end_the_run(recordings, tmp_path, monkeypatch):
    one, before = run(recordings, tmp_path), iter("abcdefgh")
    monkeypatch.setattr(work, "code", lambda: next(before))
    assert len(one.measure()) == 6


def test_sample_and_whole_are_kept_apart_and_each_factor_has_its_own_file(recordings, tmp_path):
    whole, part = (Run(recordings, each, root=tmp_path) for each in (True, False))
    assert whole.place(recordings[0]).parent != part.place(recordings[0]).parent
    assert len({whole.file(recordings[0], factor) for factor in FACTORS}) == len(FACTORS)
    assert [part.budget(factor) for factor in (REFERENCE, FACTORS[-1])] == [SAMPLE, WHOLE]
    assert Run(recordings * 3, False, root=tmp_path).budget(FACTORS[-1]) == PART
    assert {whole.budget(factor) for factor in FACTORS if not factor.in_part} == {WHOLE}
    assert {whole.budget(factor) for factor in FACTORS if factor.in_part} == {PART}


def test_two_runs_do_not_mix(recordings, tmp_path):
    one = run(recordings, tmp_path)
    one.folder.mkdir(parents=True)
    with lock.attempt(one.folder / "drift.lock"), pytest.raises(Stop, match="Another process measures the drift"):
        one.measure()


def test_a_full_disk_is_told_before_anything_is_measured(recordings, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "LOGIT_BYTES", 10**15)
    with pytest.raises(Stop, match="The measurement of drift needs 36000000.0 GB of disk"):
        run(recordings, tmp_path).measure()
    assert not (tmp_path / "log").exists()


def test_progress_tells_tokens_and_what_is_left(recordings, tmp_path):
    one = run(recordings, tmp_path)
    one.measure()
    told = one.progress.stream.getvalue()
    assert "1 of 3: reference" in told and "18 of 36 tokens, about 0 min left in all" in told
    assert told.count("measured, ") == 3
    assert one.units_done == pytest.approx(one.units(one.factors, recordings))


def test_what_is_left_is_judged_by_what_is_done(recordings, tmp_path, monkeypatch):
    one = run(recordings, tmp_path)
    monkeypatch.setattr(work.time, "monotonic", lambda: one.begun + 120)
    assert one.left(0, 50) == "" and one.left(10, 50) == ", about 10 min left in all"


def test_the_estimate_counts_what_each_way_of_feeding_costs(recordings, tmp_path):
    one = Run(recordings[:1], True, root=tmp_path)
    cached = one.units([REFERENCE], recordings[:1])
    assert cached == pytest.approx(3 * (40 / work.PREFILL + 6))
    afresh, one_pass = (replace(REFERENCE, settings={"feeding": feeding}) for feeding in ("afresh", "one pass"))
    assert one.units([afresh], recordings[:1]) == pytest.approx(3 * 4 * 46 / work.PREFILL)
    assert one.units([one_pass], recordings[:1]) == pytest.approx(3 * 46 / work.PREFILL)
    assert one.units([replace(REFERENCE, slow=2)], recordings[:1]) == pytest.approx(2 * cached)


def test_a_process_gets_its_own_variables_and_none_of_a_shell(monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    found = work.variables(Factor("x", variables={"MKL_CBWR": "COMPATIBLE"}))
    assert found["MKL_CBWR"] == "COMPATIBLE" and "MKL_NUM_THREADS" not in found and "ATEN_CPU_CAPABILITY" not in found
    assert found["PYTHONPATH"].startswith(str(notebooks.ROOT))


def test_real_processes_on_a_tiny_model(tmp_path):
    """The reference, a variable that works where MKL is, a factor without effect, and a planted drift (red)."""
    compatible = next(factor for factor in FACTORS if factor.variables == {"MKL_CBWR": "COMPATIBLE"})
    unknown = Factor("unaffected", {"MKL branch": "NO_SUCH"})
    planted = Factor("planted", variables={drifting.PLANTED: "0.01"})
    chosen, recording = [REFERENCE, compatible, unknown, planted], drifting.recording()
    run = Run([recording], True, chosen, drifting.LOADER, tmp_path, Progress(io.StringIO()))
    rows = {row.factor: row for row in verdict.rows([recording], chosen, run.measure())}
    assert verdict.fault(rows[REFERENCE.name]) == "" and rows[REFERENCE.name].tokens == 24
    one = rows[compatible.name]
    assert one.not_measured if "MKL branch" not in one.facts else one.largest_change < 1e-5 and not verdict.fault(one)
    assert rows["unaffected"].not_measured.startswith("MKL branch is ") and rows["unaffected"].tokens == 0
    assert rows["planted"].largest_change > 1e-3 and verdict.fault(rows["planted"])
    assert len(list(run.place(recording).glob("logits-*.npy"))) == 2
