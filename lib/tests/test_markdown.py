"""Markdown taken apart: headings of every form, anchors, links."""
import pytest

from lib.machinery.structure import markdown


@pytest.mark.parametrize("text, found", [
    ("", []), ("# A\n\n## B ##", [(1, "A"), (2, "B")]), ("A\n===\n\nB b\n---", [(1, "A"), (2, "B b")]),
    ("<h3 id='x'>C</h3>", [(3, "C")]), ("#no heading\n\n---\n\n| a |\n|---|", []), ("####### seven", [])])
def test_headings(text, found):
    assert markdown.headings(text) == found


@pytest.mark.parametrize("text, names", [
    ("# What *it* costs, all in", {"what-it-costs-all-in"}), ("# A `b` c", {"a-b-c"}),
    ("<a id='here'></a>", {"here"}),
    ("# Two\n# Two", {"two", "two-1"}), ("# [A link](x)", {"a-link"}), ("```\n# none\n```", set())])
def test_anchors(text, names):
    assert names <= markdown.anchors(text) if names else not markdown.anchors(text)


@pytest.mark.parametrize("text, found", [
    ("[a](b.md) and ![c](<d e.png> \"t\")", [(False, "a", "b.md"), (True, "c", "d e.png")]),
    ("[![c](d.png)](b.md)", [(False, "![c](d.png)", "b.md"), (True, "c", "d.png")]),
    ("[a][b]\n\n[b]: c.md", [(False, "b", "c.md")]), ("<a href='b.md'>a</a> <img alt='x' src=\"c.png\">",
                                                   [(False, "", "b.md"), (True, "", "c.png")]),
                                                   ("[a]()", [(False, "a", "")])])
def test_links(text, found):
    assert [tuple(link) for link in markdown.links(text)] == found


@pytest.mark.parametrize("text, left", [("`a` b", "  b"), ("```\na\n```\nb", "\n\n\nb"), ("<!-- a\n -->b", "\nb"),
                                        ("``a ` b`` c", "  c")])
def test_code_is_taken_out_and_lines_keep_their_places(text, left):
    assert markdown.without_code(text).strip(" ") == left.strip(" ")
