"""What a log row says of an agent's episode besides the episode itself; agent.schema.json describes the whole row."""
from __future__ import annotations

from lib.agent import REPEAT
from lib.episode import Episode
from lib.failures import Evidence, classify
from lib.machinery.evaluations import keep


def judged(episode: Episode, question: dict, verdict: str | None, passages: dict[str, str]) -> dict:
    """The values of a row: the episode, its verdict (None without an answer), its class (None if right), counts.

    `question` and `passages` are those of lib.failures.classify, which decides the class.
    """
    verdict = verdict if episode.status == "answered" else None
    return {"episode": keep.values(episode), "verdict": verdict,
            "class": classify(episode, question, verdict, passages),
            "counts": counts(Evidence(episode, question, verdict, passages))}


def counts(seen: Evidence) -> dict:
    """What is counted of an episode: turns, actions, faults of form, corrections, tokens, gold passages seen."""
    turns, answered = seen.episode.turns, seen.episode.status == "answered"
    without = sum(not any(result.ran for result in turn.results) for turn in turns)
    return {"turns": len(turns), "searches": len(seen.found), "calculations": len(seen.computed),
            "format_errors": without - answered,
            "corrections": sum(turn.notices.count(REPEAT) for turn in turns),
            "prompt_tokens": sum(turn.prompt_tokens for turn in turns),
            "fed_tokens": sum(turn.fed_tokens for turn in turns),
            "generated_tokens": sum(turn.generated_tokens for turn in turns),
            "gold_passages_seen": len(seen.gold_seen)}
