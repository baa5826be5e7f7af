"""The generations of a notebook: written down by lib.generation while it runs, kept beside the recording."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lib.machinery import notebooks

# Summing in another order (threads, another processor) moves a float32 logit by about 5e-5; a token whose best two
# logits lie closer than twenty times that is called a near tie.
NEAR_TIE = 1e-3


def read(path: Path) -> list[dict]:
    """The generations of a COURSE_LEDGER file in order (no file: none), without those that were cancelled.

    How far a cancelled one had come depends on the moment, and so does whether it had begun at all.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [each for each in (json.loads(line) for line in lines if line.strip())
            if each.get("stop_reason") != "cancelled"]


def generations_path(root: Path, number: str) -> Path:
    """Where the generations of notebook `number` are kept."""
    return root / "results" / "generations" / f"{number}.json"


def near_ties_path(root: Path) -> Path:
    """Where the near ties of all notebooks are kept."""
    return root / "results" / "near-ties.json"


def recorded(generation: dict) -> dict:
    """What is kept of a generation: model, prompt, tokens, why it ended, and its narrowest choice."""
    kept = {key: generation[key] for key in ("model", "prompt_ids", "ids", "stop_reason")}
    return {**kept, "smallest_gap": round(min(generation["gaps"]), 3) if generation["gaps"] else None}


def near_ties(number: str, generations: list[dict]) -> list[dict]:
    """The near ties of a notebook; generations and tokens are counted from 1."""
    return [{"notebook": number, "generation": place, "token": token, "gap": round(gap, 4)}
            for place, generation in enumerate(generations, start=1)
            for token, gap in enumerate(generation["gaps"], start=1) if gap < NEAR_TIE]


def write(root: Path, number: str, generations: list[dict]) -> None:
    """Keeps the generations of one notebook under `root`, and its near ties among those of the others."""
    path = generations_path(root, number)
    if generations:
        notebooks.write_atomically(path, one_a_line([recorded(generation) for generation in generations]))
    else:
        path.unlink(missing_ok=True)
    others = [tie for tie in read_json(near_ties_path(root)) if tie["notebook"] != number]
    ties = sorted(others + near_ties(number, generations), key=lambda tie: tie["notebook"])
    notebooks.write_atomically(near_ties_path(root), one_a_line(ties))


def read_json(path: Path) -> list[dict]:
    """The list that a JSON file holds (no file: an empty one)."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def one_a_line(entries: list[dict]) -> str:
    """A JSON list with one entry a line, so that a difference shows which entry has changed."""
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(", ", ": ")) for entry in entries)
    return f"[\n{lines}\n]\n" if entries else "[]\n"


def kept_faults(root: Path, numbers: list[str]) -> list[str]:
    """Where what is kept of generations and near ties contradicts itself, or belongs to no notebook of `numbers`."""
    folder = root / "results" / "generations"
    kept = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    found = [f"results/generations/{name}.json belongs to no notebook" for name in kept if name not in numbers]
    ties = read_json(near_ties_path(root))
    found += [f"results/near-ties.json: {tie} is a near tie of no recorded generation" for tie in ties
              if not _is_tie_of(tie, kept.get(tie["notebook"], []))]
    listed = [(tie["notebook"], tie["generation"], tie["token"]) for tie in ties]
    found += ["results/near-ties.json: a near tie is listed twice"] * (len(set(listed)) < len(listed))
    known = {place[:2] for place in listed}
    return found + [f"results/near-ties.json lacks the near tie of notebook {name}, generation {place}"
                    for name, all_kept in kept.items() for place, each in enumerate(all_kept, start=1)
                    if each["smallest_gap"] == 0 and (name, place) not in known]


def _is_tie_of(tie: dict, kept: list[dict]) -> bool:
    """Whether a near tie can be one of the generations of its notebook: there is such a token, decided so closely."""
    if not 1 <= tie["generation"] <= len(kept) or not 0 <= tie["gap"] <= NEAR_TIE:
        return False
    each = kept[tie["generation"] - 1]
    return (1 <= tie["token"] <= len(each["ids"]) and each["smallest_gap"] is not None
            and each["smallest_gap"] <= round(tie["gap"] + 0.0005, 3))


@dataclass(frozen=True)
class Difference:
    """The first token at which a notebook's generations differ from the recorded ones (counted from 1)."""
    generation: int
    token: int
    gap: float | None
    says: str = ""

    def __str__(self) -> str:
        if self.says:
            return f"generation {self.generation} {self.says}"
        if self.gap is None:
            return f"generation {self.generation} was given another prompt, or another model, than recorded"
        if self.gap < NEAR_TIE:
            return f"near tie at token {self.token} of generation {self.generation} (gap {self.gap:.4f})"
        return f"generation {self.generation} differs from token {self.token} on (gap {self.gap:.3f})"


def compare(kept: list[dict], ties: list[dict], now: list[dict]) -> Difference | None:
    """The first difference between the recorded generations (and their near ties) and those of now; None: equal."""
    for place, (old, new) in enumerate(zip(kept, now, strict=False), start=1):
        if (old["model"], old["prompt_ids"]) != (new["model"], new["prompt_ids"]):
            return Difference(place, 0, None)
        if old["ids"] != new["ids"]:
            token = first_difference(old["ids"], new["ids"])
            return Difference(place, token, _gap(ties, place, token, new["gaps"]))
        if says := _other_facts(old, new):
            return Difference(place, 0, None, says)
    return None


def _other_facts(old: dict, new: dict) -> str:
    """What else differs between two generations of the same tokens: why they ended, how close their choices were."""
    if old["stop_reason"] != new["stop_reason"]:
        return f"ended by {new['stop_reason']!r}, and {old['stop_reason']!r} is recorded"
    smallest = min(new["gaps"], default=None)
    both = smallest is not None and old["smallest_gap"] is not None
    if abs(smallest - old["smallest_gap"]) > 0.002 if both else smallest is not old["smallest_gap"]:
        return f"has {smallest} as its smallest gap, and {old['smallest_gap']} is recorded"
    return ""


def first_difference(old: list[int], new: list[int]) -> int:
    """The place, from 1, of the first token in which two generations differ."""
    equal = (place for place, pair in enumerate(zip(old, new, strict=False), start=1) if pair[0] != pair[1])
    return next(equal, min(len(old), len(new)) + 1)


def _gap(ties: list[dict], generation: int, token: int, gaps: list[float]) -> float:
    known = [tie["gap"] for tie in ties if (tie["generation"], tie["token"]) == (generation, token)]
    return min(known + gaps[token - 1:token], default=float("inf"))
