"""What must hold beforehand: each failure is one sentence that says what to do."""
import errno
import importlib.util
import sys
from collections import namedtuple
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from lib import models
from lib.machinery import Stop, machine, preflight
from lib.machinery.machine import Memory


@pytest.mark.parametrize("model, total, available, words", [
    (None, 2.0e9, 1.9e9, ["2.8 GB", "2.0 GB in all", "COURSE_MODEL=smollm2-135m"]),
    (None, 8.0e9, 1.0e9, ["has 1.0 GB free", "close other programs or set COURSE_MODEL"]),
    ("smollm2-135m", 1.3e9, 1.2e9, ["1.4 GB", "use a machine with more"]),
    (None, 2.9e9, 2.85e9, None), ("smollm2-135m", 2.0e9, 1.9e9, None),
])
def test_too_little_memory_names_the_way_out(model, total, available, words, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", model or "")
    if words is None:
        assert preflight.check_memory(Memory(int(total), int(available))) is None
        return
    with pytest.raises(Stop) as stop:
        preflight.check_memory(Memory(int(total), int(available)))
    assert all(word in str(stop.value) for word in words), str(stop.value)


def test_memory_that_nobody_knows_stops_nobody(monkeypatch):
    monkeypatch.setattr(machine, "memory", lambda: None)
    assert preflight.check_memory() is None


def test_an_unknown_model_is_answered_with_those_there_are(monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "gpt-9")
    with pytest.raises(Stop, match="gpt-9.*smollm2-135m"):
        preflight.model_in_use()


@pytest.mark.parametrize("name", ["minilm", "multilingual-e5-small"])
def test_a_model_that_writes_no_text_is_not_taken_for_one(name, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", name)
    with pytest.raises(Stop, match=f"{name}, which turns texts into vectors.* smollm2-360m[.]$") as stop:
        preflight.model_in_use()
    assert str(stop.value).count("minilm") + str(stop.value).count("multilingual-e5-small") == 1


def test_the_default_model_is_the_one_of_lib_models(monkeypatch):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    assert preflight.model_in_use() == models.DEFAULT
    assert preflight.SMALL_MODEL in preflight.registry()


def test_a_full_disk_is_met_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "disk_free", lambda folder: 1_000_000_000)
    assert preflight.check_disk(tmp_path, 1_000_000_000, "It") is None
    with pytest.raises(Stop, match=r"It needs 2\.0 GB of disk and .* has 1\.0 GB free: make room"):
        preflight.check_disk(tmp_path, 2_000_000_000, "It")


def test_models_count_until_they_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    both = preflight.model_disk()
    folder = tmp_path / "models" / models.DEFAULT / "somehash-1"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    assert both - preflight.model_disk() == 491_400_064 + 4 * 494_032_768


def test_an_account_without_a_home_is_told_what_to_set(monkeypatch):
    assert preflight.check_home() is None
    monkeypatch.setattr(preflight.os.path, "expanduser", lambda path: path)
    with pytest.raises(Stop, match="HOME"):
        preflight.check_home()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_to(code, tmp_path, monkeypatch):
    def refuse(dir):
        raise OSError(code, "no such luck")
    assert preflight.check_writable(tmp_path) is None and not list(tmp_path.iterdir())
    monkeypatch.setattr(preflight.tempfile, "TemporaryFile", refuse)
    with pytest.raises(Stop, match="no such luck.*"):
        preflight.check_writable(tmp_path)


@pytest.mark.parametrize("left", [None, ModuleSpec("left", None)])  # the second: an empty folder of that name
@pytest.mark.parametrize("missing", [{"venv"}, {"ensurepip"}, {"venv", "ensurepip"}, set()])
def test_a_python_without_venv_names_the_package_that_brings_it(missing, left, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: left if name in missing else real(name))
    if not missing:
        assert preflight.check_venv_module() is None
        return
    with pytest.raises(Stop, match=f"apt install python3.{sys.version_info[1]}-venv"):
        preflight.check_venv_module()


@pytest.mark.parametrize("platform, length, long_allowed, stops", [
    ("win32", 20, False, False), ("win32", 120, False, True), ("win32", 120, True, False),
    ("linux", 120, False, False),
])
def test_a_path_too_long_for_windows(platform, length, long_allowed, stops, monkeypatch):
    monkeypatch.setattr(preflight, "sys", namedtuple("System", "platform")(platform))
    monkeypatch.setattr(preflight, "long_paths", lambda: long_allowed)
    root = Path("C" * length)
    if stops:
        with pytest.raises(Stop, match="260 characters"):
            preflight.check_path_length(root)
    else:
        assert preflight.check_path_length(root) is None


@pytest.mark.parametrize("chosen, names", [
    (None, ["qwen2.5-coder-0.5b", "smollm2-135m"]), ("smollm2-135m", ["smollm2-135m"]),
    ("smollm2-360m", ["smollm2-360m", "smollm2-135m"])])
def test_the_variable_course_model_stands_for_the_default(monkeypatch, chosen, names):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    if chosen:
        monkeypatch.setenv("COURSE_MODEL", chosen)
    assert preflight.models_needed() == [*names, "minilm", "multilingual-e5-small"]
