"""Replies read for calls: what runs, what is refused and by which name; no text whatever breaks the reader."""

from __future__ import annotations

import json
import unicodedata
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.agent import as_value
from lib.replies import SENTENCES, Call, is_candidate
from lib.tests.test_cases import CODES, tools
from lib.tools import parse_reply

TOOLS = tools(lambda call: None)
ADD = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
TIMES = '{"name": "multiply", "arguments": {"a": 3, "b": 4}}'
NOW = '{"name": "now", "arguments": {}}'


def tag(inner: str) -> str:
    return f"<tool_call>{inner}</tool_call>"


def call(name: str, arguments: str) -> str:
    return tag(f'{{"name": "{name}", "arguments": {arguments}}}')


def verdict(text: str, policy: str = "strict", truncated: bool = False) -> tuple[str, str]:
    """(names of the calls that may run, codes) of a reply, in words; an answer has the word 'answer' as its call."""
    reply = parse_reply(text, TOOLS, policy, truncated)
    names = [call.name for call in reply.calls] + ["answer"] * reply.is_answer
    return " ".join(names), " ".join(sorted(reply.codes))


# --- one reply of each kind -------------------------------------------------

@pytest.mark.parametrize("text, calls, codes", [
    ("", "answer", ""),
    (" \n", "answer", ""),
    ("Xin chào 👋", "answer", ""),
    (tag(ADD), "add", ""),
    (f"I will add.\n{tag(ADD)}\n\n", "add", ""),
    (tag(f"\r\n  {ADD}\t\n"), "add", ""),
    (tag(ADD) + tag(TIMES) + tag(NOW), "add multiply now", ""),
    (tag(ADD) + " and then " + tag(TIMES), "add multiply", ""),
    (call("note", r'{"text": "a \"}\" \\ </tool_call> <tool_call> <think> <tool_response> }"}'), "note", ""),
    (call("note", '{"text": "}</tool_call>"}'), "note", ""),
    (call("note", '{"text": "</think>"}'), "note", ""),
    (call("note", r'{"text": "12:30 \u00e0 \"14:30\""}'), "note", ""),
    (call("note", '{"text": "ls | awk \'{print $1}\' # }"}'), "note", ""),
    (call("save", '{"record": {"a": [{"b": [[], {}]}]}}'), "save", ""),
    (call("count", "{\"n\": 3.0}"), "count", ""),
    (call("count", "{\"n\": 1e3}"), "count", ""),
    ('<tool_call>{"name": "now", "id": "call_1"}</tool_call>', "now", ""),
    # notes
    (f"<tool_call>{ADD}", "add", "unclosed_tag"),
    (f"<tool_call>{ADD}<tool_call>{TIMES}", "add multiply", "unclosed_tag"),
    (f"<tool_call>{ADD} and {tag(TIMES)}", "add multiply", "unclosed_tag"),
    (f"<tool_call>{ADD}</tools>", "add", "trailing_text unclosed_tag"),
    (tag(f"{ADD} ok"), "add", "trailing_text"),
    (tag(f"{ADD}, "), "add", "trailing_text"),
    (tag(f"{ADD}}}"), "add", "trailing_text"),
    (tag(ADD) + " Done.", "add", "trailing_text"),
    (tag(ADD) + "</tool_call>", "add", "trailing_text"),
    (f"```xml\n{tag(ADD)}\n```", "add", "trailing_text"),
    (tag('{"name": "add", "parameters": {"a": 1, "b": 2}}'), "add", "alias_key"),
    (tag('{"name": "add", "arguments": null, "parameters": {"a": 1, "b": 2}}'), "add", "alias_key"),
    (tag('{"name": "now", "parameters": null}'), "now", "alias_key"),
    (call("now", '"{}"'), "now", "decoded_string_arguments"),
    (tag(r'{"name": "add", "parameters": "{\"a\": 1, \"b\": 2}"}'), "add", "alias_key decoded_string_arguments"),
    # two objects in one tag
    (tag(ADD + TIMES), "add multiply", "trailing_text"),
    (tag(f"{ADD}\n{TIMES}\n"), "add multiply", "trailing_text"),
    (tag(f"{ADD}, {TIMES}"), "add multiply", "trailing_text"),
    (f"<tool_call>{ADD}{TIMES}", "add multiply", "trailing_text unclosed_tag"),
    (tag(ADD + '{"name": "subtract"}'), "", "trailing_text unknown_tool"),
    (tag('{"name": "subtract"}' + ADD), "", "trailing_text unknown_tool"),
    (tag(ADD + "{oops}"), "", "bad_json"),
    (tag('{"name": "add", "arguments": {"a": NaN, "b": 1}}' + TIMES), "", "non_finite trailing_text"),
    (tag(f"{ADD} and then {TIMES}"), "", "bad_json"),
    (f"<tool_call>{ADD} and then {TIMES}", "", "bad_json"),
    # no JSON, or not an object
    (tag(""), "", "bad_json"),
    ("<tool_call>", "", "bad_json"),
    (tag("{'name': 'note', 'arguments': {'text': 'a, b'}}"), "", "bad_json"),
    (tag('{"name": "add", "arguments": {"a": 1, "b": 2}'), "", "bad_json"),
    (tag('{"name": "add", "arguments": {"a": 1, "b": 2,}}'), "", "bad_json"),
    (tag('{"name": "add", "arguments": {"a": 1, "b": 2}{"a": 1, "b": 2}}'), "", "bad_json"),
    (tag('{"name": "note", "arguments": {"text": "two\nlines"}}'), "", "bad_json"),
    (tag(r'{"name": "note", "arguments": {"text": "C:\dir"}}'), "", "bad_json"),
    (tag(r'{"name": "note", "arguments": {"text": "\ud83d"}}'), "", "bad_json"),
    (tag(f"```json\n{ADD}\n```"), "", "bad_json"),
    (tag("add(1, 2)"), "", "bad_json"),
    (tag('{"name": "note", "arguments": {"text": "a </tool_call> b",}}'), "", "bad_json"),
    ("<tool_call>{oops}<tool_response>5", "", "bad_json fabricated_result"),
    ("<tool_call>" * 3, "", "bad_json"),
    (tag("{oops}") + tag("{oops}") + tag(NOW), "now", "bad_json"),
    (tag(f"[{ADD}]"), "", "not_object"),
    (tag("[]") + tag("5") + tag('"add"') + tag("null") + tag("true"), "", "not_object"),
    # name
    (tag("{}"), "", "missing_name"),
    (tag('{"name": null, "arguments": {}}'), "", "missing_name"),
    (tag('{"name": 5}') + tag('{"name": " "}') + tag('{"name": ["add"]}') + tag('{"Name": "add"}'), "",
     "missing_name"),
    (tag(f'{{"type": "function", "function": {ADD}}}'), "", "missing_name"),
    (call("addadd", '{"a": 1, "b": 2}') + call("Add", "{}") + call("functions.add", "{}"), "", "unknown_tool"),
    # arguments
    (call("now", '""') + call("now", "[]") + call("now", "false") + call("now", "0"), "", "arguments_not_object"),
    (call("now", '"null"') + call("add", "[1, 2]"), "", "arguments_not_object"),
    (call("add", r'"{\"a\": 1, \"b\": 2}{\"a\": 1, \"b\": 2}"'), "", "arguments_not_object"),
    (call("add", json.dumps(json.dumps(json.dumps({"a": 1, "b": 2})))), "", "arguments_not_object"),
    (call("add", json.dumps('{"a": 1, "b": 2')), "", "arguments_not_object"),
    (call("add", json.dumps('{"a": 1}')), "", "decoded_string_arguments missing_argument"),
    (call("add", json.dumps('{"a": 1, "a": 1}')), "", "decoded_string_arguments duplicate_key"),
    (call("add", '{"a": "1", "c": 2}'), "", "extra_argument missing_argument wrong_type"),
    (call("add", '{"a": null, "b": "2"}'), "", "wrong_type"),
    (call("set_flag", '{"name": "x", "value": "false"}') + call("set_flag", '{"name": "x", "value": 0}'), "",
     "wrong_type"),
    (call("count", '{"n": "3"}') + call("count", '{"n": true}') + call("count", '{"n": 2.5}'), "", "wrong_type"),
    (call("save", '{"record": []}') + call("save", '{"record": "{}"}') + call("search", '{"query": 5}'), "",
     "wrong_type"),
    ('<tool_call>{"name": "add", "arguments": {"a": 1}}', "", "missing_argument unclosed_tag"),
    # numbers and keys
    (call("add", '{"a": Infinity, "b": 1}') + call("add", '{"a": 1, "b": -1e400}'), "", "non_finite"),
    (call("save", '{"record": {"x": [NaN]}}') + call("count", '{"n": ' + "9" * 5000 + "}"), "", "non_finite"),
    (call("save", '{"record": {"x": 1, "x": 1}}'), "", "duplicate_key"),
    (tag('{"name": "add", "name": "now", "arguments": {}}'), "", "duplicate_key"),
    # under another tag
    (f"<tools>\n{ADD}\n</tools>", "", "wrong_tag"),
    (f"<tools>[{ADD}, {TIMES}]</tools>", "", "wrong_tag"),
    (f"Let me see.\n<function_call>{ADD}</function_call> Done.", "", "wrong_tag"),
    ("<tools>{'name': 'add', 'arguments': {}}</tools>", "", "wrong_tag"),
    (f"<TOOL_CALL>{ADD}</TOOL_CALL>", "", "wrong_tag"),
    (f"<|tool_call|>{ADD}", "", "wrong_tag"),
    (f"[TOOL_CALLS] [{ADD}]", "", "wrong_tag"),
    ('<function=add>{"a": 1, "b": 2}</function>', "", "wrong_tag"),
    ("<function=add><parameter=a>6</parameter></function>", "", "wrong_tag"),
    ('<invoke name="now"></invoke>', "", "wrong_tag"),
    (f"{ADD}</tool_call>", "", "wrong_tag"),
    ("add(1, 2)</tool_call>", "", "wrong_tag"),
    (f"</tool_call>{ADD}</tool_call>", "", "wrong_tag"),
    (f"{tag(ADD)}\n{TIMES}</tool_call>", "add", "wrong_tag"),
    # thinking
    (f"<think>Add?</think>{tag(ADD)}", "add", ""),
    (f"<think>{tag(ADD)}", "answer", "call_in_thinking"),
    (f"I think {tag(ADD)}</think>Three.", "answer", "call_in_thinking"),
    (f"<think>{tag(ADD)}</think>{tag(TIMES)}", "multiply", "call_in_thinking"),
    (f"<think>a</think>b<think>{tag(ADD)}</think>c", "answer", "call_in_thinking"),
    (f"{tag(ADD)}<think>Hm.</think>{TIMES}", "add", "trailing_text"),
    (tag(ADD) + '</think>{"name": "note", "arguments": {"text": "</tool_call>"}}', "", "bare_json call_in_thinking"),
    (f"{tag('{oops}')}</think>{tag(NOW)} ok", "now", "call_in_thinking trailing_text"),
    # invented results
    (f"{tag(ADD)}<tool_response>{tag(TIMES)}</tool_response>", "add", "fabricated_result"),
    (f"<tool_call>{ADD}<tool_response>3", "add", "fabricated_result unclosed_tag"),
    ("<tool_response>5</tool_response>The sum is 5.", "answer", "fabricated_result"),
    (f"{ADD}\n<tool_response>3</tool_response>", "", "bare_json fabricated_result"),
    # JSON that is no call
    ('{"name": "Ana"}', "answer", ""),
    ('{"name": "Ana", "age": 3}', "answer", ""),
    ('{"name": "Ana", "age": 3,}', "answer", ""),
    ("{'name': 'Ana'}", "answer", ""),
    ('{"answer": 42}', "answer", ""),
    ('{"type": "object", "parameters": {}}', "answer", ""),
    ("[1, 2, 3]", "answer", ""),
    ("{}", "answer", ""),
    ("42", "answer", ""),
    ('"add"', "answer", ""),
    ("```python\nprint({'name': 1})\n```", "answer", ""),
    ('<b>{"name": "Ana"}</b>', "answer", ""),
    ("<p>{x}</p> and a < b > c", "answer", ""),
    (f"The form is {ADD}.", "answer", ""),
])
def test_what_runs_and_what_is_reported(text, calls, codes):
    assert verdict(text) == (calls, codes)


