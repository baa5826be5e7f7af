"""How fast the inverted index is beside the article's plain class: `python3 -m lib.tests.speed_retrieval`.

10,000 made-up documents of 100 words whose frequencies fall as in natural text (Zipf); queries of 5 rare words (each
in 1 to 20 documents) and of 10 words drawn as the documents' own. Times are of this machine; the ratios tell.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np

from lib.retrieval import BM25
from lib.tests.test_retrieval import Article

DOCUMENTS, LENGTH, VOCABULARY = 10_000, 100, 50_000


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of words, frequent ones low."""
    weights = 1 / np.arange(1, VOCABULARY + 1) ** 1.07
    return rng.choice(VOCABULARY, shape, p=weights / weights.sum())


def texts(numbers: np.ndarray) -> list[str]:
    """A text for each row of word numbers."""
    return [" ".join(f"w{number}" for number in row) for row in numbers]


def timed(function: Callable, *arguments) -> tuple[float, object]:
    """(seconds, result) of a call."""
    start = perf_counter()
    result = function(*arguments)
    return perf_counter() - start, result


def compare(index: BM25, article: Article, queries: list[str]) -> tuple[float, float]:
    """Median seconds of a query with the index and with the article's class, taken in turn; both must agree."""
    ours, theirs = [], []
    for query in queries:
        seconds, hits = timed(index.search, query, 3)
        ours.append(seconds)
        seconds, scores = timed(article.scores, query)
        theirs.append(seconds)
        assert all(abs(scores[hit.index] - hit.score) < 1e-9 for hit in hits)
        assert sorted(scores, reverse=True)[:len(hits)] == [scores[hit.index] for hit in hits]
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    """Print times and ratios."""
    rng = np.random.default_rng(7)
    numbers = draw(rng, DOCUMENTS, LENGTH)
    documents = texts(numbers)
    held_by = np.zeros(VOCABULARY, int)
    for row in numbers:
        held_by[np.unique(row)] += 1
    rare = np.flatnonzero((held_by > 0) & (held_by <= 20))
    (ours, index), (theirs, article) = timed(BM25, documents), timed(Article, documents)
    print(f"index of {DOCUMENTS:,} documents: {ours:.2f} s; the article's class {theirs:.2f} s")
    for name, queries in (("5 rare words", texts(rng.choice(rare, (30, 5)))),
                          ("10 natural words", texts(draw(rng, 30, 10)))):
        ours, theirs = compare(index, article, queries)
        print(f"query of {name}: {ours * 1e3:.3f} ms; the article's class {theirs * 1e3:.1f} ms: "
              f"{theirs / ours:,.1f} times faster")


if __name__ == "__main__":
    main()
