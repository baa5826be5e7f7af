"""Long evaluations: computed once, kept after an interrupt at any row, written whole, compared id by id."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from dataclasses import replace

import pytest

from lib import evaluations as room
from lib.agent import Protocol, run_agent
from lib.episode import Episode
from lib.machinery import Stop, commands, evaluate, evaluations, fetch, ledger, lock, machine, notebooks
from lib.machinery.evaluations import check, keep, loop, origin, store
from lib.prefix_cache import PrefixCache
from lib.tests.scripted import ScriptedModel

MODELS = ("qwen2.5-coder-0.5b", "smollm2-135m")
QUESTIONS = {"một": "1 + 1?", "hai": "Hai nhân ba?"}
KEYS = [{"model": model, "question": name} for name in QUESTIONS for model in MODELS]  # not in the order of loading
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 1}}\n</tool_call>'
REPLIES = {"một": [CALL, "Là 2. 漢字 🙂"], "hai": ['{"name": "add"}', "\u2028"] * 3}  # an answer; never one
NAME = "toy"


class Loaded:
    """What stands for a loaded model: its name, and the cache that has to be empty before each row."""

    def __init__(self, name: str):
        self.name, self.cache = name, PrefixCache()


class Toy:
    """An evaluation whose replies are written down; `computed` are the rows it was asked for, `stop` ends it."""

    def __init__(self):
        self.computed, self.loaded, self.stop, self.replies = [], [], {}, dict(REPLIES)
        self.evaluation = evaluations.Evaluation(
            NAME, loop.__file__, MODELS, {"max_turns": 4}, lambda: KEYS, lambda key: QUESTIONS[key["question"]],
            self.compute, lambda values: keep.summary(values["episode"]), self.load)

    def load(self, name: str) -> Loaded:
        self.loaded.append(name)
        return Loaded(name)

    def compute(self, model: Loaded, key: dict, tell) -> tuple[dict, dict]:
        assert model.name == key["model"] and not model.cache.entries
        model.cache.entries.append("what a row leaves behind")
        if len(self.computed) in self.stop:
            raise self.stop[len(self.computed)]
        self.computed.append(evaluations.label(key))
        teller = keep.Teller(tell)
        episode = run_agent(ScriptedModel(self.replies[key["question"]]), QUESTIONS[key["question"]],
                            Protocol(tools=(loop.add,)), 4, on_token=teller.on_token, on_turn=teller.on_turn)
        return {"episode": keep.values(episode)}, keep.seconds(episode)


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Toy:
    """A toy evaluation in an empty course folder, whose code is that of `loop`."""
    toy, code = Toy(), origin.of(loop.EVALUATION)
    monkeypatch.setattr(evaluations, "find", lambda name: toy.evaluation)
    monkeypatch.setattr(origin, "code_files", lambda start, root: [])
    monkeypatch.setattr(origin, "code_hash", lambda files, root: code.code)
    monkeypatch.setattr(fetch, "ensure", lambda names: None)
    monkeypatch.setattr(evaluate.models, "is_ready", lambda name: True)
    monkeypatch.setattr(machine, "memory", lambda: None)
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    return toy


def run(*models: str, again: bool = False, count: int | None = None) -> int:
    return evaluate.main(argparse.Namespace(evaluation=NAME, models=list(models), again=again, check=count))


def written() -> dict:
    return json.loads(store.Store(NAME).file.read_text(encoding="utf-8"))


def growing() -> list[dict]:
    return [json.loads(line) for line in store.Store(NAME).growing.read_text(encoding="utf-8").splitlines()]


ORDER = [evaluations.label(key) for model in MODELS for key in KEYS if key["model"] == model]


# --- a whole run ------------------------------------------------------------

def test_a_run_writes_every_row_with_its_hashes(toy, tmp_path, capsys):
    assert run() == 0
    document, rows = written(), written()["rows"]
    assert [{name: row[name] for name in KEYS[0]} for row in rows] == KEYS
    assert toy.computed == ORDER and toy.loaded == list(MODELS)
    assert document["name"] == NAME and document["date"].count("-") == 2 and document["settings"] == {"max_turns": 4}
    assert len(document["code"]) == 64 and set(document["versions"]) == {"torch", "transformers"}
    assert document["models"]["qwen2.5-coder-0.5b"]["file_sha256"].startswith("1d9614638d18024d")
    assert document["models"]["smollm2-135m"]["parameters"] == 134_515_008
    assert [row["episode"]["status"] for row in rows] == ["answered"] * 2 + ["loop"] * 2
    assert len({row["made_from"] for row in rows}) == len(KEYS)
    assert not store.Store(NAME).growing.exists()
    said = capsys.readouterr().out
    assert "1 of 4: qwen2.5-coder-0.5b, một ...\n" in said
    assert said.endswith("toy: 4 rows are written to results/evaluations/toy.json.\n")
    assert "answered, 2 turns, calls: add, 'Là 2. 漢字 🙂'" in said and "loop, 4 turns, calls: none" in said


def test_the_file_holds_no_seconds_and_the_times_do(toy):
    run()
    text = store.Store(NAME).file.read_text(encoding="utf-8")
    assert text.count("\n") == len(["{", *written()]) + len(KEYS) + len(["]}"]) and "漢字" in text
    turns = [turn for row in written()["rows"] for turn in row["episode"]["turns"]]
    names = ("first_token_seconds", "decode_seconds", "tool_seconds")
    assert {tuple(turn[name] for name in names) for turn in turns} == {(None, 0.0, 0.0)}
    assert {result["seconds"] for turn in turns for result in turn["results"]} == {0.0}
    times = json.loads(store.Store(NAME).times.read_text(encoding="utf-8"))
    assert [row["made_from"] for row in times["rows"]] == [row["made_from"] for row in written()["rows"]]
    assert all(row["seconds"] >= 0 and len(row["decode_seconds"]) in (2, 4) for row in times["rows"])


def test_a_second_run_computes_and_changes_nothing(toy, capsys):
    run()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in [store.Store(NAME).file,
                                                                              store.Store(NAME).times]}
    toy.computed.clear()
    assert run() == 0
    assert toy.computed == [] and {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert "nothing is to be done" in capsys.readouterr().out


# --- interrupts -------------------------------------------------------------

@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("row", range(len(KEYS)))
def test_an_interrupt_at_any_row_costs_that_row_alone(toy, capsys, row, again):
    whole = None
    if again:
        run()
        whole, toy.computed = written(), []
    toy.stop = {row: KeyboardInterrupt()}
    assert run(again=again) == 130
    said = capsys.readouterr().err
    assert said == f"Interrupted; {row} of 4 rows are there: python3 -m lib evaluate toy goes on.\n"
    assert toy.computed == ORDER[:row] and store.Store(NAME).file.exists() == again
    assert not again or written() == whole
    toy.stop, toy.computed = {}, []
    assert run() == 0
    assert toy.computed == ORDER[row:] and len(written()["rows"]) == len(KEYS)
    assert not store.Store(NAME).growing.exists()
    assert all("decode_seconds" in line for line in json.loads(store.Store(NAME).times.read_text())["rows"])


def test_rows_after_an_interrupt_equal_those_of_one_run(toy):
    run()
    whole = store.Store(NAME).file.read_bytes()
    store.Store(NAME).file.unlink()
    toy.computed, toy.stop = [], {2: KeyboardInterrupt()}
    run()
    toy.stop = {}
    run()
    assert store.Store(NAME).file.read_bytes() == whole


def test_a_fault_of_the_program_stops_the_run_and_names_its_row(toy):
    toy.stop = {1: ValueError("odd")}
    with pytest.raises(ValueError, match="odd") as caught:
        run()
    assert caught.value.__notes__ == [f"in the row {ORDER[1]} of the evaluation toy; the rows before it are kept"]
    assert len(growing()) == 1


def test_a_broken_tool_is_no_data():
    episode = Episode("?", "m", {}, {}, status="tool_fault", fault="add returned a set, which is no JSON")
    with pytest.raises(RuntimeError, match="is broken: add returned a set"):
        keep.values(episode)


def test_memory_that_runs_out_is_a_sentence(toy):
    toy.stop = {1: MemoryError()}
    with pytest.raises(Stop, match=f"Memory ran out in the row {ORDER[1]}: close other programs"):
        run()


# --- which rows are still the wanted ones -----------------------------------

@pytest.mark.parametrize("change", ["code", "settings", "versions", "inputs", "model"])
def test_what_decides_a_row_has_it_computed_again(toy, monkeypatch, change):
    run()
    toy.computed.clear()
    old, expected = written(), ORDER
    if change == "code":
        monkeypatch.setattr(origin, "code_hash", lambda files, root: "0" * 64)
    elif change == "settings":
        toy.evaluation = replace(toy.evaluation, settings={"max_turns": 3})
    elif change == "versions":
        monkeypatch.setattr(origin, "version", lambda name: "9.9.9+cpu")
    elif change == "inputs":
        monkeypatch.setitem(QUESTIONS, "hai", "2 x 3?")
        expected = [name for name in ORDER if "hai" in name]
    else:
        monkeypatch.setitem(evaluate.models.MODELS["smollm2-135m"], "file_sha256", "0" * 64)
        expected = [name for name in ORDER if "smollm2" in name]
    assert run() == 0 and toy.computed == expected
    assert [row["made_from"] for row in written()["rows"]] != [row["made_from"] for row in old["rows"]]
    assert change != "versions" or written()["versions"] == {"torch": "9.9.9", "transformers": "9.9.9"}


def test_rows_of_other_code_in_the_growing_file_are_dropped(toy, monkeypatch):
    toy.stop = {3: KeyboardInterrupt()}
    run()
    monkeypatch.setattr(origin, "code_hash", lambda files, root: "0" * 64)
    toy.stop, toy.computed = {1: KeyboardInterrupt()}, []
    run()
    assert toy.computed == ORDER[:1] and len(growing()) == 1


def test_again_computes_all_and_dates_anew(toy):
    run()
    file = store.Store(NAME).file
    file.write_text(file.read_text(encoding="utf-8").replace(written()["date"], "2001-02-03"), encoding="utf-8")
    toy.computed.clear()
    assert run() == 0 and written()["date"] == "2001-02-03"
    assert run(again=True) == 0 and toy.computed == ORDER and written()["date"] > "2001-02-03"


@pytest.mark.parametrize("models", [["smollm2-135m"], ["smollm2-135m", "smollm2-135m"]])
def test_one_model_alone_waits_for_the_others(toy, capsys, models):
    assert run(*models) == 0
    assert toy.loaded == ["smollm2-135m"] and toy.computed == ORDER[2:] and not store.Store(NAME).file.exists()
    assert ("2 of 4 rows are there; results/evaluations/toy.json is written when those of qwen2.5-coder-0.5b are "
            "there too: python3 -m lib evaluate toy --model qwen2.5-coder-0.5b.\n") in capsys.readouterr().out
    assert run("qwen2.5-coder-0.5b") == 0
    assert toy.computed == ORDER[2:] + ORDER[:2] and len(written()["rows"]) == len(KEYS)


def test_again_with_one_model_leaves_the_others_rows(toy):
    run()
    toy.computed.clear()
    assert run("smollm2-135m", again=True) == 0 and toy.computed == ORDER[2:]
    assert len(written()["rows"]) == len(KEYS)


# --- models that only the hub has ---------------------------------------------

HUB = "smollm2-360m"
WITH_HUB = [{"model": model, "question": name} for model in (*MODELS, HUB) for name in QUESTIONS]
HUB_ORDER = [evaluations.label(key) for key in WITH_HUB if key["model"] == HUB]


@pytest.fixture
def wider(toy) -> Toy:
    """The toy evaluation with one more model, which only the hub has."""
    toy.evaluation = replace(toy.evaluation, models=(*MODELS, HUB), keys=lambda: WITH_HUB)
    return toy


def test_a_model_of_the_hub_is_left_out_where_it_is_not_named(wider, capsys):
    assert run() == 0 and wider.loaded == list(MODELS)
    assert capsys.readouterr().out.endswith("toy: 4 rows are written to results/evaluations/toy.json.\n")
    assert len(written()["rows"]) == 4 and [*written()["models"]] == list(MODELS)
    assert run() == 0 and "holds all 4 rows" in capsys.readouterr().out


def test_a_model_of_the_hub_that_is_named_comes_into_the_file(wider, capsys):
    run()
    wider.computed.clear()
    assert run(HUB) == 0 and wider.computed == HUB_ORDER
    assert len(written()["rows"]) == 6 and [*written()["models"]] == [*MODELS, HUB]
    capsys.readouterr()
    assert run() == 0 and "holds all 6 rows" in capsys.readouterr().out and len(written()["rows"]) == 6


def test_a_model_of_the_hub_alone_waits_for_the_required_ones(wider, capsys):
    assert run(HUB) == 0 and wider.computed == HUB_ORDER and not store.Store(NAME).file.exists()
    assert ("2 of 6 rows are there; results/evaluations/toy.json is written when those of qwen2.5-coder-0.5b, "
            "smollm2-135m are there too: python3 -m lib evaluate toy.\n") in capsys.readouterr().out
    assert run() == 0 and len(written()["rows"]) == 6


def test_a_model_of_the_hub_that_was_begun_has_to_be_finished(wider, capsys):
    run()
    wider.stop, wider.computed = {1: KeyboardInterrupt()}, []
    assert run(HUB) == 130
    said = capsys.readouterr().err
    assert "5 of 6 rows are there: python3 -m lib evaluate toy --model smollm2-360m goes on." in said
    wider.stop = {}
    assert run() == 0 and len(growing()) == 1 and len(written()["rows"]) == 4
    assert "is written when those of smollm2-360m are there too" in capsys.readouterr().out
    assert run(HUB) == 0 and wider.computed == HUB_ORDER and len(written()["rows"]) == 6


def test_the_variable_for_the_model_changes_nothing(toy, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "no-such-model")
    assert run() == 0 and toy.loaded == list(MODELS)


# --- files that are broken --------------------------------------------------

@pytest.mark.parametrize("damage, lost", [
    (lambda data: data[:-30], 1), (lambda data: b"\xff\xfe\n" + data, 0), (lambda data: b"[]\n{}\n" + data, 0),
    (lambda data: b'{"model": ["x"]}\n{"model": {}}\n{"model": 5}\n' + data, 0),
    (lambda data: b"", 2), (lambda data: data.replace(b'"made_from"', b'"made"'), 2), (lambda data: b"\0" * 100, 2),
    (lambda data: b"[" * 100_000, 2)])
def test_a_damaged_growing_file_costs_only_what_is_damaged(toy, capsys, damage, lost):
    toy.stop = {2: KeyboardInterrupt()}
    run()
    path = store.Store(NAME).growing
    path.write_bytes(damage(path.read_bytes()))
    said_something = path.read_bytes() != b""
    toy.stop, toy.computed = {}, []
    capsys.readouterr()
    assert run() == 0
    assert toy.computed == ORDER[2 - lost:] and len(written()["rows"]) == len(KEYS)
    assert ("lines cannot be read and are left out" in capsys.readouterr().out) == said_something


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"rows": 3}', '{"rows": [3]}', '{"rows": [{}]}',
                                  '{"rows": [{"model": "m", "made_from": []}]}', "\ud800"])
def test_a_damaged_committed_file_is_said_and_made_anew(toy, capsys, text):
    path = store.Store(NAME).file
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(Stop, match="results/evaluations/toy.json cannot be read: bring it back"):
        run(count=1)
    assert run() == 0 and toy.computed == ORDER and len(written()["rows"]) == len(KEYS)
    assert capsys.readouterr().out.count("toy.json cannot be read; its rows are computed anew.") == 1


@pytest.mark.parametrize("left", ["half", '{"rows": null}', '{"rows": 5}', '{"rows": [{"model": "m"}]}',
                                  '{"rows": [{"model": "m", "made_from": []}]}'])
def test_lost_times_do_not_cost_rows(toy, left):
    run()
    store.Store(NAME).times.write_text(left, encoding="utf-8")
    toy.computed.clear()
    run("smollm2-135m", again=True)
    rows = json.loads(store.Store(NAME).times.read_text(encoding="utf-8"))["rows"]
    assert toy.computed == ORDER[2:] and [row.get("seconds") is None for row in rows] == [True, False] * 2


def test_the_committed_file_is_written_whole_or_not_at_all(toy, monkeypatch):
    run()
    before = store.Store(NAME).file.read_bytes()

    def fails(source, target):
        raise OSError(28, "No space left on device", str(target))
    toy.computed.clear()
    with monkeypatch.context() as patch:
        real = os.replace
        patch.setattr(os, "replace", lambda s, t: fails(s, t) if t == store.Store(NAME).file else real(s, t))
        with pytest.raises(OSError) as caught:
            run(again=True)
    assert commands.sentence_of(caught.value).endswith("the disk is full: make room, and run the same command again.")
    assert store.Store(NAME).file.read_bytes() == before
    assert [path.name for path in store.Store(NAME).file.parent.iterdir()] == ["toy.json"]
    toy.computed.clear()
    assert run() == 0 and toy.computed == []


def _hold(path, ready, go) -> None:
    with lock.held(path, lambda: None):
        ready.set()
        go.wait(30)


def test_two_at_once_are_met_with_a_sentence(toy):
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    path = store.Store(NAME).growing.with_suffix(".lock")
    path.parent.mkdir(parents=True)
    other = context.Process(target=_hold, args=(path, ready, go))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(Stop, match="Another process computes the evaluation toy in this folder"):
            run()
    finally:
        go.set()
        other.join()
    assert toy.computed == [] and run() == 0


# --- the check --------------------------------------------------------------

def test_a_check_of_the_same_rows_finds_nothing(toy, capsys):
    run()
    toy.computed.clear()
    assert run(count=3) == 0 and len(toy.computed) == len(set(toy.computed)) == 3
    assert "toy: 3 of 4 rows were computed again; all are as in the file." in capsys.readouterr().out
    assert run("smollm2-135m", count=99) == 0 and toy.computed[3:] == ORDER[2:]


def test_a_check_finds_one_changed_id_and_names_its_row(toy, capsys):
    run()
    document = written()
    turn = document["rows"][1]["episode"]["turns"][1]
    turn["spans"][-3][0] += 1
    place = turn["reply_tokens"] - 2
    store.Store(NAME).file.write_text(store.text(document), encoding="utf-8")
    assert run(count=99) == 1
    said = capsys.readouterr().out
    assert f"smollm2-135m, một: reply 2 differs from token {place} on (gap 1.0000)" in said
    assert "not as in the file: smollm2-135m, một." in said and said.count("as in the file, 0 s") == 3
    turn["gaps"][place - 1] = ledger.NEAR_TIE / 2
    store.Store(NAME).file.write_text(store.text(document), encoding="utf-8")
    assert run(count=99) == 1
    assert f"near tie at token {place} of reply 2 (gap 0.0005)" in capsys.readouterr().out


def test_single_replies_are_compared_id_by_id_too():
    generation = ScriptedModel(["Là 2."]).reply([{"role": "user", "content": "1 + 1?"}])
    kept = keep.reply(generation)
    assert kept["text"] == "Là 2." and kept["ids"] == generation.ids and "seconds" not in " ".join(kept)
    assert set(keep.reply_seconds(generation)) == {"first_token_seconds", "decode_seconds"}
    changed = kept | {"ids": [kept["ids"][0] + 1, *kept["ids"][1:]]}
    close = changed | {"gaps": [ledger.NEAR_TIE / 2, *kept["gaps"][1:]]}
    for old, new in ((kept, changed), ({"replies": [kept]}, {"replies": [changed]})):
        assert check.difference(old, old) == ""
        assert check.difference(old, new).startswith("the reply differs from token 1 on (gap ")
    assert check.difference(kept, close) == "near tie at token 1 of the reply (gap 0.0005)"
    assert check.difference(kept, kept | {"stop_reason": "length"}) == "stop_reason was 'eos' and is 'length' now"


def test_the_notes_are_read_in_order():
    notes = room.load_notes("en")
    assert [note.number for note in notes if note.document == notes[0].document] == [*range(len(notes))][:85]
    assert notes[0].document.startswith("1-") and notes[-1].document.startswith("3-")
    with pytest.raises(FileNotFoundError, match="there are no notes in 'fr'"):
        room.load_notes("fr")


def test_a_check_says_that_the_code_has_changed(toy, capsys, monkeypatch):
    run()
    monkeypatch.setattr(origin, "code_hash", lambda files, root: "0" * 64)
    assert run(count=1) == 0 and "The code has changed since" in capsys.readouterr().out


def test_a_check_needs_a_file_with_rows_and_no_again(toy):
    with pytest.raises(Stop, match="no results/evaluations/toy.json yet: run `python3 -m lib evaluate toy` first"):
        run(count=1)
    run()
    with pytest.raises(Stop, match="--check compares with the file and --again makes it anew"):
        run(count=1, again=True)
    store.Store(NAME).file.write_text('{"rows": []}', encoding="utf-8")
    with pytest.raises(Stop, match="holds no such row"):
        run(count=1)


def kept(*replies: str, question: str = "?") -> dict:
    return {"episode": keep.values(run_agent(ScriptedModel(list(replies)), question, Protocol(tools=(loop.add,))))}


@pytest.mark.parametrize("old, new, words", [
    (kept("một"), kept("một"), ""), ({}, {}, ""), (kept("a b"), kept("a c"), "reply 1 differs from token 3 on"),
    (kept("a"), kept("ab"), "reply 1 differs from token 2 on"), (kept("ab"), kept("a"), "differs from token 2 on"),
    (kept("a"), kept("a", question="??"), "the text before reply 1 is another"),
    (kept(CALL, "2"), kept(CALL.replace("1}", "2}"), "2"), "reply 1 differs"),
    ({"episode": {"turns": [], "status": "loop"}}, {"episode": {"turns": [], "status": "answered"}},
     "episode.status was 'loop' and is 'answered' now"),
    ({"list": [1, {"b": 2}]}, {"list": [1, {"b": 3}]}, "list[2].b was 2 and is 3 now"),
    ({"list": [1]}, {"list": [1, 2]}, "list was a list of 1 and is a list of 2 now"),
    ({"a": "漢" * 90}, {}, f"a was '{'漢' * 59}… and is None now"), ({}, {"a": 0}, "a was None and is 0 now"),
    ({"a": -1.2345}, {"a": -1.2346}, ""), ({"a": -1.2345}, {"a": -1.2445}, "a was -1.2345 and is -1.2445 now"),
    ({"a": 1}, {"a": 1.0001}, "a was 1 and is 1.0001 now"),
    ({"gaps": [1], "made_from": "x"}, {"gaps": [2], "made_from": "y"}, "")])
def test_differences_in_words(old, new, words):
    found = check.difference(old, new)
    assert words in found and bool(found) == bool(words)


# --- memory, models, names --------------------------------------------------

@pytest.mark.parametrize("total, free, words", [
    (4e9, 3e9, "has 4.0 GB in all: leave it out with --model qwen2.5-coder-0.5b."),
    (9e9, 3e9, "has 3.0 GB free: close other programs or leave it out with --model qwen2.5-coder-0.5b.")])
def test_a_model_that_does_not_fit_is_a_sentence(total, free, words):
    memory = machine.Memory(int(total), int(free))
    with pytest.raises(Stop, match="The model qwen2.5-coder-1.5b needs 7.0 GB of memory and this machine ") as caught:
        evaluate.check_memory(loop.EVALUATION, "qwen2.5-coder-1.5b", memory)
    assert str(caught.value).endswith(words)
    evaluate.check_memory(loop.EVALUATION, "qwen2.5-coder-1.5b", machine.Memory(int(8e9), int(8e9)))


def test_memory_is_looked_at_before_anything_is_fetched(toy, monkeypatch):
    monkeypatch.setattr(machine, "memory", lambda: machine.Memory(10**9, 10**9))
    monkeypatch.setattr(fetch, "ensure", lambda names: pytest.fail("fetched"))
    with pytest.raises(Stop, match="needs 2.8 GB of memory"):
        run()


def test_a_model_that_is_missing_is_fetched_with_its_size(toy, monkeypatch, capsys):
    fetched = []
    monkeypatch.setattr(evaluate.models, "is_ready", lambda name: name != "smollm2-135m")
    monkeypatch.setattr(fetch, "ensure", fetched.extend)
    run()
    assert fetched == list(MODELS)
    assert "smollm2-135m is not on this machine yet and is fetched now: 98 MB to download, 538 MB once converted.\n" \
        in capsys.readouterr().out


def test_unknown_names_are_met_with_the_known_ones(toy):
    with pytest.raises(Stop, match="toy has no model 'gpt'; its models are: qwen2.5-coder-0.5b, smollm2-135m."):
        run("smollm2-135m", "gpt")


@pytest.mark.parametrize("name", ["", "lop", "store", "../loop", "Vòng lặp"])
def test_an_unknown_evaluation_lists_the_names(name):
    with pytest.raises(Stop, match=f"There is no evaluation '{name}'; there are: agent, loop, rag."):
        evaluations.find(name)


# --- the code hash ----------------------------------------------------------

FILES = {"lib/__init__.py": "", "lib/a.py": "from lib import b\n", "lib/b.py": "def f():\n    import lib.c\n",
         "lib/c.py": "from lib.a import x\nimport json\n", "lib/d.py": "", "lib/machinery/__init__.py": "",
         "lib/machinery/fetch.py": "", "lib/machinery/evaluations/__init__.py": "from lib import machinery\n",
         "lib/machinery/evaluations/e.py": "from lib.a import x\nfrom lib.machinery import fetch\n"
                                           "from lib.machinery.evaluations import y\n"}


@pytest.fixture
def course(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_imports_are_followed_through_the_rooms_alone(course):
    files = origin.code_files(course / "lib/machinery/evaluations/e.py", course)
    assert [path.relative_to(course.resolve()).as_posix() for path in files] == [
        "lib/__init__.py", "lib/a.py", "lib/b.py", "lib/c.py", "lib/machinery/evaluations/__init__.py",
        "lib/machinery/evaluations/e.py"]


@pytest.mark.parametrize("name, changes", [("lib/c.py", True), ("lib/machinery/evaluations/e.py", True),
                                           ("lib/d.py", False), ("lib/machinery/fetch.py", False)])
def test_a_comment_in_a_file_that_decides_changes_the_hash(course, name, changes):
    def found():
        return origin.code_hash(origin.code_files(course / "lib/machinery/evaluations/e.py", course), course)
    before = found()
    (course / name).write_bytes(FILES[name].replace("\n", "\r\n").encode())
    assert found() == before
    (course / name).write_text(FILES[name] + "# chú thích\n", encoding="utf-8")
    assert (found() != before) == changes


# --- the evaluation `loop`, and what notebooks read -------------------------

def test_loop_asks_the_three_questions_of_the_article():
    questions = room.load_questions("loop")
    assert [question["question"] for question in questions] == [
        "1234 nhân 5678 bằng bao nhiêu?", "Thủ đô của Việt Nam là gì?", "Tính (12 + 30) nhân 7."]
    assert [question["answer"] for question in questions] == [str(1234 * 5678), "Hà Nội", str((12 + 30) * 7)]
    assert all(question["gold"].get("number", "Hà Nội") == question["answer"] for question in questions)
    keys = loop.EVALUATION.keys()
    assert len(keys) == 18 and {loop.asked(key) for key in keys} == {question["question"] for question in questions}


@pytest.mark.parametrize("condition, policy, calls, examples",
                         [("strict", "strict", 0, 0), ("lenient", "lenient", 1, 0), ("worked", "lenient", 1, 4)])
def test_a_row_of_loop(condition, policy, calls, examples):
    key, told = {"model": "m", "condition": condition, "question": "product"}, []
    model = ScriptedModel(['{"name": "multiply", "arguments": {"a": 1234, "b": 5678}}', "7006652\n🙂"])
    values, seconds = loop.compute(model, key, told.append)
    episode = Episode.from_json(json.dumps(values["episode"]))
    assert [call.arguments for call in episode.calls] == [{"a": 1234, "b": 5678}] * calls
    assert (episode.limits["max_turns"], episode.limits["max_new_tokens"]) == (5, 256)
    assert episode.protocol["policy"] == policy
    assert len(episode.protocol["examples"]) == examples
    assert [episode.answer, episode.status] == (["7006652\n🙂", "answered"])
    assert told[-1] == "turn 2: 7006652\\n🙂" and len(seconds["tool_seconds"]) == 2


def test_notebooks_read_the_rows_as_episodes(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "ROOT", tmp_path)
    monkeypatch.setattr(room, "RESULTS", tmp_path / "results" / "evaluations")
    with pytest.raises(FileNotFoundError, match="there is no toy.json in results/evaluations; there are: none"):
        room.load_evaluation("toy")
    run()
    document = room.load_evaluation("toy")
    assert [row["episode"].answer for row in document["rows"]] == ["Là 2. 漢字 🙂"] * 2 + [None] * 2
    assert document["rows"][0]["episode"].turns[0].spans[0].writer and document["rows"][0]["question"] == "một"
    assert json.loads(document["rows"][2]["episode"].to_json()) == written()["rows"][2]["episode"]


def test_an_unknown_file_of_questions_lists_the_known_ones():
    with pytest.raises(FileNotFoundError, match=r"there is no x.jsonl in data/questions; there are: (.*, )?loop"):
        room.load_questions("x")
