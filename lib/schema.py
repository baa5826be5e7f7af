"""A JSON Schema made from a Python type, and a value held against one: all that is wrong with it, in sentences."""
from __future__ import annotations

import json
import typing
from collections.abc import Iterable

JSON_TYPES = {str: "string", float: "number", int: "integer", bool: "boolean", dict: "object", list: "array"}
PYTHON_TYPES = {"number": (int, float), **{name: kind for kind, name in JSON_TYPES.items() if kind is not float}}

KNOWN_KEYS = {"type", "properties", "required", "additionalProperties", "items", "enum", "description", "title"}


def type_schema(hint) -> dict:
    """The JSON Schema of a Python type; TypeError for one that JSON does not have."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in JSON_TYPES:
        return {"type": JSON_TYPES[hint]}
    if origin is list and inner:
        return {"type": "array", "items": type_schema(inner[0])}
    if origin is typing.Literal and all(isinstance(value, str) for value in inner):
        return {"type": "string", "enum": list(inner)}
    raise TypeError(f"{hint!r} is none of str, float, int, bool, dict, list, list[…], Literal['…'] "
                    "(an optional one has a default instead: limit: int = 3)")


def check_schema(schema, name: str) -> None:
    """Raises TypeError or ValueError for a schema that uses what is not checked here; `name` is the tool's."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties", {}), dict):
        raise TypeError(f"{name}: a schema is a dict, and so are its properties, not {schema!r}")
    if strange := schema.keys() - KNOWN_KEYS:
        raise ValueError(f"{name}: the schema uses {', '.join(sorted(strange))}, which would go unchecked")
    if not isinstance(schema.get("type", "object"), str):
        raise ValueError(f"{name}: a schema has one type, not {schema['type']!r}")
    for inner in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        check_schema(inner, name)


def schema_faults(value, schema: dict, place: str = "") -> Iterable[tuple[str, str]]:
    """(code, sentence) for everything in `value` that `schema` does not allow."""
    if not fits(value, schema):
        yield "wrong_type", f"{place or 'the value'} must be {kind_of(schema)}, not {short(value)}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from schema_faults(item, schema.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, dict) and "properties" in schema:
        known, inside = schema["properties"], f"{place}." if place else ""
        for name in schema.get("required", ()):
            if name not in value:
                yield "missing_argument", f"{inside}{name} ({kind_of(known.get(name, {}))}) is missing"
        for name, item in value.items():
            if name in known:
                yield from schema_faults(item, known[name], inside + name)
            else:
                yield "extra_argument", f"{inside}{short(name)} is not one of the arguments"


def fits(value, schema: dict) -> bool:
    """Whether a value has the schema's type and is one of its allowed values; nothing is ever converted to fit."""
    kind = schema.get("type")
    if kind in ("number", "integer") and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, PYTHON_TYPES.get(kind, object)) and value in schema.get("enum", [value])


def kind_of(schema: dict) -> str:
    """What a schema asks for, in words: its type, or its allowed values."""
    return " or ".join(map(short, schema["enum"])) if "enum" in schema else schema.get("type", "anything")


def short(value) -> str:
    """A value as JSON, cut to 60 characters: what a model wrote is quoted back, but not at any length."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def settle(value, schema: dict):
    """A value with 3.0 as 3 where the schema asks for a whole number."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {name: settle(item, known.get(name, {})) for name, item in value.items()}
    if isinstance(value, list):
        return [settle(item, schema.get("items", {})) for item in value]
    whole = isinstance(value, float) and schema.get("type") == "integer" and value.is_integer()
    return int(value) if whole else value
