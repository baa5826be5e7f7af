"""JSON as its standard has it: no NaN, no Infinity, no key given twice, no number too large, no endless nesting.

Python's own reader lets all of these pass: as nan, as inf, as the last value, or as an exception further on.
"""
from __future__ import annotations

import json
import math
import re

SPACE = re.compile(r"\s*")
MAX_DEPTH = 50  # levels of nested JSON; deeper ones are nobody's arguments


def decode(text: str, start: int = 0) -> tuple[object, int, str]:
    """(value, end, code) of the JSON value that begins at `start`; code is '' when nothing is wrong with it."""
    codes: list[str] = []
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: _object(pairs, codes),
                               parse_constant=lambda _: codes.append("non_finite"),
                               parse_float=lambda digits: _number(float, digits, codes),
                               parse_int=lambda digits: _number(int, digits, codes))
    try:
        value, end = decoder.raw_decode(text, SPACE.match(text, start).end())
    except json.JSONDecodeError as error:
        whole = len(text.rstrip())
        return None, whole if error.msg.startswith("Unterminated") else error.pos, "bad_json"
    except RecursionError:
        return None, start, "bad_json"
    if not _is_plain(value):
        return None, end, "bad_json"
    return value, end, codes[0] if codes else ""


def decode_whole(text: str) -> tuple[object, str]:
    """(value, code) of a text that must be one JSON value and nothing else."""
    value, end, code = decode(text)
    return value, code or ("bad_json" if text[end:].strip() else "")


def _object(pairs: list[tuple[str, object]], codes: list[str]) -> dict:
    if len(dict(pairs)) < len(pairs):
        codes.append("duplicate_key")
    return dict(pairs)


def _number(kind: type, digits: str, codes: list[str]) -> float | int | None:
    try:
        value = kind(digits)
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        value = math.inf
    if value in (math.inf, -math.inf):
        codes.append("non_finite")
    return value


def _is_plain(value) -> bool:
    """Whether a decoded value is nested within reason and holds no half characters."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        texts = [item for item in level if isinstance(item, str)]
        if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
            return False
        level = [inner for item in level for inner in _inside(item)]
    return not level


def _inside(value) -> list:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []
