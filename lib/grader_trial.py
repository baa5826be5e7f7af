"""A trial of graders: replies made from gold answers by templates, so that which are right is known beforehand.

Four graders judge them: does the expected string appear in the reply, is it the reply once both are normalised, is
the last number the right one, and the rules of lib/grading.py. How often each errs says what its scores are worth.
A template makes what a person would call right or wrong; the replies are made up, so the rates are no rates of life.
"""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from lib.grading import grade
from lib.quantities import MARKS

FRAMES = {  # the words around an answer, by language
    "en": {"sentence": "The answer is {}.", "not": "It is not {}.", "but": "It is not {}, but {}.",
           "or": "It is {} or {}.", "remark": "The answer is {}, as passage 3 says.", "unknown": "I do not know."},
    "vi": {"sentence": "Câu trả lời là {}.", "not": "Không phải {}.", "but": "Không phải {} mà là {}.",
           "or": "Là {} hoặc {}.", "remark": "Câu trả lời là {}, theo đoạn 3.", "unknown": "Tôi không biết."},
}
OTHER_UNITS = {"MB": "GB", "GB": "MB", "ms": "seconds", "seconds": "minutes", "euros": "dollars", "giây": "phút"}


class Trial(NamedTuple):
    """A reply, the question it answers, the template it was made by, and whether it is right."""
    template: str
    question: dict
    reply: str
    right: bool


@dataclass(frozen=True)
class Gold:
    """What the templates work with: the gold answer as it is written, one that is wrong, and the unit."""
    question: dict
    wrong: str  # another value of the same form, or a text that is not accepted

    @property
    def answer(self) -> str:
        """The gold number as the language writes it, or the first accepted text."""
        return _expected(self.question)[0]

    @property
    def unit(self) -> str | None:
        """The unit of a number, if one is asked for."""
        return self.question["gold"].get("unit")

    def frame(self, name: str, *parts: str) -> str:
        """Words of the language around some answers, each number with its unit."""
        words = FRAMES[self.question["language"]][name]
        return words.format(*(f"{part} {self.unit}" if self.unit else part for part in parts))


def localised(number: str, language: str, groups: bool = False) -> str:
    """A decimal number such as 1234.5 as a language writes it, with or without marks between thousands."""
    group, point = MARKS[language]
    whole, _, decimals = number.partition(".")
    whole = f"{int(whole):,}".replace(",", group if groups else "")
    return whole + (point + decimals if decimals else "")


# --- the templates ----------------------------------------------------------

Template = Callable[[Gold], "str | None"]  # None where a template does not apply


def _of(kind: str, make: Template) -> Template:
    return lambda gold: make(gold) if kind in gold.question["gold"] else None


def _thousands(gold: Gold) -> str | None:
    number = gold.question["gold"]["number"]
    return localised(number, gold.question["language"], groups=True) if abs(Fraction(number)) >= 1000 else None


def _other_unit(gold: Gold) -> str | None:
    other = OTHER_UNITS.get(gold.unit or "")
    return f"{gold.answer} {other}" if other else None


def _more_digits(gold: Gold) -> str | None:
    longer = gold.question["gold"]["number"] + "7"
    return None if is_within(longer, gold.question["gold"]) else localised(longer, gold.question["language"])


def _expression(gold: Gold) -> str | None:
    worked = gold.question.get("expression")
    return f"{worked} = {gold.answer}" if worked and gold.question["language"] == "en" else None


RIGHT: dict[str, Template] = {
    "bare": lambda gold: gold.answer,
    "in a sentence": lambda gold: gold.frame("sentence", gold.answer),
    "with its unit": lambda gold: f"{gold.answer} {gold.unit}" if gold.unit else None,
    "thousands mark": _of("number", _thousands),
    "more zeros": _of("number", lambda gold: gold.answer + ("0" if "." in gold.question["gold"]["number"] else
                                                          MARKS[gold.question["language"]][1] + "0")),
    "markup": lambda gold: f"**{gold.answer}**",
    "in brackets": lambda gold: f"({gold.answer})",
    "capitals": _of("text", lambda gold: gold.answer.upper()),
    "not X but the answer": lambda gold: gold.frame("but", gold.wrong, gold.answer),
    "with the calculation": _of("number", _expression),
    "with a remark": lambda gold: gold.frame("remark", gold.answer),
    "after the question": lambda gold: f"{gold.question['question']} {gold.answer}",
}
WRONG: dict[str, Template] = {
    "another answer": lambda gold: gold.frame("sentence", gold.wrong),
    "a digit off": _of("number", lambda gold: gold.wrong),
    "digits behind it": _of("number", _more_digits),
    "digits before it": _of("number", lambda gold: "7" + gold.answer),
    "sign flipped": _of("number", lambda gold: "-" + gold.answer),
    "another unit": _of("number", _other_unit),
    "letters behind it": _of("text", lambda gold: gold.answer + "oid"),
    "a wrong one beside it": lambda gold: gold.frame("or", gold.answer, gold.wrong),
    "denied": lambda gold: gold.frame("not", gold.answer),
    "not the answer but X": lambda gold: gold.frame("but", gold.answer, gold.wrong),
    "does not know": lambda gold: gold.frame("unknown"),
}


