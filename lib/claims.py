"""Claims: which of the numbers in a reply are meant as its answer.

A worked line (256 + 37 = 293) claims its result and not its operands, whether it is written in signs or in words.
Beside an answer some numbers are no second one: what it refers to (passage 3), what it is a part of (7 of 12), and
what it repeats from the question.
"""
from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from lib.quantities import UNITS, Quantity, numeral, quantities

_EQUALS = re.compile(r"(?<![<>!])(?:={1,3}(?!>)|≈|→|->|=>)")
_OPERATOR = re.compile(r"[\s()]*(?:[-+*/×x·÷:−]|times|plus|minus|multiplied by|divided by|over|nhân(?: với)?|"
                       r"cộng(?: với)?|trừ(?: đi)?|chia(?: cho)?)[\s()]*", re.IGNORECASE)
_IS = re.compile(r"[\s()]*(?:[=≈→]|is|equals|is equal to|makes|gives|bằng|là|được)(?!\w)", re.IGNORECASE)
_PAIR = re.compile(r"(?<!\w)(?:sum|product|difference|quotient|tổng|tích|hiệu|thương)\s(?:of|between|của|giữa)\s$",
                   re.IGNORECASE)


def claimed(line: str, language: str = "en") -> list[Quantity]:
    """The numbers that a line of a reply claims: results, no operands; labels and words where nothing else is."""
    found = _results(quantities(line, language), line)
    return [each for each in found if not each.label] or found or number_words(line)


def _results(found: list[Quantity], line: str) -> list[Quantity]:
    """The numbers after the last equals sign (before it, if it reads 12 = 3 * 4), without operands in words."""
    ends = [match.end() for match in _EQUALS.finditer(line)]
    if ends and (after := [each for each in found if each.start >= ends[-1]]):
        before = [each for each in found if each.start < ends[-1] and each.start >= [0, *ends][-2]]
        is_turned = len(before) == 1 < len(after) and _OPERATOR.fullmatch(line[after[0].end:after[1].start])
        found = before if is_turned else after
    operands = _operands(found, line)
    return [each for each in found if each not in operands]


def _operands(found: list[Quantity], line: str) -> set[Quantity]:
    """The numbers of a calculation in words whose result follows: of '12 times 3 is 36', the 12 and the 3."""
    operands, run = set(), []
    for one, other in pairwise(found):
        gap = line[one.end:other.start]
        is_pair = re.fullmatch(r"\s(?:and|và)\s", gap) and _PAIR.search(line[max(0, one.start - 20):one.start])
        if _OPERATOR.fullmatch(gap) or is_pair:
            run += [one, other]
        elif run and _IS.match(gap):
            operands.update(run)
            run = []
        else:
            run = []
    return operands


_ENGLISH = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty")
_VIETNAMESE = "_ một hai ba bốn năm sáu bảy tám chín mười"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_PARTS = "hundred thousand million billion half point dozen mươi mốt lăm trăm nghìn triệu"
_WORDS = {word: value for words in (_ENGLISH, _VIETNAMESE) for value, word in enumerate(words.split())}
_WORDS |= {word: value * 10 for value, word in enumerate(_TENS.split(), start=2)}
_ONLY_ALONE = {"one", "một", "năm", "ba", "chín"}  # they mean something else, unless a counted thing follows
_COUNTED = re.compile(  # Vietnamese words for what is counted
    r"\s(?:bản|bit|byte|bước|câu|chữ|con|dòng|đoạn|đầu|giá trị|giây|giờ|khách|kênh|lần|lớp|lượt|mẩu|mức|ngày|người|"
    r"phần|phút|số|tầng|tháng|tiếng|token|trang|từ|vạch|vector)(?!\w)", re.IGNORECASE)
_ANY = rf"(?:{'|'.join([*_WORDS, *_PARTS.split()])})(?!\w)"
_ROW = re.compile(rf"(?<!\w){_ANY}(?:[\s-](?:and\s)?{_ANY})*", re.IGNORECASE)


def number_words(line: str) -> list[Quantity]:
    """The numbers in words, zero to ninety-nine (in Vietnamese to ten); a longer row is never read in part."""
    found = []
    for match in _ROW.finditer(line):
        words = re.split(r"[\s-]", match[0].casefold())
        is_alone = not re.search(r"\w", line[:match.start()]) and not re.search(r"\w", line[match.end():])
        is_pair = len(words) == 2 and words[0] in _TENS.split() and words[1] in _ENGLISH.split()[1:10]
        counts = words[0] in _ONLY_ALONE - {"one", "một"} and _COUNTED.match(line, match.end())
        is_one = len(words) == 1 and words[0] in _WORDS and (is_alone or words[0] not in _ONLY_ALONE or counts)
        if is_one or is_pair:
            found.append(Quantity(Fraction(sum(map(_WORDS.get, words))), None, *match.span()))
    return found