@pytest.mark.parametrize("text, code, calls, more", [
    (ADD, "bare_json", "add", ""),
    (f" \n{ADD}\n", "bare_json", "add", ""),
    (json.dumps(json.loads(ADD), indent=4), "bare_json", "add", ""),
    (f"{ADD}\n{TIMES}", "bare_json", "add multiply", ""),
    (f"{ADD}}}", "bare_json", "add", ""),
    ('{"name": "now"}', "bare_json", "now", ""),
    ('{"name": "add"}', "bare_json", "", "missing_argument"),
    ('{"name": "add", "parameters": {"a": 1, "b": 2}}', "bare_json", "add", "alias_key"),
    ('{"name": "subtract", "arguments": {}}', "bare_json", "", "unknown_tool"),
    ('{"function": "add", "arguments": {}}', "bare_json", "", "missing_name"),
    (f'{{"type": "function", "function": {ADD}}}', "bare_json", "", "missing_name"),
    (f'{{"tool_calls": [{ADD}]}}', "bare_json", "", "missing_name"),
    (f"[{ADD}, {TIMES}]", "bare_json", "", "not_object"),
    ('{"name": "add", "arguments": {"a": NaN, "b": 1}}', "bare_json", "", "non_finite"),
    ('{"name": "add", "arguments": {"a": NaN, "b": 1}}\n' + TIMES, "bare_json", "", "non_finite"),
    ('{"name": "add", "arguments": {"a": 1,}}', "bare_json", "", "bad_json"),
    ("{'name': 'add', 'arguments': {'a': 1, 'b': 2}}", "bare_json", "", "bad_json"),
    (f"{ADD}\n{{'name': 'add', 'arguments': {{}}}}", "bare_json", "", "bad_json"),
    ('{"name": "note", "arguments": {"text": "``` <tool_call> </think>"}}', "bare_json", "note", ""),
    (f"<think>Hm.</think>\n{ADD}", "bare_json", "add", ""),
    ('<think>Hm.</think>{"name": "note", "arguments": {"text": "<tool_response>"}}', "bare_json", "note", ""),
    ('Hm.</think>{"name": "note", "arguments": {"text": "</tool_call>"}}', "bare_json", "note", ""),
    (f"```json\n{ADD}\n```", "fenced_json", "add", ""),
    (f"```\n{ADD}\n```", "fenced_json", "add", ""),
    (f"```tool_call\n{ADD}", "fenced_json", "add", ""),
    (f"~~~json\n{ADD}\n~~~\n", "fenced_json", "add", ""),
    (f"```json\n{ADD}\n```\n```json\n{TIMES}\n```", "fenced_json", "add multiply", ""),
    (f"```json\n{ADD}}}\n```", "fenced_json", "add", ""),
    (f"<think>Hm.</think>```json\n{ADD}\n```", "fenced_json", "add", ""),
    ('```json\n{"name": "note", "arguments": {"text": "```\\n```"}}\n```', "fenced_json", "note", ""),
])
def test_a_whole_reply_in_json_is_reported_and_runs_only_when_lenient(text, code, calls, more):
    assert verdict(text) == ("", code)
    assert verdict(text, "lenient") == (calls, " ".join(sorted(filter(None, [code, more]))))


