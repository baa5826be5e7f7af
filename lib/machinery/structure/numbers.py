"""Numbers in a text, in digits and in words, with their values and places."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

_LETTER = r"[^\W\d_]"
_DIGITS = re.compile(
    rf"(?P<name>(?<![\w.\-]){_LETTER}[\w.\-]*\d[\w.\-]*)"  # a name with digits in it is no number: BM25, top-1
    r"|(?P<sign>(?<![\w)\]%.,/+*-])[-−])?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: 0\d\d)+(?!\d)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"(?P<scale>[kM](?!\w)| (?:hundred|thousand|million|billion)\b)?")
_DIGIT = re.compile(r"\d")
_SCALES = {"k": 10 ** 3, "M": 10 ** 6, "hundred": 100, "thousand": 10 ** 3, "million": 10 ** 6, "billion": 10 ** 9}
_UNITS = dict(zip("none one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                  "sixteen seventeen eighteen nineteen".split(), range(20), strict=True))
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_SINGLE = rf"(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(list(_UNITS)[1:10])}))?|{'|'.join(_UNITS)}"
_LARGE = "hundred|thousand|million|billion|dozen"
_WORDS = re.compile(rf"(?<![\w-])(?:(?:(?:an?|half an?|{_SINGLE}) (?:{_LARGE})(?: (?:and )?(?={_SINGLE}))?)+"
                    rf"(?:{_SINGLE})?|{_SINGLE})(?![\w]|-(?!{_LETTER}))", re.I)
_FOLD = re.compile(rf"\b((?:{'|'.join(list(_UNITS)[3:])}|{'|'.join(_TENS)}|(?:an? )?hundred|\d+)(?:fold))\b", re.I)


class Number(NamedTuple):
    """A number in a text: from where to where it goes, its value, and whether it is written in words."""

    start: int
    end: int
    value: Decimal
    in_words: bool = False


def letters(text: str) -> str:
    """`text` in plain letters: digits of any script as 0 to 9, no invisible signs, `,` as the only thousands mark."""
    text = re.sub(r"(?<=\d)[\u00a0\u2009\u202f'’](?=\d{3}(?!\d))", ",", text)
    if not text.isascii():
        text = re.sub(r"([\u00b2\u00b3\u00b9\u2070-\u2079]+)", r" ^\1", re.sub(r"([¼-¾⅐-⅞])", r" \1", text))
        text = unicodedata.normalize("NFKC", text).translate(_PLAIN)
    return _FOLD.sub(lambda found: f"{found[1][:-4]} fold", text)


class _Plain(dict):
    """For `str.translate`, filled as needed: foreign digits and the fraction's bar are spelt plainly, signs go."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)
        self[code] = str(unicodedata.digit(sign)) if kind == "Nd" else "" if kind == "Cf" else sign
        return self[code]


_PLAIN = _Plain({0x2044: "/"})


def numbers(text: str) -> list[Number]:
    """The numbers in `text`, in order."""
    found = [*in_words(text), *(in_digits(text) if _DIGIT.search(text) else ())]
    return sorted(found)


def in_digits(text: str) -> Iterator[Number]:
    """The numbers that are written in digits; a letter or word of scale behind one counts: 43k, 2 million."""
    for found in _DIGITS.finditer(text):
        if found["number"]:
            value = _value(found["number"]) * _SCALES.get((found["scale"] or "").strip(), 1)
            yield Number(found.start("sign") if found["sign"] else found.start(), found.end(),
                         (-value if found["sign"] else value).normalize())


def _value(digits: str) -> Decimal:
    """43.000 is read as 43,000, as most of the world writes it: three noughts are no digits of a measurement."""
    if re.fullmatch(r"[1-9]\d{0,2}\.000", digits):
        digits = digits.replace(".", "")
    return Decimal(re.sub("[, ]", "", digits))


def in_words(text: str) -> Iterator[Number]:
    """The numbers that are written in words: three, twenty-four, a hundred and six, half a dozen; none is 0."""
    for found in _WORDS.finditer(text):
        yield Number(found.start(), found.end(), Decimal(_spoken(found.group().lower())).normalize(), True)


def _spoken(words: str) -> int:
    total, part = 0, 0
    for word in re.findall("[a-z]+", words.replace("half a dozen", "six")):
        if word == "hundred":
            part = (part or 1) * 100
        elif word == "dozen":
            part = (part or 1) * 12
        elif word in _SCALES:
            total, part = total + (part or 1) * _SCALES[word], 0
        else:
            part += _UNITS.get(word, 0) + _TENS.get(word, 0)
    return total + part
