"""Figures in prose: found with their nouns, and borne out by an output above them or not."""
import pytest
from nbformat.v4 import new_markdown_cell, new_output

from lib.machinery.structure import borne
from lib.tests.canaries.make import notebook, stdout


def found(text: str) -> list[str]:
    return [str(figure) for figure in borne.figures(borne.checked_text(text))]


@pytest.mark.parametrize("text, figures", [
    ("", []), ("no figure, one or two words", []),
    ("It takes 32 tokens.", ["32 tokens"]), ("1,000 prompt tokens and 3.5 GB", ["1,000 prompt tokens", "3.5 GB"]),
    ("40% of 12, then 7", ["40 %", "12", "7"]), ("a 32-token prompt", ["32 token prompt"]), ("3× as many", ["3"]),
    ("from 3–5 steps to 7", ["3", "5 steps", "7"]),
    ("32 là số token", ["32 là số token"]), ("1e-3 logits", ["1e-3 logits"]),
    ("BM25, Qwen2.5-0.5B, top-1 and utf-8", []), ("the 2nd of notebook 02, cell 3, step 4", []),
    ("[a 7](x) https://e.org/9 <b id='8'>", []), ("(Smith, 2023) and 2024-05-01, May 2025", []),
    ("## 3.1 What 9 lives cost", ["9 lives cost"]), ("1. first\n2) second 4 items\n- 5 more things",
                                                     ["4 items", "5"]),
    ("> 6 lines", ["6 lines"]), ("It was 2023 tokens long", ["2023 tokens long"]),
    ("| a | The text reports |\n|---|---|\n| 5 | 77 |\n\n| b |\n| 78 |", ["5", "78"])])
def test_figures_with_their_nouns(text, figures):
    assert found(text) == figures


@pytest.mark.parametrize("shown, prose, borne_out", [
    ("tokens: 32", "It takes 32 tokens.", True), ("1000 tokens", "1,000 tokens", True), ("1,000", "1000", True),
    ("0.50", "0.5", True), ("32 seconds", "32 tokens", False), ("33 tokens", "32 tokens", False),
    ("320 tokens", "32 tokens", False), ("a token: 32", "32 tokens", True), ("32 tokens", "the 32 blue tokens", True),
    ("Qwen2.5", "2.5", False), ("40 %", "40%", True), ("0.4", "40%", False), ("[151644, 8948]", "id 8948", True),
    ("32 tokens", "32 of them", True), ("32 apples", "32 tokens", False)])
def test_borne_out_by_an_output_above(shown, prose, borne_out):
    assert (not borne.faults(notebook(("1", [stdout(shown)]), prose=prose))) == borne_out


def test_a_number_and_its_noun_must_stand_in_the_same_output():
    made = notebook(("1", [stdout("32")]), ("2", [stdout("tokens")]), prose="32 tokens")
    assert len(borne.faults(made)) == 1


def test_an_output_below_bears_nothing_out():
    made = notebook(("1", [stdout("32 tokens")]))
    made.cells.insert(1, new_markdown_cell("32 tokens", id="early"))
    assert borne.faults(made) == ["cell early: '32 tokens' is borne out by no output above it"]


def test_claims_and_html_bear_out():
    assert not borne.faults(notebook(("claim('32 tokens', n == 32)", [stdout("✓ 32 tokens")]), prose="32 tokens"))
    assert borne.faults(notebook(("if 0:\n    claim('32 tokens', True)", []), prose="32 tokens"))  # never stated
    html = new_output("display_data", data={"text/html": "<td style='width:9em'>32</td><td>tokens</td>"})
    assert not borne.faults(notebook(("1", [html]), prose="32 tokens"))
    assert borne.faults(notebook(("1", [html]), prose="9"))


@pytest.mark.parametrize("text, faults", [
    ("## Further reading\n\n7 papers\n\n### More\n\n8 papers", 0),
    ("## Further reading\n\n7\n\n## Next\n\n8 lines", 1),
    ("```\n9\n```\n`10`", 0)])
def test_sections_and_code_that_are_not_looked_at(text, faults):
    assert len(borne.faults(notebook(prose=text))) == faults


def test_further_reading_goes_on_in_the_next_cell_and_a_tag_exempts_one():
    made = notebook(prose="## Further reading")
    made.cells.append(new_markdown_cell("7 papers", id="more"))
    made.cells.append(new_markdown_cell("## Next\n8 lines", id="next", metadata={"tags": [borne.EXEMPT_TAG]}))
    assert borne.faults(made) == []
    made.cells[-1].metadata = {}
    assert len(borne.faults(made)) == 1


def test_an_unchecked_cell_bears_nothing_out():
    made = notebook(("# not compared: time", [stdout("9 seconds")]), prose="9 seconds")
    next(cell for cell in made.cells if cell.cell_type == "code").metadata["tags"] = ["nbval-ignore-output"]
    assert borne.faults(made) == ["cell prose: '9 seconds' is borne out by no output above it"]


def test_long_words_take_no_time():
    assert borne.figures("x" * 300_000) == []
