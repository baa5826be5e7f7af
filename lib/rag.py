"""RAG: a question is answered from passages that were found for it, and the answer is held against them.

The instructions come first and never change, so that their tokens can be cached; then the numbered passages; the
question last, which nothing may cut off. Passages are data: they are put in once and never read as a template.
"""
from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lib.denials import abstains
from lib.passages import Passage
from lib.quantities import CITATION, MARKS, quantities, tidy
from lib.timing import Stopwatch, time_to_first_text

if TYPE_CHECKING:
    from lib.generation import Generation

INSTRUCTIONS = {
    "en": "You answer questions from numbered passages. Answer briefly and in English. Use only what the passages "
          "say. If they do not hold the answer, say that you do not know. After each statement write the number of "
          "the passage it comes from in square brackets, such as [1].",
    "vi": "Bạn trả lời câu hỏi dựa vào các đoạn văn được đánh số. Hãy trả lời ngắn gọn, bằng tiếng Việt. Chỉ dùng "
          "những gì các đoạn văn viết. Nếu trong đó không có câu trả lời, hãy nói rằng bạn không biết. Sau mỗi ý, "
          "ghi số của đoạn văn trong ngoặc vuông, ví dụ [1].",
}
REFUSALS = {"en": "I do not know: the answer is not in the documents.",
            "vi": "Tôi không biết: câu trả lời không có trong tài liệu."}
QUESTION = {"en": "Question: ", "vi": "Câu hỏi: "}


class Source(NamedTuple):
    """A passage as a prompt gives it: its id, the title of its document with its heading, its text."""
    id: str
    title: str
    text: str


class ChatModel(Protocol):
    """What is needed of a model: `lib.generation.Model` has it."""
    context: int

    def encode(self, messages: list[dict]) -> list[int]:
        """The token ids of the messages."""

    def reply(self, messages: list[dict], **options) -> Generation:
        """The answer to the messages."""


def source(passage: Passage) -> Source:
    """A passage of the notes as a source; its id is the document's name and its number there."""
    title = f"{passage.document}: {passage.heading}" if passage.heading else passage.document
    return Source(f"{passage.document}/{passage.number}", title, passage.text)


# --- the prompt -------------------------------------------------------------

def rag_messages(question: str, sources: Iterable[Source], language: str = "en") -> list[dict]:
    """The messages for a question: instructions; then the sources, numbered from 1 in their order, and the question.

    ValueError for an empty question or a language other than en and vi.
    """
    if language not in INSTRUCTIONS:
        raise ValueError(f"the language is one of {', '.join(INSTRUCTIONS)}, not {language!r}")
    if not question.strip():
        raise ValueError("the question is empty")
    numbered = [f"[{number}] {each.title}\n{each.text}" for number, each in enumerate(sources, start=1)]
    return [{"role": "system", "content": INSTRUCTIONS[language]},
            {"role": "user", "content": "\n\n".join([*numbered, QUESTION[language] + question])}]


def distinct(sources: Iterable[Source]) -> list[Source]:
    """The sources without those whose id or text was there before, and without empty ones."""
    kept, ids, texts = [], set(), {""}
    for each in sources:
        if not isinstance(each, Source):
            raise TypeError(f"a search gives sources (id, title, text), not {each!r}: see `lib.rag.source`")
        text = " ".join(unicodedata.normalize("NFC", each.text).split())
        if each.id not in ids and text not in texts:
            kept.append(each)
        ids, texts = ids | {each.id}, texts | {text}
    return kept


def fit(model: ChatModel, question: str, sources: list[Source], language: str = "en",
        max_new_tokens: int = 200) -> tuple[list[Source], list[Source]]:
    """(sources that fit, sources dropped): the lowest ranked go first, as wholes, until prompt and answer have room.

    ValueError if the question does not fit even alone: it is never cut.
    """
    room = model.context - max_new_tokens
    for count in range(len(sources), -1, -1):
        tokens = len(model.encode(rag_messages(question, sources[:count], language)))
        if tokens <= room:
            return sources[:count], sources[count:]
    raise ValueError(f"the question and the instructions have {tokens:,} tokens, and there is room for {room:,} "
                     f"beside an answer of {max_new_tokens:,}: shorten the question or allow fewer new tokens")


# --- the answer -------------------------------------------------------------