@pytest.mark.parametrize("text", [
    f"To add, write {ADD}", f"{ADD} adds.", f"- {ADD}", '{"name": "Ana", "age": 3}', "[]", "{", "```json\n[1]\n```",
    "```\n```",
    f'"{ADD}"', f"The call:\n```json\n{ADD}\n```", "{name: add, arguments: {}}",
])
def test_json_inside_a_sentence_is_text_under_both_policies(text):
    assert verdict(text) == verdict(text, "lenient") == ("answer", "")


@pytest.mark.parametrize("policy", ["", "Strict", "bare", None])
def test_there_are_two_policies(policy):
    with pytest.raises(ValueError, match="'strict' or 'lenient'"):
        parse_reply("Hi.", TOOLS, policy)


# --- what the model is told, and what is left -------------------------------

@pytest.mark.parametrize("text, words", [
    (call("subtract", "{}"), ["subtract", "add, multiply, search, note, save, now, set_flag, count"]),
    (tag('{"function": "add"}'), ["'name'", "add, multiply"]),
    (call("add", '{"a": "12", "c": true}'), ["b (number) is missing", 'a must be number, not "12"', '"c" is not one',
                                             "add(a: number, b: number)"]),
    (call("search", '"what is bm25"'), ["must be a JSON object", "search(query: string)"]),
    (call("now", '{"timezone": "UTC"}'), ['"timezone"', "now()"]),
    (call("add", json.dumps('{"a": NaN, "b": 1}')), ["in the arguments of add NaN"]),
    (tag(ADD + '{"name": "subtract"}'), ["subtract"]),
    (ADD, ["not alone"]),
    (f"```\n{ADD}\n```", ["not in a code fence"]),
    (f"{ADD}</tool_call>", ["between <tool_call> and </tool_call>"]),
    (tag("{oops}"), ["no valid JSON"]),
    (tag("[]"), ["must be a JSON object with name and arguments"]),
])
def test_a_refusal_says_what_was_expected(text, words):
    finding, = parse_reply(text, TOOLS).candidates
    assert all(word in finding.message for word in words), finding.message


