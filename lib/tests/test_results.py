"""The folder results/ on its way to a kernel and back."""

from __future__ import annotations

import pytest

from lib.machinery.results import bring_back, copy_aside


@pytest.mark.parametrize("own", ["evaluations/loop.json", "bench/retrieval.json"])
def test_what_a_command_wrote_meanwhile_is_not_overwritten(own, tmp_path):
    course, aside = tmp_path / "results", tmp_path / "aside"
    for name in (own, "generations/01.json"):
        (course / name).parent.mkdir(parents=True)
        (course / name).write_text("old", encoding="utf-8")
    copy_aside(course, aside)
    (course / own).write_text("new", encoding="utf-8")
    (aside / "generations/01.json").write_text("new", encoding="utf-8")
    bring_back(aside, course, times=False)
    assert (aside / own).exists() and (course / own).read_text(encoding="utf-8") == "new"
    assert (course / "generations/01.json").read_text(encoding="utf-8") == "new"
