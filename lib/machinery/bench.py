"""The command `bench`: how long searches by words take, ours beside a short class and two libraries, in one process.

Made-up passages of 100 words whose frequencies fall as in natural text (Zipf). The times are of this machine, taken
in turn; what can be carried elsewhere are their ratios, with care.
"""
from __future__ import annotations

import argparse
import importlib
import math
import platform
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy
from rich.console import Console
from rich.table import Table

from lib.machinery import bars, extras, machine, notebooks
from lib.machinery.evaluations import store
from lib.machinery.progress import Progress
from lib.retrieval import BM25, words

SIZES, LENGTH, VOCABULARY, SEED = (123, 2_000, 10_000), 100, 50_000, 7
QUERIES, RARE_WORDS, NATURAL_WORDS, RARE = 20, 5, 10, 20  # RARE: in at most so many passages
ROUNDS, TOP, K1, B = 5, 3, 1.5, 0.75
TIE = 1e-6  # scores that differ by less are one
SHORT, OURS, RANK_BM25, BM25S = "short class", "this course", "rank_bm25", "bm25s"
SAME_FORMULA = (SHORT, OURS, BM25S)  # rank_bm25 has another idf

Search = Callable[[str], Sequence[int]]      # query -> the indices of the best passages, best first
Build = Callable[[list[str]], Search]        # passages -> the search over them


class Short:
    """BM25 in a few lines: every passage is looked at for every query."""

    def __init__(self, passages: list[str]):
        self.counts = [Counter(words(passage)) for passage in passages]
        self.lengths = [count.total() for count in self.counts]
        self.mean = sum(self.lengths) / len(self.lengths)
        found_in = Counter(word for count in self.counts for word in count)
        self.idf = {word: math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) for word, n in found_in.items()}

    def scores(self, query: str) -> list[float]:
        """The score of each passage."""
        asked, scores = words(query), []
        for count, length in zip(self.counts, self.lengths, strict=True):
            norm = K1 * (1 - B + B * length / self.mean)
            scores.append(sum(self.idf[word] * count[word] * (K1 + 1) / (count[word] + norm)
                              for word in asked if word in count))
        return scores

    def search(self, query: str) -> list[int]:
        """The best passages."""
        scores = self.scores(query)
        return sorted(range(len(scores)), key=lambda index: -scores[index])[:TOP]


