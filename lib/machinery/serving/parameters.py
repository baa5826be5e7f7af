"""The JSON Schema of a tool's arguments, as far as calls are checked against it; the rest is refused."""
from __future__ import annotations

from lib.schema import JSON_TYPES, KNOWN_KEYS


def is_texts(value) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


FORMS = {  # of each key: what it has to be, in words and as a test
    "type": ("one type of JSON", lambda value: isinstance(value, str) and value in JSON_TYPES.values()),
    "properties": ("an object", lambda value: isinstance(value, dict)),
    "required": ("a list of names", is_texts),
    "additionalProperties": ("true or false", lambda value: isinstance(value, bool)),
    "items": ("a schema", lambda value: isinstance(value, dict)),
    "enum": ("a list of values", lambda value: isinstance(value, list) and bool(value)),
    "description": ("a text", lambda value: isinstance(value, str)),
    "title": ("a text", lambda value: isinstance(value, str)),
}


def checked(schema: dict) -> dict:
    """The schema of a tool's arguments; ValueError for what is none, or would go unchecked."""
    check(schema)
    if schema.get("type", "object") != "object":
        raise ValueError("a tool's arguments are an object")
    return schema


def check(schema) -> None:
    """ValueError unless every key is known and every value has its form, at every level; nothing is quoted."""
    if not isinstance(schema, dict):
        raise ValueError("a schema is an object, and so is each of its properties")
    if schema.keys() - KNOWN_KEYS:
        raise ValueError(f"a schema with keys other than {', '.join(sorted(KNOWN_KEYS))} would go unchecked")
    for key in schema.keys() & FORMS.keys():
        words, has_form = FORMS[key]
        if not has_form(schema[key]):
            raise ValueError(f"in a schema, {key} is {words}")
    for inner in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        check(inner)