def trials(questions: Iterable[dict]) -> list[Trial]:
    """All replies for the questions that have a gold answer, one a template that applies; right ones first."""
    asked = [question for question in questions if question["gold"]]
    golds = [Gold(question, wrong_answer(question, asked)) for question in asked]
    return [Trial(name, gold.question, reply, templates is RIGHT) for gold in golds for templates in (RIGHT, WRONG)
            for name, make in templates.items() if (reply := make(gold)) is not None]


def wrong_answer(question: dict, others: list[dict]) -> str:
    """A wrong answer of the same form: one digit off, the first rejected text, or the next question's own answer.

    The digit changed is the last one that makes a difference beyond the tolerance. ValueError where there is none.
    """
    gold = question["gold"]
    if "number" in gold:
        return localised(_digit_off(gold), question["language"])
    if gold["rejected"]:
        return gold["rejected"][0]
    place = others.index(question)
    texts = [text for other in [*others[place + 1:], *others[:place]] for text in other["gold"].get("text", ())[:1]
             if other["language"] == question["language"]]
    own = " ".join(map(_bare, gold["text"])).split()
    if found := [text for text in texts if not set(_bare(text).split()) & set(own)]:
        return found[0]
    raise ValueError(f"no other question has a text that would be wrong for {question['id']}")


def _digit_off(gold: dict) -> str:
    number = gold["number"]
    for place in reversed([place for place, sign in enumerate(number) if sign.isdigit()]):
        changed = number[:place] + str((int(number[place]) + 1) % 10) + number[place + 1:]
        if not is_within(changed, gold):
            return changed
    raise ValueError(f"no digit of {number} makes a difference")


def is_within(number: str, gold: dict) -> bool:
    """Whether a number in English writing is the gold one, within its relative tolerance."""
    right = Fraction(gold["number"])
    return abs(Fraction(number) - right) <= Fraction(gold["tolerance"]) * abs(right)


# --- the graders ------------------------------------------------------------

def substring(reply: str, question: dict) -> bool:
    """Whether the gold number as it is written, or an accepted text, appears anywhere in the reply."""
    return any(text.casefold() in reply.casefold() for text in _expected(question))


def normalised_exact(reply: str, question: dict) -> bool:
    """Whether the reply is the gold answer, without regard to capitals, marks at the ends of words, and articles."""
    return _bare(reply) in map(_bare, _expected(question))


def last_number(reply: str, question: dict) -> bool | None:
    """Whether the last number in the reply is the gold one; None where no number is asked for."""
    gold, (group, point) = question["gold"], MARKS[question["language"]]
    if "number" not in gold:
        return None
    numerals = re.findall(rf"-?[0-9]+(?:\{group}[0-9]{{3}})*(?:\{point}[0-9]+)?", reply)
    return bool(numerals) and is_within(numerals[-1].replace(group, "").replace(point, "."), gold)


def ours(reply: str, question: dict) -> bool:
    """Whether lib/grading.py says 'correct'."""
    return grade(reply, question["gold"], question["language"], question["question"]) == "correct"


GRADERS: dict[str, Callable[[str, dict], bool | None]] = {
    "substring": substring, "normalised exact": normalised_exact, "last number": last_number, "ours": ours}


def _expected(question: dict) -> list[str]:
    gold = question["gold"]
    return [localised(gold["number"], question["language"])] if "number" in gold else gold["text"]


def _bare(text: str) -> str:
    words = unicodedata.normalize("NFC", text).casefold().split()
    bare = (re.sub(r"^[^\w-]+|\W+$", "", word) for word in words)
    return " ".join(word for word in bare if word not in ("", "a", "an", "the"))


# --- the table --------------------------------------------------------------

class Errors(NamedTuple):
    """How often a grader erred: right replies it refused, of so many; wrong ones it accepted, of so many."""
    refused: int
    right: int
    accepted: int
    wrong: int


def errors(made: Iterable[Trial]) -> dict[str, Errors]:
    """The errors of each grader on some trials; those that it cannot judge are left out."""
    made = list(made)
    return {name: _errors(made, grader) for name, grader in GRADERS.items()}


def _errors(made: list[Trial], grader: Callable[[str, dict], bool | None]) -> Errors:
    judged = [(each.right, said) for each in made if (said := grader(each.reply, each.question)) is not None]
    right, wrong = ([said for is_right, said in judged if is_right is kind] for kind in (True, False))
    return Errors(right.count(False), len(right), wrong.count(True), len(wrong))


def by_template(made: Iterable[Trial]) -> dict[str, dict[str, Errors]]:
    """The errors of each grader on the trials of each template."""
    made = list(made)
    names = [name for name in (*RIGHT, *WRONG) if any(each.template == name for each in made)]
    return {name: errors(each for each in made if each.template == name) for name in names}
