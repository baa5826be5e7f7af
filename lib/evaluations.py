"""The notes and the questions about them, and what long runs made of them: data read for a lesson."""
from __future__ import annotations

import json
from pathlib import Path

from lib.episode import Episode
from lib.passages import Passage, passages

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "data" / "notes"
QUESTIONS = ROOT / "data" / "questions"
RESULTS = ROOT / "results" / "evaluations"  # the committed ones, wherever a notebook's own results go


def load_notes(language: str) -> list[Passage]:
    """The passages of the notes in a language (en or vi), in order; FileNotFoundError for another language."""
    if not (files := sorted((NOTES / language).glob("*.md"))):
        raise FileNotFoundError(f"there are no notes in {language!r}")
    return [passage for path in files for passage in passages(path.read_text(encoding="utf-8"), path.stem)]


def load_questions(name: str) -> list[dict]:
    """The questions of data/questions/NAME.jsonl, in order; FileNotFoundError with the names for an unknown one."""
    lines = _path(QUESTIONS, f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def load_evaluation(name: str) -> dict:
    """What `python3 -m lib evaluate NAME` wrote: name, date, hashes, settings, and `rows`, their episodes as Episode.

    An episode of an evaluation has no seconds. FileNotFoundError with the names for an unknown evaluation.
    """
    document = json.loads(_path(RESULTS, f"{name}.json").read_text(encoding="utf-8"))
    return document | {"rows": [_row(row) for row in document["rows"]]}


def _row(row: dict) -> dict:
    return row | {"episode": Episode.from_json(json.dumps(row["episode"]))} if "episode" in row else row


def _path(folder: Path, file: str) -> Path:
    """The path of a file that has to be in `folder`."""
    if not (folder / file).is_file():
        there = ", ".join(path.stem for path in sorted(folder.glob(f"*{Path(file).suffix}"))) or "none"
        raise FileNotFoundError(f"there is no {file} in {folder.relative_to(ROOT).as_posix()}; there are: {there}")
    return folder / file
