"""Numbers in a sentence: which there are, what they are worth, and in which unit.

A numeral is read as the language writes it: 7,006,652 and 0.5 in English, 7.006.652 and 0,5 in Vietnamese. One that
the language cannot write is read as the other one writes it (two groups of three, a mark before two digits): nobody
can mean anything else. So 1.500 is 1.5 in English and 1500 in Vietnamese, and 0.69 is the same in both. Digits of
other scripts are the digits that they are. Names (Qwen2.5, UTF-8) are no numbers.
"""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

MARKS = {"en": (",", "."), "vi": (".", ",")}  # between groups of three, before decimals
LONGEST = 400  # characters of a numeral, and its largest power of ten; longer ones are not read
CITATION = re.compile(r"\[\s*[0-9]{1,40}(?:\s*[,;–-]\s*[0-9]{1,40})*\s*\]")

_BETWEEN = r"[.,'’_\u00a0\u202f\u2009]"
_NUMERAL = rf"(?:[0-9]{{1,3}}(?:[ ][0-9]{{3}}){{2,}}(?:[.,][0-9]+)?(?![0-9])|[0-9]+(?:{_BETWEEN}[0-9]+)*|\.[0-9]+)"
_POWER = r"(?:[eE](?P<e>[-+−]?[0-9]+)(?!\w)|\s?[x×·*]\s?10\s?\^\s?\(?(?P<ten>[-+−]?[0-9]+)\)?)"
_TOKEN = re.compile(rf"""
    (?P<name>[^\W\d_]\w*(?:-\w+|(?<=[0-9])\.[0-9]\w*)*|[0-9]+(?:-[^\W\d_]+){{2,}})
  | (?P<moment>[0-9]{{1,4}}(?P<dash>[/-])[0-9]{{1,2}}(?P=dash)[0-9]{{1,4}}(?![0-9])
             | [0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?![0-9]))
  | (?:(?P<whole>[0-9]+)\ (?=[0-9]+/[0-9]))?(?P<numeral>{_NUMERAL}){_POWER}?(?:/(?P<below>{_NUMERAL}))?
    (?P<odd>\s?\^\s?\(?[-+−]?[0-9]*|(?:[^\W\d_]+[0-9]\w*))?
""", re.VERBOSE)
_SIGN = re.compile(r"(\S?)\s*((?<!\w)(?:minus|negative|âm)\s|[-–]|−\s?)(?:[$€£¥₫]\s?)?$")


class Quantity(NamedTuple):
    """A number in a text: its value (None if it cannot be read), its unit, and where it stands.

    A label (a date, a version, 3rd, [1], the mark of a list) numbers something rather than saying how much.
    """
    value: Fraction | None
    unit: str | None
    start: int
    end: int
    label: bool = False
    scale: int = 1  # 1,000,000 where 'million' follows; it is part of the value


def quantities(text: str, language: str = "en") -> list[Quantity]:
    """The numbers of a text that `tidy` has made plain, in order; places are those in that text."""
    cited = {place for match in CITATION.finditer(text) for place in range(*match.span())}
    found = [each for match in _TOKEN.finditer(text) for each in _read(match, text, language)]
    return [each._replace(label=each.label or each.start in cited) for each in found]


def numeral(text: str, language: str = "en") -> Fraction | None:
    """The value of digits with marks, such as 1,234.5; None where neither language writes numbers so."""
    text, extra = re.subn(r"(?<=[0-9])[ '’_\u00a0\u202f\u2009](?=[0-9]{3}(?![0-9]))", "", text)
    if len(text) > LONGEST or not re.fullmatch("[0-9.,]+", text):
        return None
    for group, point in (MARKS[language], MARKS[language][::-1]):
        whole = rf"[0-9]+|[1-9][0-9]{{0,2}}(?:\{group}[0-9]{{3}})+"
        if re.fullmatch(rf"(?:{whole})(?:\{point}[0-9]+)?|\.[0-9]+", text):
            return Fraction(text if text[0] == "." else text.replace(group, "").replace(point, "."))
    return None


def _read(match: re.Match, text: str, language: str) -> Iterator[Quantity]:
    """What a token holds: nothing if it is a name, several numbers if it is a list without spaces (1,2,3)."""
    start, end = match.span()
    if match["moment"]:
        yield Quantity(None, None, start, end, label=True)
    elif match["numeral"]:
        value = _value(match, language)
        parts = match["numeral"].split(",")
        if value is None and len(parts) > 2 and all(part.isdecimal() and len(part) <= LONGEST for part in parts):
            yield from (Quantity(Fraction(part), None, start, end) for part in parts)
        else:
            yield _with_surroundings(value, match, text)


