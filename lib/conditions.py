"""The conditions under which an agent is measured: without tools, by two versions of the line protocol, and helped.

The helped ones are an oracle ladder on version 2: told which tool to begin with, given the right input, given the
right result. The step at which the score rises says what a model could not do: choose, ask, or read. What a ladder
gives is taken from the questions' own fields, never from what a model wrote.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cache

from lib.agent import Protocol, run_agent
from lib.episode import Episode
from lib.evaluations import load_notes, load_questions
from lib.lines import TOOLS, LineProtocol, make_lines
from lib.replies import Reply
from lib.retrieval import BM25
from lib.tools import Result, run_call

CONDITIONS = {
    "direct": "the question alone, no tools and no system message of ours; what comes first is the answer",
    "v1": "the line protocol as the system message describes it, and nothing more",
    "v2": "with two worked exchanges; a claim after = is set aside, and a repeat is noticed",
    "told": "as v2, and the question's turn says with which tool to begin",
    "input": "as v2, and the right actions are written already, each with its real result",
    "result": "as v2, and the right actions are written already, each with the right result",
}
MAIN, LADDER = ("direct", "v1", "v2"), ("told", "input", "result")
FIRST_MOVES = ("v1", "v2", "told")  # where the model makes the first move itself
LABELS = (*TOOLS, "ANSWER")
LIMITS = {"max_turns": 4, "max_new_tokens": 64}
DIRECT_LIMITS = {"max_turns": 1, "max_new_tokens": 128}  # there is one reply, and it may work its way to the answer
K = 1  # passages that a search brings


# --- the questions ----------------------------------------------------------

@cache
def core() -> dict[str, dict]:
    """The ten core questions by id: those about the notes, which agent.jsonl only names, then the calculations."""
    rows = load_questions("agent")
    named = {row["file"] for row in rows if "file" in row}
    files = {name: {row["id"]: row for row in load_questions(name)} for name in named}
    return {row["id"]: files[row["file"]][row["id"]] if "file" in row else row for row in rows}


@cache
def extended() -> dict[str, dict]:
    """The other questions about the English notes by id, with those that the notes do not answer."""
    return {row["id"]: row for row in load_questions("notes-en") if row["id"] not in core()}


@cache
def notes() -> dict[str, str]:
    """The texts of all passages of the English notes by id, such as '1-text-into-tokens/12'."""
    return {f"{passage.document}/{passage.number}": passage.text for passage in load_notes("en")}


@cache
def _index() -> BM25:
    return BM25(notes().values())


def search(query: str, k: int = K) -> list[str]:
    """The texts of the k passages that BM25 ranks first."""
    texts = [*notes().values()]
    return [texts[hit.index] for hit in _index().search(query, k)]


# --- without tools ----------------------------------------------------------

@dataclass(frozen=True)
class Said(Reply):
    """A reply that is an answer as it stands."""

    @property
    def is_whole(self) -> bool:
        """Always: what came before a cut counts."""
        return True


@dataclass(frozen=True)
class Direct(Protocol):
    """No tools: the question is the user's turn, and the reply is the answer, whole or cut off."""

    def read(self, text: str, truncated: bool) -> Said:
        """The reply as an answer."""
        return Said(text, (), text.strip())

    def settings(self) -> dict:
        """Everything that decides how an episode goes, for its record."""
        return super().settings() | {"name": "direct"}


# --- the ladder -------------------------------------------------------------

@dataclass(frozen=True)
class Helped(LineProtocol):
    """The line protocol with a hint after the question, or with actions and results that stand there already."""
    hint: str = ""
    given: tuple[tuple[str, Result], ...] = ()  # an action's line and what came of it

    def opening(self, question: str) -> list[dict]:
        """The messages that stand before the first reply."""
        opening = super().opening("\n".join(filter(None, [question, self.hint])))
        return opening + [message for line, result in self.given
                          for message in ({"role": "assistant", "content": line}, self.message(result))]

    def settings(self) -> dict:
        """Everything that decides how an episode goes, for its record."""
        given = [{"line": line, **asdict(result)} for line, result in self.given]
        return super().settings() | {"hint": self.hint, "given": given}


def right_actions(question: dict) -> list[str]:
    """The lines that lead to the answer: a search in the question's own words, the expression; ValueError if none.

    The question's own words are no perfect query: where they miss the passage, that is the search's share.
    """
    looked_up = bool(question["gold_passages"]) and not question.get("self_contained")
    lines = [f"SEARCH: {question['question']}"] * looked_up
    lines += [f"CALC: {question['expression']}"] if "expression" in question else []
    if not lines:
        raise ValueError(f"nothing leads to an answer of {question['id']}: it has no ladder")
    return lines


def told(question: dict) -> str:
    """The hint that names the tools in their order."""
    first, *others = (line.partition(":")[0] for line in right_actions(question))
    return " ".join([f"Begin with a {first}: line.", *(f"Then write a {word}: line." for word in others)])


def _given(question: dict, lines: LineProtocol, right: bool) -> tuple[tuple[str, Result], ...]:
    """The right actions with the results that the tools give, or (if `right`) with the passage that answers."""
    found = []
    for line in right_actions(question):
        result = replace(run_call(lines.read(line, False).calls[0], lines.tools), seconds=0.0)
        if right and result.call.name == "search":
            result = replace(result, text=notes()[question["gold_passages"][0]])
        found.append((line, result))
    return tuple(found)


# --- an episode -------------------------------------------------------------

def protocol(condition: str, question: dict) -> Protocol:
    """What a turn looks like under a condition; ValueError for an unknown one, and for a ladder without an answer."""
    if condition not in CONDITIONS:
        raise ValueError(f"the conditions are {', '.join(CONDITIONS)}, not {condition!r}")
    if condition == "direct":
        return Direct()
    lines = make_lines(search, 1 if condition == "v1" else 2, K)
    if condition not in LADDER:
        return lines
    same = {field.name: getattr(lines, field.name) for field in fields(lines)}
    if condition == "told":
        return Helped(**same, hint=told(question))
    return Helped(**same, given=_given(question, lines, right=condition == "result"))


def ask(model, question: dict, condition: str, **options) -> Episode:
    """The episode of a question under a condition; options are those of `run_agent`, the limits are set here.

    What was fed before is not fed again: clear `model.cache` first where tokens are counted.
    """
    limits = DIRECT_LIMITS if condition == "direct" else LIMITS
    return run_agent(model, question["question"], protocol(condition, question), **limits, **options)


def first_move(model, question: dict, condition: str) -> dict[str, float]:
    """How likely each action is as the first move: the summed natural-log probability of the tokens of its label."""
    ids = model.encode(protocol(condition, question).opening(question["question"]))
    return {word: log_probability(model, ids, f"{word}:") for word in LABELS}


def log_probability(model, ids: list[int], text: str) -> float:
    """The summed natural-log probability of a text's tokens after `ids`, cut as the text is encoded alone."""
    total = 0.0
    for token in model.tokenizer(text, add_special_tokens=False)["input_ids"]:
        total += float(model.logits(ids).double().log_softmax(-1)[token])
        ids = [*ids, token]
    return total
