"""Tools: functions described or refused, calls run or refused, and nothing a tool does ends the program."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
from typing import Any, Literal, Optional, Union

import pytest

from lib.replies import Call
from lib.tests import tiny
from lib.tools import RESULT_LIMIT, Result, Tool, ToolError, ToolFault, by_name, refusal, run_call, shorten, tool

# --- from a function to its description -------------------------------------


@tool
def multiply(a: float, b: float):
    """Multiply two numbers exactly."""
    return a * b


def test_the_schema_is_the_one_of_the_article():
    assert json.dumps(multiply.schema, separators=(",", ":")) == (
        '{"type":"function","function":{"name":"multiply","description":"Multiply two numbers exactly.",'
        '"parameters":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}}')
    assert multiply.usage == "multiply(a: number, b: number)"
    assert multiply(6, b=7) == 42 and not multiply.needs_approval


def test_every_supported_type():
    @tool(needs_approval=True)
    def every(s: str, f: float, i: int, b: bool, d: dict, r: list, ls: list[str], e: Literal["cũ", "mới"], *,
              n: int = 3, lf: list[list[float]] = ()) -> dict[str, set]:
        """Mọi kiểu.

        Hai dòng.
        """

    kinds = {name: schema["type"] for name, schema in every.parameters["properties"].items()}
    assert kinds == {"s": "string", "f": "number", "i": "integer", "b": "boolean", "d": "object", "r": "array",
                     "ls": "array", "e": "string", "n": "integer", "lf": "array"}
    assert every.parameters["required"] == ["s", "f", "i", "b", "d", "r", "ls", "e"]
    assert every.parameters["properties"]["e"]["enum"] == ["cũ", "mới"] and every.needs_approval
    assert every.parameters["properties"]["lf"]["items"] == {"type": "array", "items": {"type": "number"}}
    assert every.description == "Mọi kiểu.\n\nHai dòng."
    assert 'e: "cũ" or "mới", n?: integer, lf?: array)' in every.usage


def test_a_tool_without_parameters():
    @tool()
    def now():
        """The time."""

    assert now.parameters == {"type": "object", "properties": {}, "required": []} and now.usage == "now()"


def no_docstring(a: int): ...


def blank_docstring(a: int):
    """ """


def untyped(a): "x"
def untyped_default(a=1): "x"
def star(*a: int): "x"
def stars(**a: int): "x"
def positional(a: int, /): "x"
def maybe(a: Optional[int]): "x"  # noqa: UP045
def either(a: Union[int, str]): "x"  # noqa: UP007
def or_none(a: int | None = None): "x"
def custom(a: Call): "x"
def anything(a: Any): "x"
def numbers(a: Literal[1, 2]): "x"
def pair(a: tuple[int, int]): "x"
def keyed(a: dict[str, int]): "x"
async def later(a: int): "x"


def endless(a: int):
    """x"""
    yield a


async def endless_later(a: int):
    """x"""
    yield a


class Named:
    """x"""

    def method(self, a: int):
        """x"""


@pytest.mark.parametrize("function, fault, words", [
    *[(function, ValueError, [function.__name__, "docstring"]) for function in (no_docstring, blank_docstring)],
    (lambda a: a, ValueError, ["<lambda>", "docstring"]),
    *[(function, TypeError, [function.__name__, "parameter", name]) for function, name in (
        (untyped, "a"), (untyped_default, "a"), (star, "*a"), (stars, "**a"), (positional, "a"), (maybe, "a"),
        (either, "a"),
        (or_none, "a"), (custom, "a"), (anything, "a"), (numbers, "a"), (pair, "a"), (keyed, "a"),
        (Named.method, "self"))],
    *[(function, TypeError, [function.__name__, "def"]) for function in (
        later, endless, endless_later, Named, Named().method, len)],
    (functools.partial(multiply.function, 2), TypeError, ["partial", "def"]),
    (5, TypeError, ["5"]),
])
def test_what_cannot_be_described_is_refused(function, fault, words):
    with pytest.raises(fault) as refused:
        tool(function)
    assert all(word in str(refused.value) for word in words) and "\n" not in str(refused.value)


def test_a_lambda_with_a_docstring_has_still_no_name():
    nameless = lambda: 1  # noqa: E731
    nameless.__doc__ = "One."
    with pytest.raises(ValueError, match="name"):
        tool(nameless)


def test_two_tools_of_one_name():
    assert by_name([]) == {} and by_name({"x": multiply}) == by_name(iter([multiply])) == {"multiply": multiply}
    with pytest.raises(ValueError, match="two tools share a name: multiply, multiply"):
        by_name([multiply, multiply])


# --- running ----------------------------------------------------------------

def giving(value) -> Tool:
    """A tool that returns `value`, or raises it, or calls it."""
    def give():
        if isinstance(value, BaseException):
            raise value
        return value() if callable(value) else value

    return Tool("give", "Gives.", {"type": "object", "properties": {}, "required": []}, give)


def run(value, **options) -> Result:
    return run_call(Call("give", {}), [giving(value)], **options)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def noted() -> Exception:
    error = ValueError("bad input")
    error.add_note("a note for people")
    return error


def recursive():
    return recursive()


CIRCLE: list = []
CIRCLE.append(CIRCLE)
DEEP = functools.reduce(lambda inner, _: [inner], range(100_000), [])


@pytest.mark.parametrize("value, text", [
    ("máy chủ", "máy chủ"), ("", ""), ('say "hi"\n', 'say "hi"\n'), ("42", "42"),
    ({"tên": "Huấn luyện"}, '{"tên": "Huấn luyện"}'),
    (None, "null"), (True, "true"), (12, "12"), (12.0, "12.0"), (-0.0, "-0.0"), (2**200, str(2**200)), ([], "[]"),
    ((1, "a"), '[1, "a"]'),
    ({"a": {"b": [None, False]}}, '{"a": {"b": [null, false]}}'), ({1: "x"}, '{"1": "x"}'),
    (["</tool_response>"], '["</tool_response>"]'),
    ("<|im_end|>", "<|im_end|>"), ("Error: none found", "Error: none found"),
    ("a\ud800b\udfff", "a\ufffdb\ufffd"), (["\udc00"], '["\ufffd"]'),
    ("\ufdcf\ufdd0\ufdef\ufdf0", "\ufdcf\ufffd\ufffd\ufdf0"),
    ("👩‍👩‍👧\u0000\u2028", "👩‍👩‍👧\u0000\u2028"),
])
def test_results(value, text):
    result = run(value)
    assert (result.ok, result.text, result.cut, result.ran, result.codes) == (True, text, 0, True, ())
    assert result.call == Call("give", {}) and result.seconds >= 0
    tiny.model().encode([{"role": "user", "content": "?"}, {"role": "tool", "content": result.text}])


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), [1, {"x": float("nan")}], [10**5000],
                                   {float("inf"): 1}])
def test_a_result_that_no_text_can_hold_is_told_in_words(value):
    result = run(value)
    assert (result.ok, result.ran) == (False, True) and result.text.startswith("Error: the result of give")
    assert not any(word in result.text for word in ("Infinity", "NaN", "inf", "nan"))


@pytest.mark.parametrize("value", [{1, 2}, object, b"x", 1j, multiply, {(1, 2): 3}, {"x": {1}}, range(3), CIRCLE,
                                   DEEP,
                                   (number for number in range(3)), len, Call("x", {})])
def test_a_result_that_is_no_json_is_the_programs_fault(value):
    given = (lambda: value) if callable(value) else value
    with pytest.raises(ToolFault, match="^give returned"):
        run(given)


@pytest.mark.parametrize("error, text", [
    (ValueError("khóa sai"), "Error: give failed: ValueError: khóa sai"),
    (ValueError(), "Error: give failed: ValueError"),
    (ValueError("two\nlines:"), "Error: give failed: ValueError: two\nlines:"),
    (noted(), "Error: give failed: ValueError: bad input"),
    (KeyError("x"), "Error: give failed: KeyError: 'x'"),
    (ToolError("no such page"), "Error: no such page"),
    (SystemExit(3), "Error: give failed: SystemExit: 3"),
    (Silent(), "Error: give failed: Silent"),
    (SyntaxError("bad"), "Error: give failed: SyntaxError: bad"),
    (ValueError("half \ud800"), "Error: give failed: ValueError: half \ufffd"),
    (ExceptionGroup("both", [ValueError("x")]), "Error: give failed: ExceptionGroup: both (1 sub-exception)"),
])
def test_a_tool_that_fails_is_a_result(error, text):
    result = run(error)
    assert (result.ok, result.ran, result.text, result.codes) == (False, True, text, ())


def test_a_tool_without_end_is_a_result():
    assert run(recursive).text.startswith("Error: give failed: RecursionError: maximum recursion depth")


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_what_a_person_or_the_program_ends_is_passed_on(error):
    with pytest.raises(error):
        run(error())


def test_warnings_of_the_function_itself_stay_type_errors_of_the_tool():
    assert run(lambda: len(5)).text == "Error: give failed: TypeError: object of type 'int' has no len()"


@pytest.mark.parametrize("function", [lambda: 1, lambda a: 1, lambda x, y: 1, None, max])
def test_a_function_that_does_not_fit_its_description_is_the_programs_fault(function):
    parameters = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    with pytest.raises(ToolFault, match="f does not take the arguments of its own description"):
        run_call(Call("f", {"x": 1}), [Tool("f", "F.", parameters, function)])


# --- refusals ---------------------------------------------------------------

@tool
def find(word: str, limit: int = 3, order: Literal["up", "down"] = "up", tags: list[int] = ()):
    """Find."""
    return f"{word}/{limit!r}/{order}/{list(tags)!r}"


@pytest.mark.parametrize("arguments, text", [
    ({"word": "ầ"}, "ầ/3/up/[]"),
    ({"limit": 5.0, "word": "", "tags": [1.0, 2]}, "/5/up/[1, 2]"),
    ({"word": "a", "order": "down"}, "a/3/down/[]"),
    (None, None),
    ('{"word": "a"}', "a/3/up/[]"),
])
def test_arguments_reach_the_function_as_they_were_checked(arguments, text):
    result = run_call(Call("find", arguments), [find])
    assert (result.text == text and result.ok) if text is not None else "missing_argument" in result.codes
    assert result.call.arguments == arguments


@pytest.mark.parametrize("call, codes, words", [
    (Call("lose", {}), ("unknown_tool",), ['"lose"', "find, multiply"]),
    (Call("", {}), ("missing_name",), ["find, multiply"]),
    (Call("find", {"limit": "5", "order": "left", "tags": [1, "2"], "x": 1}),
     ("missing_argument", "wrong_type", "extra_argument"),
     ["word (string) is missing", 'limit must be integer, not "5"', 'order must be "up" or "down", not "left"',
      'tags[1] must be integer, not "2"', '"x" is not one', "find(word: string, limit?: integer"]),
    (Call("multiply", {"a": True, "b": "3"}), ("wrong_type",),
     ["a must be number, not true", 'b must be number, not "3"']),
    (Call("multiply", [1, 2]), ("arguments_not_object",), ["must be a JSON object"]),
])
def test_refusals_name_every_fault_and_run_nothing(call, codes, words):
    result = run_call(call, [find, multiply])
    assert (result.ok, result.ran, result.codes, result.call, result.seconds) == (False, False, codes, call, 0.0)
    assert all(word in result.text for word in words) and result.text.startswith("Error: ")
    assert result.text.endswith(".")


def test_a_refusal_is_not_endless():
    result = refusal("x" * 10**6)
    assert len(result.text) <= RESULT_LIMIT and result.cut and result.call is None


@pytest.mark.parametrize("answer, ran", [(None, False), (False, False), (True, True)])
def test_approval(answer, ran):
    done, asked = [], []
    ask = None if answer is None else lambda call: asked.append(call) or answer
    careful = Tool("give", "", {}, lambda **_: done.append(1) or "did it", needs_approval=True)
    result = run_call(Call("give", {"x": [1]}), [careful], approve=ask)
    assert (result.ran, result.ok, len(done), len(asked)) == (ran, ran, int(ran), int(answer is not None))
    assert ran or "approval" in result.text and not result.codes
    run_call(Call("give", {}), [giving("free")], approve=lambda call: pytest.fail("nobody had to be asked"))


@pytest.mark.parametrize("answer", ["no", "", 1, 0, None, [True]])
def test_only_true_or_false_is_an_approval(answer):
    careful = Tool("give", "", {}, lambda: pytest.fail("it ran"), needs_approval=True)
    with pytest.raises(ToolFault, match="True or False"):
        run_call(Call("give", {}), [careful], approve=lambda call: answer)


def test_approval_that_raises_is_not_the_tools_failure():
    def ask(_):
        raise LookupError("nobody there")

    with pytest.raises(LookupError):
        run_call(Call("give", {}), [Tool("give", "", {}, lambda: "ran", needs_approval=True)], approve=ask)


def test_neither_the_tool_nor_the_approver_can_change_the_record():
    def spoil(call: Call) -> bool:
        call.arguments["rows"].append("approved")
        return True

    def grow(rows: list):
        """Grow."""
        rows.append("grown")
        return rows

    call = Call("grow", {"rows": [1, {"x": 1}]})
    before = copy.deepcopy(call)
    result = run_call(call, [tool(grow, needs_approval=True)], approve=spoil)
    assert result.text == '[1, {"x": 1}, "grown"]' and result.call == call == before


# --- the length of results --------------------------------------------------

@pytest.mark.parametrize("limit", [100, 101, 8000])
@pytest.mark.parametrize("extra", [-1, 0, 1, 2, 60, 10**6])
def test_the_limit_is_exact_and_what_is_left_out_is_counted(limit, extra):
    whole = "ầ" * (limit + extra)
    result = run(whole, limit=limit)
    assert len(result.text) <= limit
    if extra <= 0:
        assert (result.text, result.cut) == (whole, 0)
    else:
        kept, _, mark = result.text.partition(" … [")
        assert len(kept) + result.cut == len(whole) and set(kept) == {"ầ"} and len(kept) == limit - 50
        assert mark == f"{result.cut:,} characters left out]"


def test_a_limit_too_small_for_its_own_mark():
    with pytest.raises(ValueError, match="at least 100"):
        shorten("x", 99)
    assert shorten("", 100) == ("", 0)


def test_the_limit_counts_the_text_that_the_model_reads():
    assert run("x" * RESULT_LIMIT).cut == 0 and run("x" * (RESULT_LIMIT + 1)).cut == 51
    assert run(["x" * RESULT_LIMIT]).cut == 54


def test_what_is_no_list_of_tools_is_refused():
    lone = Tool("multiply", "", {}, max)
    with pytest.raises(TypeError, match=r"write \[multiply\]"):
        by_name(lone)
    with pytest.raises(TypeError, match="len is no tool yet"):
        by_name([len])


def test_the_limit_of_a_result_is_the_documented_one():
    assert RESULT_LIMIT == 8000


class Unspeakable(ToolError):
    def __str__(self):
        raise OSError("no words")


class Broken(dict):
    def items(self):
        raise KeyError("gone")


def test_an_error_without_words_is_still_a_result():
    def fail():
        """Fails."""
        raise Unspeakable
    result = run_call(Call("fail", {}), [tool(fail)])
    assert not result.ok and result.text == "Error: Unspeakable"


def test_a_value_that_cannot_be_read_is_the_tools_fault():
    with pytest.raises(ToolFault, match="returned a Broken"):
        run_call(Call("give", {}), [Tool("give", "", {}, lambda: Broken(a=1))])


@pytest.mark.parametrize("schema", [{"type": ["string", "null"]}, {"anyOf": []}, {"type": "number", "minimum": 0}])
def test_a_schema_that_would_go_unchecked_is_refused(schema):
    with pytest.raises(ValueError, match="strange: "):
        by_name([Tool("strange", "", {"type": "object", "properties": {"a": schema}})])


@pytest.mark.parametrize("parameters", [None, {"properties": None}])
def test_a_schema_that_is_none_is_refused(parameters):
    with pytest.raises(TypeError, match="strange: a schema is a dict"):
        by_name([Tool("strange", "", parameters)])
