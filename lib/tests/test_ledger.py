"""Generations kept beside a recording, near ties, and where two runs part."""
import json

import pytest

from lib.machinery import ledger, notebooks


def generation(ids, gaps=None, model="m", prompt=(1, 2)):
    return {"model": model, "prompt_ids": list(prompt), "ids": ids, "text": "", "stop_reason": "eos",
            "gaps": gaps if gaps is not None else [0.5] * len(ids)}


def test_no_file_is_no_generation(tmp_path):
    assert ledger.read(tmp_path / "ledger.jsonl") == []


def test_what_was_cancelled_is_left_out(tmp_path):
    kept, cancelled = generation([3]), generation([4]) | {"stop_reason": "cancelled"}
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (cancelled, kept, cancelled)), encoding="utf-8")
    assert ledger.read(path) == [kept]


def test_one_generation_a_line_and_the_near_ties_of_all_notebooks(tmp_path):
    ledger.write(tmp_path, "02", [generation([5], [0.00001])])
    ledger.write(tmp_path, "01", [generation([3, 4], [0.5, 0.00042]), generation([], [])])
    lines = ledger.generations_path(tmp_path, "01").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "[" and lines[-1] == "]" and len(lines) == 4
    assert json.loads(lines[1].rstrip(","))["smallest_gap"] == 0.0
    assert json.loads(lines[2]) == {"model": "m", "prompt_ids": [1, 2], "ids": [], "stop_reason": "eos",
                                    "smallest_gap": None}
    assert ledger.read_json(ledger.near_ties_path(tmp_path)) == [
        {"notebook": "01", "generation": 1, "token": 2, "gap": 0.0004},
        {"notebook": "02", "generation": 1, "token": 1, "gap": 0.0}]


def test_a_notebook_that_generates_nothing_any_more_keeps_nothing(tmp_path):
    ledger.write(tmp_path, "01", [generation([3], [0.0001])])
    ledger.write(tmp_path, "01", [])
    assert not ledger.generations_path(tmp_path, "01").exists()
    assert ledger.near_ties_path(tmp_path).read_text(encoding="utf-8") == "[]\n"


@pytest.mark.parametrize("now, says", [
    (generation([3, 4, 5], [0.5, 0.50005, 0.5]), None),
    (generation([3, 4, 5], [0.5, 0.4, 0.5]), "generation 1 has 0.4 as its smallest gap, and 0.5 is recorded"),
    (generation([3, 4, 5]) | {"stop_reason": "length"}, "generation 1 ended by 'length', and 'eos' is recorded"),
    (generation([3, 9], [0.5, 0.0004]), "near tie at token 2 of generation 1 (gap 0.0004)"),
    (generation([3, 9], [0.5, 0.7]), "generation 1 differs from token 2 on (gap 0.700)"),
    (generation([3, 4], [0.5, 0.5]), "generation 1 differs from token 3 on (gap inf)"),
    (generation([3, 4, 5, 6], [0.5] * 3 + [0.2]), "generation 1 differs from token 4 on (gap 0.200)"),
    (generation([3, 4, 5], prompt=(1,)), "generation 1 was given another prompt, or another model, than recorded"),
    (generation([3, 4, 5], model="n"), "generation 1 was given another prompt, or another model, than recorded")])
def test_where_two_runs_part(now, says):
    kept = [ledger.recorded(generation([3, 4, 5]))]
    found = ledger.compare(kept, [], [now])
    assert (found and str(found)) == says


def test_a_near_tie_of_the_recording_counts_too():
    ties = [{"notebook": "01", "generation": 1, "token": 1, "gap": 0.0003}]
    found = ledger.compare([ledger.recorded(generation([3]))], ties, [generation([4], [0.0012])])
    assert str(found) == "near tie at token 1 of generation 1 (gap 0.0003)"


def kept(root, *generations: dict, number: str = "01") -> None:
    ledger.write(root, number, [*generations])


def ties(root, *entries: tuple) -> None:
    names = ("notebook", "generation", "token", "gap")
    ledger.near_ties_path(root).write_text(
        ledger.one_a_line([dict(zip(names, entry, strict=True)) for entry in entries]), encoding="utf-8")


NARROW = ([3, 4], [0.5, 0.00042])  # its second token is a near tie


def test_what_is_kept_agrees_with_itself(tmp_path):
    kept(tmp_path, generation([5]), generation(*NARROW), generation([], []), generation([3], [0.00096]))
    assert ledger.kept_faults(tmp_path, ["01"]) == []
    assert ledger.kept_faults(notebooks.ROOT, [notebooks.number(path) for path in notebooks.select([])]) == []


@pytest.mark.parametrize("entries, fault", [
    ([], "lacks the near tie of notebook 01, generation 2"),
    ([("01", 2, 2, 0.0004), ("01", 1, 1, 0.0004)], "'generation': 1, 'token': 1, 'gap': 0.0004} is a near tie of no"),
    ([("01", 2, 2, 0.0004), ("02", 1, 1, 0.0004)], "is a near tie of no recorded generation"),
    ([("01", 2, 2, 0.0004), ("01", 9, 1, 0.0004)], "is a near tie of no recorded generation"),
    ([("01", 2, 3, 0.0004)], "is a near tie of no recorded generation"),
    ([("01", 2, 0, 0.0004)], "is a near tie of no recorded generation"),
    ([("01", 2, 2, 0.4)], "is a near tie of no recorded generation"),
    ([("01", 2, 2, 0.0004)] * 2, "a near tie is listed twice")])
def test_near_ties_that_no_generation_has(tmp_path, entries, fault):
    kept(tmp_path, generation([5]), generation(*NARROW))
    ties(tmp_path, *entries)
    assert [fault in found for found in ledger.kept_faults(tmp_path, ["01"])] == [True]


def test_generations_of_no_notebook(tmp_path):
    kept(tmp_path, generation([5]), number="09")
    assert ledger.kept_faults(tmp_path, ["01"]) == ["results/generations/09.json belongs to no notebook"]
