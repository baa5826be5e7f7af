"""Tools: a Python function described to the model, a reply read for calls, each call checked, and only then run.

The model only suggests. What it wrote is text until it has passed every check here; whatever fails one is answered
with a sentence that the model can act on, and nothing runs.
"""
from __future__ import annotations

import copy
import inspect
import json
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from lib.chat import NO_TEXT
from lib.checks import check
from lib.reader import read
from lib.replies import Call, Reply
from lib.schema import check_schema, kind_of, type_schema

RESULT_LIMIT = 8000  # characters of a result that the model gets to read


class ToolError(Exception):
    """A tool raises it to say that it failed; the model reads the text, `codes` are for the record."""

    def __init__(self, *words: object, codes: tuple[str, ...] = ()):
        super().__init__(*words)
        self.codes = codes


class ToolFault(Exception):
    """The program around a tool is broken: a fault for its programmer to mend, which no model can act on."""


# --- from a function to its description -------------------------------------

@dataclass(frozen=True)
class Tool:
    """A function with the description that the model reads; `needs_approval` keeps it from running unasked."""
    name: str
    description: str
    parameters: dict  # a JSON Schema
    function: Callable | None = None
    needs_approval: bool = False

    @property
    def schema(self) -> dict:
        """The description as chat templates take it."""
        described = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": described}

    @property
    def usage(self) -> str:
        """One line that says how to call it, such as `add(a: number, b: number)`."""
        required = self.parameters.get("required", ())
        named = self.parameters.get("properties", {}).items()
        inner = [f"{name}{'' if name in required else '?'}: {kind_of(schema)}" for name, schema in named]
        return f"{self.name}({', '.join(inner)})"

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def tool(function: Callable | None = None, *, needs_approval: bool = False) -> Tool | Callable:
    """Decorator: makes a Tool of a function with typed parameters and a docstring, which becomes the description.

    Parameters are str, float, int, bool, dict, list, list[…] of these or Literal["…"]; those with a default are
    optional. Raises TypeError for anything else, ValueError without a docstring.
    """
    if function is None:
        return lambda given: tool(given, needs_approval=needs_approval)
    _check_function(function)
    description = inspect.getdoc(function)
    hints, parameters = typing.get_type_hints(function), inspect.signature(function).parameters.values()
    properties = {parameter.name: _parameter_schema(function, parameter, hints) for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return Tool(function.__name__, description, {"type": "object", "properties": properties, "required": required},
                function, needs_approval)


def _check_function(function: Callable) -> None:
    """TypeError for what is no plain function with one result, ValueError without a name or docstring."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if not inspect.isfunction(function) or any(is_kind(function) for is_kind in kinds):
        raise TypeError(f"{getattr(function, '__name__', function)} is no plain function: write one with def that "
                        "returns its result")
    if not inspect.getdoc(function) or not function.__name__.isidentifier():
        raise ValueError(f"{function.__name__} needs a name and a docstring: the model reads them to decide when to "
                         "call")


def _parameter_schema(function: Callable, parameter: inspect.Parameter, hints: dict) -> dict:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or parameter.name not in hints:
        raise TypeError(f"{function.__name__}: parameter {parameter} needs a name and a type, such as a: float")
    try:
        return type_schema(hints[parameter.name])
    except TypeError as error:
        raise TypeError(f"{function.__name__}: parameter {parameter.name}: {error}") from None


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools under their names; ValueError when two share one."""
    if isinstance(tools, Tool):
        raise TypeError(f"tools are a list: write [{tools.name}], or ({tools.name},) with its comma")
    tools = list(tools.values() if isinstance(tools, dict) else tools)
    if strange := [item for item in tools if not isinstance(item, Tool)]:
        raise TypeError(f"{getattr(strange[0], '__name__', strange[0])} is no tool yet: put @tool above its def")
    for item in tools:
        check_schema(item.parameters, item.name)
    named = {tool.name: tool for tool in tools}
    if len(named) < len(tools):
        raise ValueError(f"two tools share a name: {', '.join(sorted(tool.name for tool in tools))}")
    return named


# --- from a reply to calls that may run -------------------------------------

def parse_reply(text: str, tools: Iterable[Tool], policy: str = "strict", truncated: bool = False) -> Reply:
    """What a model's reply asks for: every candidate call with its verdict, or an answer; never raises for a reply.

    `policy` is 'strict' (calls in tags only) or 'lenient' (also when the whole reply is a call as bare or fenced
    JSON); `truncated` says that the reply hit the token limit.
    """
    if policy not in ("strict", "lenient"):
        raise ValueError(f"the policy is 'strict' or 'lenient', not {policy!r}")
    named = by_name(tools)
    return read(text, lambda value: check(value, named), policy == "lenient", truncated)


# --- running ----------------------------------------------------------------

@dataclass(frozen=True)
class Result:
    """What came of one call: the text that the model reads next, and whether it is a result or a refusal."""
    call: Call | None
    ok: bool
    text: str
    cut: int = 0           # characters left out of the text
    seconds: float = 0.0
    ran: bool = True             # False: refused, the function was never called
    codes: tuple[str, ...] = ()  # why it was refused, or failed


def run_call(call: Call, tools: Iterable[Tool], approve: Callable[[Call], bool] | None = None,
             limit: int = RESULT_LIMIT) -> Result:
    """Check the call once more and run it: whatever the tool does becomes a Result, its exceptions too.

    A tool that needs approval runs only if `approve(call)` is True. Raises ToolFault when the program around the
    tool is broken: it does not take its own arguments, or returns what JSON cannot hold.
    """
    named = by_name(tools)
    codes, sentence, checked = check({"name": call.name, "arguments": call.arguments}, named)
    if sentence:
        return refusal(sentence, codes, call)
    tool = named[call.name]
    if tool.needs_approval and not _approved(call, approve):
        return refusal(f"{call.name} needs a person's approval, which was not given; it was not run", (), call)
    start = perf_counter()
    ok, text, codes = _outcome(call.name, tool.function, checked.arguments)  # a copy: the tool may change it
    return Result(call, ok, *shorten(NO_TEXT.sub("\ufffd", text), limit), perf_counter() - start, codes=codes)


def _outcome(name: str, function: Callable, arguments: dict) -> tuple[bool, str, tuple[str, ...]]:
    """(ok, text, codes) of running the function: what it returns, or in words how it failed."""
    try:
        inspect.signature(function).bind(**arguments)
    except (TypeError, ValueError) as error:
        raise ToolFault(f"{name} does not take the arguments of its own description: {error}") from error
    try:
        value = function(**arguments)
    except ToolError as error:
        return False, f"Error: {_in_words(error).removeprefix('ToolError: ')}", error.codes
    except (Exception, SystemExit) as error:
        return False, f"Error: {name} failed: {_in_words(error)}", ()
    return *_written(name, value), ()


def _in_words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # there is no limit to what can go wrong
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def refusal(sentence: str, codes: tuple[str, ...] = (), call: Call | None = None) -> Result:
    """The Result of a call that was not run: an observation that the model can act on."""
    text = NO_TEXT.sub("\ufffd", f"Error: {sentence}.")
    return Result(call, False, *shorten(text, RESULT_LIMIT), ran=False, codes=codes)


def _approved(call: Call, approve: Callable[[Call], bool] | None) -> bool:
    answer = approve(copy.deepcopy(call)) if approve else False
    if not isinstance(answer, bool):
        raise ToolFault(f"approval is True or False, not {answer!r}")
    return answer


def _written(name: str, value) -> tuple[bool, str]:
    """(ok, text) of a tool's return value: a text as it is, everything else as JSON with its letters readable."""
    if isinstance(value, str):
        return True, value
    try:
        return True, json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        if "Circular" in str(error):
            raise ToolFault(f"{name} returned a value that contains itself") from error
        return False, f"Error: the result of {name} is too large or not a number, so it cannot be written."
    except Exception as error:
        raise ToolFault(f"{name} returned a {type(value).__name__}, which is no JSON: {_in_words(error)}") from error


def shorten(text: str, limit: int) -> tuple[str, int]:
    """(text of at most `limit` characters, how many were left out); a cut shows in the text."""
    if limit < 100:
        raise ValueError(f"a result needs a limit of at least 100 characters, not {limit}")
    left_out = max(0, len(text) - (limit - 50)) if len(text) > limit else 0
    return (f"{text[:limit - 50]} … [{left_out:,} characters left out]", left_out) if left_out else (text, 0)
