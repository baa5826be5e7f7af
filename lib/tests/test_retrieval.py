"""BM25 beside a plain version, the article's class and two libraries; pieces, fusion and metrics by properties."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections import Counter

import hypothesis
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st

from lib import passages as rooms
from lib.retrieval import (
    BM25,
    Hit,
    folded_words,
    hit_at,
    mean_over,
    ndcg_at,
    paragraphs,
    passages,
    pieces,
    recall_at,
    reciprocal_rank,
    reciprocal_rank_fusion,
    search_or_fold,
    words,
)

WORD = st.sampled_from(["tea", "cup", "pot", "má", "ma", "đường", "load_model", "v2.5", "a", "İ", "🎉", "7"])
TEXT = st.lists(WORD, max_size=8).map(" ".join)
CORPUS = st.lists(TEXT, min_size=1, max_size=8)


def given(*strategies):
    """Hypothesis's own, with the same examples each time and no limit of time for one."""
    return lambda test: settings(deadline=None, derandomize=True, database=None)(hypothesis.given(*strategies)(test))


def plainly(documents: list[str], query: str, k1: float = 1.5, b: float = 0.75) -> list[float]:
    """The formula, word by word and document by document."""
    tokens = [words(document) for document in documents]
    mean = sum(map(len, tokens)) / len(tokens)
    scores = []
    for own in tokens:
        parts = []
        for word in words(query):
            n, f = sum(word in other for other in tokens), own.count(word)
            if f:
                idf = math.log(1 + (len(tokens) - n + 0.5) / (n + 0.5))
                parts.append(idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(own) / mean)))
        scores.append(math.fsum(parts))
    return scores


class Article:
    """The class that the article prints, retyped: it pads with documents of score 0."""

    word = re.compile(r"\w+")

    def __init__(self, docs, k1=1.5, b=0.75):
        self.tf = [Counter(self.word.findall(text.lower())) for text in docs]
        self.len = [sum(counts.values()) for counts in self.tf]
        self.avg = sum(self.len) / len(self.len)
        df = Counter(word for counts in self.tf for word in counts)
        self.idf = {word: math.log(1 + (len(docs) - n + 0.5) / (n + 0.5)) for word, n in df.items()}
        self.k1, self.b = k1, b

    def scores(self, query: str) -> list[float]:
        asked, scores = self.word.findall(query.lower()), []
        for i, tf in enumerate(self.tf):
            norm = self.k1 * (1 - self.b + self.b * self.len[i] / self.avg)
            scores.append(sum(self.idf[w] * tf[w] * (self.k1 + 1) / (tf[w] + norm) for w in asked if w in tf))
        return scores


def as_hits(scores: list[float], k: int) -> list[int]:
    """The indices of the k best scores above 0, ties by index; scores that differ by rounding only are one."""
    return sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: (-round(scores[i], 9), i))[:k]


# --- BM25 -------------------------------------------------------------------


def test_by_hand():
    index = BM25(["a b", "a a c", "d"])
    # "a" is in 2 of 3: ln(1 + 1.5/2.5) = 0.4700; lengths 2, 3, 1 with mean 2
    assert index.idf("a") == pytest.approx(math.log(1.6))
    first, second = index.search("a")
    assert first == Hit(1, pytest.approx(math.log(1.6) * 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 1.5))))
    assert second == Hit(0, pytest.approx(math.log(1.6) * 2.5 / (1 + 1.5)))
    assert index.idf("z") == pytest.approx(math.log(8)) and index.idf("z") > index.idf("d") > index.idf("a") > 0


@given(CORPUS, TEXT, st.integers(0, 10), st.floats(0, 3), st.floats(0, 1))
def test_it_is_the_formula(documents, query, k, k1, b):
    assume(any(words(document) for document in documents))
    hits, scores = BM25(documents, k1, b).search(query, k), plainly(documents, query, k1, b)
    assert [hit.index for hit in hits] == as_hits(scores, k)
    assert [hit.score for hit in hits] == pytest.approx([scores[hit.index] for hit in hits], abs=1e-9)


@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=8), st.text("abcd ", max_size=8))
def test_it_equals_the_article_where_that_scores_above_0(documents, query):
    assume(any(document.strip() for document in documents))
    theirs = {i: score for i, score in enumerate(Article(documents).scores(query)) if score > 0}
    assert dict(BM25(documents).search(query, 99)) == pytest.approx(theirs, abs=1e-9)


