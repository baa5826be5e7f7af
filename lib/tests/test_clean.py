"""What is removed, and what never is."""
import argparse
import os
import sys

import pytest

from lib.machinery import clean, environment, lock, machine

ROOT = environment.ROOT


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A checkout and a cache with everything in them that the course makes, and things that are not its own."""
    root, cache = tmp_path / "course", tmp_path / "cache"
    for path in [root / ".venv/bin/python", root / "results/run/01.ipynb", root / "results/lab/01.ipynb",
                 root / "results/kept.json", root / "lib/__pycache__/x.pyc", root / "lib/models.py",
                 root / "notebooks/.ipynb_checkpoints/01.ipynb", root / "notebooks/01.ipynb", root / "mine.txt",
                 cache / "models/smollm2-135m/hash-1/model.safetensors", cache / "models/my-own/weights",
                 root / "results/bench/retrieval.json", root / "results/run/extras/x/y.py",
                 cache / "downloads/a.whl", cache / "photos/cat.png"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 5000)
    monkeypatch.setattr(environment, "ROOT", root)
    monkeypatch.setattr(clean, "groups", lambda real=clean.groups: real(root, cache))
    return tmp_path


def files(folder) -> set[str]:
    """Every file below `folder`."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


OTHERS = {"course/results/bench/retrieval.json", "course/results/kept.json",
          "course/lib/models.py", "course/notebooks/01.ipynb", "course/mine.txt",
          "cache/models/my-own/weights", "cache/photos/cat.png"}


def test_yes_removes_all_that_is_the_courses_and_nothing_else(disk, capsys):
    assert clean.main(argparse.Namespace(yes=True)) == 0
    assert files(disk) == OTHERS | {"course/results/lab/01.ipynb"}  # a reader's edits go only on a reader's word
    said = capsys.readouterr().out
    assert "smollm2-135m" in said and "freed" in said and "qwen" not in said  # what isn't there isn't listed


def test_without_a_terminal_it_only_lists(disk, capsys, monkeypatch):
    before = files(disk)
    monkeypatch.setattr(sys, "stdin", open(os.devnull, encoding="utf-8"))
    with sys.stdin:
        assert clean.main(argparse.Namespace(yes=False)) == 0
    assert files(disk) == before and "--yes" in capsys.readouterr().out


@pytest.mark.parametrize("answers, gone", [
    ({".venv": "y", "results/lab": "n"}, {"course/.venv/bin/python"}), ({"smollm2": "YES"},
     {"cache/models/smollm2-135m/hash-1/model.safetensors"}), ({"results/lab": "maybe"}, set()),
])
def test_in_a_terminal_it_asks_for_each_group(answers, gone, disk, monkeypatch):
    before = files(disk)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: next(
        (answer for words, answer in answers.items() if words in question), ""))
    clean.main(argparse.Namespace(yes=False))
    assert before - files(disk) == gone


def test_the_end_of_input_is_a_no(monkeypatch):
    def end(question):
        raise EOFError
    monkeypatch.setattr("builtins.input", end)
    assert not clean.asked(clean.Group("x", ROOT, [], "y"))


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_is_neither_followed_nor_removed(disk, capsys):
    outside = disk / "elsewhere"
    (disk / "course/.venv").rename(outside)
    (disk / "course/.venv").symlink_to(outside)
    (disk / "cache/downloads/linked").symlink_to(disk / "course/mine.txt")
    clean.main(argparse.Namespace(yes=True))
    assert (outside / "bin/python").exists() and (disk / "course/.venv").is_symlink()
    assert (disk / "course/mine.txt").exists() and not (disk / "cache/downloads").exists()
    assert "behind a link and was left alone" in capsys.readouterr().out


@pytest.mark.parametrize("parent", ["course/results", "cache/models"])
@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_folder_reached_by_a_link_is_left_alone(parent, disk):
    (disk / parent).rename(disk / "moved")
    (disk / parent).symlink_to(disk / "moved")
    before = files(disk / "moved")
    clean.main(argparse.Namespace(yes=True))
    assert files(disk / "moved") == before


def test_a_set_up_at_work_is_not_pulled_away(disk, capsys):
    path = disk / "course/.venv/course.lock"
    with lock.held(path, lambda: None):
        assert not clean.remove_folder(path.parent, disk)
        assert (path.parent / "bin/python").exists() and "at work" in capsys.readouterr().out
    assert clean.remove_folder(path.parent, disk) and not path.parent.exists()


def test_nothing_there_is_no_fault(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(clean, "groups", lambda: [clean.Group("x", tmp_path, [tmp_path / "none"], "y")])
    assert clean.main(argparse.Namespace(yes=True)) == 0
    assert capsys.readouterr().out == f"{machine.gigabytes(0):>8}  in all\n"
