"""Schemas from Python types, and values held against them: every fault is named, nothing is converted."""

from __future__ import annotations

import typing
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from lib.schema import fits, kind_of, schema_faults, settle, short, type_schema

NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}


@pytest.mark.parametrize("hint, schema", [
    (str, {"type": "string"}), (float, {"type": "number"}), (int, {"type": "integer"}), (bool, {"type": "boolean"}),
    (dict, {"type": "object"}), (list, {"type": "array"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (list[list[str]], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    (Literal["asc", "giảm"], {"type": "string", "enum": ["asc", "giảm"]}),
])
def test_types_that_json_has(hint, schema):
    assert type_schema(hint) == schema


@pytest.mark.parametrize("hint", [
    None, type(None), Any, object, bytes, set, tuple, complex, Optional[int], Union[int, str],  # noqa: UP007, UP045
    int | str,
    list[bytes], dict[str, int], tuple[int, int], Literal[1], Literal["a", 1], Literal[True], Literal[None], "int", 5,
    typing.TypeVar("T"), Annotated[set, "x"], typing.List, typing.Dict,  # noqa: UP006
])
def test_types_that_json_does_not_have(hint):
    with pytest.raises(TypeError, match="none of str, float"):
        type_schema(hint)


@pytest.mark.parametrize("value, kinds", [
    (1, {"number", "integer"}), (1.5, {"number"}), (3.0, {"number", "integer"}), (True, {"boolean"}),
    ("1", {"string"}),
    ("", {"string"}), ("false", {"string"}), (None, set()), ([], {"array"}), ({}, {"object"}),
    (0, {"number", "integer"}),
    (2**70, {"number", "integer"}), (1e300, {"number", "integer"}), (False, {"boolean"}),
])
def test_each_value_fits_its_own_types_only(value, kinds):
    every = {"number", "integer", "boolean", "string", "array", "object"}
    assert {kind for kind in every if fits(value, {"type": kind})} == kinds
    assert fits(value, {})


@pytest.mark.parametrize("arguments, faults", [
    ({"a": 1, "b": 2.5}, []),
    ({}, [("missing_argument", "a (number) is missing"), ("missing_argument", "b (number) is missing")]),
    ({"a": "12", "b": True}, [("wrong_type", 'a must be number, not "12"'), ("wrong_type",
                                                                             "b must be number, not true")]),
    ({"a": None, "c": 1}, [("missing_argument", "b (number) is missing"), ("wrong_type",
                                                                           "a must be number, not null"),
                           ("extra_argument", '"c" is not one of the arguments')]),
    ([1], [("wrong_type", "the value must be object, not [1]")]),
])
def test_all_faults_at_once(arguments, faults):
    assert list(schema_faults(arguments, NUMBERS)) == faults


def test_faults_inside_lists_and_objects_say_where():
    schema = {"type": "object", "properties": {
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, "deep": NUMBERS}}
    faults = dict.fromkeys(text for _, text in schema_faults({"rows": [[1], [2, "x"]], "deep": {"a": 1, "ầ": 2}},
                                                             schema))
    assert list(faults) == ['rows[1][1] must be integer, not "x"', "deep.b (number) is missing",
                            'deep."ầ" is not one of the arguments']


def test_an_object_without_properties_takes_anything():
    assert not list(schema_faults({"x": [1, {"y": None}]}, {"type": "object"}))
    assert list(schema_faults({"x": 1}, {"type": "object", "properties": {}})) == [
        ("extra_argument", '"x" is not one of the arguments')]


def test_allowed_values():
    schema = type_schema(Literal["tăng", "giảm"])
    assert fits("tăng", schema) and not fits("lên", schema) and not fits(1, schema)
    assert kind_of(schema) == '"tăng" or "giảm"'
    assert kind_of({}) == "anything" and kind_of({"type": "array"}) == "array"


@pytest.mark.parametrize("value, text", [("é", '"é"'), (None, "null"), ("x" * 58, '"' + "x" * 58 + '"'),
                                         ("x" * 59, '"' + "x" * 56 + "..."), ({"a": [1]}, '{"a": [1]}')])
def test_what_is_quoted_back_is_short(value, text):
    assert short(value) == text and len(text) <= 60


def test_whole_numbers_are_settled_and_nothing_else():
    schema = {"type": "object", "properties": {
        "n": {"type": "integer"}, "x": {"type": "number"}, "rows": {"type": "array", "items": {"type": "integer"}}}}
    settled = settle({"n": 3.0, "x": 3.0, "rows": [1.0, 2], "free": 4.0}, schema)
    assert list(map(repr, settled.values())) == ["3", "3.0", "[1, 2]", "4.0"]
    assert settle("3.0", {"type": "integer"}) == "3.0" and settle(True, {"type": "integer"}) is True
