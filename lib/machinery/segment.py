"""The command `segment`: pyvi cuts the Vietnamese notes and the questions about them into words, for notebook 04.

In Vietnamese a space stands between syllables, and a word may have several: pyvi joins those of one word with `_`.
Its result is committed, so that a lesson can compare words with syllables without a segmenter being installed.
"""
from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lib.evaluations import load_notes, load_questions
from lib.machinery import bars, extras, notebooks

PEER = "pyvi"
FILE = Path("results") / "bench" / "vietnamese-words.json"
QUESTIONS = ("notes-vi",)


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib segment`: cut passages and questions and write them, a text a line."""
    sys.path.insert(0, str(extras.folder()))
    texts = to_cut()
    kept = {"name": "vietnamese-words", "date": datetime.now(UTC).date().isoformat(), PEER: extras.pins()[PEER],
            "made_from": made_from(texts), "texts": cut(texts, segmenter())}
    notebooks.write_atomically(notebooks.ROOT / FILE, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
    bars.say(f"{len(texts)} texts are cut into words and written to {FILE.as_posix()}.")
    return 0


def to_cut() -> dict[str, str]:
    """The Vietnamese passages by id and the questions by id, in NFC."""
    found = {f"{passage.document}/{passage.number}": passage.text for passage in load_notes("vi")}
    found |= {question["id"]: question["question"] for name in QUESTIONS for question in load_questions(name)}
    return {name: unicodedata.normalize("NFC", text) for name, text in found.items()}


def made_from(texts: dict[str, str]) -> str:
    """SHA-256 over the texts: 16 hexadecimal digits that tell whether the file is still of these."""
    return hashlib.sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()[:16]


def segmenter() -> Callable[[str], str]:
    """pyvi's function, from the peers."""
    return importlib.import_module("pyvi.ViTokenizer").tokenize


def cut(texts: dict[str, str], segment: Callable[[str], str]) -> dict[str, str]:
    """Each text with its syllables joined to words by `_`."""
    return {name: segment(text) for name, text in texts.items()}
