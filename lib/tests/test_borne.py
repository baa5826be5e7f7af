"""Figures in prose are borne out by an output above them, or they are not, or they are given for a reason."""
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from lib.machinery.structure import borne
from lib.tests.canaries.make import notebook, stdout

TABLE = ("<table><thead><tr><th>questions</th><th>right</th><th>tokens</th><th>seconds</th></tr></thead>"
         "<tbody><tr><td>all</td><td>36 of 48</td><td>32</td><td>5</td></tr>"
         "<tr><td>paraphrase</td><td>1 of 12</td><td>40</td><td>7</td></tr></tbody></table>")


def is_borne(shown: str, prose: str) -> bool:
    return not borne.faults(notebook(("1", [stdout(shown)]), prose=prose))


def table_bears(prose: str, html: str = TABLE) -> bool:
    output = new_output("display_data", data={"text/html": html, "text/plain": "a table"})
    return not borne.faults(notebook(("1", [output]), prose=prose))


@pytest.mark.parametrize("shown, prose, expected", [
    ("tokens: 32", "It takes 32 tokens.", True), ("1000 tokens", "1,000 tokens", True), ("1,000 is", "1000 is", True),
    ("0.50 s", "0.5 s", True), ("32 seconds", "32 tokens", False), ("33 tokens", "32 tokens", False),
    ("320 tokens", "32 tokens", False), ("a token: 32", "32 tokens", True), ("32 tokens", "the 32 blue tokens", True),
    ("Qwen2.5", "2.5", False), ("[151644, 8948]", "id 8948", True), ("tokens [151644, 8948]", "id 8948", False),
    ("42", "It says 42.", True),
    ("32 tokens", "32 of these tokens", True), ("32 apples", "32 tokens", False), ("three tokens", "3 tokens", True),
    ("32 tokens", "It takes **32** tokens.", True), ("32 tokens\n29 seconds", "29 tokens", False),
    ("tokens\n  32\n  29", "29 tokens", True), ("32 tokens", "It takes &#51;3 tokens.", False),
    ("points: -3", "it falls by 3 points", True), ("3 points", "-3 points", False),
    ("with step 4", "at step 4", True), ("4 tokens", "at step 4", False), ("rank 3", "the 3rd rank", True)])
def test_a_count_needs_its_number_and_noun_on_one_line(shown, prose, expected):
    assert is_borne(shown, prose) == expected


@pytest.mark.parametrize("prose, expected", [
    ("32 tokens", True), ("5 seconds", True), ("32 seconds", False), ("40 tokens", True), ("7 tokens", False),
    ("36 of 48", True), ("36 of 48 questions", True), ("1 of 48", False), ("36 of 12", False), ("2 questions", True)])
def test_a_table_binds_a_number_to_its_row_and_column(prose, expected):
    assert table_bears(prose) == expected


@pytest.mark.parametrize("shown, prose, expected", [
    ("3 of 6 followed", "3 of 6", True), ("3 of 6 followed", "Three of six.", True), ("3, then 6", "3 of 6", False),
    ("3 of 8\n2 of 6", "3 of 6", False), ("none of the three", "0 of 3", True), ("36/48", "36 of 48", True),
    ("36 of 48 calls", "36 of 48 questions", False), ("36 of 48", "37 out of 48", False)])
def test_n_of_m_must_stand_so(shown, prose, expected):
    assert is_borne(shown, prose) == expected


@pytest.mark.parametrize("shown, prose, expected", [
    ("40 %", "40% of it", True), ("0.4", "40%", False), ("36 of 48", "75 %", False),
    ("40 tokens, 3 %", "40 %", False),
    ("6.1 times later", "6.1 times as late", True), ("6 tokens", "six times as many", False),
    ("What is 12 times 7?", "seven times as many", False), ("more than twice the tokens", "twice as many", True),
    ("3 calls of the tool", "It calls the tool three times.", True), ("3 seconds", "It calls it three times.", False),
    ("36 of 72 questions", "Half of the questions", True), ("30 of 72 questions", "Half of the questions", False),
    ("48 of 72 questions", "A third of the questions is missed", True),
    ("more than half of it", "half of that", True)])
