"""The prompt of RAG: a question and the passages found for it become messages, and what does not fit is left out.

The instructions come first and never change, so that their tokens can be cached; then the numbered passages; the
question last, which nothing may cut off. Passages are data: they are put in once and never read as a template.
"""
from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lib.passages import Passage

if TYPE_CHECKING:
    from lib.generation import Generation

INSTRUCTIONS = {
    "en": "Read the numbered passages and answer the question in English, in a sentence or two. Use only what the "
          "passages say. If they do not hold the answer, say that you do not know.",
    "vi": "Hãy đọc các đoạn văn được đánh số rồi trả lời câu hỏi bằng tiếng Việt, trong một hai câu. Chỉ dùng những "
          "gì các đoạn văn viết. Nếu ở đó không có lời đáp, hãy nói rằng bạn không biết.",
}
CITING = {  # to be added where the answer shall name its passages; small models answer worse then, which is measured
    "en": " After each statement write the number of its passage in square brackets, such as [1].",
    "vi": " Sau mỗi ý, ghi số của đoạn văn trong ngoặc vuông, ví dụ [1].",
}
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

def rag_messages(question: str, sources: Iterable[Source], language: str = "en", citing: bool = False) -> list[dict]:
    """The messages for a question: instructions; then the sources, numbered from 1 in their order, and the question.

    `citing` also asks for the numbers of the passages. ValueError for an empty question or a language other than en
    and vi.
    """
    if language not in INSTRUCTIONS:
        raise ValueError(f"the language is one of {', '.join(INSTRUCTIONS)}, not {language!r}")
    if not question.strip():
        raise ValueError("the question is empty")
    numbered = [f"[{number}] {each.title}\n{each.text}" for number, each in enumerate(sources, start=1)]
    instructions = INSTRUCTIONS[language] + CITING[language] * citing
    return [{"role": "system", "content": instructions},
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
