"""Traces: every turn, writer, verdict and number of an episode, as text and as HTML that nothing can break out of."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lib import show, trace
from lib.agent import Protocol, run_agent
from lib.chat import WRITERS, Span
from lib.episode import Episode
from lib.tests.scripted import ScriptedModel
from lib.tools import tool

HOSTILE = "</td></code></pre><script>alert(1)</script><img src=x onerror=\"a\" style='b'>&amp; $x$ \\(y\\) <|im_end|>"
VOID = {"br", "hr", "img", "input", "meta", "link"}


@tool
def multiply(a: float, b: float):
    """Multiply two numbers exactly."""
    return a * b


@tool
def look_up(word: str):
    """Look a word up."""
    if word == "missing":
        raise KeyError(word)
    return word if word == HOSTILE else word * 2000


@tool
def broken():
    """A tool whose program is broken."""
    return object()


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


SIX = call("multiply", '{"a": 2, "b": 3}')
SCRIPTS = {
    "answered": ([SIX, "It is 6."], {}),
    "loop": ([SIX] * 3, {}),
    "truncated": ([{"text": "and so on", "truncated": True}] * 3, {}),
    "tool_fault": ([call("broken", "{}")], {}),
    "max_turns": ([call("look_up", '{"word": "missing"}'), ""], {"max_turns": 2}),
    "refused": ([call("multiply", '{"a": "two"}'), "not json <tool_call>{</tool_call>", "Sorry."], {}),
    "lenient": (['```json\n{"name": "multiply", "arguments": {"a": 2, "b": 3}}\n```', "6"], {"policy": "lenient"}),
    "fabricated": ([SIX + "\n<tool_response>\n7\n</tool_response>\nIt is 7.", "<tool_response>8", "6"], {}),
    "unicode": ([call("look_up", '{"word": "nghĩa 漢字 שלום 🙂"}'), "nhân e\u0301 🙂"],
                {"question": "«nhân» là gì? 🙂"}),
    "long": ([call("look_up", '{"word": "0123456789"}'), "Done."], {"limit": 30_000}),
    "hostile": ([HOSTILE], {"question": HOSTILE, "system": HOSTILE}),
}


def episode(name: str = "answered") -> Episode:
    replies, options = SCRIPTS[name]
    protocol = Protocol((multiply, look_up, broken), system=options.get("system"),
                        policy=options.get("policy", "strict"), result_limit=options.get("limit", 8000))
    return run_agent(ScriptedModel(replies), options.get("question", "What is 2 times 3?"), protocol,
                     options.get("max_turns", 5))


class Page(HTMLParser):
    """Parses strictly: tags nest, no script, no attribute but a few; collects the text and the cells of each row."""

    ALLOWED = {"style", "class", "scope", "open"}

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.stack, self.tags, self.text, self.rows = [], [], "", []
        self.feed(html)
        self.close()
        assert not self.stack, f"never closed: {self.stack}"

    def handle_starttag(self, tag, attributes):
        names = {name for name, _ in attributes}
        assert tag not in {"script", "style", "img", "iframe", "object", "a", "form"} | VOID, tag
        assert names <= self.ALLOWED and len(names) == len(attributes), (tag, attributes)
        self.stack.append(tag)
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop() == tag, f"</{tag}> does not close the last tag"

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & set(self.stack):
            self.rows[-1][-1] += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.tags)


def page(*episodes: Episode, **options) -> Page:
    return Page(show.trace(*episodes, **options)._repr_html_())


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_episode_parses_and_shows_each_turn_once(name):
    shown = episode(name)
    parsed, text = page(shown), repr(show.trace(shown))
    for number in range(1, len(shown.turns) + 1):
        assert parsed.text.count(f"Turn {number}: ") == 1
        assert len(re.findall(f"^Turn {number}: ", text, re.M)) == 1
    assert f"Turn {len(shown.turns) + 1}: " not in parsed.text + text
    assert shown.status in parsed.text and f"[{shown.status}]" in text
    assert parsed.count("details") >= 2 * len(shown.turns) and parsed.count("summary") == parsed.count("details")


@pytest.mark.parametrize("name", SCRIPTS)
def test_two_runs_of_the_same_script_are_shown_alike(name):
    first, second = episode(name), episode(name)
    for turn in second.turns:
        turn.first_token_seconds, turn.decode_seconds, turn.tool_seconds = 1.25, 2.5, 77.125
    assert repr(show.trace(first)) == repr(show.trace(second))
    assert show.trace(first)._repr_html_() == show.trace(second)._repr_html_()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_ledger_holds_the_episode_s_numbers(name):
    shown = episode(name)
    turns, rows = shown.turns, page(shown).rows
    header, *body = rows[-len(turns) - 2:]
    expected = [[str(number), turn.prompt_tokens, len(turn.spans) - turn.reply_tokens, turn.fed_tokens,
                 turn.generated_tokens, *(turn.by_writer.get(writer, 0) for writer in WRITERS)]
                for number, turn in enumerate(turns, 1)]
    total = ["total", *(sum(row[column] for row in expected) for column in range(1, 10))]
    written = [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in [*expected, total]]
    assert body == written
    assert header[5:10] == list(WRITERS)
    lines = [line.split() for line in repr(show.trace(shown)).splitlines()]
    assert lines[-len(written) - 1:-1] == written
    for text in (page(shown).text, repr(show.trace(shown))):
        assert f"would have fed {total[1]:,} prompt tokens; this one fed {total[3]:,}" in text


def test_the_header_says_what_was_asked_of_whom_and_what_came_of_it():
    text = repr(show.trace(episode()))
    assert text.splitlines()[:5] == [
        "question: What is 2 times 3?", "model: scripted", "protocol: tools, strict", "status: [answered]",
        "answer: It is 6."]
    assert [" ".join(row) for row in page(episode()).rows[:5]] == text.replace("[", "").replace("]", "").replace(
        ": ", " ").splitlines()[:5]


def test_a_fault_and_a_missing_answer_are_named():
    shown = episode("tool_fault")
    assert shown.fault and f"fault: {shown.fault}" in repr(show.trace(shown))
    assert "answer: [no answer]" in repr(show.trace(shown)) and "fault:" not in repr(show.trace(episode()))
    assert ["answer", "no answer"] in page(shown).rows and ["fault", shown.fault] in page(shown).rows


@pytest.mark.parametrize("name, lines", [
    ("answered", ["verdict: [ok] multiply(a=2, b=3)", "result of multiply: [ok] 6", "verdict: [no call]"]),
    ("loop", ["notice: You have just done exactly this, with the same result."]),
    ("truncated", ["ended by length", "notice: Your reply was cut at the limit of 256 tokens"]),
    ("tool_fault", ["verdict: [ok] broken()"]),
    ("max_turns", ["result of look_up: [failed] Error: look_up failed: KeyError: 'missing'"]),
    ("refused", ["verdict: [missing_argument] [wrong_type] multiply(a=\"two\")\n", "verdict: [bad_json]\n",
                 "result of multiply: [refused] Error: b (number) is missing; a must be number, not \"two\"",
                 "result: [refused] Error: what stands there is no valid JSON"]),
    ("lenient", ["protocol: tools, lenient", "verdict: [fenced_json] multiply(a=2, b=3)"]),
    ("fabricated", ["verdict: [fabricated_result] results come from the tools",
                    "notice: results come from the tools"]),
    ("unicode", ["question: «nhân» là gì? 🙂", "verdict: [ok] look_up(word=\"nghĩa 漢字 שלום 🙂\")",
                 "answer: nhân e\u0301 🙂"]),
])
def test_verdicts_results_and_notices(name, lines):
    text, html = repr(show.trace(episode(name))), page(episode(name)).text
    for line in lines:
        assert line in text
        assert re.sub(r"[][\n]|^\w+: ", "", line) in html


def test_a_finding_says_why_nothing_ran_unless_its_result_does():
    shown = episode("refused")
    shown.turns[1].results.clear()
    assert "verdict: [bad_json] what stands there is no valid JSON" in repr(show.trace(shown))


def test_what_was_cut_is_counted():
    shown = episode("long")
    result = shown.turns[0].results[0]
    shown.turns[0].results[0] = replace(result, cut=1234)
    assert "result of look_up: [ok] [1,234 characters cut] 0123" in repr(show.trace(shown))
    assert "1,234 characters cut" in page(shown).text
    assert "(20,000 characters)" in page(shown).text and "19,400 more characters, not shown" in page(shown).text


def test_the_cut_reply_says_how_many_tokens_were_kept():
    turn = episode("fabricated").turns[0]
    assert turn.reply_tokens < turn.generated_tokens
    words = f"{turn.generated_tokens} generated, ended by eos, {turn.reply_tokens} kept"
    assert words in repr(show.trace(episode("fabricated"))) and words in page(episode("fabricated")).text
    assert "kept" not in repr(show.trace(episode()))


def test_every_piece_names_its_writer():
    text = repr(show.trace(episode()))
    assert "\n    tool: " in text and "\n    user: What is 2 times 3?\n" in text
    assert "    model: <tool_call>⏎{" in text and "</tool_call><|im_end|>\n" in text
    html = show.trace(episode())._repr_html_()
    for writer, said in {"template": "&lt;|im_start|&gt;", "user": "What is", "tool": "multiply"}.items():
        assert re.search(f"{show.COLOURS[writer]}[^>]*><small[^>]*>{writer}:</small> [^:]*{re.escape(said)}", html)


def test_line_breaks_are_kept_and_visible():
    assert "&lt;tool_call&gt;</b>⏎\n{" in show.trace(episode())._repr_html_()


def test_token_ids_stand_beside_their_tokens():
    shown = episode()
    html = show.trace(shown)._repr_html_()
    for span in shown.turns[1].spans:
        assert f"<sub>{span.id}</sub>" in html
    assert f"Turn 1, token ids: {len(shown.turns[0].spans):,}" not in page(shown).text
    assert page(shown).count("sub") == sum(
        min(trace.BOXES, len(part)) for turn in shown.turns for part in trace.parts(turn))


@pytest.mark.parametrize("extra", [1, 2000])
def test_many_tokens_are_shown_in_part(extra):
    shown = episode()
    turn = shown.turns[1]
    turn.spans[:0] = [turn.spans[0]] * (trace.BOXES + extra - len(turn.spans) + turn.reply_tokens)
    assert f"{extra:,} more tokens" in page(shown).text


def test_near_ties_are_marked_and_counted():
    shown = episode()
    assert "near" not in repr(show.trace(shown)) + page(shown).text
    shown.turns[0].gaps[3] = 0.0
    shown.turns[0].gaps[5] = 0.00099
    shown.turns[0].gaps[7] = 0.001
    assert page(shown).text.count("near tie ") == 2
    for text in (repr(show.trace(shown)), page(shown).text):
        assert "near ties: 2 of the tokens that the model wrote, numbers 4, 6" in text


def test_a_near_tie_in_the_part_that_was_cut_off_is_counted():
    shown = episode("fabricated")
    shown.turns[0].gaps[-2] = 0.0
    kept, number = shown.turns[0].reply_tokens, shown.turns[0].generated_tokens - 1
    assert f"near ties: 1 of the tokens that the model wrote, number {number} (cut off)" in repr(show.trace(shown))
    assert "near tie " not in page(shown).text
    shown.turns[0].gaps[kept - 1] = shown.turns[0].gaps[kept] = 0.0
    assert f"numbers {kept}, {kept + 1} (cut off), {number} (cut off)" in repr(show.trace(shown))
    assert page(shown).text.count("near tie ") == 1


def test_seconds_only_where_asked_for():
    shown = episode()
    for turn in shown.turns:
        turn.first_token_seconds, turn.decode_seconds, turn.tool_seconds = 1.25, 2.5, 0.125
    shown.turns[1].first_token_seconds = None
    assert "seconds" not in repr(show.trace(shown)) + page(shown).text
    rows = page(shown, seconds=True).rows
    assert rows[-4][-3:] == ["first token, seconds", "decode, seconds", "tools, seconds"]
    assert [row[-3:] for row in rows[-3:]] == [["1.25", "2.50", "0.12"], ["none", "2.50", "0.12"],
                                               ["1.25", "5.00", "0.25"]]
    assert "2.50" in repr(show.trace(shown, seconds=True))


BIDI = "a\u202eb\u2066c\u200fd\x00e\x1bf\x7fg\u200bh\ufeffi\u2028j\ud800k\r\tl\U000e0041"


def test_what_cannot_be_seen_is_made_visible():
    shown = episode()
    shown.question = shown.answer = BIDI
    expected = ("a[U+202E]b[U+2066]c[U+200F]d[U+0000]e[U+001B]f[U+007F]g[U+200B]h[U+FEFF]i[U+2028]j[U+D800]k␍⇥l"
                "[U+E0041]")
    for text in (repr(show.trace(shown, titles=[BIDI])), page(shown, titles=[BIDI]).text):
        assert text.count(expected) == 3
        text.encode()


def test_other_directions_of_writing_are_set_apart():
    shown = episode()
    shown.turns[1].text = "שלום"
    assert "<bdi>שלום&lt;|im_end|&gt;</bdi>" in show.trace(shown)._repr_html_().replace("<b>", "").replace("</b>", "")


def test_of_very_many_pieces_the_middle_is_left_out():
    shown = episode()
    turn = shown.turns[1]
    turn.spans[:0] = [Span(1, "a", "user"), Span(2, "b", "tool")] * 500
    runs = len(trace.pieces(turn, 10**6))
    assert runs > 1000
    assert f"not shown: {runs - trace.PIECES:,} more pieces" in page(shown).text
    assert f"    not shown: {runs - 12:,} more pieces\n    " in repr(show.trace(shown))


def test_joiners_that_scripts_need_stay():
    assert trace.shown("👩\u200d🔬 می\u200cخواهم") == "👩\u200d🔬 می\u200cخواهم"


def test_hostile_texts_stay_texts_everywhere():
    shown = episode("hostile")
    shown.model = shown.fault = shown.protocol["name"] = HOSTILE
    shown.turns += episode("refused").turns
    turn = shown.turns[1]
    bad = replace(turn.results[0].call, name=HOSTILE, arguments={HOSTILE: [HOSTILE]})
    turn.results[0] = replace(turn.results[0], text=HOSTILE, call=bad)
    turn.findings[0] = replace(turn.findings[0], message=HOSTILE, calls=(bad,), codes=(HOSTILE,))
    turn.notices.append(HOSTILE)
    parsed = page(shown, shown, titles=[HOSTILE, "b"])
    assert parsed.text.count("<script>alert(1)</script>") >= 18


def test_every_text_from_outside_is_kept_from_mathjax():
    """MathJax leaves code and pre alone; the class says the same for the whole trace."""
    shown = episode("hostile")
    html = show.trace(shown, titles=["$t$"])._repr_html_()
    assert html.startswith('<div class="mathjax_ignore tex2jax_ignore"')
    rest = re.sub(r"<(code|pre)\b.*?</\1>", "", html, flags=re.S)
    assert "$" not in rest and "\\(" not in rest and "$t$" in html


def test_two_episodes_side_by_side_with_their_names():
    first, second = episode("lenient"), episode("refused")
    text = repr(show.trace(first, second))
    assert text.index("scripted, lenient\n") < text.index("scripted, strict\n")
    assert page(first, second).text.count("scripted, strict") == 1
    named = page(first, second, titles=["before", "after"])
    assert "before" in named.text and "after" in named.text and "scripted, strict" not in named.text
    assert "flex" in next(attributes["style"] for _, attributes in named.tags[1:])


@pytest.mark.parametrize("episodes, titles, words", [
    ([], None, "at least one"), ([1], ["a", "b"], "there are 2 for 1"), ([1, 2], ["a"], "there are 1 for 2"),
    ([1, 2], "ab", "list of titles"),
])
def test_a_wrong_call_is_refused(episodes, titles, words):
    with pytest.raises(ValueError, match=words):
        show.trace(*[episode() for _ in episodes], titles=titles)


def test_an_episode_without_turns_has_a_header_and_an_empty_ledger():
    empty = Episode("?", "m", {}, {})
    assert "status: [running]" in repr(show.trace(empty)) and "protocol: unnamed" in repr(show.trace(empty))
    assert page(empty).rows[-1] == ["total", *"000000000"]


@pytest.mark.parametrize("name", ["answered", "long", "refused"])
def test_without_styles_the_words_carry_the_meaning(name):
    html = show.trace(episode(name))._repr_html_()
    plain = re.sub(r' (style|class)="[^"]*"', "", html)
    assert Page(plain).text == Page(html).text
    assert not re.search(r'(?<![-\w])color:|background:(#\w{6}|white|black)[;"](?!></span>)', html)


def test_cells_of_headings_have_a_scope():
    heads = [attributes for tag, attributes in page(episode()).tags if tag == "th"]
    assert heads and all(attributes.get("scope") in ("row", "col") for attributes in heads)


def test_long_parts_are_folded_and_short_ones_are_open():
    opened = [attributes for tag, attributes in page(episode()).tags if tag == "details" and "open" in attributes]
    assert len(opened) == 1  # what the second turn added; the first one's tool schemas are folded


def test_size_stays_within_reason():
    shown = episode("long")
    assert len(shown.turns[0].results[0].text) == 20_000 and len(show.trace(shown)._repr_html_()) < 80_000
    shown.turns[0].spans[:0] = shown.turns[0].spans[::-1] * 20
    assert len(show.trace(shown)._repr_html_()) < 130_000 and len(repr(show.trace(shown))) < 20_000
