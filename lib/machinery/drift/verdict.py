"""What the measured tokens say: per notebook and factor the numbers, and what is wrong with them."""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from lib.machinery import ledger
from lib.machinery.drift.factors import Factor
from lib.machinery.drift.sample import Recording

# A token flips when two logits move towards each other by their gap: the gap may be twice the largest change. Five
# times that has to be in hand, for machines that nobody has measured.
MARGIN = 10


@dataclass
class Row:
    """One notebook under one factor; gaps and changes are of logits. `flipped` names (generation, token, gap)."""
    notebook: str
    factor: str
    facts: dict[str, str]
    is_control: bool = False
    not_measured: str = ""
    tokens: int = 0
    largest_change: float | None = None
    smallest_gap: float | None = None  # of the compared tokens that are no near ties
    flipped: list[tuple[int, int, float | None]] = field(default_factory=list)
    near_ties_flipped: int = 0

    @property
    def ratio(self) -> float | None:
        """How many times the smallest gap is the largest change; None where nothing changed."""
        if not self.largest_change or self.smallest_gap is None:
            return None
        return self.smallest_gap / self.largest_change


def rows(recordings: list[Recording], factors: list[Factor], measured: dict[tuple[str, str], dict]) -> list[Row]:
    """The rows of all notebooks and factors, in their order; the first factor is the reference."""
    result = []
    for recording in recordings:
        reference = measured[recording.number, factors[0].name].get("tokens", [])
        gaps = {(token["generation"], token["token"]): token["gap"] for token in reference}
        result += [row(recording, factor, measured[recording.number, factor.name], gaps) for factor in factors]
    return result


def row(recording: Recording, factor: Factor, found: dict, gaps: dict[tuple[int, int], float]) -> Row:
    """The row of a notebook under one factor; `gaps` are the reference's, by (generation, token)."""
    tokens = found.get("tokens", [])
    near = recording.ties | {place for place, gap in gaps.items() if gap < ledger.NEAR_TIE}
    flipped = [place_of(token) for token in tokens if token["chosen"] != token["id"]]
    changes = [token["change"] for token in tokens if token["change"] is not None]
    wide = [gaps[place] for place in map(place_of, tokens) if place in gaps and place not in near]
    return Row(recording.number, factor.name, found["facts"], factor.is_control, found.get("not_measured", ""),
               len(tokens), max(changes, default=None), min(wide, default=None),
               [(*place, gaps.get(place)) for place in flipped if place not in near],
               sum(place in near for place in flipped))


def place_of(token: dict) -> tuple[int, int]:
    """(generation, token), counted from 1."""
    return token["generation"], token["token"]


def fault(row: Row) -> str:
    """What is wrong with a row that isn't the control's; empty when nothing is."""
    if row.not_measured:
        return ""
    if row.flipped:
        places = ", ".join(f"token {token} of generation {generation}" + (f" (gap {gap:.3f})" if gap else "")
                           for generation, token, gap in row.flipped[:3])
        return f"{len(row.flipped)} of {row.tokens} tokens flipped outside near ties: {places}"
    if row.largest_change is not None and not math.isfinite(row.largest_change):
        return "a logit is no number"
    if row.ratio is not None and row.ratio < MARGIN:
        return (f"the smallest gap, {row.smallest_gap:.4f}, is only {row.ratio:.1f} times the largest change, "
                f"{row.largest_change:.1e}; it has to be {MARGIN} times")
    return "" if row.tokens else "no token was compared"


def cases(found: list[Row]) -> list[tuple[str, str]]:
    """(check, fault) of every measured row, of the control where there is one, and of anything having been varied."""
    checked = [row for row in found if not row.is_control and not row.not_measured]
    control = [row for row in found if row.is_control]
    result = [(f"{row.notebook}, {row.factor}", fault(row)) for row in checked]
    if control:
        blind = not any(row.flipped for row in control)
        result.append(("the control", "bfloat16 flipped no token outside near ties: the measurement could not have "
                       "seen anything" if blind else ""))
    compared = any(row.largest_change is not None for row in checked)
    return [*result, ("the factors", "" if compared else "not one of them took effect: nothing was compared")]