@pytest.mark.parametrize("text, answer, prose", [
    ("", None, ""),
    ("  Hà Nội. \n", "Hà Nội.", "Hà Nội."),
    (f"<think>{tag(ADD)}</think> Two. ", "Two.", "Two."),
    ("<think>a</think>b<think>c</think>d", "bd", "bd"),
    ("<think>never closed", None, ""),
    (f"Wait. {tag(ADD)} Done.", None, "Wait.  Done."),
    (ADD, None, ADD),
    ("The sum is 5.\n<tool_response>5", None, "The sum is 5."),
    ("<tools>{}</tools>", "<tools>{}</tools>", "<tools>{}</tools>"),
])
def test_the_words_that_are_left(text, answer, prose):
    reply = parse_reply(text, TOOLS)
    assert (reply.answer, reply.prose or ADD * (text == ADD)) == (answer, prose)


@pytest.mark.parametrize("before", ["", "Hm. ", tag(ADD), f"<tool_call>{ADD}\n"])
def test_an_invented_result_is_cut_off_the_text(before):
    text = before + "<tool_response>\n5\n</tool_response>\nIt is 5." + tag(TIMES)
    reply = parse_reply(text, TOOLS)
    assert reply.text == before and "multiply" not in [call.name for call in reply.calls]
    last = reply.findings[-1]
    assert (last.codes, last.start, last.end) == (("fabricated_result",), len(before), len(text))
    assert not is_candidate(last) and last.message == SENTENCES["fabricated_result"]


