"""Why an episode failed: one class out of a closed list, decided by rule from the trace alone, no model asked.

The classes are tried in order and the first that holds is the one. Those of an episode that never answered come
first; then the search is judged before the reading, since nobody reads right what was not found.
"""
from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from lib.calculator import calculate
from lib.episode import Episode
from lib.lines import claim_holds
from lib.retrieval import words
from lib.tools import Result

VERDICTS = ("correct", "wrong", "ambiguous", "no_answer", "abstained")
STATUSES = {"max_turns", "time_limit", "loop", "truncated", "token_limit", "repeated_format_error", "cancelled",
            "tool_fault", "running", "answered"}
RARE = 10  # a word counts as taken from a passage if at most one in ten passages has it
NUMERAL = re.compile(r"(?<![\w.,])[0-9](?:[0-9.,]*[0-9])?")
READINGS = (  # a numeral's group mark and decimal mark, in English and in Vietnamese
    (re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"), ",", "."),
    (re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)(?:,[0-9]+)?"), ".", ","),
)


@dataclass(frozen=True)
class Evidence:
    """What the trace of an episode shows, for a row of data/questions and the texts of all passages by id."""
    episode: Episode
    question: dict
    verdict: str | None
    passages: dict[str, str]

    @property
    def is_arithmetic(self) -> bool:
        """Whether the right answer is the result of a calculation."""
        return self.question["kind"] == "arithmetic"

    @property
    def needs_passage(self) -> bool:
        """Whether the answer, or the numbers for it, have to be looked up."""
        given = self.question.get("self_contained") or not self.question.get("gold_passages")
        return not (self.is_arithmetic and given)

    @cached_property
    def found(self) -> list[Result]:
        """What the searches that ran brought; a tool that searches is called `search`."""
        return [result for result in self._ran if result.call.name == "search"]

    @cached_property
    def computed(self) -> list[Result]:
        """What all other tools brought."""
        return [result for result in self._ran if result.call.name != "search"]

    @property
    def _ran(self) -> list[Result]:
        return [result for turn in self.episode.turns for result in turn.results if result.ran]

    @cached_property
    def gold_seen(self) -> list[str]:
        """The texts of the gold passages that stood in a search's result."""
        texts = [self.passages[name] for name in self.question.get("gold_passages", ())]
        return [text for text in texts if any(holds(result, text) for result in self.found if result.ok)]

    @property
    def took_from_gold(self) -> bool:
        """Whether the answer has a number of a gold passage that was seen, or a rare word if no number is asked for.

        What stands in the question is not taken from the passage, and who abstains takes nothing.
        """
        if self.verdict == "abstained":
            return False
        answer, asked = self.episode.answer or "", self.question["question"]
        parts = [numbers] if "number" in self.question["gold"] else [numbers, self._rare_words]
        return any((part(answer) - part(asked)) & part(text) for part in parts for text in self.gold_seen)

    def _rare_words(self, text: str) -> set[str]:
        return {word for word in words(text) if self._passages_with[word] <= max(1, len(self.passages) // RARE)}

    @cached_property
    def _passages_with(self) -> Counter:
        return Counter(word for passage in self.passages.values() for word in set(words(passage)))

    @property
    def right_results(self) -> list[Result]:
        """The results of calculations that are the gold value."""
        return [result for result in self.computed if is_gold(result.text, self.question["gold"])]

    @property
    def kept_claim(self) -> bool:
        """Whether the answer has a value that the model wrote beside its call, against the right result it got."""
        pairs = [(finding, result) for turn in self.episode.turns
                 for finding, result in zip(turn.findings, turn.results, strict=False) if finding.claim]
        wrong = [finding.claim for finding, result in pairs if result in self.right_results
                 and claim_holds(result.call.arguments["expression"], finding.claim) is False]
        return any(numbers(claim.split("=")[-1]) & numbers(self.episode.answer or "") for claim in wrong)


class FailureClass(NamedTuple):
    """A class: its name, what it says of an episode, and the rule, given that no class before it holds."""
    name: str
    sentence: str
    holds: Callable[[Evidence], bool]


def _ended(*statuses: str) -> Callable[[Evidence], bool]:
    return lambda seen: seen.episode.status in statuses


RULES = (  # in order of precedence
    FailureClass("stopped", "a person or a broken program ended it before the model answered",
                 _ended("cancelled", "tool_fault", "running")),
    FailureClass("cut", "the tokens ran out: replies were cut, or the conversation grew too long",
                 _ended("truncated", "token_limit")),
    FailureClass("format", "replies without an action ended it", _ended("repeated_format_error")),
    FailureClass("loop", "the same action with the same result ended it", _ended("loop")),
    FailureClass("limit", "its turns or its time ran out", _ended("max_turns", "time_limit")),
    FailureClass("false_answer", "the notes do not say it, and it was answered all the same",
                 lambda seen: seen.question["gold"] is None),
    FailureClass("no_evidence", "it was answered without any tool, or never looked up though it had to be",
                 lambda seen: not (seen.found or seen.computed) or (seen.needs_passage and not seen.found)),
    FailureClass("retrieval_miss", "no gold passage was among what the searches found",
                 lambda seen: seen.needs_passage and not seen.gold_seen),
    FailureClass("misread", "a gold passage was found, and the answer took something else from it, or more",
                 lambda seen: not seen.is_arithmetic and seen.took_from_gold),
    FailureClass("evidence_not_used", "a gold passage was found, and the answer took nothing from it",
                 lambda seen: not seen.is_arithmetic),
    FailureClass("wrong_tool", "it had to be computed, and was only searched for", lambda seen: not seen.computed),
    FailureClass("wrong_input", "it was computed, and the right result never came out",
                 lambda seen: not seen.right_results),
    FailureClass("claim_mismatch", "the right result came out, and the answer kept the model's own value after =",
                 lambda seen: seen.kept_claim),
    FailureClass("result_not_used", "the right result came out, and the answer is another", lambda seen: True),
)
CLASSES = {rule.name: rule.sentence for rule in RULES}


def classify(episode: Episode, question: dict, verdict: str | None, passages: dict[str, str]) -> str | None:
    """The name of the class of a failed episode; None for one that is right.

    `question` is a row of data/questions, `verdict` what grading says of the answer (not looked at if there is none),
    `passages` are the texts of all passages by id. Right is 'correct', or 'abstained' where the notes do not say it.
    ValueError for a status, verdict or gold passage that is not known.
    """
    if episode.status not in STATUSES:
        raise ValueError(f"there is no status {episode.status!r}")
    if unknown := [name for name in question.get("gold_passages", ()) if name not in passages]:
        raise ValueError(f"there is no passage {', '.join(unknown)}")
    if episode.status == "answered" and verdict not in VERDICTS:
        raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not {verdict!r}")
    right = "abstained" if question["gold"] is None else "correct"
    if episode.status == "answered" and verdict == right:
        return None
    evidence = Evidence(episode, question, verdict, passages)
    return next(rule.name for rule in RULES if rule.holds(evidence))


def tally(classes: Iterable[str | None]) -> dict[str, int]:
    """How many episodes are of each class, in order, none left out; None stands for an episode that is right."""
    given = [name for name in classes if name is not None]
    counts = {name: given.count(name) for name in CLASSES}
    if sum(counts.values()) != len(given):
        raise ValueError(f"no classes: {', '.join(sorted(set(given) - counts.keys()))}")
    return counts


def holds(result: Result, passage: str) -> bool:
    """Whether a passage stands in a result, as text or inside JSON; of a result that was cut, as far as it goes."""
    text = result.text.rpartition(" … [")[0] if result.cut else result.text
    for form in (passage, json.dumps(passage, ensure_ascii=False)[1:-1]):
        start = text.find(form[:40])
        if form in text or (result.cut and start >= 0 and form.startswith(text[start:])):
            return True
    return False


def is_gold(text: str, gold: dict) -> bool:
    """Whether a tool's result is the gold value, within its relative tolerance."""
    value = calculate(text).value
    if "number" not in gold or value is None:
        return text in gold.get("text", ())
    right = Fraction(gold["number"])
    return abs(value - right) <= Fraction(gold["tolerance"]) * abs(right)


def numbers(text: str) -> set[Fraction]:
    """The numbers in a text without their signs; 1,500 counts in its English and in its Vietnamese sense."""
    found = set()
    for numeral in NUMERAL.findall(text):
        for pattern, group, decimal in READINGS:
            if len(numeral) <= 400 and pattern.fullmatch(numeral):
                found.add(Fraction(numeral.replace(group, "").replace(decimal, ".")))
    return found