class Round(NamedTuple):
    """One engine's turn: seconds for its index; for each kind of query the median milliseconds and what was found."""

    index_seconds: float
    search_ms: dict[str, float]
    found: dict[str, list[Sequence[int]]]


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib bench`: measure, show a table and write results/bench/retrieval.json."""
    sys.path.insert(0, str(extras.folder()))
    rows = [row for size in SIZES for row in measure(size, engines(), Progress())]
    Console(highlight=False).print(table(rows))
    file = notebooks.ROOT / "results" / "bench" / "retrieval.json"
    write(file, rows)
    bars.say(f"{len(rows)} rows are written to {file.relative_to(notebooks.ROOT).as_posix()}. The times are those of "
             "this machine, with whatever else it did meanwhile.")
    return 0


def engines() -> dict[str, Build]:
    """The searches by name; all get their words from lib.retrieval, and return the indices of the TOP best."""
    rank_bm25, bm25s = map(importlib.import_module, (RANK_BM25, BM25S))

    def ours(passages: list[str]) -> Search:
        index = BM25(passages, K1, B)
        return lambda query: [hit.index for hit in index.search(query, TOP)]

    def okapi(passages: list[str]) -> Search:
        index, numbers = rank_bm25.BM25Okapi([words(each) for each in passages], k1=K1, b=B), range(len(passages))
        return lambda query: index.get_top_n(words(query), numbers, TOP)

    def sparse(passages: list[str]) -> Search:
        index = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numpy")
        index.index([words(each) for each in passages], show_progress=False)
        return lambda query: index.retrieve([words(query)], k=TOP, show_progress=False, backend_selection="numpy",
                                            return_as="documents")[0].tolist()

    return {SHORT: lambda passages: Short(passages).search, OURS: ours, RANK_BM25: okapi, BM25S: sparse}


def measure(size: int, builds: dict[str, Build], progress: Progress, rounds: int = ROUNDS) -> list[dict]:
    """The rows of `size` passages: in each round every engine has its turn; a row holds medians over the rounds."""
    progress.step(f"{size:,} passages")
    passages = made_up(size)
    queries, turns = made_up_queries(passages), {name: [] for name in builds}
    for number in range(1, rounds + 1):
        for name, build in builds.items():
            progress.tell(f"round {number} of {rounds}, {name}")
            turns[name].append(turn(build, passages, queries))
    check({name: turns[name][0] for name in SAME_FORMULA}, Short(passages), queries)
    progress.done()
    rows = [{"passages": size, "engine": name, "queries": kind,
             "index_seconds": round(median(each.index_seconds for each in turns[name]), 4),
             "search_ms": round(median(each.search_ms[kind] for each in turns[name]), 5)}
            for kind in queries for name in builds]
    short = {row["queries"]: row["search_ms"] for row in rows if row["engine"] == SHORT}
    return [{**row, "times_short": round(short[row["queries"]] / row["search_ms"], 2)} for row in rows]


def made_up(size: int) -> list[str]:
    """Passages of LENGTH words, the same each time: few words are frequent, many are rare."""
    return _drawn(random.Random(SEED), size, LENGTH)


def made_up_queries(passages: list[str]) -> dict[str, list[str]]:
    """QUERIES of each kind: of rare words that do occur, and of words drawn as the passages' own."""
    draw = random.Random(SEED + 1)
    found_in = Counter(word for passage in passages for word in set(passage.split()))
    rare = sorted(word for word, count in found_in.items() if count <= RARE)
    return {f"{RARE_WORDS} rare words": [" ".join(draw.sample(rare, RARE_WORDS)) for _ in range(QUERIES)],
            f"{NATURAL_WORDS} natural words": _drawn(draw, QUERIES, NATURAL_WORDS)}


def _drawn(draw: random.Random, count: int, length: int) -> list[str]:
    vocabulary = [f"w{number}" for number in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 1) ** 1.07 for rank in range(VOCABULARY)))
    return [" ".join(draw.choices(vocabulary, cum_weights=weights, k=length)) for _ in range(count)]


def turn(build: Build, passages: list[str], queries: dict[str, list[str]]) -> Round:
    """Build an engine's index and put all queries to it, one by one."""
    index_seconds, search = timed(build, passages)
    taken = {kind: [timed(search, query) for query in asked] for kind, asked in queries.items()}
    return Round(index_seconds, {kind: 1000 * median(seconds for seconds, _ in each) for kind, each in taken.items()},
                 {kind: [found for _, found in each] for kind, each in taken.items()})


def timed(function: Callable, argument: object) -> tuple[float, object]:
    """(seconds, result) of a call."""
    start = perf_counter()
    result = function(argument)
    return perf_counter() - start, result


def check(turns: dict[str, Round], short: Short, queries: dict[str, list[str]]) -> None:
    """ValueError where an engine did not find the best passages in their order, those of one score in any."""
    for kind, asked in queries.items():
        for number, query in enumerate(asked):
            scores = short.scores(query)
            best = [score for score in sorted(scores, reverse=True)[:TOP] if score > 0]
            for name, each in turns.items():
                ids = [index for index in each.found[kind][number] if scores[index] > 0]
                found = [scores[index] for index in ids]
                if len(set(ids)) != len(best) or any(abs(a - b) > TIE for a, b in zip(found, best, strict=True)):
                    raise ValueError(f"{name} found {found} instead of {best} for {query!r}")


def table(rows: list[dict]) -> Table:
    """The rows to look at."""
    shown = Table("passages", "engine", "queries", "index, s", "search, ms", "times faster")
    for row in rows:
        shown.add_row(f"{row['passages']:,}", row["engine"], row["queries"], f"{row['index_seconds']:.3f}",
                      f"{row['search_ms']:.3f}", f"{row['times_short']:,.1f}")
    return shown


def write(file: Path, rows: list[dict]) -> None:
    """Write the rows, a row a line, with the date, the versions and the machine; whole or not at all."""
    peers = {name: version for name, version in extras.pins().items() if name in (BM25S, RANK_BM25)}
    versions = {"python": platform.python_version(), "numpy": numpy.__version__, **peers}
    notebooks.write_atomically(file, store.text({
        "name": "retrieval", "date": datetime.now(UTC).date().isoformat(), "versions": versions,
        "processor": machine.processor()[0], "cores": machine.cores(), "system": platform.system(), "rows": rows}))