def test_per_cents_times_and_parts(shown, prose, expected):
    assert is_borne(shown, prose) == expected


def test_a_column_of_ratios_or_per_cents_holds_such():
    html = ("<table><tr><th>passages</th><th>times faster</th><th>share, %</th></tr>"
            "<tr><td>9</td><td>75</td><td>8</td></tr></table>")
    assert table_bears("75 times as fast", html) and table_bears("8 %", html)
    assert not table_bears("9 times as fast", html) and not table_bears("75 %", html)


@pytest.mark.parametrize("source, shown, prose, expected", [
    ("ask(questions)", "3 questions", "Three questions follow.", True),
    ("n = 100  # tokens", "", "A hundred tokens.", True),
    ("1", "4 questions", "Three questions follow.", False), ("1", "3 questions", "3 questions follow.", False),
    ("1", "3 of 6", "Three of six.", False)])
def test_a_number_in_words_may_announce_the_cell_below(source, shown, prose, expected):
    made = notebook()
    made.cells.insert(1, new_markdown_cell(prose, id="early"))
    made.cells.insert(2, new_code_cell(source, outputs=[stdout(shown)], execution_count=1, id="code"))
    assert (not borne.faults(made)) == expected


def test_a_number_and_its_noun_must_stand_in_the_same_output():
    made = notebook(("1", [stdout("32")]), ("2", [stdout("tokens")]), prose="32 tokens")
    assert len(borne.faults(made)) == 1


def test_an_output_below_bears_nothing_out():
    made = notebook(("1", [stdout("32 tokens")]))
    made.cells.insert(1, new_markdown_cell("32 tokens", id="early"))
    assert borne.faults(made) == ["cell early: '32 tokens' is borne out by no output above it"]


def test_claims_bear_out_only_when_stated():
    assert not borne.faults(notebook(("claim('32 tokens', n == 32)", [stdout("✓ 32 tokens")]), prose="32 tokens"))
    assert borne.faults(notebook(("if 0:\n    claim('32 tokens', True)", []), prose="32 tokens"))


def test_an_unchecked_cell_bears_nothing_out():
    made = notebook(("# not compared: time", [stdout("9 seconds")]), prose="9 seconds")
    next(cell for cell in made.cells if cell.cell_type == "code").metadata["tags"] = ["nbval-ignore-output"]
    assert borne.faults(made) == ["cell prose: '9 seconds' is borne out by no output above it"]


@pytest.mark.parametrize("given, faults", [
    ({"9 seconds": "an assumption of this course"}, []), ({}, ["'9 seconds' is borne out by no output above it"]),
    ({"9 seconds": "so"}, ["'9 seconds' is listed as given without a reason"]),
    ({"9 seconds": "an assumption of this course", "8": "an assumption of this course"},
     ["'8' is listed as given, and nothing there needs it"])])
def test_a_figure_may_be_given_each_for_a_reason(given, faults):
    made = notebook(prose="9 seconds")
    made.cells[-1].metadata = {"course": {"given": given}}
    assert borne.faults(made) == [f"cell prose: {fault}" for fault in faults]


def test_a_number_without_noun_needs_a_word_of_its_own_sentence():
    assert is_borne("the wait: 43", "The wait is long. It came to 43.") is False
    assert is_borne("the wait: 43", "The wait is long. The wait came to 43.") is True


@pytest.mark.parametrize("shown, prose, expected", [
    ("5 times faster", "faster by a factor of five", True), ("4 times faster", "faster by a factor of five", False),
    ("5 turns", "slower by a factor of about 5", False), ("7 times", "longer (×7)", True),
    ("7 tokens", "longer (×7)", False),
    ("2 tokens", "the prompt doubled", False), ("twice as long", "the prompt doubled", True),
    ("3 tokens", "tripling it", False), ("6.7 %", "67‰ of them", True), ("67 %", "67‰ of them", False),
    ("12 × 7 tokens", "12 × 7 tokens", True)])
def test_other_words_for_so_many_times(shown, prose, expected):
    assert is_borne(shown, prose) == expected