def _value(match: re.Match, language: str) -> Fraction | None:
    """The value of a numeral with its power of ten, of a/b or of a mixed number; without its sign."""
    value, power = numeral(match["numeral"], language), (match["e"] or match["ten"] or "0").replace("−", "-")
    odd = match["odd"] or ""
    if odd.strip().startswith("^") and value == 10:
        value, power, odd = Fraction(1), re.sub(r"[\s^(]", "", odd).replace("−", "-") or "x", ""
    if value is None or odd or not re.fullmatch("[-+]?[0-9]{1,3}", power) or abs(int(power)) > LONGEST:
        return None
    below = numeral(match["below"], language) if match["below"] else Fraction(1)
    whole = numeral(match["whole"], language) if match["whole"] else Fraction(0)
    return whole + value * Fraction(10) ** int(power) / below if below and whole is not None else None


def _with_surroundings(value: Fraction | None, match: re.Match, text: str) -> Quantity:
    """A number with what stands around it: sign, scale, unit, and the signs of a label."""
    start, end = match.span()
    before, after = text[max(0, start - 24):start], text[end:end + 60]
    scale, length = _scale(after)
    currency = _CURRENCY.search(before)
    unit = unit_named(currency[1] or currency[2]) if currency else _unit_after(after[length:])
    if value is not None:
        value += Fraction(1, 2) if re.match(r"\s+(?:and a half|rưỡi)(?!\w)", after[length:]) else 0
        value *= scale * (-1 if _is_negative(before) else 1)
    is_version = value is None and "." in match["numeral"]
    is_ordinal = bool(re.match(r"(?:st|nd|rd|th)(?!\w)", after) or re.search(r"(?<!\w)thứ\s$", before))
    is_mark = not before.strip() and match["numeral"] == "1" and re.match(r"[.)]\s", after) is not None
    return Quantity(value, unit, start, end, is_version or is_ordinal or is_mark, scale)


def _is_negative(before: str) -> bool:
    """Whether a number after this text is below zero: a dash between two numbers is no minus."""
    match = _SIGN.search(before)
    if not match or match[1].isdigit() or match[1] in (*")%-–−",) and match[1]:
        return False
    return not (match[1].isalpha() and match.start(2) == match.end(1))


# --- scales and units -------------------------------------------------------

SCALES = {word: 10 ** power for power, names in {
    2: "hundred trăm", 3: "k K thousand nghìn ngàn", 6: "M million millions triệu", 9: "B bn billion billions tỷ tỉ",
    12: "trillion"}.items() for word in names.split()}
_UNITS = """
    percent % percent pct per_cent phần_trăm percentage; second s sec secs second giây; minute min mins minute phút;
    millisecond ms msec millisecond mili_giây mili-giây; microsecond µs μs us microsecond; hour h hr hrs hour giờ;
    day day ngày; week week tuần; month month tháng; year year yr năm; byte b byte; kilobyte kb kilobyte;
    megabyte mb megabyte; gigabyte gb gigabyte; terabyte tb terabyte; kibibyte kib; mebibyte mib; gibibyte gib;
    bit bit; token token tok toks; word word từ; character character char chars ký_tự kí_tự; parameter parameter param
    tham_số; question question câu_hỏi câu; passage passage đoạn; message message tin_nhắn; layer layer lớp tầng;
    step step bước; euro € euro eur; dollar $ usd dollar đô đô_la; pound £ gbp; yen ¥ yen jpy; dong ₫ đ đồng vnd;
    cent cent; metre m metre meter mét; kilometre km kilometre kilometer; centimetre cm; millimetre mm; gram g gram;
    kilogram kg kilogram; time x times lần; hertz hz; kilohertz khz; megahertz mhz; gigahertz ghz; watt w watt;
    mile mile; foot ft foot feet; person person people; child child children; man man men; woman woman women;
    permille ‰; inch inch; litre l litre liter lít; millilitre ml; lb lb lbs; ounce oz ounce;
    celsius celsius °c; fahrenheit fahrenheit °f
"""
UNITS = {name.replace("_", " "): unit for unit, *names in map(str.split, _UNITS.split(";")) for name in names}
_CURRENCY = re.compile(r"(?:([$€£¥₫])|(?<!\w)(usd|eur|gbp|vnd))\s?[-−–]?$", re.IGNORECASE)
_PLAIN = {"times", "this", "was", "has", "does", "its", "always", "perhaps", "besides", "whereas", "means", "makes",
          "degrees", "says", "seems", "follows", "runs", "uses"}
_STOP = {"a", "an", "per", "each", "for", "in", "of", "and", "or", "to", "with", "is", "are", "was", "as", "by", "at",
         "on", "from", "but", "not", "because", "since", "so", "when", "if", "it", "which", "that", "where", "while",
         "plus", "overall", "then", "than", "mỗi", "và", "hoặc", "là", "trong", "của", "cho", "với", "trên"}


