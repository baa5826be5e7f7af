"""The record of an episode: equal after the way through a file, and on the disk whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from lib.chat import Span
from lib.episode import Episode, Turn, load_episode
from lib.replies import Call, Finding
from lib.tools import Result

SEARCH, LOST = Call("search", {"query": "máy </tool_call> 👩‍👩‍👧", "rows": [1, 2.5, None, {"x": True}]}), Call("lose",
                                                                                                              {})


def turn(**changes) -> Turn:
    spans = [Span(7, "Xin", "user"), Span(8, "", "user"), Span(2, "<|im_end|>", "template"),
             Span(9, "\ufffd", "model")]
    findings = [Finding(0, 5, (), "", (SEARCH, SEARCH)), Finding(6, 9, ("bad_json", "trailing_text"), "no JSON")]
    results = [Result(SEARCH, True, "ầ", 12, 0.25), Result(LOST, False, "Error: no.", ran=False,
                                                           codes=("unknown_tool",)),
               Result(None, False, "Error", ran=False)]
    return replace(Turn(spans, 1, "text", findings, results, ["a notice"], "eos", 3, 1, 1,
                        {"user": 2, "template": 1}, [0.5], None, 0.125, 0.0), **changes)


def episode(turns: list[Turn]) -> Episode:
    protocol = {"name": "tools", "system": None, "examples": [{"role": "user", "content": "ầ"}], "stop": ["x"]}
    return Episode("Câu hỏi?", "scripted", protocol, {"max_turns": 5, "max_seconds": None}, "loop", None, "broken",
                   turns)


@pytest.mark.parametrize("turns", [[], [turn()], [turn(), turn(findings=[], results=[], spans=[], gaps=[],
                                                               by_writer={})]])
def test_an_episode_is_the_same_after_the_way_through_json(turns):
    before = episode(turns)
    after = Episode.from_json(before.to_json())
    assert after == before and after.to_json() == before.to_json()
    assert all(isinstance(each, Span) for kept in after.turns for each in kept.spans)


def test_the_json_is_plain_and_keeps_its_letters():
    text = episode([turn()]).to_json()
    data = json.loads(text)
    assert "máy" in text and "\\u1" not in text and "\n" not in text
    assert data["turns"][0]["spans"][0] == [7, "Xin", "user"]
    assert data["turns"][0]["results"][2]["call"] is None


def test_what_is_counted_from_the_turns():
    both = episode([turn(), turn(findings=[Finding(0, 1, ("truncated", "bad_json"), "cut")], results=[])])
    assert both.codes == ["bad_json", "trailing_text", "truncated"]
    assert both.turns[0].codes == ["bad_json", "trailing_text"]
    assert both.calls == [SEARCH] and both.turns[0].fed_tokens == 2
    assert episode([]).calls == episode([]).codes == []


def test_a_new_episode_is_running_without_an_answer():
    new = Episode("?", "m", {}, {})
    assert (new.status, new.answer, new.fault, new.turns) == ("running", None, None, [])


def test_saving_makes_the_folder_and_replaces_the_file(tmp_path):
    path = tmp_path / "new" / "màu.json"
    for turns in ([], [turn()], [turn(), turn()]):
        episode(turns).save(path)
        assert load_episode(path) == episode(turns) and load_episode(str(path)) == episode(turns)
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes().endswith(b"}\n") and b"\r" not in path.read_bytes()


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_failure_while_saving_leaves_the_old_file(tmp_path, monkeypatch, step, fault):
    path = tmp_path / "episode.json"
    episode([]).save(path)

    def fail(*_, **__):
        raise fault

    half = type(path).write_text

    def break_off(self, text, **options):
        half(self, text[:20], **options)
        raise fault

    if step == "replace":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(type(path), "write_text", break_off)
    with pytest.raises(fault):
        episode([turn()]).save(path)
    monkeypatch.undo()
    assert load_episode(path) == episode([]) and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"turns": 5}', '{"turns": [{"notes": 1}]}', "null", "[" * 100_000])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "e.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="e.json holds no episode of this course"):
        load_episode(tmp_path / "e.json")
