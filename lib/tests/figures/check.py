"""The check of the notes: form of the paragraphs, and every figure in digits computed by an entry of a table.

An entry is a fragment of text with placeholders `{}` and an expression that gives what stands in them: a text, a
whole number (written with thousands separators, as the chapter's language has them), or a tuple of these. Filled, it
occurs exactly once in a chapter.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from types import CodeType

from lib.passages import paragraphs
from lib.tests.figures import quoted
from lib.tests.figures.read import ALWAYS, NotReady, vietnamese

Entry = tuple[str, Callable[[], object]]
WORDS = {"en": (40, 120), "vi": (60, 190)}  # of a paragraph; a Vietnamese word is a syllable here
CHARACTERS, SHARED = (300, 780), 0.6  # of a paragraph; of two paragraphs' word 4-grams
NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
NAME = re.compile(r"(?<![\w.\-])[^\W\d_](?:[\w.\-]*\w)?")  # a word, digits after its first letter included: UTF-8
YEAR = re.compile(r"(?<=[(,; ])(?:19|20)\d\d(?=[),;])(?=[^()]*\))")  # of a publication, in brackets
HERE = re.compile(r"(?:^|[\s`(])(?:~/|/(?:root|home|tmp|work|usr|mnt|Users)\b|[A-Z]:\\)")
WRITING = {"str", "int", "float", "format", "tuple", "list", "round", "repr", "vietnamese"}  # compute nothing


@dataclass
class Result:
    """What a check of one chapter found: its faults, the entries that ran, and those a missing model held up."""

    faults: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    held_up: list[str] = field(default_factory=list)


# --- form -------------------------------------------------------------------


def blocks(text: str) -> list[str]:
    """The blocks of a Markdown text between blank lines, white space normalised."""
    return [normal(block) for block in re.split(r"\n\s*\n", text) if block.strip()]


def normal(text: str) -> str:
    """`text` with each run of white space as one space."""
    return " ".join(text.split())


def form_faults(raw: bytes, language: str = "en") -> list[str]:
    """What is wrong with the form of a chapter: bytes, headings, sizes of paragraphs, machine paths, dashes."""
    text = raw.decode("utf-8")
    checks = {
        "not in NFC": unicodedata.is_normalized("NFC", text),
        "a carriage return": "\r" not in text,
        "not one line break at the end": text.endswith("\n") and not text.endswith("\n\n"),
        "not exactly one title, first of all": re.findall(r"^# ", text, re.M) == ["# "] and text.startswith("# "),
        "no section": re.search(r"^## \S", text, re.M),
        "a path of some machine": not HERE.search(text),
        "an em-dash": "\u2014" not in text,
    }
    return [fault for fault, holds in checks.items() if not holds] + [
        fault for paragraph in paragraphs(text) for fault in size_faults(paragraph, language)
    ]


def size_faults(paragraph: str, language: str) -> list[str]:
    """The limits that a paragraph's words or characters are outside of."""
    sizes = {"words": (len(paragraph.split()), WORDS[language]), "characters": (len(paragraph), CHARACTERS)}
    return [
        f"{size} {unit} instead of {low} to {high}: {paragraph[:60]}..."
        for unit, (size, (low, high)) in sizes.items()
        if not low <= size <= high
    ]


def twins(texts: list[str]) -> list[tuple[str, str]]:
    """The pairs of paragraphs that share more than 60 % of the word 4-grams of the one that has fewer."""
    grams = [four_grams(text) for text in texts]
    return [
        (texts[one], texts[other])
        for one, other in combinations(range(len(texts)), 2)
        if len(grams[one] & grams[other]) > SHARED * min(len(grams[one]), len(grams[other]))
    ]


def four_grams(text: str) -> set[tuple[str, ...]]:
    """Every four words in a row, in lower case."""
    words = re.findall(r"\w+", text.lower())
    return set(zip(words, words[1:], words[2:], words[3:], strict=False))


# --- figures ----------------------------------------------------------------