@dataclass
class Answer:
    """What came of a question: the text, the sources it was given, and what can be checked of it without a model."""
    text: str
    question: str
    sources: list[Source]            # as numbered in the prompt: the first is [1]
    dropped: list[Source]            # found, but there was no room for them
    messages: list[dict]             # what the model was given; empty if it was not called
    generation: Generation | None    # None: the fixed refusal
    language: str = "en"
    first_text_seconds: float | None = None  # until the first text came
    citations: list[int] = field(init=False)          # numbers of sources that the text names
    invalid_citations: list[int] = field(init=False)  # numbers without a source, which are never shown as sources
    unsupported_numbers: list[str] = field(init=False)  # as written: in no source, nor in the question

    def __post_init__(self):
        self.citations, self.invalid_citations = citations(self.text, len(self.sources))
        given = [self.question, *(text for each in self.sources for text in (each.title, each.text))]
        self.unsupported_numbers = unsupported_numbers(self.text, given, self.language, len(self.sources))

    @property
    def cited(self) -> list[Source]:
        """The sources that the text names, in the order of their numbers."""
        return [self.sources[number - 1] for number in self.citations]

    @property
    def refused(self) -> bool:
        """Whether the text says that it does not know, or that the passages do not say."""
        return self.generation is None or abstains(tidy(self.text))

    @property
    def ending(self) -> str:
        """How it ended: 'whole', 'cut' at the limit of tokens, 'cancelled', or 'not called'."""
        reasons = {"length": "cut", "cancelled": "cancelled"}
        return reasons.get(self.generation.stop_reason, "whole") if self.generation else "not called"

    def __str__(self) -> str:
        """The text, a note if it is not whole, and the sources it names."""
        notes = {"cut": ["(The answer was cut at the limit of tokens.)"],
                 "cancelled": ["(The answer was cancelled.)"]}
        named = [f"[{number}] {each.title}" for number, each in zip(self.citations, self.cited, strict=True)]
        return "\n".join([self.text, *notes.get(self.ending, []), *named])


def answer(model: ChatModel, question: str, search: Callable[[str, int], Iterable[Source]], k: int = 3,
           language: str = "en", max_new_tokens: int = 200, on_token: Callable[[str], None] | None = None,
           cancel: threading.Event | None = None) -> Answer:
    """Answer a question from the first k sources of `search(question, k)`.

    Without a source that fits, the fixed refusal is the answer, and the model is not called. ValueError for k below 1
    and as in `rag_messages` and `fit`; TypeError for hits that are no sources.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    rag_messages(question, [], language)  # a faulty question is said before anything is searched
    found = distinct(search(question, k))[:k]
    used, dropped = fit(model, question, found, language, max_new_tokens) if found else ([], [])
    if not used:
        return Answer(REFUSALS[language], question, [], dropped, [], None, language)
    messages, watch = rag_messages(question, used, language), Stopwatch(on_token)
    generation = model.reply(messages, max_new_tokens=max_new_tokens, on_token=watch, cancel=cancel)
    seconds = time_to_first_text(watch.pieces)
    return Answer(generation.text, question, used, dropped, messages, generation, language, seconds)


# --- the answer held against its sources ------------------------------------

def citations(text: str, count: int) -> tuple[list[int], list[int]]:
    """(valid numbers, numbers without a source) of the citations [1], [1, 2], [1][2], [1-3], each once, in order."""
    named = {number for match in CITATION.finditer(text) for number in cited_numbers(match[0])}
    return sorted(named & {*range(1, count + 1)}), sorted(named - {*range(1, count + 1)})


def cited_numbers(citation: str) -> set[int]:
    """The numbers that one citation names; a range of more than 50 counts as its two ends."""
    numbers: set[int] = set()
    for part in citation.strip("[] ").replace(";", ",").split(","):
        ends = [int(end) for end in part.replace("–", "-").split("-")]
        numbers |= {*range(ends[0], ends[-1] + 1)} if 0 <= ends[-1] - ends[0] <= 50 else {*ends}
    return numbers


def unsupported_numbers(text: str, given: Iterable[str], language: str = "en", count: int = 0) -> list[str]:
    """The numbers of a text, as written, that stand in none of the texts given, each once; citations are left out.

    Compared by value, dates and versions as written. The sources may be in another language than the answer: they are
    read as both write numbers.
    """
    def is_valid(match) -> bool:
        return cited_numbers(match[0]) <= {*range(1, count + 1)}

    given = [tidy(each) for each in given]
    known: set = {each.value for one in given for reading in MARKS for each in quantities(one, reading)}
    plain = tidy(CITATION.sub(lambda match: " " if is_valid(match) else match[0], text))
    written = [(plain[each.start:each.end], each.value) for each in quantities(plain, language)]
    return list(dict.fromkeys(words for words, value in written if (
        value not in known if value is not None else not any(words in each for each in given))))
