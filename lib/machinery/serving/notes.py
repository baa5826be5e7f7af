"""The notes that questions are answered from: searched by words, in the question's own language."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lib.machinery.environment import ROOT
from lib.machinery.serve import PASSAGES
from lib.passages import Passage, passages
from lib.retrieval import BM25, folded_words, search_or_fold, words


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
        """The language of the notes that answer a question: Vietnamese where it has an accent of that language.

        Without any, it is that of the notes which hold more of the question's words, accents ignored; else English.
        """
        if has_accents(question):
            return "vi" if "vi" in self.indexes else "en"
        asked = folded_words(question)
        held = {name: sum(word in index.folded.postings for word in asked) for name, index in self.indexes.items()}
        return max(held, key=lambda name: (held[name], name == "en"))

    def search(self, question: str, k: int = PASSAGES) -> list[Passage]:
        """The best k passages, best first, accents ignored where none is typed; none where no word stands in any."""
        index = self.indexes[self.language(question)]
        exact = index.exact if has_accents(question) else index.folded
        hits, _ = search_or_fold(exact, index.folded, question, k)
        return [index.passages[hit.index] for hit in hits]


def indexed(folder: Path) -> Index:
    """The notes of a folder, paragraph by paragraph."""
    found = [passage for path in sorted(folder.glob("*.md"))
             for passage in passages(path.read_text(encoding="utf-8"), path.stem)]
    texts = [passage.text for passage in found]
    return Index(found, BM25(texts), BM25(texts, words=folded_words))


def has_accents(text: str) -> bool:
    """Whether a word of the text has a letter with an accent, or a đ."""
    return words(text) != folded_words(text)
