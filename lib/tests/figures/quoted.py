"""Figures that the two published texts report: read from here, and only in paragraphs that name the text."""

from __future__ import annotations

ARTICLE = "From model to application"
CHAPTER = "Agents: retrieval, tools and loops"

QUOTED: list[tuple[str, str, str]] = [  # (text, figure, the text's own words around it)
    (ARTICLE, "32", "what goes into Qwen is 32 tokens, including a default instruction"),
    (ARTICLE, "6,888,032", "1234 x 5678 = 6,888,032"),
    (ARTICLE, "44", "The prompt goes from 44 tokens to 187"),
    (ARTICLE, "187", "The prompt goes from 44 tokens to 187"),
    (CHAPTER, "361,821,120", "with 361,821,120 parameters"),
    (ARTICLE, "37", "Prompt tokens 37–55"),
    (ARTICLE, "55", "Prompt tokens 37–55"),
    (ARTICLE, "657", "Prompt tokens 37–55 657–898"),
    (ARTICLE, "898", "Prompt tokens 37–55 657–898"),
    (ARTICLE, "71", "Prefill (time to first token) 71–103 ms"),
    (ARTICLE, "481", "Prefill (time to first token) 71–103 ms 481–682 ms"),
    (ARTICLE, "16", "the prompt is 16–18 times longer"),
    (ARTICLE, "18", "the prompt is 16–18 times longer"),
    (ARTICLE, "6", "the first token arrives 6–8 times later"),
    (ARTICLE, "8", "the first token arrives 6–8 times later"),
    (ARTICLE, "2", "on the CPU with 2 threads"),
    (CHAPTER, "4.0", "it averaged 4.0 tokens per second"),
    (CHAPTER, "227", "227 tokens generated across ten episodes"),
    (CHAPTER, "10", "agent, second version 2 of 10"),
]
asked: list[str] = []  # the texts that `quoted` was asked for, for the check to read


def quoted(text: str, figure: str) -> str:
    """A figure as the text called `text` reports it; KeyError for one that is not in the table."""
    if not any((text, figure) == row[:2] for row in QUOTED):
        raise KeyError(f"{figure} of {text!r} is not in QUOTED")
    asked.append(text)
    return figure
