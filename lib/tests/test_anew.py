"""Recordings made anew: three that are equal, and what is said when they are not."""
import json

import pytest

from lib.machinery import anew, ledger, record
from lib.tests.test_ledger import generation
from lib.tests.toys import GENERATES, WRITES, course, sources, tree

COUNTS = """import os, pathlib
file = pathlib.Path(os.environ["PLACE"])
_ = file.write_text(file.read_text() + "x")
print(len(file.read_text()) > LIMIT)"""


def seconds(root, **times: float) -> None:
    """Notes how long the recordings of notebooks took."""
    (root / "results" / "timings").mkdir(parents=True, exist_ok=True)
    for number, took in times.items():
        file = root / "results" / "timings" / f"{number.strip('n')}.json"
        file.write_text(json.dumps({"seconds": took}), encoding="utf-8")


def test_three_recordings_of_an_unchanged_tree_are_equal(tmp_path):
    root = tmp_path / "course"
    path = sources(root, GENERATES, WRITES, "print('sáu')")
    record.record(path, root)
    before = tree(root)
    cases, made = anew.record_all([path], tmp_path / "copy", root)
    cases += anew.compare_trees(tmp_path / "copy", root) + anew.record_again([path], tmp_path / "copy", root)
    assert [fault for _, fault in cases if fault] == [] and made == {path: tmp_path / "copy/notebooks/01-toy.ipynb"}
    names = [name for name, _ in cases]
    assert names[-2:] == ["01-toy.ipynb, recording 2 of 3", "01-toy.ipynb, recording 3 of 3"]
    assert {"notebooks/01-toy.ipynb", "results/generations/01.json", "results/near-ties.json"} <= set(names)
    assert tree(root) == before


@pytest.mark.parametrize("limit, differing", [(1, ["2", "3"]), (2, ["3"])])
def test_a_later_recording_that_differs_is_named(tmp_path, monkeypatch, limit, differing):
    monkeypatch.setenv("PLACE", str(tmp_path / "count"))
    (tmp_path / "count").write_text("", encoding="utf-8")
    root = tmp_path / "course"
    path = sources(root, COUNTS.replace("LIMIT", str(limit)))
    anew.record_all([path], tmp_path / "copy", root)
    cases = anew.record_again([path], tmp_path / "copy", root)
    red = {name.split()[-3]: fault for name, fault in cases if fault}
    assert list(red) == differing and set(red.values()) == {"notebooks/01-toy.ipynb: not as in the first"}


def test_what_cannot_be_recorded_is_no_recording(tmp_path):
    path = sources(tmp_path / "course", "1 / 0")
    cases, made = anew.record_all([path], tmp_path / "copy", tmp_path / "course")
    assert "ZeroDivisionError" in cases[0][1] and made == {}
    assert all("ZeroDivisionError" in fault for _, fault
               in anew.record_again([path], tmp_path / "copy", tmp_path / "course"))


@pytest.mark.parametrize("times, generating, chosen", [
    ({"n01": 135, "n02": 50, "n03": 18}, ["01", "02"], ["03", "02"]),
    ({"n01": 1, "n02": 50, "n03": 18}, ["01", "02"], ["01"]), ({"n01": 9, "n02": 5, "n03": 7}, [], ["02"])])
def test_the_fastest_and_the_fastest_that_generates_are_recorded_three_times(tmp_path, times, generating, chosen):
    paths = [course(tmp_path, name=f"{number}-toy") for number in ("01", "02", "03")]
    seconds(tmp_path, **times)
    for number in generating:
        ledger.write(tmp_path, number, [generation([3])])
    assert [path.name[:2] for path in anew.telling(paths, tmp_path)] == chosen
    assert anew.telling([], tmp_path) == []
