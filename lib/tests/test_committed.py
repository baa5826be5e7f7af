"""What long runs have left in results/: each row is of the questions and settings it says, and agrees with itself."""
from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import fields
from functools import cache

import pytest

from lib import evaluations as room
from lib.agent_log import agent_log
from lib.conditions import core, extended
from lib.machinery import environment, evaluations, notebooks
from lib.machinery.evaluations import store
from lib.machinery.evaluations.origin import LIBRARIES, Origin, of

NAMES = evaluations.names()


@cache
def document(name: str) -> dict:
    return store.Store(name).document()


def key_of(evaluation, row: dict) -> dict:
    names = list(evaluation.keys()[0])
    return {name: row[name] for name in names}


@pytest.mark.parametrize("name", NAMES)
def test_each_row_is_made_from_what_the_file_says(name):
    evaluation, written = evaluations.find(name), document(name)
    origin = Origin(**{field.name: written[field.name] for field in fields(Origin)})
    rows = [(key_of(evaluation, row), row["made_from"]) for row in written["rows"]]
    assert [key for key, made_from in rows if origin.made_from(key, evaluation.inputs(key)) != made_from] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_row_is_missing_or_there_twice(name):
    evaluation, written = evaluations.find(name), document(name)
    there = Counter(json.dumps(key_of(evaluation, row)) for row in written["rows"])
    wanted = {json.dumps(key) for key in evaluation.keys() if key["model"] in written["models"]}
    assert set(there) == wanted and set(there.values()) == {1}


@pytest.mark.parametrize("name", NAMES)
def test_it_was_computed_with_what_is_here(name):
    written, now = document(name), of(evaluations.find(name))
    pins = environment.pins()
    assert written["versions"] == {library: pins[library] for library in LIBRARIES}
    assert written["settings"] == json.loads(json.dumps(now.settings))
    assert [model for model, facts in written["models"].items() if now.models[model] != facts] == []
    assert written["code"] == now.code


def episodes(name: str) -> list[tuple[str, list[dict]]]:
    """(model, turns) of each episode in a file."""
    return [(row["model"], row["episode"]["turns"]) for row in document(name)["rows"] if "episode" in row]


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_has_the_tokens_that_it_counts(name):
    for _, turns in episodes(name):
        so_far = 0
        for turn in turns:
            so_far += len(turn["spans"])
            assert len(turn["gaps"]) == turn["reply_tokens"] and min(turn["gaps"], default=0) >= 0
            assert sum(turn["by_writer"].values()) == turn["prompt_tokens"] == so_far - turn["reply_tokens"]
    for row in document(name)["rows"]:
        assert len(row.get("ids", [])) == len(row.get("gaps", []))


@pytest.mark.parametrize("name", NAMES)
def test_an_id_is_one_text_throughout(name):
    texts = defaultdict(Counter)
    for model, turns in episodes(name):
        for id, text, _ in (span for turn in turns for span in turn["spans"]):
            texts[model, id][text] += 1
    several = {place: dict(found) for place, found in texts.items() if len(found) > 1}
    # of a letter of several tokens the first shows the whole
    assert {place: found for place, found in several.items() if "".join(found).isascii()} == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_as_its_command_writes_it(name):
    assert store.Store(name).file.read_text(encoding="utf-8") == store.text(document(name))


def test_the_log_of_notebook_06_follows_from_its_rows():
    rows, questions = room.load_evaluation("agent")["rows"], {**core(), **extended()}
    log = json.loads((notebooks.ROOT / "results" / "06-agent-log.json").read_text(encoding="utf-8"))
    wanted = {(line["model"], line["condition"], line["question"]) for line in log}
    mine = [row for row in rows if (row["model"], row["condition"], row["question"]) in wanted]
    assert len(log) == len(wanted) == len(mine) > 0
    assert json.loads(json.dumps(agent_log(mine, questions))) == log