def figure_faults(text: str, table: list[Entry], language: str = "en") -> Result:
    """Runs every expression of the table and compares it, figure by figure, with the chapter."""
    result, parts = Result(), blocks(text)
    covered: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(parts))}
    for fragment, expression in table:
        if found := _locate(fragment, expression, parts, result, language):
            covered[found[0]] += found[1]
    for number, part in enumerate(parts):
        result.faults += [
            f"no entry computes {figure!r} in: {where}" for figure, where in bare(part, covered[number])
        ]
    return result


def _locate(fragment: str, expression: Callable, parts: list[str], result: Result, language: str):
    """(part, what its placeholders fill) of the one place where a filled fragment stands; None with a fault."""
    slots = [name for _, name, *_ in string.Formatter().parse(fragment) if name is not None]
    values = run(fragment, expression, len(slots), result, language)
    if values is None:
        return None
    found = [(number, match) for number, part in enumerate(parts) for match in matches(fragment, values, part)]
    if len(found) != 1:
        result.faults.append(f"found {len(found)} times instead of once: {fragment!r} with {values}")
        return None
    number, match = found[0]
    if parts[number] not in paragraphs(parts[number]):
        result.faults.append(f"not in a paragraph: {fragment!r}")
    unnamed = [text for text in sorted(set(quoted.asked)) if text not in parts[number]]
    result.faults += [f"quotes {text!r} without naming it: {fragment!r}" for text in unnamed]
    return number, [match.span(group + 1) for group in range(len(slots))]


def run(
    fragment: str, expression: Callable, slots: int, result: Result, language: str
) -> list[str | None] | None:
    """The texts for the placeholders, each None where an optional model is missing; None alone with a fault."""
    quoted.asked.clear()
    fault, values = "", None
    if not slots or computes_nothing(expression):
        fault = "there is nothing to compute"
    else:
        try:
            values = expression()
            result.ran.append(fragment)
        except NotReady as missing:
            fault = f"never ran ({missing})" if any(name in str(missing) for name in ALWAYS) else ""
            result.held_up.append(fragment)
            values = (None,) * slots
        except Exception as error:
            fault = f"the expression raised {error!r}"
    each = values if isinstance(values, tuple) else (values,)
    texts = [value if value is None else written(value, language) for value in each]
    if not fault and len(texts) != slots:
        fault = f"{len(texts)} values for {slots} placeholders"
    result.faults += [f"{fault}: {fragment!r}"] if fault else []
    return None if fault else texts


def computes_nothing(expression: object) -> bool:
    """Whether an entry's expression is no function, or one that names nothing but ways to write a literal."""
    code = getattr(expression, "__code__", None)
    return code is None or not names(code) - WRITING


def names(code: CodeType) -> set[str]:
    """The names that a piece of code uses, those of the functions inside it included."""
    inner = [names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(code.co_freevars, *inner)


def written(value: object, language: str = "en") -> str:
    """A value as it stands in the text: a whole number with thousands separators, a text as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return vietnamese(f"{value:,}") if language == "vi" else f"{value:,}"
    return normal(str(value))


def matches(fragment: str, values: list[str | None], part: str) -> Iterator[re.Match]:
    """Where the filled fragment stands in a part, with a group for each placeholder; None may be any one word."""
    pattern, rest = "", iter(values)
    for literal, name, *_ in string.Formatter().parse(fragment):
        pattern += re.escape(re.sub(r"\s+", " ", literal))
        if name is not None:
            value = next(rest)
            pattern += r"(\S+)" if value is None else f"({re.escape(value)})"
    return re.finditer(rf"(?<!\w){pattern}(?!\w)", part)


def bare(part: str, covered: list[tuple[int, int]]) -> list[tuple[str, str]]:
    """(figure, sentence) for each figure in digits that lies in no filled placeholder and is no name or year."""
    exempt = covered + [found.span() for pattern in (NAME, YEAR) for found in pattern.finditer(part)]
    return [
        (found[0], sentence(part, found.start()))
        for found in NUMBER.finditer(part)
        if not any(start <= found.start() and found.end() <= end for start, end in exempt)
    ]


def sentence(part: str, place: int) -> str:
    """The sentence of a paragraph that holds the character at `place`."""
    ends = [found.end() for found in re.finditer(r"[.!?:]['\")]?\s", part)]
    start = max([end for end in ends if end <= place], default=0)
    return part[start : min([end for end in ends if end > place], default=len(part))].strip()
