"""Figures: which numbers of a text say something, of what kind, and with which nouns."""
import pytest

from lib.machinery.structure.figures import figures


def found(text: str) -> list[str]:
    return [str(figure) for figure in figures(text)]


@pytest.mark.parametrize("text, expected", [
    ("", []), ("It takes 32 tokens.", ["32 tokens"]),
    ("1,000 prompt tokens and 3.5 GB", ["1,000 prompt tokens", "3.5 GB"]),
    ("a 32-token prompt", ["32 token prompt"]), ("32 of them, then 7", ["32", "7"]), ("12 calls, or", ["12 calls"]),
    ("from 3–5 steps to 7", ["3 steps", "5 steps", "7"]), ("3 to 5 tokens", ["3 tokens", "5 tokens"]),
    ("32 là số token", ["32 là số token"]), ("the 77th of them", ["77th"])])
def test_counts_with_their_nouns(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize("text, expected", [
    ("at step 43 it fails", "step 43"), ("in turn 3 the model", "turn 3"), ("question 77.", "question 77")])
def test_the_place_of_something_is_a_figure(text, expected):
    assert found(text) == [expected] and figures(text)[0].nouns == (expected.split()[0],)


@pytest.mark.parametrize("text", ["lesson 03, notebook 2", "Section 4.1 and chapter 3", "Python 3.12, PyTorch 2.14",
                                  "Lessons 03 (the loop) and 05 (answers)", "as in 02", "v 3", "@3", "Annex 15"])
def test_names_are_no_figures(text):
    assert found(text) == []


@pytest.mark.parametrize("text, share", [
    ("3 of 6", (3, 6)), ("36 of 48 questions", (36, 48)), ("37 out of 48", (37, 48)), ("37/48", (37, 48)),
    ("three of six", (3, 6)), ("Two of its three answers", (2, 3)), ("none of the five", (0, 5)),
    ("one in twenty", (1, 20)), ("7 of the 12", (7, 12))])
def test_n_of_m(text, share):
    figure, = figures(text)
    assert (figure.value, figure.whole, figure.kind) == (*share, "share")


@pytest.mark.parametrize("text", ["one of the three texts", "two of them", "of the two ways one is short", "one idea",
                                  "the third turn", "five words", "twice the word", "two sentences", "None is right"])
def test_ordinary_prose_has_no_figures(text):
    assert found(text) == []


@pytest.mark.parametrize("text, kind, written", [
    ("40% of it", "percent", "40%"), ("40 per cent", "percent", "40 per cent"),
    ("ninety percent", "percent", "ninety percent"),
    ("three times as many", "times", "three times"), ("6.1 times later", "times", "6.1 times"),
    ("3× as", "times", "3×"),
    ("10-fold", "times", "10-fold"), ("twice as long", "times", "twice as"),
    ("twice the tokens", "times", "twice the"),
    ("called five times, then", "times done", "five times"), ("half of the questions", "part", "half"),
    ("two thirds of them", "part", "two thirds"), ("a quarter of its", "part", "a quarter"),
    ("two-thirds of", "part", "two-thirds"),
    ("the wait triples", "times", "triples"), ("it doubles", "times", "doubles")])
def test_kinds(text, kind, written):
    figure, = figures(text)
    assert (figure.kind, str(figure)) == (kind, written)


@pytest.mark.parametrize("text", ["12 times 7", "(12 + 30) times (7)", "5 x 6"])
def test_a_multiplication_is_no_ratio(text):
    assert {figure.kind for figure in figures(text)} == {"count"}


@pytest.mark.parametrize("text, expected", [
    ("three questions", ["three questions"]), ("nine wrong calls", ["nine wrong calls"]),
    ("a dozen tokens", ["a dozen tokens"]),
    ("two to six minutes", ["two minutes", "six minutes"]), ("a thousand tokens", ["a thousand tokens"]),
    ("one token", [])])
def test_numbers_in_words_count_before_a_measure(text, expected):
    assert found(text) == expected