# --- numbers beside an answer -------------------------------------------------

_LABEL = r"[1-9][0-9]{0,2}(?:\.[1-9][0-9]?){0,2}(?![\w%]|[.,][0-9])"
_NOUN = r"(?:passage|note|section|step|figure|fig\.|table|chapter|paragraph|page|line|source|document|item|part)"
_VI_NOUN = r"(?:đoạn|ghi\schú|mục|bước|hình|bảng|chương|trang|dòng|nguồn|tài\sliệu|bài|phần|câu|ví\sdụ)"
_REFERENCE = re.compile(rf"""(?<!\w)(?:
    (?:(?<!each\s)(?<!every\s)(?<!per\s){_NOUN}|(?<!mỗi\s)(?<!số\s){_VI_NOUN})
      \s(?:(?:number|no\.|số)\s|\#)?[(\[]?{_LABEL}
  | (?:{_NOUN}s|(?:các|những)\s{_VI_NOUN})\s{_LABEL}(?:,\s{_LABEL})*
      (?:,?\s(?:and|or|to|và|hoặc|đến|&)\s|\s?[-–]\s?){_LABEL}
  | ^\([1-9]\)\s | (?<=[^\W\d_]\s)\([1-9]\)(?=\s*(?:$|[.,;:])))""", re.VERBOSE | re.IGNORECASE)
_OF = (r"\s(?:out of|of|trong(?: (?:tổng )?số)?|trên(?: tổng số)?)\s"
       r"(?:(?:the|its|all|their|these|those|cả|tất cả|tổng cộng)\s){0,2}")
_TOTAL = re.compile(rf"(?:\s(?!(?:and|or|và|hoặc|hay)\s)[^\W\d_]+){{0,2}}{_OF}", re.IGNORECASE)
_WHOLE = re.compile(rf"(?:how many|bao nhiêu|mấy)(?:\s[^\W\d_]+)?{_OF}([0-9]+(?:[.,][0-9]{{3}})*)", re.IGNORECASE)
_PART = re.compile(r"(?<![\w.,/])([0-9]+)/([0-9]+(?:[.,][0-9]{3})*)(?![\w/]|[.,][0-9])")
_NEXT = re.compile(r"\W{0,3}(\w+)")
_JOINED = re.compile(r"\s*[-–,;/(]\s*|[%€₫]?[^\W\d_]*(?:\s[^\W\d_]+){0,4},?\s\(?"
                     r"(?:(?:or|hoặc|hay)(?:\s[^\W\d_]+){0,2}|and|to|và|đến|tới)\s[$€£]?", re.IGNORECASE)


def parts(line: str, question: str, language: str = "en") -> str:
    """The line with '7 of 12' where it reads 7/12 and the question asks how many of 12."""
    wholes = {numeral(whole, language) for whole in _WHOLE.findall(question)} - {None}
    return _PART.sub(lambda match: f"{match[1]} of {match[2]}" if numeral(match[2], language) in wholes else match[0],
                     line)


def asides(line: str, named: list[Quantity], right: set[Quantity], unit: str | None = None, question: str = "",
           language: str = "en") -> set[Quantity]:
    """Those of the numbers named that are no second answer beside the right ones, for which `unit` is asked.

    They are references, totals, and what repeats the question and is not joined to a right one.
    """
    referred = {place for match in _REFERENCE.finditer(line) for place in range(*match.span())}
    aside = {each for each in named if each.start in referred and each.unit not in UNITS.values()}
    joined = set()
    for one, other in pairwise(named):
        gap, is_alike = line[one.end:other.start], len({one.unit or unit, other.unit or unit} - {None}) < 2
        if is_alike and unit != "percent" and _TOTAL.fullmatch(gap) and (one.value or 0) <= (other.value or 0):
            aside.add(other)
        if is_alike and right & {one, other} and _JOINED.fullmatch(gap):
            joined |= {one, other}
    asked = [(each, _neighbours(question, each)) for each in quantities(question, language) + number_words(question)]
    return aside | {each for each in named if each not in joined and any(
        each.value == other.value is not None and len({each.unit, other.unit} - {None}) < 2
        and _neighbours(line, each) & words for other, words in asked)}


def _neighbours(text: str, number: Quantity) -> set[tuple[int, str]]:
    """The words before (0) and after (1) a number, but for a verb that any answer has."""
    found = re.search(r"(?<!\w)(?!is\b|là\b)(\w+)\W{1,3}$", text[:number.start][-40:]), _NEXT.match(text, number.end)
    return {(side, match[1].casefold()) for side, match in enumerate(found) if match}
