"""The Vietnamese texts cut into words: the committed file belongs to the notes and questions as they are."""
from __future__ import annotations

import argparse
import json
import unicodedata

import pytest

from lib.machinery import extras, notebooks, segment


@pytest.fixture
def kept() -> dict:
    return json.loads((notebooks.ROOT / segment.FILE).read_text(encoding="utf-8"))


def test_the_file_is_of_these_texts(kept):
    texts = segment.to_cut()
    assert kept["made_from"] == segment.made_from(texts), "run `python3 -m lib segment`"
    assert list(kept["texts"]) == list(texts) and kept[segment.PEER] == extras.pins()[segment.PEER]


def test_cutting_joins_and_loses_nothing(kept):
    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, unicodedata.normalize("NFC", text))).lower()

    for name, text in segment.to_cut().items():
        assert letters(kept["texts"][name]) == letters(text), name


def test_the_command_writes_what_the_segmenter_gives(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(extras, "folder", lambda: tmp_path / "none")
    monkeypatch.setattr(segment, "segmenter", lambda: lambda text: text.replace(" ", "_"))
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(segment, "to_cut", lambda: {"a": "hai từ", "b": ""})
    assert segment.main(argparse.Namespace()) == 0
    assert "2 texts are cut into words" in capsys.readouterr().out
    kept = json.loads((tmp_path / segment.FILE).read_text(encoding="utf-8"))
    assert kept["texts"] == {"a": "hai_từ", "b": ""} and kept["made_from"] == segment.made_from(segment.to_cut())
    assert segment.made_from({"a": "hai từ"}) != segment.made_from({"a": "hai tư"})


@pytest.mark.slow
def test_pyvi_still_cuts_so(kept):
    pytest.importorskip("pyvi")
    assert segment.cut(segment.to_cut(), segment.segmenter()) == kept["texts"]
