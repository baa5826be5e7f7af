"""Figures: the numbers in a text that say something, with the words that say of what.

In digits every number is a figure, unless it only names something (lesson 03, section 4.1, Python 3.12). In words a
number is one in `N of M`, `N per cent`, `N times`, and from two up before a noun of measurement (three tokens); parts
of a whole (half of, two thirds of) and `twice as` are figures too. Two ways, one idea and the third turn are prose.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from lib.machinery.structure.numbers import Number, numbers

_LETTER = r"[^\W\d_]"
WORD = re.compile(rf"{_LETTER}+")
_NEXT = re.compile(rf"[ -]?(?P<word>{_LETTER}+)")
_OF = re.compile(r" (?:out )?of (?:(?:the|its|their|these|those|all|our|every|my|your) )*| ?/ ?| in (?:every )?")
_RANGE = re.compile(r" ?(?:to|or|and|-|–|—) ?", re.I)
_PERCENT = re.compile(r" ?(?:%|per ?cent\b)", re.I)
_PER_MILLE = re.compile(r" ?(?:‰|per ?mille\b)", re.I)
_FACTOR = re.compile(r"\bfactors? of (?:about |almost |nearly |over )?$|(?<![\d)\w] )(?<![\d)\w])× ?$", re.I)
_TIMES = re.compile(r"[ -]?(?:times|fold|×|x)(?!\w)(?! ?[\d(*$])", re.I)
_COMPARES = re.compile(r" (?:as|more|less|fewer|over|the|\w+er)\b", re.I)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_PART = re.compile(r"\b(?:(?P<half>half)|(?P<count>an?|one|two|three|four|five|[1-9])[ -]"
                   r"(?P<part>third|quarter|fifth|sixth|eighth|tenth)s?) (?:of|as|the|its|their)\b"
                   r"|\btwice (?:as\b|the (?=[a-z]))"
                   r"|\b(?P<grows>doubl(?:es|ed|ing)|tripl(?:es?|ed|ing)|quadrupl(?:es?|ed|ing))\b", re.I)
_PARTS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_REFERENCE = re.compile(r"\b(?:notebook|lesson|figure|table|section|chapter|part|exercise|python|pytorch|torch|annex"
                        r"|transformers|page|version|no\.|v)s? ?$|[@#]$", re.I)
_POSITION = re.compile(r"\b(step|token|turn|rank|line|question|cell|position|place|round|row|attempt|request|passage"
                       r"|layer|call|episode)s? (?:number |no\. )?$", re.I)
_NOTEBOOK = re.compile(r"0[1-9]")
MEASURES = frozenset(
    "token second minute hour millisecond question passage call turn episode cell byte kilobyte megabyte gigabyte "
    "character digit parameter operation dollar cent row request answer reply pass run instruction fault miss hit "
    "step point generation retry attempt event piece trial".split())
NO_NOUN = frozenset(
    "a about after against all also among an and are as at be because been before below between both but by can "
    "costs do does down each else either ever every for from gave gives had has have here if in instead into is it "
    "its just less like may means more most much must need needs no nor not now of off on once one only onto or out "
    "over per plus rather see since so still than that the their them then there these they this those though "
    "through times to together too under until up upon very was we were when where whereas which while who will "
    "with without would x yet you".split())


@dataclass(frozen=True)
class Figure:
    """A number of a text with what it is a number of.

    `nouns`: at most three words that follow directly, or the word of a place before it (step 43). `kind`: 'count',
    'share' (N of M; `whole` is the M), 'percent', 'times' (so many times as much), 'times done', 'part' (half of; the
    value is the quotient), 'ordinal'.
    """
    value: Decimal
    text: str
    nouns: tuple[str, ...] = ()
    kind: str = "count"
    whole: Decimal | None = None
    in_words: bool = False

    def __str__(self) -> str:
        is_place = self.nouns and self.text.startswith(self.nouns[0])
        return self.text if is_place else " ".join((self.text, *self.nouns))


def figures(text: str, found: list[Number] | None = None) -> list[Figure]:
    """The figures in one paragraph, heading or table cell of plain text, in order; `found`: its numbers, if known."""
    found = numbers(text) if found is None else found
    parts = list(_PART.finditer(text))
    free = [number for number in found if not any(part.start() <= number.start < part.end() for part in parts)]
    placed = [(part.start(), figure) for part in parts if (figure := _part(part, text))]
    place = 0
    while place < len(free):
        number, after = free[place], free[place + 1:place + 2]
        figure = _share(text, number, *after) if after else None
        if figure:
            place += 1
        figure = figure or _single(text, number, after)
        placed += [(number.start, figure)] if figure else []
        place += 1
    return [figure for _, figure in sorted(placed, key=lambda one: one[0])]


def _part(found: re.Match, text: str) -> Figure | None:
    """Half of, two thirds of; doubles; twice as, and twice the tokens, but not twice the word."""
    words = found.group().strip()
    if found["grows"]:
        return Figure(Decimal("dtq".index(words[0].lower()) + 2), words, kind="times", in_words=True)
    if words.lower().startswith("twice"):
        measured = words.endswith("as") or MEASURES & set(map(stem, _nouns(text, found.end() - 1)))
        return Figure(Decimal(2), words, kind="times", in_words=True) if measured else None
    words = words.rsplit(" ", 1)[0]
    if found["half"]:
        return Figure(Decimal("0.5"), words, kind="part", in_words=True)
    count = found["count"].lower()
    return Figure(Decimal(_COUNTS.get(count) or int(count)) / _PARTS[found["part"].lower()], words, kind="part",
                  in_words=True)


def _share(text: str, number: Number, whole: Number) -> Figure | None:
    """N of M; 'one of the three' is no count but a way to name one."""
    if not _OF.fullmatch(text[number.end:whole.start]) or whole.value < 2 or is_reference(text, whole):
        return None
    if number.in_words and number.value == 1 and " in " not in text[number.end:whole.start]:
        return None
    return Figure(number.value, text[number.start:whole.end], _nouns(text, whole.end), "share", whole.value,
                  number.in_words)


def _single(text: str, number: Number, after: list[Number]) -> Figure | None:
    written = text[number.start:number.end]
    if number.in_words and number.value < 2:
        return None
    if found := _PERCENT.match(text, number.end):
        return Figure(number.value, written + found.group(), kind="percent", in_words=number.in_words)
    if found := _PER_MILLE.match(text, number.end):
        return Figure(number.value / 10, written + found.group(), kind="percent", in_words=number.in_words)
    if _FACTOR.search(text[:number.start]):
        return Figure(number.value, written, kind="times", in_words=number.in_words)
    if found := _TIMES.match(text, number.end):
        done = found.group().strip().lower() == "times" and not _COMPARES.match(text, found.end())
        return Figure(number.value, written + found.group(), kind="times done" if done else "times",
                      in_words=number.in_words)
    nouns = _nouns_of(text, number, after)
    if number.in_words:
        return Figure(number.value, written, nouns, in_words=True) if MEASURES & set(map(stem, nouns)) else None
    if is_reference(text, number):
        return None
    if found := _ORDINAL.match(text, number.end):
        return Figure(number.value, written + found.group(), _nouns(text, found.end()), "ordinal")
    if not nouns and (found := _POSITION.search(text[:number.start])):
        return Figure(number.value, found.group() + written, (found[1],))
    return Figure(number.value, written, nouns)


def _nouns_of(text: str, number: Number, after: list[Number]) -> tuple[str, ...]:
    """The words behind a number, or behind the range that it opens: of 3 in '3 to 5 tokens' it is the tokens."""
    nouns = _nouns(text, number.end)
    if not nouns and after and _RANGE.fullmatch(text[number.end:after[0].start]):
        return _nouns(text, after[0].end)
    return nouns


def is_reference(text: str, number: Number) -> bool:
    """Whether the number only names something: a notebook, a section, a version."""
    written, before = text[number.start:number.end], text[max(0, number.start - 14):number.start]
    return bool(_REFERENCE.search(before) or _NOTEBOOK.fullmatch(written))


def _nouns(text: str, end: int) -> tuple[str, ...]:
    nouns: list[str] = []
    while len(nouns) < 3 and (found := _NEXT.match(text, end)) and found["word"].lower() not in NO_NOUN:
        nouns.append(found["word"])
        end = found.end()
    return tuple(nouns)


def stem(word: str) -> str:
    """A word without its plural's s, in small letters."""
    word = word.lower()
    return word[:-1] if len(word) > 2 and word.endswith("s") else word


def stems(text: str) -> frozenset[str]:
    """All words of a text, as `stem` has them."""
    return frozenset(map(stem, WORD.findall(text)))
