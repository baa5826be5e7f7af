"""HTML taken apart into tables and the text around them."""
import pytest

from lib.machinery.structure.tables import taken_apart


def test_rows_of_cells_with_their_heads():
    html = "<p>a</p><table><tr><th>n</th><th>t</th></tr><tr><td><b>4</b>3</td><td>x<br>y</td></tr></table><p>b</p>"
    text, tables = taken_apart(html)
    assert tables == [[[(True, "n"), (True, "t")], [(False, "43"), (False, "x y")]]]
    assert text.split() == ["a", "b"]


@pytest.mark.parametrize("html, lines", [
    ("", []), ("<p>3<br>tokens</p><p>5</p>", ["3 tokens", "5"]), ("<b>4</b>3 &lt; 5", ["43 < 5"]),
    ("<style>p {width: 9em}</style><script>8</script>so", ["so"]), ("<td>a stray cell", ["a stray cell"])])
def test_text_outside_of_tables(html, lines):
    assert [line.strip() for line in taken_apart(html)[0].split("\n") if line.strip()] == lines
