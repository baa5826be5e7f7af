"""A decoded value checked as a call: is it an object, has it a name, is there such a tool, do the arguments fit."""
from __future__ import annotations

from lib.replies import SENTENCES, Call
from lib.schema import schema_faults, settle, short
from lib.strict_json import decode_whole


def check(value, tools: dict) -> tuple[tuple[str, ...], str, Call | None]:
    """(codes, sentence for the model, call) of one decoded JSON value; the call runs if the sentence is empty."""
    if not isinstance(value, dict):
        return ("not_object",), "a call must be a JSON object with name and arguments", None
    name, listed = value.get("name"), ", ".join(tools) or "none"
    if not isinstance(name, str) or not name.strip():
        return ("missing_name",), f"the call has no text under 'name'; the tools are: {listed}", None
    arguments, notes = _arguments(value)
    attempt = Call(name, arguments) if isinstance(arguments, dict) else None
    if name not in tools:
        return (*notes, "unknown_tool"), f"there is no tool {short(name)}; the tools are: {listed}", attempt
    return _check_arguments(name, arguments, notes, tools[name])


def _check_arguments(name: str, arguments, notes: list[str], tool) -> tuple[tuple[str, ...], str, Call | None]:
    usage = f"it is called as {tool.usage}"
    if broken := [SENTENCES[note] for note in notes if note in SENTENCES]:
        return tuple(notes), f"in the arguments of {name} {broken[0]}; {usage}", None
    if not isinstance(arguments, dict):
        return (*notes, "arguments_not_object"), f"the arguments of {name} must be a JSON object; {usage}", None
    faults = list(schema_faults(arguments, tool.parameters))
    codes = dict.fromkeys([*notes, *(code for code, _ in faults)])
    sentence = "; ".join([*(text for _, text in faults), usage]) if faults else ""
    return tuple(codes), sentence, Call(name, settle(arguments, tool.parameters))


def _arguments(call: dict) -> tuple[object, list[str]]:
    """(arguments, codes) of a call: nothing counts as {}, and a text that holds an object is decoded once."""
    alias = call.get("arguments") is None and "parameters" in call
    notes, arguments = ["alias_key"] * alias, call.get("parameters" if alias else "arguments")
    if isinstance(arguments, str):
        value, code = decode_whole(arguments)
        if isinstance(value, dict) and code != "bad_json":
            return value, [*notes, "decoded_string_arguments", *filter(None, [code])]
    return {} if arguments is None else arguments, notes
