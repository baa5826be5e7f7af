"""The comparison of searches, at sizes that take no time, with stand-ins for the two libraries."""
from __future__ import annotations

import argparse
import json
import sys
from types import SimpleNamespace

import numpy
import pytest

from lib.machinery import bench, extras, notebooks
from lib.machinery.progress import Progress
from lib.retrieval import BM25, words
from lib.tests.test_retrieval import Article


class Okapi:
    """A stand-in for rank_bm25's class."""

    def __init__(self, tokens, k1, b):
        self.index = BM25(map(" ".join, tokens), k1, b)

    def get_top_n(self, tokens, documents, n):
        return [documents[hit.index] for hit in self.index.search(" ".join(tokens), n)]


class Sparse:
    """A stand-in for bm25s's class."""

    def __init__(self, method, k1, b, backend):
        assert (method, k1, b, backend) == ("lucene", 1.5, 0.75, "numpy")

    def index(self, tokens, show_progress):
        self.inner = BM25(map(" ".join, tokens))

    def retrieve(self, queries, k, show_progress, backend_selection, return_as):
        return numpy.array([[hit.index for hit in self.inner.search(" ".join(query), k)] for query in queries])


@pytest.fixture(autouse=True)
def peers(monkeypatch):
    monkeypatch.setitem(sys.modules, "rank_bm25", SimpleNamespace(BM25Okapi=Okapi))
    monkeypatch.setitem(sys.modules, "bm25s", SimpleNamespace(BM25=Sparse))


def test_the_command_writes_a_row_for_each_size_engine_and_kind_of_query(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "SIZES", (20, 30))
    monkeypatch.setattr(extras, "folder", lambda: tmp_path / "peers")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert bench.main(argparse.Namespace()) == 0
    assert sys.path[0] == str(tmp_path / "peers")
    text = (tmp_path / "results" / "bench" / "retrieval.json").read_text(encoding="utf-8")
    document = json.loads(text)
    rows = document.pop("rows")
    assert list(document) == ["name", "date", "versions", "processor", "cores", "system"]
    assert document["versions"].keys() == {"python", "numpy", "bm25s", "rank_bm25"}
    assert [(row["passages"], row["queries"], row["engine"]) for row in rows] == [
        (size, kind, engine) for size in (20, 30) for kind in ("5 rare words", "10 natural words")
        for engine in ("short class", "this course", "rank_bm25", "bm25s")]
    assert sum(line.startswith('{"passages"') for line in text.splitlines()) == len(rows) == 16
    said = capsys.readouterr().out
    assert "30 passages" in said and "16 rows are written to results/bench/retrieval.json" in said


def test_a_row_is_the_median_over_the_rounds(monkeypatch):
    taken = iter([3.0, 1.0, 2.0] * 10)

    def turn(build, passages, queries):
        return bench.Round(seconds := next(taken), {kind: 4 * seconds / build for kind in queries}, {})
    monkeypatch.setattr(bench, "turn", turn)
    monkeypatch.setattr(bench, "check", lambda *arguments: None)
    builds = {bench.SHORT: 1, bench.OURS: 8, bench.RANK_BM25: 2, bench.BM25S: 4}
    rows = bench.measure(9, builds, Progress(), rounds=3)
    short, ours, *_ = rows
    assert short == {"passages": 9, "engine": "short class", "queries": "5 rare words", "index_seconds": 2.0,
                     "search_ms": 8.0, "times_short": 1.0}
    assert (ours["search_ms"], ours["times_short"]) == (1.0, 8.0) and len(rows) == 8


def test_the_passages_are_the_same_each_time_and_rare_words_are_rare():
    passages = bench.made_up(40)
    assert passages == bench.made_up(40) and bench.made_up(50)[:40] == passages
    assert {len(words(passage)) for passage in passages} == {100}
    queries = bench.made_up_queries(passages)
    assert queries == bench.made_up_queries(passages)
    rare, natural = queries.values()
    assert len(rare) == len(natural) == 20 and {len(words(query)) for query in natural} == {10}
    for query in rare:
        assert len(set(words(query))) == 5
        assert all(1 <= sum(word in passage.split() for passage in passages) <= 20 for word in words(query))


def test_the_short_class_is_the_articles():
    passages = [*bench.made_up(30), "", "Đường sắt w1 w1"]
    short, article = bench.Short(passages), Article(passages)
    for query in ["", "w1", "w1 w1 w2", "đường w3", "🎉"]:
        scores = short.scores(query)
        assert scores == pytest.approx(article.scores(query), abs=1e-12)
        found = short.search(query)
        assert [scores[index] for index in found] == sorted(scores, reverse=True)[:3] and len(set(found)) == 3


@pytest.mark.parametrize("found, is_right", [
    ([0, 1, 2], True), ([0, 2, 1], True), ([1, 0, 2], False), ([0, 1, 3], True), ([0, 1], False), ([], False),
    ([0, 1, 1], False), ([0, 1, 5], False), ([0, 1, 4], False)])
def test_the_best_must_be_found_those_of_one_score_in_any_order(found, is_right):
    short = bench.Short(["a a a b", "a b c d", "a c d e", "a d e f", "a b c d e f g h", "z"])
    turns = {bench.OURS: bench.Round(0, {}, {"a kind": [found]})}
    if is_right:
        bench.check(turns, short, {"a kind": ["a"]})
    else:
        with pytest.raises(ValueError, match="this course found"):
            bench.check(turns, short, {"a kind": ["a"]})


def test_a_query_that_finds_little_asks_for_no_more():
    short = bench.Short(["a", "b", "c", "d"])
    for found in ([0], [0, 1, 2]):  # some leave out passages of score 0, some do not
        bench.check({bench.OURS: bench.Round(0, {}, {"a kind": [found]})}, short, {"a kind": ["a"]})


def test_engines_that_differ_stop_the_bench():
    builds = bench.engines() | {bench.BM25S: lambda passages: lambda query: [0, 1, 2]}
    with pytest.raises(ValueError, match="bm25s found"):
        bench.measure(30, builds, Progress(), rounds=1)