@given(CORPUS, TEXT, st.randoms())
def test_the_order_of_documents_and_of_words_decides_nothing_but_ties(documents, query, random):
    scores = dict(BM25(documents).search(query, 99))
    order = random.sample(range(len(documents)), len(documents))
    moved = BM25([documents[place] for place in order]).search(query, 99)
    assert {order[hit.index]: hit.score for hit in moved} == scores
    asked = query.split()
    assert dict(BM25(documents).search(" ".join(random.sample(asked, len(asked))), 99)) == scores


@given(CORPUS, TEXT, st.integers(0, 5))
def test_hits_are_few_above_0_sorted_and_a_prefix_of_more(documents, query, k):
    index = BM25(documents)
    hits = index.search(query, k)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.index)) == index.search(query, k + 1)[:k]
    assert all(hit.score > 0 and set(words(query)) & set(words(documents[hit.index])) for hit in hits)


@given(CORPUS, TEXT)
def test_one_more_of_the_word_asked_for_raises_a_score(documents, text):
    fewer, more = f"{text} kite filler", f"{text} kite kite"
    before, after = (dict(BM25([own, *documents]).search("kite", 99))[0] for own in (fewer, more))
    assert after > before


@given(CORPUS, WORD)
def test_a_stranger_keeps_the_order_of_documents_of_one_length(documents, word):
    lengths = [len(words(document)) for document in documents]

    def order(corpus):
        return [hit.index for hit in BM25(corpus).search(word, 99) if lengths[hit.index] == lengths[0]]

    assume(len(words(word)) == 1)
    lengths.append(-1)
    assert order([*documents, "stranger here"]) == order(documents)


@given(st.text(max_size=30))
def test_words_do_not_depend_on_the_form_of_unicode(text):
    found = words(text)
    assert found == words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))
    assert all(word and "_" not in word and word.isalnum() for word in found)


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=20))
def test_no_text_breaks_it(documents, query):
    for index in (BM25(documents), BM25(documents, words=folded_words)):
        assert all(0 <= hit.index < len(documents) and hit.score > 0 for hit in index.search(query))


@pytest.mark.parametrize("k1, b", [(-0.1, 0.75), (math.inf, 0.75), (math.nan, 0.75), (1.5, -0.1), (1.5, 1.1),
                                   (1.5, math.nan)])
def test_constants_that_cannot_be(k1, b):
    with pytest.raises(ValueError, match="k1"):
        BM25(["tea"], k1, b)


def test_what_is_wrong_is_said():
    with pytest.raises(TypeError, match="document 1 is no string: NoneType"):
        BM25(["tea", None])
    with pytest.raises(TypeError, match="one string"):
        BM25("tea")
    with pytest.raises(TypeError):
        BM25(["tea"]).search(None)
    for empty in (BM25([]), BM25(["", "  "]), BM25(["tea"])):
        with pytest.raises(ValueError, match="k must be 0 or more, not -1"):
            empty.search("cup", -1)


def test_a_long_query_costs_its_distinct_words():
    index = BM25(["the quick brown fox " * 20] * 200)
    start = time.process_time()
    assert len(index.search("fox " * 100_000 + "quick", 3)) == 3
    assert time.process_time() - start < 3  # the article's class takes 9 seconds


@pytest.mark.parametrize("text, expected", [
    ("Đường sắt", ["duong", "sat"]), ("đi ĐÂU", ["di", "dau"]), ("hoà hòa thuý thúy", ["hoa", "hoa", "thuy", "thuy"]),
    (unicodedata.normalize("NFD", "bệnh viện"), ["benh", "vien"]), ("İstanbul", ["istanbul"]), ("ð", ["ð"]),
    ("", []), ("naïve café 2", ["naive", "cafe", "2"]), ("한국어", ["한국어"]), ("load_model", ["load", "model"]),
])
def test_folded_words(text, expected):
    assert folded_words(text) == expected


def test_folding_is_asked_only_where_the_exact_search_finds_nothing():
    documents = ["má ơi", "ma cũ", "đường sắt", "hoà bình"]
    exact, folded = BM25(documents), BM25(documents, words=folded_words)

    def found(query, k=3):
        hits, is_folded = search_or_fold(exact, folded, query, k)
        return [hit.index for hit in hits], is_folded

    assert found("ma") == ([1], False) and found("má") == ([0], False)
    assert found("duong sat") == ([2], True) and found("hòa") == ([3], True)
    assert found("quasar") == found("") == found("ma", 0) == ([], False)


# --- paragraphs, passages, pieces -------------------------------------------