def unit_named(word: str) -> str:
    """One name for all spellings of a unit: 'MB' and 'megabytes' are one, a word not known here is its singular."""
    word = unicodedata.normalize("NFC", word).casefold().strip()
    word = re.split(r"\s*/|\s+per\s+|\s+mỗi\s+", word)[0] if "/" not in word[:1] else word
    return UNITS.get(word) or UNITS.get(_singular(word)) or _singular(word)


def _singular(word: str) -> str:
    """An English noun without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search("(?:ch|sh|x|ss)es$", word):
        return word[:-2]
    return word[:-1] if len(word) > 3 and re.search("[^su]s$", word) else word


def _scale(after: str) -> tuple[int, int]:
    """(what a number before this text is to be multiplied with, how many characters say so)."""
    match = re.match(r"(\s?)([^\W\d_]+)(?!\w)", after)
    word = match[2] if match else ""
    is_letter_apart = len(word) == 1 and bool(match[1])
    scale = 1 if is_letter_apart else SCALES.get(word, SCALES.get(word.lower(), 1) if len(word) > 1 else 1)
    return scale, match.end() if scale > 1 else 0


def _unit_after(after: str) -> str | None:
    """The unit among the next three words, up to a mark or a small word: a known one, else the first plural noun."""
    if sign := re.match(r"\s?([%‰€₫$£¥]|°\s?[CFcf])(?!\w)", after):
        return unit_named(sign[1])
    words = []
    while len(words) < 3 and (match := re.match(r"[\s-]?([^\W\d_]+(?:-giây)?)(?!\w)", after)):
        if match[1].casefold() in _STOP or re.match(r"x\s*[0-9]", after[match.start(1):]):
            break
        words.append(match[1])
        after = after[match.end():]
    pairs = [[" ".join(words[place:place + 2]), words[place]] for place in range(len(words))]
    known = [unit_named(name) for pair in pairs for name in pair if unit_named(name) in UNITS.values()]
    plural = [_singular(word.casefold()) for word in words
              if len(word) > 3 and word.casefold() not in _PLAIN and _singular(word.casefold()) != word.casefold()]
    return next(iter(known or plural), None)


# --- what a model writes around its numbers -----------------------------------

_MARKUP = [(re.compile(pattern), to) for pattern, to in [
    ("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0f\ufeff]", ""), (r"~~[^~]*~~", " "), (r"\{([.,])\}", r"\1"),
    (r"\\[dt]?frac\{([0-9]+)\}\{([0-9]+)\}", r"\1/\2"), (r"\\(?:times|cdot)(?![a-zA-Z])", "×"),
    (r"\\([%$#_&])", r"\1"), (r"\\[,;!]", "\u2009"), (r"\\[a-zA-Z]+|\\[()\[\]]|[{}]", " "),
    (r"\$(?=\S)([^$]*[^$\s])\$(?![0-9])", r" \1 "),
    (r"</?(?:a|b|br|big|code|del|div|em|font|h[1-6]|hr|i|ins|kbd|li|mark|ol|p|pre|q|s|small|span|strike|strong|sub|sup|"
     r"t[dhrt]|table|u|ul|var|answer)(?:\s[^<>]{0,80})?/?>", " "),
    (r"(?<=[0-9])\*\*(?=[0-9(-])", "^"), (r"\*\*+|`+|^\s*#+\s", ""),
    (r"(?<![0-9)\s])\*|\*(?![0-9(\s])", ""), (r"(?<![^\W_])_+|_+(?![^\W_])", " "),
    (r"(?<=[0-9])(?<!(?<![0-9.])0)[xX](?=[0-9])", " × "),
    (r"(?<=[^\W\d_])\^[-+]?[0-9]+", ""), ("[‘’ʼ`]", "'"), ("[‐‑‒]", "-"),
]]
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")


def tidy(text: str) -> str:
    """A text without its markup, in NFC, with ASCII digits; ½ as 1/2, and what is raised as ^2."""
    text = "".join(map(_plain, unicodedata.normalize("NFC", text)))
    text = re.sub("[⁺⁻]?[⁰¹²³⁴-⁹]+", lambda match: "^" + match[0].translate(_SUPERSCRIPT), text)
    for pattern, to in _MARKUP:
        text = pattern.sub(to, text)
    return text


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "VULGAR FRACTION" in unicodedata.name(character, "") and unicodedata.numeric(character):
        return " " + unicodedata.normalize("NFKC", character).replace("⁄", "/")
    return unicodedata.normalize("NFKC", character) if "！" <= character <= "～" else character
