"""What a notebook brings in or hides: signs nobody sees, scripts, pictures from elsewhere, addresses of a machine."""
import pytest
from nbformat.v4 import new_output

from lib.machinery.structure import embedded, signs
from lib.tests.canaries.make import notebook, stdout

TABLE = "| {} |\n|---|---|---|\n| 1 | 2 | 3 |"


def signs_of(source: str = "1", prose: str = "So.", shown: str = "") -> list[str]:
    return signs.faults(notebook((source, [stdout(shown)]), prose=prose))


def embedded_in(prose: str) -> list[str]:
    return embedded.faults(notebook(("1", []), prose=prose))


@pytest.mark.parametrize("text", ["Xin chào, café, 漢字 🙂", "αβ and да are words", "π times 2, 5 µs", "a\nb", "Ω"])
def test_signs_that_are_seen(text):
    assert signs_of(text, text, text) == []


def test_an_output_may_hold_what_a_model_wrote():
    assert signs_of(shown="👩\u200d🔧 \ttоtal cafe\u0301 \ufffd") == []


@pytest.mark.parametrize("text, fault", [
    ("a\u200bb", "nobody sees"), ("a\u00adb", "nobody sees"), ("\u202eab", "nobody sees"), ("a\x08", "nobody sees"),
    ("a\r\nb", "nobody sees"), ("a\tb", "nobody sees"), ("a\ufeff", "nobody sees"), ("a\ufffd", "nobody sees"),
    ("\ue000", "nobody sees"), ("tоtal", "two scripts"), ("Αnd", "two scripts"), ("cafe\u0301", "come apart")])
def test_signs_that_are_not_seen(text, fault):
    assert [fault in found for found in signs_of(source=text)] == [True]
    assert [fault in found for found in signs_of(prose=text)] == [True]


@pytest.mark.parametrize("text", ["\x1b[1m42\x1b[0m", "50%\r100%", "a\x08b", "\x00", "\u202e42", "\x85"])
def test_controls_in_an_output(text):
    assert ["holds the control sign" in found for found in signs_of(shown=text)] == [True]


@pytest.mark.parametrize("text", [
    "[a](https://example.org) [b](02-more.ipynb) [c](#a)", "`<script>` and `http://localhost:8000`",
    "```\n<!-- a\n$$\n```", "<!-- so --> a", "$$x$$ and $$y$$", "<b>a</b><br>",
    "<details><summary>a</summary>b</details>",
    "http://127.0.0.1:8000 is printed", "[![a dot](../README.md)](..)", "costs $$5 and $$6", "a [1] and (2)",
    TABLE.format("the text reports | we measured | why"), TABLE.format("a | b | c"), "the hidden <i>hidden</i>"])
def test_sound_markdown(text):
    assert embedded_in(text) == []


@pytest.mark.parametrize("text, fault", [
    ("<script>a</script>", "does something"), ("<iframe src='a'></iframe>", "does something"),
    ("<style>a</style>", "does something"), ("<b onclick='a'>a</b>", "does something"),
    ("<p style='display:none'>a</p>", "hides"), ("<p hidden>a</p>", "hides"),
    ("<p style='a: b; visibility: hidden'>a</p>", "hides"),
    ("![a dot](https://example.org/a.png)", "from the net"), ("![a dot](//example.org/a.png)", "from the net"),
    ("<img alt='a dot' src='https://example.org/a.png'>", "from the net"),
    ("![a dot][x]\n\n[x]: http://localhost/a.png", "one machine"), ("[a](http://localhost:8888/tree)", "one machine"),
    ("[a](http://192.168.1.7/x)", "one machine"), ("[a](http://10.0.0.1)", "one machine"),
    ("[a](http://build-server/x)", "one machine"), ("[a](https://me@host.local/x)", "one machine"),
    ("[a](http://[::1]:8)", "one machine"), ("[](02-more.ipynb)", "no words"), ("", "says nothing"),
    (" \n", "says nothing"), ("<!-- later -->", "says nothing"), ("a <!-- b", "a comment is begun"),
    ("```\na", "a block of code is begun"), ("~~~python\na", "a block of code is begun"), ("$$ a", "a formula is"),
    ("[a](b.md\n\nc", "a link is begun"), (TABLE.format("the text reports | b | c"), "a table's heads"),
    (TABLE.format("a | the text reports | b"), "a table's heads"),
    (TABLE.format("The Text Reports | we measured | the text reports"), "a table's heads")])
def test_markdown_that_hides_or_brings_in(text, fault):
    assert any(fault in found for found in embedded_in(text)), embedded_in(text)


def test_an_attachment_is_no_picture_of_a_cell():
    made = notebook(("1", []))
    made.cells[-1]["attachments"] = {"a.png": {"image/png": ""}}
    assert ["it has an attachment" in fault for fault in embedded.faults(made)] == [True]


@pytest.mark.parametrize("data, fault", [
    ({"text/html": "<table><tr><td style='text-align:left'>1</td></tr></table>", "text/plain": "1"}, None),
    ({"text/html": "<img alt='a' src='data:image/png;base64,AAAA'>", "text/plain": "a"}, None),
    ({"text/html": "&lt;script&gt;", "text/plain": "<script>"}, None),
    ({"text/markdown": "```html\n<script>\n```", "text/plain": "<script>"}, None),
    ({"text/html": "<script>1</script>"}, "a script"), ({"application/javascript": "1"}, "a script"),
    ({"text/markdown": "<style>a</style>"}, "a script"), ({"text/html": "<b onload = 'a'>"}, "a script"),
    ({"text/html": "<img alt='a' src='https://e.org/a.png'>"}, "from the net"),
    ({"text/html": "<div style=\"background: url('//e.org/a.png')\">"}, "from the net"),
    ({"text/html": "<div style='display: none'>a</div>"}, "hides"),
    ({"text/plain": "<IPython.core.display.HTML object>"}, "object's name"),
    ({"text/plain": "<a.B object at 0x1>"}, "object's name")])
def test_what_an_output_brings_in_or_hides(data, fault):
    found = list(embedded.output_faults(new_output("display_data", data=data)))
    assert [fault in one for one in found] == [True] * (fault is not None)


@pytest.mark.parametrize("text, faults", [("recorded: a, here: b\n", 1), ("✓ a\nrecorded: a, here: b", 1),
                                          ("it is recorded: a, here: b", 0), ("recorded: a", 0)])
def test_a_claim_that_is_recorded_as_false(text, faults):
    assert len(list(embedded.output_faults(stdout(text)))) == faults