NOTES = """# A title

Before any section,
on two lines.

## First *part*

One paragraph with `code`.
    an indented line of it

- a list
- of items

  with a paragraph inside

| a | table |
|---|---|
| 1 | 2 |

> ## No section
>
> A quotation.

```python
# no heading

no paragraph
```

    indented code

Second\tparagraph.

C#
--

Last one.
"""


def test_paragraphs_are_prose_only():
    assert paragraphs(NOTES) == ["Before any section, on two lines.",
                                 "One paragraph with `code`. an indented line of it", "Second paragraph.",
                                 "Last one."]
    assert paragraphs(NOTES.replace("\n", "\r\n")) == paragraphs(NOTES)
    assert paragraphs("") == paragraphs("\n \n") == paragraphs("# Title") == paragraphs("```\nx") == []
    assert paragraphs(unicodedata.normalize("NFD", "Tiếng Việt")) == ["Tiếng Việt"]


def test_passages_say_where_they_stand():
    assert [(each.number, each.heading) for each in passages(NOTES, "notes")] == [
        (0, "A title"), (1, "First *part*"), (2, "First *part*"), (3, "C#")]
    assert passages("x", "n") == [("n", 0, "", "x")] and passages("") == []
    found = passages(NOTES, cut=lambda text: pieces(text, 60))
    assert [each.number for each in found] == [*range(len(found))] and found[-1][2:] == ("C#", "Last one.")
    assert not any("no heading" in each.text or "# A title" in each.text for each in found)


MARKDOWN = st.lists(st.sampled_from(["a", "bệnh", "#", "```", "~~~", "````", "x" * 9, "q\u0307", " ", "    ", "\n",
                                     "\n", "\r\n", "- ", "> ", "\u00a0", "🎉"]), max_size=25).map("".join)


@given(MARKDOWN, st.integers(1, 30))
def test_pieces_lose_nothing_double_nothing_and_fit(text, size):
    expected = rooms.without_code(text).split()
    found = pieces(text, size)
    assert all(0 < len(piece) <= size and piece == " ".join(piece.split()) for piece in found)
    assert "".join(found).replace(" ", "") == "".join(expected)
    assert Counter(word for word in expected if len(word) <= size) <= Counter(" ".join(found).split())
    for one, other in zip(found, found[1:], strict=False):
        assert len(one) + 1 + len(other.split()[0]) > size  # as many words in each as fit


@given(MARKDOWN, st.integers(1, 30), st.integers(0, 29))
def test_overlap_carries_whole_words_and_always_something_new(text, size, overlap):
    assume(overlap < size)
    found, bare = pieces(text, size, overlap), pieces(text, size)
    parts, place = " ".join(bare).split(), 0
    assert all(len(piece) <= size for piece in found)
    for number, piece in enumerate(found):
        own = piece.split()
        carried = next(count for count in range(len(own) + 1)
                       if own[count:] == parts[place:place + len(own) - count] and len(own) > count
                       and own[:count] == (found[number - 1].split()[-count:] if number and count else []))
        assert len(" ".join(own[:carried])) <= overlap
        place += len(own) - carried
    assert place == len(parts)


def test_long_texts_take_no_time():
    start = time.process_time()
    assert len(pieces("x" * 1_000_000, 800)) == 1250
    assert len(pieces("word " * 100_000, 10**6)) == 1
    assert len(pieces("\u0301" * 100_000, 100)) == 1000
    assert time.process_time() - start < 5


@pytest.mark.parametrize("size, overlap", [(0, 0), (-1, 0), (5, 5), (5, 6), (5, -1)])
def test_sizes_that_cannot_be(size, overlap):
    with pytest.raises(ValueError, match="0 <= overlap < size"):
        pieces("", size, overlap)


# --- fusion and metrics -----------------------------------------------------

RANKING = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(RANKING, RANKING, st.integers(0, 100))
def test_fusion_is_its_formula(one, other, k):
    fused = dict(reciprocal_rank_fusion([one, other], k=k))
    legs = [[*dict.fromkeys(one)], [*dict.fromkeys(other)]]
    assert fused == pytest.approx({item: sum(1 / (k + leg.index(item) + 1) for leg in legs if item in leg)
                                   for item in {*one, *other}})
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    assert dict(reciprocal_rank_fusion([other, one], k=k)) == fused


def test_fusion_breaks_ties_by_first_appearance_and_uses_weights():
    assert [hit.index for hit in reciprocal_rank_fusion([["b", "a"], ["a", "b"]])] == ["b", "a"]
    assert reciprocal_rank_fusion([["a"], ["b"]], [0, 2]) == [("b", 2 / 61), ("a", 0)]
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == []
    assert reciprocal_rank_fusion([iter(["a"]), (hit for hit in "b")]) == [("a", 1 / 61), ("b", 1 / 61)]
    for wrong in (lambda: reciprocal_rank_fusion([["a"]], [1, 2]), lambda: reciprocal_rank_fusion([["a"]], []),
                  lambda: reciprocal_rank_fusion([["a"]], k=-1)):
        with pytest.raises(ValueError):
            wrong()


