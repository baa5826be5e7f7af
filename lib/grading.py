"""Grading: what a reply is worth by fixed rules, how sure a count of right ones is, whether two systems differ.

No model judges. A verdict is one of five words: correct (the gold answer and no other), wrong, ambiguous (the gold
answer beside another one: a person has to look), no_answer, abstained (says that it does not know or cannot help, or
that the sources do not say). Only the first line of a reply counts; what a sentence denies is not its answer.
"""
from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from scipy.stats import binomtest

from lib.claims import asides, claimed, number_words, parts
from lib.denials import abstentions, is_denied
from lib.quantities import MARKS, SCALES, Quantity, quantities, tidy, unit_named

VERDICTS = ("correct", "wrong", "ambiguous", "no_answer", "abstained")


class Verdict(str):
    """One of VERDICTS, to compare as a text, with `found`, the answers it was decided by, and `why`, a sentence."""
    found: tuple[str, ...]
    why: str

    def __new__(cls, name: str, why: str = "", found: Iterable[str] = ()):
        if name not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not {name!r}")
        verdict = super().__new__(cls, name)
        verdict.why, verdict.found = why, tuple(dict.fromkeys(found))
        return verdict


def grade(reply: str, gold: dict | None, language: str = "en", question: str = "") -> Verdict:
    """The verdict on a reply, by `gold`: {"number", "unit", "tolerance"}, or {"text", "rejected"}, or None.

    None means that there is no answer: then abstaining is right. A number of the question that is repeated beside the
    gold one is no second answer, unless the gold number stands in the question too. TypeError for a reply that is no
    text, ValueError for a gold of another form and for a language other than en and vi.
    """
    if not isinstance(reply, str):
        raise TypeError(f"a reply is a text, not a {type(reply).__name__}")
    check_gold(gold, language)
    line, question = first_line(reply), tidy(question)
    if not re.search(r"\w", line):
        return Verdict("no_answer", "the reply is empty")
    said = _spans(line, gold["text"]) if gold and "text" in gold else []
    silent = [(start, clause) for start, end, clause in abstentions(line)
              if not any(2 * len(range(max(start, one), min(end, other))) > end - start for one, other in said)]
    if not silent:
        return _grade_answer(line, gold, language, question)
    rest = "".join(" " if any(start <= place < end for start, end in silent) else character
                   for place, character in enumerate(line))
    if gold and re.search(r"\w", rest) and _grade_answer(rest, gold, language, question) in ("correct", "ambiguous"):
        return Verdict("ambiguous", "it says that it does not know, and gives the right answer all the same", [line])
    return Verdict("abstained", "it says that it does not know", [line[start:end] for start, end in silent])


def is_right(verdict: str, gold: dict | None) -> bool:
    """Whether a verdict counts as right: 'correct', or 'abstained' where there is no answer."""
    return str(verdict) == ("abstained" if gold is None else "correct")


def check_gold(gold: dict | None, language: str = "en") -> None:
    """Raises ValueError unless `gold` has one of the two forms, or is None, and the language is en or vi."""
    if language not in MARKS:
        raise ValueError(f"the language is one of {', '.join(MARKS)}, not {language!r}")
    if gold is None:
        return
    if not isinstance(gold, dict) or gold.keys() not in ({"number", "unit", "tolerance"}, {"text", "rejected"}):
        raise ValueError(f"a gold answer has number, unit and tolerance, or text and rejected: {gold!r}")
    if "number" in gold:
        if Fraction(gold["tolerance"]) < 0 or Fraction(gold["number"]) is None or gold["unit"] == "":
            raise ValueError(f"a tolerance is at least 0, and a unit a word or null: {gold!r}")
        return
    for texts in gold.values():
        if isinstance(texts, str) or not all(isinstance(one, str) and re.search(r"\w", tidy(one)) for one in texts):
            raise ValueError(f"text and rejected are lists of texts with a letter or digit: {gold!r}")
    if both := {_plain(text) for text in gold["text"]} & {_plain(text) for text in gold["rejected"]}:
        raise ValueError(f"accepted and rejected at once: {', '.join(sorted(both))}")


def first_line(reply: str) -> str:
    """The first line that holds a letter or digit, without its markup, with single spaces."""
    lines = (tidy(line) for line in reply.splitlines() if re.search(r"[^\W_]", line))
    return re.sub(r"\s{2,}", " ", next(lines, "")).strip()


def _grade_answer(line: str, gold: dict | None, language: str, question: str) -> Verdict:
    if gold is None:
        return Verdict("wrong", "it answers what has no answer", [line])
    return _grade_text(line, gold) if "text" in gold else _grade_number(line, gold, language, question)


# --- numbers ----------------------------------------------------------------

def _grade_number(line: str, gold: dict, language: str, question: str) -> Verdict:
    """correct for the gold number and no other; ambiguous for both; a number in another unit is another number."""
    line = parts(line, question, language) if Fraction(gold["number"]).denominator == 1 else line
    numbers = claimed(line, language)
    if not numbers:
        return Verdict("no_answer", "there is no number in it")
    named = [each for each in numbers if not is_denied(line, each.start, each.end)]
    right = [each for each in named if _is_gold(each, gold)]
    other = [each for each in named if not _is_value(each, gold)]
    if right and other:
        asked = quantities(question, language) + number_words(question)
        echoed = "" if any(_is_gold(each, gold) for each in asked) else question
        aside = asides(line, named, {*right}, gold["unit"] and unit_named(gold["unit"]), echoed, language)
        other = other if aside.issuperset(right) else [each for each in other if each not in aside]
    found = [line[each.start:each.end] for each in named or numbers]
    if right and other:
        return Verdict("ambiguous", f"it names {gold['number']} beside another number", found)
    if right:
        return Verdict("correct", f"it names {gold['number']} and no other answer", found)
    if named and not other:
        return Verdict("wrong", f"its unit is not {gold['unit']}", found)
    return Verdict("wrong", "it names another number" if named else "it only says which number it is not", found)


