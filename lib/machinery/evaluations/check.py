"""How a row computed again differs from the committed one: first the tokens, id by id, then all the rest."""
from __future__ import annotations

import random
from collections.abc import Iterable

from lib.machinery.ledger import NEAR_TIE, first_difference

UNCOMPARED = ("made_from", "gaps")  # a gap moves in its fifth digit from one processor to another


def pick(items: list, count: int) -> list:
    """`count` items chosen at random (all if there are fewer), in their order."""
    places = random.sample(range(len(items)), min(count, len(items)))
    return [items[place] for place in sorted(places)]


def difference(old: dict, new: dict) -> str:
    """What is different in a row computed again, in words; empty if nothing is."""
    if "episode" in old and "episode" in new:
        for number, turns in enumerate(zip(old["episode"]["turns"], new["episode"]["turns"], strict=False), start=1):
            if says := _tokens(number, *turns):
                return says
    if says := next(filter(None, map(_reply, _replies(old), _replies(new))), ""):
        return says
    place, before, after = next(iter(_values(old, new, "")), ("", None, None))
    return f"{place} was {_short(before)} and is {_short(after)} now" if place else ""


def _replies(row: dict) -> list[dict]:
    """The single replies of a row, if it keeps any: itself, or a list of them."""
    return [row] if "ids" in row else [each for each in row.get("replies", ()) if "ids" in each]


def _reply(old: dict, new: dict) -> str:
    """How the tokens of a single reply differ, counted from 1."""
    if old["ids"] == new["ids"]:
        return ""
    return _differs(first_difference(old["ids"], new["ids"]), old["gaps"], new["gaps"], "the reply")


def _tokens(number: int, old: dict, new: dict) -> str:
    """How the tokens of one turn differ; a reply's are counted from 1."""
    before, after = ([span[0] for span in turn["spans"]] for turn in (old, new))
    if before == after:
        return ""
    token = first_difference(before, after) - (len(before) - old["reply_tokens"])
    if token < 1:
        return f"the text before reply {number} is another"
    return _differs(token, old["gaps"], new["gaps"], f"reply {number}")


def _differs(token: int, old: list[float], new: list[float], what: str) -> str:
    """That a reply differs from a token on, or may do so because of a near tie there."""
    gap = min((gaps[token - 1] for gaps in (old, new) if len(gaps) >= token), default=float("inf"))
    if gap < NEAR_TIE:
        return f"near tie at token {token} of {what} (gap {gap:.4f})"
    return f"{what} differs from token {token} on (gap {gap:.4f})"


def _values(old: object, new: object, place: str) -> Iterable[tuple[str, object, object]]:
    """(place, old, new) of every value that differs, deep in dicts and lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            if name not in UNCOMPARED:
                yield from _values(old.get(name), new.get(name), f"{place}.{name}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True), start=1):
            yield from _values(*pair, f"{place}[{number}]")
    elif old != new and not (isinstance(old, float) and isinstance(new, float) and abs(old - new) < NEAR_TIE):
        yield place, old, new  # a logarithm of a probability moves in its fourth digit


def _short(value: object, width: int = 60) -> str:
    """A value as messages show it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return repr(value) if len(repr(value)) <= width else repr(value)[:width] + "…"