@given(st.sets(st.sampled_from("abcdef"), min_size=1), RANKING, st.integers(0, 7))
def test_metrics_are_their_definitions(right, ranking, k):
    top = [*dict.fromkeys(ranking)][:k]
    ranks = [rank for rank, item in enumerate(top, 1) if item in right]
    assert hit_at(right, ranking, k) == bool(ranks) and recall_at(right, ranking, k) == len(ranks) / len(right)
    assert reciprocal_rank(right, ranking, k) == (1 / ranks[0] if ranks else 0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(right)) + 1))
    assert ndcg_at(right, ranking, k) == pytest.approx(sum(1 / math.log2(r + 1) for r in ranks) / (ideal or 1))
    assert hit_at(right, ranking, k) <= hit_at(right, ranking, k + 1)


def test_means_are_over_the_gold_questions():
    assert mean_over(hit_at, {1: ["a"], 2: ["b"]}, {1: ["a"], 3: ["x"]}, 3) == 0.5
    for gold, k in (({}, 1), ({1: []}, 1), ({1: "a"}, 1), ({1: ["a"]}, -1)):
        with pytest.raises(ValueError):
            mean_over(hit_at, gold, {}, k)


# --- beside two libraries ---------------------------------------------------


def zipf(documents: int, length: int) -> list[str]:
    """Texts of made-up words, few of them frequent; the same each time."""
    import numpy as np

    draws = np.random.default_rng(4).zipf(1.2, (documents, length)) % 5000
    return [" ".join(f"w{number}" for number in row) for row in draws]


@pytest.mark.slow
def test_scores_and_hits_are_those_of_bm25s():
    bm25s = pytest.importorskip("bm25s", reason="bm25s is not installed (lib/tests/extras.txt)")
    documents = zipf(500, 60)
    index, theirs = BM25(documents), bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64")
    theirs.index([words(document) for document in documents], show_progress=False)
    for query in zipf(40, 8):
        known = [word for word in words(query) if word in index.postings]
        scores = theirs.get_scores(known) * (1.5 + 1)
        found = index.search(query, len(documents))
        assert dict(found) == pytest.approx({i: s for i, s in enumerate(scores.tolist()) if s > 0}, abs=1e-9)
        assert [hit.index for hit in found] == as_hits(scores.tolist(), len(documents))


@pytest.mark.slow
def test_rank_bm25_gives_matches_less_than_nothing():
    rank_bm25 = pytest.importorskip("rank_bm25", reason="rank_bm25 is not installed (lib/tests/extras.txt)")
    documents = ["a kite", "a kite", "a river"]
    theirs = rank_bm25.BM25Okapi([words(document) for document in documents]).get_scores(["kite"])
    assert max(theirs[:2]) < 0 == theirs[2]  # so the document without the word wins
    assert [hit.index for hit in BM25(documents).search("kite")] == [0, 1]


# --- what a reader broke ----------------------------------------------------

def test_a_byte_order_mark_hides_neither_code_nor_heading():
    assert pieces("\ufeff```\nx\n```\nb") == ["b"]
    assert [(each.heading, each.text) for each in passages("\ufeff# Title\n\nBody")] == [("Title", "Body")]


def test_code_deep_inside_lists_is_code():
    inner = "  " * 15
    text = "".join(f"{'  ' * depth}- a{depth}\n" for depth in range(15)) + f"{inner}```\n{inner}code\n{inner}```\n"
    assert "code" not in " ".join(pieces(text))


@pytest.mark.parametrize("k", [1.0, 2.5, math.inf, "3", None])
def test_a_k_that_is_no_whole_number_is_a_type_error(k):
    with pytest.raises(TypeError):
        BM25(["a b", "a"]).search("a", k)


@pytest.mark.parametrize("rankings", ["ab", ["ab", "b"]])
def test_strings_are_no_rankings(rankings):
    with pytest.raises(TypeError, match="a list of ids"):
        reciprocal_rank_fusion(rankings)
    with pytest.raises(ValueError, match="a list of right ids"):
        hit_at(["a"], "abc", 1)


def test_a_constant_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="k must be 0 or more"):
        reciprocal_rank_fusion([["a"]], k=math.nan)