def _is_value(quantity: Quantity, gold: dict) -> bool:
    """Whether it has the value asked for, within the tolerance relative to it, whatever its unit."""
    number, tolerance = Fraction(gold["number"]), Fraction(gold["tolerance"])
    scale = _scale(gold["unit"])
    wanted = [number * scale] if quantity.scale > 1 or scale == 1 else [number * scale, number]
    return quantity.value is not None and any(abs(quantity.value - each) <= tolerance * abs(each) for each in wanted)


def _is_gold(quantity: Quantity, gold: dict) -> bool:
    """Whether it has the value and does not contradict the unit: a missing unit contradicts none."""
    free = gold["unit"] is None or _scale(gold["unit"]) > 1 or quantity.unit is None
    return _is_value(quantity, gold) and (free or quantity.unit == unit_named(gold["unit"]))


def _scale(unit: str | None) -> int:
    return SCALES.get(unit, SCALES.get((unit or "").lower().removesuffix("s"), 1)) if len(unit or "") > 1 else 1


# --- texts ------------------------------------------------------------------

_POLAR = {"yes", "no", "true", "false", "có", "không", "đúng", "sai", "phải"}


def _grade_text(line: str, gold: dict) -> Verdict:
    """correct for an accepted text and no rejected one, as whole words; a text inside a longer one does not count."""
    accepted, rejected = _spans(line, gold["text"]), _spans(line, gold["rejected"])
    longest = _outermost(accepted | rejected)
    named = [span for span in longest if not is_denied(line, *span)]
    is_polar = {_plain(text) for text in gold["text"]} <= _POLAR and not _both(line, longest)
    if is_polar and longest and longest[0][0] == 0:
        named = longest[:1]  # 'Yes, there is no limit': the first word answers
    right, wrong = [span for span in named if span in accepted], [span for span in named if span in rejected]
    found = [line[start:end] for start, end in named or longest]
    if right and wrong:
        return Verdict("ambiguous", "it names an accepted text beside a rejected one", found)
    if right:
        return Verdict("correct", "it names an accepted text and no rejected one", found)
    if accepted & set(longest):
        return Verdict("wrong", "it says that it is not the accepted text", found)
    return Verdict("wrong", "it names a rejected text" if wrong else "it names no accepted text", found)


def _both(line: str, spans: list[tuple[int, int]]) -> bool:
    """Whether the first two spans stand side by side, and the second alone: 'yes and no', not 'yes, no limit'."""
    joined = r"[\s,;./]*(?:(?:and|or|but|và|hoặc|hay|nhưng)\s+)?"
    return len(spans) > 1 and bool(re.fullmatch(joined, line[spans[0][1]:spans[1][0]], re.IGNORECASE)
                                   and re.match(r"\s*(?:$|[.,;!?])", line[spans[1][1]:]))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", tidy(text)).casefold().split())


def _spans(line: str, texts: Iterable[str]) -> set[tuple[int, int]]:
    """Where one of the texts stands in the line as whole words, whatever capitals, dashes and commas before 'and'."""
    found = set()
    for text in texts:
        words = re.escape(" ".join(tidy(text).split())).replace(r"\ ", r"\s+")
        words = re.sub(r"(?:\\-|–|—)", r"\\s?[-–—−]\\s?", words)
        for joint in ("and|và|&", "or|hoặc|hay"):  # with a comma before it or without
            words = re.sub(rf"(?i),?\\s\+\\?(?:{joint})(?=\\s\+)", rf",?\\s+(?:{joint})", words)
        whole = re.compile(rf"(?<!\w)(?<![0-9][.,]){words}(?![\w+#])(?![.,][0-9])", re.IGNORECASE)
        found |= {match.span() for match in whole.finditer(line)}
    return found


def _outermost(spans: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that are not inside another one, in order."""
    kept = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or span[1] > kept[-1][1]:
            kept.append(span)
    return kept


# --- counts -----------------------------------------------------------------

def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of `successes` in `n`; ValueError unless 0 <= successes <= n and n >= 1."""
    successes, n = operator.index(successes), operator.index(n)
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials cannot be")
    low, high = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return float(low), float(high)


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test, from how many questions only A and only B got right.

    Questions that both or neither got right say nothing; without any other p is 1. ValueError for a count below 0.
    """
    only_a, only_b = operator.index(only_a), operator.index(only_b)
    if min(only_a, only_b) < 0:
        raise ValueError(f"{only_a} and {only_b} are no counts")
    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def smallest_difference(n: int, discordant: int | None = None, alpha: float = 0.05) -> int | None:
    """How many questions more one system must get right for McNemar's p below `alpha`; None if none is enough.

    At best all questions on which they differ go one way; with `discordant`, so many of the `n` go one way or the
    other. ValueError for counts that cannot be.
    """
    n, most = operator.index(n), operator.index(n if discordant is None else discordant)
    if not 0 <= most <= n:
        raise ValueError(f"{most} of {n} questions cannot differ")
    pairs = [(won, 0) for won in range(n + 1)]
    if discordant is not None:
        pairs = [(most - lost, lost) for lost in range(most // 2, -1, -1)]
    return next((won - lost for won, lost in pairs if mcnemar(won, lost) < alpha), None)