@pytest.mark.parametrize("text, spans", [
    (f"a {tag(ADD)} b {tag(TIMES)}", [(2, 71), (74, 148)]),
    (f"<tool_call>{ADD}\n {tag(NOW)}", [(0, 59), (59, 114)]),
    (f"{tag('{oops}')} b {tag(NOW)}", [(0, 29), (32, 87)]),
    (f"<tool_call>{{oops}} {tag(NOW)}", [(0, 73)]),
    (f"a</think>{tag(NOW)}", [(9, 64)]),
    (f"x<think>{tag(NOW)}</think>y", [(1, 71)]),
    (f"x{tag(NOW)}</think>y", [(0, 64)]),
    (f"a </tool_call> b {tag(NOW)}", [(2, 14), (17, 72)]),
    (ADD, [(0, len(ADD))]),
    (f"a <tools>{ADD}</tools>", [(0, 2 + 15 + len(ADD))]),
])
def test_findings_say_where(text, spans):
    reply = parse_reply(text, TOOLS)
    assert [(finding.start, finding.end) for finding in reply.findings] == spans


def test_each_finding_has_its_own_verdict():
    reply = parse_reply(tag(ADD) + tag("{oops}") + f"<tool_call>{TIMES}", TOOLS)
    assert [finding.codes for finding in reply.findings] == [(), ("bad_json",), ("unclosed_tag",)]
    assert [bool(finding.message) for finding in reply.findings] == [False, True, False]
    assert reply.calls == [Call("add", {"a": 1, "b": 2}), Call("multiply", {"a": 3, "b": 4})]


