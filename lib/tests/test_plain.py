"""Markdown as its reader sees it, without what holds no findings."""
import pytest

from lib.machinery.structure import plain


def texts(source: str) -> list[str]:
    return [" ".join(block.text.split()) for block in plain.blocks(source) if block.text.strip()]


@pytest.mark.parametrize("source, seen", [
    ("", []), ("It takes\n32 tokens.", ["It takes 32 tokens."]),
    ("One.\n\nTwo. Three; 4.", ["One.", "Two.", "Three; 4."]),
    ("**43** *tokens*", ["43 tokens"]), ("**3**3 tokens", ["33 tokens"]), ("__43__ tokens", ["43 tokens"]),
    ("5 * 7 and a_b_c", ["5 * 7 and a_b_c"]), ("&#52;&#51; tokens", ["43 tokens"]),
    ("<b>4</b>3 tokens", ["43 tokens"]),
    (r"43\% of it", ["43% of it"]), ("$43$ tokens", ["43 tokens"]), ("43<br>tokens", ["43 tokens"]),
    ("4,7 ms", ["4.7 ms"]), ("1,062", ["1,062"]), ("<!-- 43 --> so", ["so"])])
def test_what_is_read(source, seen):
    assert texts(source) == seen


@pytest.mark.parametrize("source, seen", [
    ("[43 tokens](x.md)", "43 tokens"), ("[43][a]\n\n[a]: x.md '44 tokens'", "43|'44 tokens'"),
    ("![43 tokens](x.png \"44\")", '43 tokens "44"'), ("<img alt='43 tokens' src='x'>", "43 tokens"),
    ("so[^1]\n\n[^1]: 43 tokens", "so|43 tokens"), ("# 43 tokens", "43 tokens"), ("> 6 lines", "6 lines"),
    ("`43 tokens` here", "43 tokens here"), ("`43`", "43"), ("```\n43 tokens\n```", "43 tokens")])
def test_figures_may_stand_in_links_notes_headings_and_code(source, seen):
    assert "|".join(texts(source)) == seen


@pytest.mark.parametrize("source, seen", [
    ("`k=3` `a(4)` `x_5` `\\w{6}` so", "so"), ("```python\n43\n```\nso", "so"), ("https://e.org/43 so", "so"),
    ("$$x = 0.5$$\nso", "so"), ("(Smith, 2023) and (2024)", "(Smith, ) and ( )"), ("on 2026-12-01 so", "on so"),
    ("in May 2025 so", "in so"), ("## 3.1 What lives", "What lives"), ("## 3. What", "What"),
    ("1. first\n2. second", "first|second"),
    ("**What you'll need.** 3 GB, two to six minutes, 4 wits", "What you'll need. , , 4 wits")])
def test_what_holds_no_findings_is_left_out(source, seen):
    assert "|".join(texts(source)) == seen


@pytest.mark.parametrize("source, kept", [
    ("## 43 tokens", "43"), ("## 3.5 tokens", "3.5"), ("It took\n43. That", "43"), ("It took, 2023, so", "2023"),
    ("$$n = 43$$", "43"), ("```text\n43\n```", "43"), ("1. one\n5. five", "5.")])
def test_what_only_looks_like_it_stays(source, kept):
    assert kept in " ".join(texts(source))


def test_the_cells_of_a_table_stand_among_their_row_and_column():
    found = plain.blocks("| tokens | writer | the text reports |\n|---|---|---|\n| 31 | template | 77 |")
    cell = next(block for block in found if block.text.strip() == "31")
    assert {"tokens", "template"} <= set(cell.around.split())
    assert not any("77" in block.text for block in found)


def test_only_the_column_of_that_very_name_is_exempt():
    found = plain.blocks("| the text reports and we measured | b |\n|---|---|\n| 43 | 1 |")
    assert any("43" in block.text for block in found)
