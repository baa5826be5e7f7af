"""The canaries: their list, their files, and that the stage cannot pass when either is weakened."""
import shutil

import pytest

from lib.machinery import canaries, notebooks, stages
from lib.machinery.canaries import EXPECTED, Expected
from lib.tests.canaries.make import FOLDER, all_canaries, executed_canaries, read_canaries
from lib.tests.canaries.more import more_canaries


def looked_at(monkeypatch, folder, **changed: Expected) -> list[canaries.Caught]:
    """What the canaries of a folder say, each executed one as it should, when entries of the list are changed."""
    monkeypatch.setattr(canaries, "in_execution", lambda known: [
        canaries.Caught(name, "execution", canaries.EXPECTED[name].execution, EXPECTED[name].execution or "")
        for name in known])
    monkeypatch.setattr(canaries, "EXPECTED", EXPECTED | changed)
    return canaries.canaries(folder)


def test_files_and_list_are_what_is_made():
    made = all_canaries()
    assert list(made) and set(made) == set(EXPECTED) == {path.stem for path in FOLDER.glob("*.ipynb")}
    assert [name for name, one in made.items()
            if (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8") != notebooks.dumps(one)] == []


def test_there_are_enough_and_all_are_different():
    made = {name: notebooks.dumps(one) for name, one in all_canaries().items()}
    assert len(made) - len(canaries.SOUND) >= canaries.LEAST and canaries.SOUND == {"clean"}
    assert len(set(made.values())) == len(made)


def test_each_is_executed_unless_its_file_alone_shows_its_defect():
    executed = {**executed_canaries(), **more_canaries()}
    assert [name for name in executed if name != "clean" and not EXPECTED[name].execution] == []
    assert [name for name in read_canaries() if not EXPECTED[name].structure] == []


def test_as_they_are_all_is_well(monkeypatch):
    assert [str(one) for one in looked_at(monkeypatch, FOLDER) if not one.is_right] == []


@pytest.mark.parametrize("changed, wrong", [
    ({"stderr": Expected(None, None)}, "stderr"), ({"machine_path": Expected(None, None)}, "machine_path"),
    ({"clean": Expected("its count is", None)}, "clean"), ({"wrong_text": Expected(None, "e")}, "wrong_text"),
    ({"machine_path": Expected("", None)}, "machine_path"), ({"gone": Expected("its count is", None)}, "gone")])
def test_a_weakened_expectation_is_no_catch(monkeypatch, changed, wrong):
    assert wrong in {one.name for one in looked_at(monkeypatch, FOLDER, **changed) if not one.is_right}


def test_an_empty_folder_is_no_catch(monkeypatch, tmp_path):
    found = looked_at(monkeypatch, tmp_path)
    assert {one.name for one in found} == set(EXPECTED) and not any(one.is_right for one in found)


def test_a_missing_file_a_stray_one_and_a_harmless_one_are_no_catch(monkeypatch, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "canaries")
    (tmp_path / "canaries" / "stderr.ipynb").unlink()
    shutil.copyfile(FOLDER / "clean.ipynb", tmp_path / "canaries" / "stray.ipynb")
    shutil.copyfile(FOLDER / "clean.ipynb", tmp_path / "canaries" / "machine_path.ipynb")
    wrong = {one.name for one in looked_at(monkeypatch, tmp_path / "canaries") if not one.is_right}
    assert wrong == {"stderr", "stray", "machine_path"}


def test_a_short_list_and_one_without_a_sound_canary_are_no_catch(monkeypatch):
    few = dict(list(EXPECTED.items())[1:5])
    monkeypatch.setattr(canaries, "EXPECTED", few)
    monkeypatch.setattr(canaries, "SOUND", set())
    assert [one.expected for one in canaries.weakened()] == ["at least 14 defects", "one that is sound"]
    assert not any(one.is_right for one in canaries.weakened())


def test_an_execution_that_did_not_take_place_is_no_catch(monkeypatch):
    monkeypatch.setattr(canaries, "reexecute", lambda paths, **options: stages.reexecute([], **options))
    known = {path.stem: path for path in FOLDER.glob("*.ipynb")}
    assert [one.name for one in canaries.in_execution(known) if one.is_right] == ["clean"]


@pytest.mark.parametrize("missed, last", [([], "caught 1 of 1; the sound one is green"),
                                          (["stderr"], "caught 0 of 1; the sound one is green"),
                                          (["clean"], "caught 1 of 1; the sound one is not green")])
def test_the_stage_counts_and_is_red_for_one_that_is_missed(monkeypatch, capsys, missed, last):
    found = [canaries.Caught(name, "execution", "words", "other" if name in missed else "words")
             for name in ("clean", "stderr")]
    monkeypatch.setattr(canaries, "canaries", lambda: found)
    assert stages.canaries_caught(None).is_green == (not missed)
    assert capsys.readouterr().out.strip() == last