def test_text_after_the_last_call_is_noted_with_it():
    reply = parse_reply(f"a {tag(ADD)} b {tag(TIMES)} c", TOOLS)
    assert [finding.codes for finding in reply.findings] == [(), ("trailing_text",)]


# --- replies that were cut --------------------------------------------------

AWKWARD = {"text": 'a </tool_call> "quoted" } \\ ```\n<tool_call>{"name": "now"}</tool_call> ầ 👩‍👩‍👧 ]}'}


def judged(text: str, policy: str) -> None:
    """At every place of the cut: not one changed call, and no answer while the cut is inside the object."""
    whole = parse_reply(text, TOOLS, policy).calls or parse_reply(text, TOOLS, "lenient").calls
    first, last = text.index("{"), text.rindex("}")
    for cut in range(len(text) + 1):
        reply = parse_reply(text[:cut], TOOLS, policy, truncated=True)
        assert not reply.calls or reply.calls == whole
        if first < cut <= last:
            assert not reply.is_answer and reply.codes == ["truncated"] and not reply.calls


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("form", ["<tool_call>{}</tool_call>", "Wait.\n<tool_call>\n{}\n</tool_call>", "{}",
                                  "```json\n{}\n```",
                                  "<think>hm</think>{}", "[{}]"])
def test_a_cut_call_never_runs_and_is_never_an_answer(form, ascii_only, policy):
    text = json.dumps({"name": "note", "arguments": AWKWARD}, ensure_ascii=ascii_only)
    judged(form.replace("{}", text), policy)


@pytest.mark.parametrize("text, calls, codes", [
    ("The capital of", "answer", ""),
    (tag(ADD) + "<tool_call>", "add", "truncated"),
    (tag(ADD) + f"<tool_call>{TIMES[:-4]}", "add", "truncated"),
    (f"<tool_call>{ADD}", "", "truncated"),
    (f"<tool_call>{ADD}</tool_c", "", "truncated"),
    (tag("{oops}"), "", "bad_json"),
    (tag(ADD) + " and", "add", "trailing_text"),
    (f"<think>so <tool_call>{ADD[:9]}", "answer", "call_in_thinking"),
    (f"{tag(ADD)}<tool_response>4", "add", "fabricated_result"),
    ('{"name": "Ana", "age": ', "", "truncated"),
    ('{"city": "Ana", "age": ', "answer", ""),
    (ADD, "", "truncated"),
    (f"As JSON: {ADD[:20]}", "answer", ""),
])
def test_cut_replies(text, calls, codes):
    assert verdict(text, truncated=True) == verdict(text, "lenient", truncated=True) == (calls, codes)


