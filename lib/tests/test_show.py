"""Tables, tokens, figures and claims: right as text, right as HTML, escaped, and honest."""

from __future__ import annotations

import base64
import re

import pytest
from matplotlib.figure import Figure

from lib import show
from lib.chat import Span

SPANS = [Span(1, "<b>", "user"), Span(2, "\n", "template"), Span(3, "", "user")]


def test_a_table_by_hand():
    text = repr(show.table([["tiếng Việt", 1234], ["b", 5]], ["word", "count"]))
    assert text.splitlines() == ["word        count", "──────────  ─────", "tiếng Việt  1,234", "b               5"]


def test_wide_characters_and_nfd_keep_the_columns_straight():
    lines = repr(show.table([["漢字", "x"], ["e\u0301", "x"], ["abcd", "x"]], ["a", "b"])).splitlines()
    assert lines[2] == "漢字  x" and lines[3] == "e\u0301     x" and lines[4] == "abcd  x"


@pytest.mark.parametrize("rows", [[["one"]], [["a", "b", "c"]]])
def test_a_row_of_another_length_is_refused(rows):
    with pytest.raises(ValueError, match="2 cells"):
        show.table(rows, ["a", "b"])


def test_an_empty_table_has_its_header():
    assert repr(show.table([], ["a", "b"])).splitlines()[0] == "a  b"


def test_html_is_escaped_and_has_scopes():
    html = show.table([["<script>", 2]], ["a & b", "n"])._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "a &amp; b" in html
    assert html.count('<th scope="col"') == 2 and 'text-align:right">2</td>' in html


@pytest.mark.parametrize(
    "value, text", [(1234567, "1,234,567"), (True, "True"), (1.5, "1.5"), ("a\nb\tc", "a⏎b⇥c"), (None, "None")]
)
def test_cells(value, text):
    assert show.cell_text(value) == text


def test_tokens_as_text_and_html():
    shown = show.tokens(SPANS)
    assert repr(shown).splitlines()[2].split() == ["1", "<b>", "user"] and r"\n" in repr(shown)
    html = shown._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;" in html and "⏎" in html and ">user:<" in html and ">template:<" in html


def test_every_writer_has_a_colour_of_its_own():
    from lib.chat import WRITERS

    assert set(show.COLOURS) == set(WRITERS) and len(set(show.COLOURS.values())) == len(WRITERS)


@pytest.fixture
def displayed(monkeypatch):
    """What was handed to the notebook's display: (data, metadata) in order."""
    shown = []
    monkeypatch.setattr(show, "display", lambda data, raw, metadata=None: shown.append((data, metadata)))
    return shown


def test_a_figure_carries_its_alt_text_and_the_same_bytes_each_time(displayed):
    for _ in range(2):
        figure = Figure(figsize=(2, 1))
        figure.add_subplot().bar([0, 1], [3, 4])
        show.figure(figure, "Two bars, three and four high.")
    (first, metadata), (second, _) = displayed
    assert metadata == {"image/png": {"alt": "Two bars, three and four high."}}
    assert first["text/plain"] == "Two bars, three and four high." and first == second
    assert base64.b64decode(first["image/png"]).startswith(b"\x89PNG")


def test_a_figure_without_a_sentence_is_refused():
    with pytest.raises(ValueError, match="sentence"):
        show.figure(Figure(), "a figure")


def test_source_shows_the_function_as_it_stands(displayed):
    show.source(show.Table._line)
    assert displayed[0][0]["text/plain"].startswith("def _line(self")
    assert displayed[0][0]["text/markdown"].startswith("```python\ndef _line")


@pytest.mark.parametrize(
    "strict, model, raises",
    [("1", "", True), ("1", show.DEFAULT, True), ("", "", False), ("1", "smollm2-135m", False)],
)
def test_a_false_claim_raises_only_in_a_strict_run_of_the_default_model(strict, model, raises, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_STRICT", strict)
    monkeypatch.setenv("COURSE_MODEL", model)
    show.claim("water is wet", True)
    assert capsys.readouterr().out == "✓ water is wet\n"
    if raises:
        with pytest.raises(AssertionError, match="fire is cold"):
            show.claim("fire is cold", False)
    else:
        show.claim("fire is cold", False, here="hot")
        assert re.fullmatch(r"recorded: fire is cold, here: hot\n", capsys.readouterr().out)


@pytest.mark.parametrize("holds", [(False, "oops"), lambda: False, "False", None, 1, float("nan")])
def test_a_claim_must_be_true_or_false(holds):
    with pytest.raises(TypeError, match="True or False"):
        show.claim("43 is 44", holds)


def test_folds_are_text_one_after_the_other_and_open_one_by_one_in_html():
    folds = show.folds([("first <b>", "one\ntwo <i>"), ("second", "three")])
    assert repr(folds) == "first <b>\n    one\n    two <i>\n\nsecond\n    three"
    html = folds._repr_html_()
    assert html.count("<details>") == 2 and "<b>" not in html and "<i>" not in html
    assert "<summary>first &lt;b&gt;</summary>" in html and "two &lt;i&gt;</pre>" in html


def test_folds_show_what_hides():
    folds = show.folds([("a", "b\u202ec")])
    assert "[U+202E]" in repr(folds) and "[U+202E]" in folds._repr_html_()


def test_no_folds_are_refused():
    with pytest.raises(ValueError, match="nothing to fold"):
        show.folds([])
