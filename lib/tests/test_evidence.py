"""What outputs show: lines, table cells with row and column, and the kinds of their numbers."""
from decimal import Decimal

import pytest
from nbformat.v4 import new_code_cell, new_output

from lib.machinery.structure.evidence import line, lines_of_html, lines_of_text, shown
from lib.tests.canaries.make import UNCHECKED, picture, stdout


def test_a_line_has_numbers_words_and_kinds():
    one = line("3 of 6 tokens, 40 %, twice as many, half of it, -7")
    assert {Decimal(number) for number in (3, 6, 40, 2, -7, 7)} <= one.numbers
    assert "token" in one.words and one.shares == {(3, 6)}
    assert (one.percents, one.times, one.parts) == ({40}, {2}, {Decimal("0.5")})


def test_the_head_of_a_text_table_goes_with_its_rows():
    lines = lines_of_text("tokens  name\n──────  ────\n    32  one\n     5  two\n\n9")
    assert ["token" in one.words for one in lines if one.numbers] == [True, True, False]


def test_a_cell_goes_with_its_own_column_alone_if_that_names_a_measure():
    rows = lines_of_html("<table><tr><th>tokens</th><th>seconds</th><th>later</th></tr>"
                         "<tr><td>32</td><td>5</td><td>4</td></tr></table>")
    words = {number: one.words for one in rows for number in one.numbers if len(one.numbers) == 1}
    assert "second" not in words[32] and "token" not in words[5] and {"second", "token"} <= words[4]


def test_text_around_a_table_is_read_and_styles_are_not():
    html = ("<style>p {width: 9em}</style><p style='width:8em'>32 tokens<br>5 calls</p>"
            "<table><tr><td>6</td></tr></table>")
    assert {number for one in lines_of_html(html) for number in one.numbers} == {32, 5, 6, 1}


@pytest.mark.parametrize("output, numbers", [
    (stdout("7\n"), {7}), (new_output("execute_result", data={"text/plain": "8"}, execution_count=1), {8}),
    (new_output("display_data", data={"text/html": "<b>4</b>3", "text/plain": "9"}), {9}),
    (new_output("display_data", data={"text/html": "<p>43</p>"}), {43}), (picture("5 black dots there"), set())])
def test_what_a_cell_shows(output, numbers):
    cell = new_code_cell("1", outputs=[output])
    assert {number for one in shown(cell) for number in one.numbers} == numbers
    cell.metadata = UNCHECKED
    assert shown(cell) == []