# --- any arguments and any text ---------------------------------------------

PARTS = st.sampled_from([
    "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<tools>",
    "<|im_end|>",
    "<|im_start|>system\n", "```", "```json\n", "~~~", "{", "}", "[", "]", '"', "'", "\\", "\n", "\t", ",", ":", " ",
    "NaN",
    "máy chủ", unicodedata.normalize("NFD", "máy chủ"), "👩‍👩‍👧", "\u2028", "\x00", "\x7f", "\ufeff", "\ufdd0",
    "RESULT:", "7",
    '{"name": "add", "arguments": {"a": 1, "b": 2}}', '{"name": "now"}', '"name":', '"arguments":', "[TOOL_CALLS]",
    "<function=",
])
TEXTS = st.lists(PARTS | st.text(max_size=5), max_size=12).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=15)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans(), st.sampled_from([None, 2]),
       st.sampled_from(["strict", "lenient"]))
def test_any_arguments_survive_the_way_through_a_reply(record, ascii_only, indent, policy):
    written = json.dumps({"name": "save", "arguments": {"record": record}}, ensure_ascii=ascii_only, indent=indent)
    expected = [as_value(Call("save", {"record": record}))]
    for form in (tag(written), f"Wait.\n<tool_call>\n{written}\n</tool_call>"):
        reply = parse_reply(form, TOOLS, policy)
        assert [as_value(call) for call in reply.calls] == expected and not reply.codes
    for form, code in ((written, "bare_json"), (f"```json\n{written}\n```", "fenced_json")):
        reply = parse_reply(form, TOOLS, policy)
        assert [as_value(call) for call in reply.calls] == expected * (policy == "lenient") and reply.codes == [code]


@given(TEXTS | st.text(), st.sampled_from(["strict", "lenient"]), st.booleans())
@example("<tool_call>" + "[" * 5000, "strict", False)
@example("<a>" + "[" * 900 + "]" * 900, "strict", False)
@example("<a>" + '{"function":' * 900 + "1" + "}" * 900, "lenient", True)
def test_no_text_breaks_the_reader(text, policy, truncated):
    reply = parse_reply(text, TOOLS, policy, truncated)
    assert set(reply.codes) <= CODES and text.startswith(reply.text)
    assert all(0 <= finding.start < finding.end <= len(text) for finding in reply.findings)
    assert reply.is_answer == (not reply.candidates) and (reply.answer is None or reply.is_answer)
    assert not reply.calls or "<tool_call>" in text or policy == "lenient"
    for finding in reply.findings:
        assert finding.message or (finding.calls and is_candidate(finding))


@given(TEXTS, TEXTS)
def test_a_good_call_runs_whatever_stands_around_it_in_words(before, after):
    words = [text for text in (before, after) for mark in "<{[" if mark in text]
    reply = parse_reply(f"{before} {tag(ADD)} {after}", TOOLS)
    assert words or reply.calls == [Call("add", {"a": 1, "b": 2})]


