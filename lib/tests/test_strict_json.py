"""JSON by its standard: what Python's reader lets pass is named here, and nothing ever raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.strict_json import MAX_DEPTH, decode, decode_whole

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20)


@pytest.mark.parametrize("text, value, end", [
    ("{}", {}, 2), ("  {} ", {}, 4), ("[] x", [], 2), ("\n\t12,", 12, 4), ('"ầ"', "ầ", 3), ('"\\u1ea7"', "ầ", 8),
    ('"👩‍👩‍👧"', "👩‍👩‍👧", 7), ('"\\ud83d\\ude00"', "😀", 14), ("null", None, 4), ("true", True, 4),
    ("1e308", 1e308, 5),
    ("-0", 0, 2), ('{"a": {"a": 1}}', {"a": {"a": 1}}, 15), ('[{"a": 1}, {"a": 1}]', [{"a": 1}, {"a": 1}], 20),
    ('"NaN </tool_call>"', "NaN </tool_call>", 18),
])
def test_good_json(text, value, end):
    assert decode(text) == (value, end, "")
    assert decode("xy" + text, 2) == (value, end + 2, "")


@pytest.mark.parametrize("text, code", [
    *[(text, "bad_json") for text in (
        "", " ", "{", "[", '{"a"', '{"a":', '{"a": 1', '{"a": 1,}', "[1,]", "{'a': 1}", "{a: 1}", "True", "None",
        "undefined", "+1", ".5", '"a\nb"', '"a\tb"', '"\\x"', '"\\u12"', "// x", "\ufeff{}", '"\\ud83d"',
        '{"\\udc00": 1}', '["\\ud800"]')],
    *[(text, "non_finite") for text in (
        "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "[1, [NaN]]", '{"a": 1e999}', "9" * 4301,
        "-" + "9" * 5000)],
    *[(text, "duplicate_key") for text in ('{"a": 1, "a": 1}', '[{"b": {"a": 1, "\\u0061": 2}}]', '{"": 1, "": 2}')],
])
def test_faults(text, code):
    assert decode(text)[2] == code
    assert decode_whole(text)[1] == code


@pytest.mark.parametrize("text", ["{} {}", "{}}", "01", "1 2", "null x", "{},"])
def test_one_value_and_nothing_else(text):
    assert decode_whole(text)[1] == "bad_json"
    assert decode_whole(" {} \n") == ({}, "")


def test_python_reads_what_is_refused_here():
    for text in ("NaN", "1e400", '{"a": 1, "a": 2}'):
        json.loads(text)
    assert len(json.loads("9" * 4300, parse_int=str)) == 4300 and decode("9" * 4300)[2] == ""


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_has_a_limit(opening, closing):
    for depth, code in ((MAX_DEPTH // 2 - 1, ""), (MAX_DEPTH * 2, "bad_json"), (100_000, "bad_json")):
        value, _, found = decode(opening * depth + "1" + closing * depth)
        assert found == code and (value is None) == bool(code)


@pytest.mark.parametrize("depth, code", [(49, ""), (50, "bad_json")])
def test_the_limit_counts_the_levels(depth, code):
    assert decode("[" * depth + "1" + "]" * depth)[2] == code
    assert decode("[" * depth + '"\\ud800"' + "]" * depth)[2] == "bad_json"


@pytest.mark.parametrize("text, place", [('{"a": tru', 6), ('{"a" 1}', 5), ('{"q": "x </tool_call> y', 23), ("{'a'}",
                                                                                                             1)])
def test_the_place_of_a_fault_is_never_before_a_string_that_was_read(text, place):
    assert decode(text) == (None, place, "bad_json")


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 3]))
def test_what_python_writes_is_read_back(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found, end, code = decode(text + " ")
    assert (end, code) == (len(text), "") and json.dumps(found) == json.dumps(value)


@given(st.text("[]{}\":,\\ue0123456789.-+ntruefalsNIy \n", max_size=60))
def test_it_never_raises_and_agrees_with_python(text):
    value, code = decode_whole(text)
    try:
        theirs = json.loads(text)
    except ValueError:
        assert code == "bad_json" or code == "non_finite"
    else:
        assert code or value == theirs
