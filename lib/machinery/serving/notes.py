"""The notes that questions are answered from: searched by words, in the question's own language."""
from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import NamedTuple

from lib.machinery.environment import ROOT
from lib.machinery.serve import PASSAGES
from lib.passages import Passage, passages
from lib.retrieval import BM25, folded_words, search_or_fold


class Index(NamedTuple):
    """The passages of one language, and their index by words with accents and without."""
    passages: list[Passage]
    exact: BM25
    folded: BM25


class Notes:
    """Every folder of notes, by its language."""

    def __init__(self, folder: Path = ROOT / "data" / "notes"):
        self.indexes = {path.name: indexed(path) for path in sorted(folder.iterdir()) if path.is_dir()}

    def language(self, question: str) -> str:
        """The language of the notes that answer a question: its own, or English where there are none in it."""
        return language if (language := language_of(question)) in self.indexes else "en"

    def search(self, question: str, k: int = PASSAGES) -> list[Passage]:
        """The best k passages, best first; none where no word of the question is in the notes."""
        index = self.indexes[self.language(question)]
        hits, _ = search_or_fold(index.exact, index.folded, question, k)
        return [index.passages[hit.index] for hit in hits]


def indexed(folder: Path) -> Index:
    """The notes of a folder, paragraph by paragraph."""
    found = [passage for path in sorted(folder.glob("*.md"))
             for passage in passages(path.read_text(encoding="utf-8"), path.stem)]
    texts = [passage.text for passage in found]
    return Index(found, BM25(texts), BM25(texts, words=folded_words))


def language_of(text: str) -> str:
    """`vi` for a text with a letter that Vietnamese writes and English does not, otherwise `en`."""
    letters = unicodedata.normalize("NFD", text.lower())
    return "vi" if "đ" in letters or any(map(unicodedata.combining, letters)) else "en"