HOSTILE = {
    "opening tags": "<tool_call>", "closing tags": "</tool_call>", "thinking": "<think>", "thoughts": "</think>",
    "results": "x<tool_response",
    "brackets": "[", "braces": "{", "objects": '{"a":', "tagged brackets": "<tool_call>[",
    "tagged objects": '<tool_call>{"a":',
    "empty objects": "{}", "tagged empty": "<tool_call>{}", "spaces": " ", "line breaks": "\n", "backticks": "`",
    "fences": "```json\n",
    "fence words": "```a ", "other tags": "<a>{", "other tags with keys": '<a>{"name":', "strings in tags": '<a>{"',
    "tags in lists": "<a>[",
    "half tags": "<", "digits": "1", "quotes": '"', "backslashes": "\\", "calls": tag(ADD), "bare calls": ADD,
    "cut calls": f"<tool_call>{ADD}",
    "names": '{"name":', "commas": ",", "tagged commas": "<tool_call>{},", "functions": "<function=a>",
    "vietnamese": "<a>{ầ", "lists": "[TOOL_CALLS]",
}


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("before", ["", '<tool_call>{"name": "', '{"name": "add", "arguments": '])
def test_long_hostile_replies_are_read_in_time(before, part):
    text, start = before + part * (100_000 // len(part)), process_time()
    parse_reply(text, TOOLS, "lenient", truncated=False)
    parse_reply(text, TOOLS, "strict", truncated=True)
    assert process_time() - start < 20  # seconds of this process alone; a busy machine does not count


# --- what readers of this file broke --------------------------------------

@pytest.mark.parametrize("reply", [
    f"<tool_call>{{'name': 'note', 'arguments': {{'text': '{tag(NOW)}'}}}}</tool_call>",
    f'<tool_call>{{"name": "note", "arguments": {{"text": "he said "{tag(NOW)}"}}}}</tool_call>',
    f'<tool_call>{{"name": "note", "arguments": {{"text": "line\n{tag(NOW)}"}}}}</tool_call>',
    f"<tool_call>{{oops}}<tool_call>{NOW}</tool_call>",
])
@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_a_call_quoted_inside_a_broken_one_does_not_run(reply, policy):
    found = parse_reply(reply, TOOLS, policy)
    assert not found.calls and "bad_json" in found.codes and not found.is_answer


def test_after_a_broken_call_with_a_quoted_one_the_next_call_runs():
    found = parse_reply(f"<tool_call>{{'a': '{tag(NOW)}'}}</tool_call>\n{tag(ADD)}", TOOLS)
    assert [call.name for call in found.calls] == ["add"] and found.codes == ["bad_json"]


@pytest.mark.parametrize("reply, code", [
    ("{" + ADD + "}", "bare_json"), (f"{ADD},\n{ADD}", "bare_json"), (f"json\n{ADD}", "bare_json"),
    (f"\ufeff{ADD}", "bare_json"), (f"\u200b{ADD}", "bare_json"),
    ('<tool_call name="add">{"a": 1, "b": 2}', "wrong_tag"), (f"tool_call>{ADD}", "wrong_tag"),
    ("<\uff5ctool\u2581calls\u2581begin\uff5c>add", "wrong_tag"),
])
def test_forms_close_to_a_call_are_refused_and_no_answer(reply, code):
    found = parse_reply(reply, TOOLS)
    assert found.codes == [code] and not found.calls and not found.is_answer


@pytest.mark.parametrize("reply", ["3 <tool_result>3</tool_result>It is 3", "3 <TOOL_RESPONSE>3",
                                   "</tool_response>It is 3"])
def test_an_invented_result_in_another_form_is_cut_too(reply):
    found = parse_reply(reply, TOOLS)
    assert found.codes == ["fabricated_result"] and found.answer is None and "It is" not in found.text


@pytest.mark.parametrize("opened, closed", [("<thinking>", "</thinking>"), ("<THINK>", "</THINK>"),
                                            ("<think >", "</think >")])
def test_thinking_in_another_spelling_is_thinking(opened, closed):
    found = parse_reply(f"{opened}{tag(NOW)}{closed}Two.", TOOLS)
    assert not found.calls and found.codes == ["call_in_thinking"] and found.answer == "Two."


@pytest.mark.parametrize("reply", ["A `<function name>` placeholder", "Array<function (a) => b>", "write [TOOL_CALL]",
                                   f"`never`\n{NOW}"])
def test_words_that_only_look_like_a_tag_are_an_answer(reply):
    assert parse_reply(reply, TOOLS, "lenient").is_answer


def test_long_space_after_a_broken_call_takes_no_long_time():
    start = process_time()
    parse_reply("<tool_call>{}x" + " " * 100_000, TOOLS)
    assert process_time() - start < 20
