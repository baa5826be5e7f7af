"""Retrieval by words: BM25 over paragraphs or pieces, rankings made one, and how good a ranking is.

What counts as a word decides what can be found. Text is brought to NFC and lower case; a word is a run of letters and
digits. So `load_model` is two words, `1,234.5` is three and `getUserById` is one; đ and Đ are one letter, d another;
hoà and hòa are two words, as má and ma are; İ is i (its lower case is i and a loose dot, which goes), ı is not. A run
of Han letters is one word, and an emoji is none. `folded_words` forgets accents, for text typed without them.
"""
from __future__ import annotations

import heapq
import math
import operator
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lib.passages import Passage, paragraphs, passages, pieces  # noqa: F401 (what is searched)

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text, in order: NFC, lower case, runs of letters and digits."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().replace("i\u0307", "i"))


def folded_words(text: str) -> list[str]:
    """The words of a text without their accents; đ, which is no d with an accent to Unicode, becomes d as well."""
    letters = unicodedata.normalize("NFD", " ".join(words(text)))
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return unicodedata.normalize("NFC", bare).replace("đ", "d").split()


class Hit(NamedTuple):
    """A document that was found, by its index (or id), and its score."""
    index: Hashable
    score: float


class BM25:
    """An inverted index: for every word the documents that hold it, with what it adds to their score there.

    idf(word) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length)), where f is how often the word occurs in
    the document (Robertson and Zaragoza, 2009; the idf as in Lucene, always above 0). TypeError for a document that
    is no string and for one string in place of the documents; ValueError for k1 below 0 or b outside 0 to 1.
    """

    def __init__(self, documents: Iterable[str], k1: float = 1.5, b: float = 0.75,
                 words: Callable[[str], list[str]] = words):
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise ValueError(f"k1 must be 0 or more and b from 0 to 1, not {k1} and {b}")
        self.words = words
        counts = [Counter(words(document)) for document in texts(documents)]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self.size, self.found_in = len(counts), Counter(word for count in counts for word in count)
        idf = {word: self.idf(word) for word in self.found_in}
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for index, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            norm = k1 * (1 - b + b * length / mean)
            for word, f in count.items():
                self.postings[word].append((index, _exact(idf[word] * f * (k1 + 1) / (f + norm))))

    def idf(self, word: str) -> float:
        """How much a word tells: the more, the fewer documents hold it; above 0, and highest where none does."""
        n = self.found_in[word]
        return math.log(1 + (self.size - n + 0.5) / (n + 0.5))

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The k best documents that hold a word of the query, best first, ties by index; ValueError for k below 0."""
        scores: dict[int, float] = defaultdict(float)
        for word, times in Counter(self.words(query)).items():
            for index, weight in self.postings.get(word, ()):
                scores[index] += times * weight
        return best(scores.items(), k)


def _exact(weight: float) -> float:
    """A weight to twelve decimals, as a multiple of a power of 2: sums below 8,192 are then exact, in any order."""
    return round(weight * 2**40) / 2**40


def search_or_fold(exact: BM25, folded: BM25, query: str, k: int = 3) -> tuple[list[Hit], bool]:
    """(hits, whether accents were ignored): where `exact` finds nothing, `folded` is asked (over `folded_words`)."""
    hits = exact.search(query, k)
    return (hits, False) if hits else (found := folded.search(query, k), bool(found))


def texts(documents: Iterable[str]) -> list[str]:
    """The documents as a list; TypeError for one string in their place and for a document that is no string."""
    if isinstance(documents, str):
        raise TypeError("one string was given in place of a list of documents")
    documents = list(documents)
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            raise TypeError(f"document {index} is no string: {type(document).__name__}")
    return documents


def best(scores: Iterable[tuple[int, float]], k: int) -> list[Hit]:
    """The k highest of (index, score), as hits, ties by index; TypeError for a k that is no whole number."""
    if operator.index(k) < 0:
        raise ValueError(f"k must be 0 or more, not {k}")
    return [Hit(*each) for each in heapq.nsmallest(k, scores, key=lambda each: (-each[1], each[0]))]


def reciprocal_rank_fusion(rankings: Sequence[Iterable[Hashable]], weights: Sequence[float] | None = None,
                           k: float = 60) -> list[Hit]:
    """One ranking from several (ids, best first): each adds weight / (k + rank) to its ids (Cormack et al., 2009).

    Ranks start at 1, an id that a ranking lacks gets nothing from it, one given twice counts where it stands first.
    Ties keep the order of first appearance. ValueError for k below 0, or unless there is one weight for each ranking.
    """
    if not 0 <= k < math.inf:
        raise ValueError(f"k must be 0 or more, not {k}")
    if isinstance(rankings, str) or any(isinstance(ranking, str) for ranking in rankings):
        raise TypeError("a ranking is a list of ids, not one string")
    parts = defaultdict(list)
    weights = [1.0] * len(rankings) if weights is None else weights
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), start=1):
            parts[item].append(weight / (k + rank))
    return sorted((Hit(item, math.fsum(added)) for item, added in parts.items()), key=lambda hit: -hit.score)


# --- how good a ranking is --------------------------------------------------
# `right` holds the ids that answer a question, `ranking` the ids found, best first; an id given twice counts once.
# All raise ValueError for a question without a right id, and for k below 0.

def hit_at(right: Collection[Hashable], ranking: Iterable[Hashable], k: int) -> float:
    """Hit@k: 1 if a right id is among the first k, else 0."""
    return float(any(_found(right, ranking, k)))


def reciprocal_rank(right: Collection[Hashable], ranking: Iterable[Hashable], k: int) -> float:
    """1 / rank of the first right id among the first k, else 0; its mean over questions is MRR@k."""
    return next((1 / rank for rank, is_right in enumerate(_found(right, ranking, k), start=1) if is_right), 0.0)


def recall_at(right: Collection[Hashable], ranking: Iterable[Hashable], k: int) -> float:
    """The share of the right ids that is among the first k."""
    return sum(_found(right, ranking, k)) / len(set(right))


def ndcg_at(right: Collection[Hashable], ranking: Iterable[Hashable], k: int) -> float:
    """nDCG@k: gains discounted by log2(rank + 1), over those of a ranking that has all right ids first."""
    found, ideal = _found(right, ranking, k), [True] * min(k, len(set(right)))
    return _discounted(found) / _discounted(ideal) if ideal else 0.0


def mean_over(metric: Callable[..., float], gold: Mapping, run: Mapping, k: int) -> float:
    """The mean of a metric over the questions of `gold`, 0 for one that `run` lacks; ValueError for no question."""
    if not gold:
        raise ValueError("there is no question to score")
    return math.fsum(metric(right, run.get(question, ()), k) for question, right in gold.items()) / len(gold)


def _found(right: Collection[Hashable], ranking: Iterable[Hashable], k: int) -> list[bool]:
    """Whether each of the first k ids is right."""
    if isinstance(right, str) or isinstance(ranking, str) or not right or k < 0:
        raise ValueError(f"a list of right ids and k >= 0 are needed, not {right!r} and {k}")
    return [item in right for item in list(dict.fromkeys(ranking))[:k]]


def _discounted(gains: list[bool]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
