"""The gate itself, on toy notebooks and toy stages: what turns it red, and that nothing hides anything."""
from argparse import Namespace
from xml.etree import ElementTree

import nbformat
import pytest

from lib.machinery import Stop, gate, junit, notebooks, record, reexecute, stages, structure
from lib.machinery.stages import Request, Stage, stage
from lib.tests.canaries.make import stdout
from lib.tests.toys import course, sources, tree

FINE = ("print(6 * 7)", [stdout("42\n")])


@stage("passes")
def passes(request):
    return stages.from_cases("passes", [("a", ""), ("b", "")])


@stage("fails")
def fails(request):
    return stages.from_cases("fails", [("c", ""), ("d", "it is wrong\nhere")])


@stage("does nothing")
def does_nothing(request):
    return Stage("does nothing")


@stage("breaks")
def breaks(request):
    raise KeyError("oops")


@stage("leaves")
def leaves(request):
    raise SystemExit(0)


@stage("is ended")
def is_ended(request):
    raise SystemExit(143)


@stage("is slow", slow=True)
def is_slow(request):
    return stages.from_cases("is slow", [("e", "")])


@pytest.mark.parametrize("chosen, everything, code, last", [
    ([passes], False, 0, "2 passed, 0 failed"), ([passes, fails], False, 1, "3 passed, 1 failed"),
    ([fails, passes], False, 1, "3 passed, 1 failed"), ([breaks, passes], False, 1, "2 passed, 1 failed"),
    ([passes, does_nothing], False, 1, "2 passed, 1 failed"),
    ([leaves, passes], False, 1, "2 passed, 1 failed"), ([], False, 1, "0 passed, 1 failed"),
    ([passes, is_slow], False, 0, "2 passed, 0 failed"), ([passes, is_slow], True, 0, "3 passed, 0 failed")])
def test_green_only_if_every_stage_is(capsys, chosen, everything, code, last):
    assert gate.gate([], everything, stages=chosen) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_signal_ends_the_gate_with_its_code():
    with pytest.raises(SystemExit) as ended:
        gate.gate([], stages=[is_ended, passes])
    assert ended.value.code == 143


def test_the_outcome_is_shown_before_the_junit_file_is_tried(tmp_path, capsys):
    with pytest.raises(OSError):
        gate.gate([], junit=tmp_path / "gone" / "report.xml", stages=[passes])
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_a_fault_is_shown_in_words(capsys):
    gate.gate([], stages=[fails, breaks])
    out = capsys.readouterr().out
    assert "d: it is wrong" in out and "the stage itself failed: KeyError: 'oops'" in out


def test_one_junit_file_holds_every_stage(tmp_path):
    file = tmp_path / "report.xml"
    gate.gate([], junit=file, stages=[passes, fails, does_nothing, breaks])
    suites = {suite.get("name"): suite for suite in ElementTree.parse(file).getroot()}
    assert set(suites) == {"passes", "fails", "does nothing", "breaks"}
    assert [suites[name].get("failures") for name in suites] == ["0", "1", "1", "1"]
    assert suites["fails"].find("testcase/failure").get("message") == "it is wrong"


def test_the_junit_file_of_a_pytest_becomes_part_of_it(tmp_path):
    path = course(tmp_path, FINE, ("print(1)", [stdout("2\n")]))
    reexecute.reexecute([path], tmp_path / "strict.xml", quiet=True, root=tmp_path)
    junit.write(tmp_path / "all.xml", [Stage("strict", 1, 1, ["x"], junit=tmp_path / "strict.xml")])
    suite = ElementTree.parse(tmp_path / "all.xml").getroot().find("testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("strict", "2", "1")
    assert stages.counts(tmp_path / "strict.xml") == (1, 1) and stages.counts(tmp_path / "none.xml") == (0, 0)


@pytest.mark.parametrize("given", [{"notebooks": ["99"], "junit": None}, {"notebooks": [], "junit": "no/such/x.xml"},
                                   {"notebooks": [], "junit": "."}])
def test_bad_arguments_are_a_sentence(monkeypatch, tmp_path, given):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Stop):
        gate.main(Namespace(all=False, **given))


@pytest.fixture
def recorded(tmp_path):
    """A toy course, recorded."""
    path = sources(tmp_path, "print('sáu', 6 * 7)", "6 * 7")
    record.record(path, tmp_path)
    return path


def emptied(text: str, counts: bool) -> str:
    """The text of a notebook whose outputs are gone, and maybe its counts."""
    notebook = nbformat.v4.reads(text)
    for cell in notebooks.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None if counts else cell.execution_count
    return notebooks.dumps(notebook)


CHANGES = {  # how a recording is changed, and whether structure and execution have something against it
    "not at all": (lambda text: text, (False, False)),
    "a letter": (lambda text: text.replace("sáu 42", "sau 42"), (False, True)),
    "a value": (lambda text: text.replace('"42"', '"43"'), (False, True)),
    "a count": (lambda text: text.replace('"execution_count": 1,', '"execution_count": 3,'), (True, True)),
    "the kernel": (lambda text: text.replace('"name": "python3"', '"name": "mine"'), (True, True)),
    "the stream": (lambda text: text.replace('"name": "stdout"', '"name": "stderr"'), (True, True)),
    "the source": (lambda text: text.replace('6 * 7)"', '6 * 8)"'), (False, True)),
    "no outputs": (lambda text: emptied(text, counts=False), (False, True)),
    "nothing recorded": (lambda text: emptied(text, counts=True), (True, True)),
}


def test_a_recording_is_green_until_something_in_it_is_changed(recorded, tmp_path):
    text, paths = recorded.read_text(encoding="utf-8"), {}
    for place, (name, (change_it, _)) in enumerate(CHANGES.items()):
        paths[name] = tmp_path / str(place) / "notebooks" / "01-toy.ipynb"
        notebooks.write_atomically(paths[name], change_it(text))
        assert (change_it(text) == text) == (name == "not at all")
    executed = reexecute.reexecute(list(paths.values()), quiet=True, root=tmp_path).faults
    red = {name: (bool(structure.faults(path)), path in executed) for name, path in paths.items()}
    assert red == {name: expected for name, (_, expected) in CHANGES.items()}


def test_recorded_anew_is_compared_to_the_byte(recorded, tmp_path, monkeypatch):
    root = tmp_path
    monkeypatch.setattr(notebooks, "ROOT", root)
    (root / "results" / "timings").mkdir(parents=True, exist_ok=True)
    (root / "results" / "timings" / "t.json").write_text("1", encoding="utf-8")
    before = tree(root)
    for place, change_one in enumerate([None, "notebooks/01-toy.ipynb", "results/near-ties.json"]):
        if change_one:
            (root / change_one).write_bytes(before[change_one] + b"\n")
        done = stages.recorded_anew(Request([recorded], True, root.parent / f"{root.name}-{place}"))
        assert [case for case, fault in done.cases if fault] == ([change_one] if change_one else [])
        for name, content in before.items():
            (root / name).write_bytes(content)


def test_a_file_of_tests_that_says_nothing_is_named(tmp_path):
    for name in ("test_runs", "test_skipped", "test_gone"):
        (tmp_path / f"{name}.py").write_text("", encoding="utf-8")
    (tmp_path / "unit.xml").write_text(
        '<testsuites><testsuite><testcase classname="lib.tests.test_runs" name="a"/>'
        '<testcase classname="lib.tests.test_skipped" name="b"><skipped/></testcase></testsuite></testsuites>',
        encoding="utf-8")
    assert stages.silent_files(tmp_path / "unit.xml", tmp_path) == ["test_gone.py", "test_skipped.py"]
    (tmp_path / "test_gone.py").write_text("pytestmark = [pytest.mark.slow]\n", encoding="utf-8")
    assert stages.silent_files(tmp_path / "unit.xml", tmp_path, everything=False) == ["test_skipped.py"]


UNIT = """import pytest


def test_runs():
    pass


@pytest.mark.parametrize("one", [1, 2])
def test_several(one):
    pass


@pytest.mark.slow
def test_takes_long():
    pass


def test_is_left_out():
    pass
"""


@pytest.mark.parametrize("everything, faults", [
    (False, ["test_a.py: test_is_left_out was not run"]),
    (True, ["test_a.py: test_takes_long was not run", "test_a.py: test_is_left_out was not run"])])
def test_a_test_that_something_has_taken_out_is_named(tmp_path, everything, faults):
    (tmp_path / "test_a.py").write_text(UNIT, encoding="utf-8")
    (tmp_path / "test_silent.py").write_text(UNIT, encoding="utf-8")
    (tmp_path / "unit.xml").write_text(
        '<testsuites><testsuite><testcase classname="lib.tests.test_a" name="test_runs"/>'
        '<testcase classname="lib.tests.test_a" name="test_several[2]"><skipped type="pytest.skip"/></testcase>'
        "</testsuite></testsuites>", encoding="utf-8")
    assert stages.unseen_tests(tmp_path / "unit.xml", tmp_path, everything) == faults


def test_a_failure_that_is_expected_is_a_fault(tmp_path):
    (tmp_path / "unit.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"><skipped type="pytest.xfail"/></testcase>'
        "</testsuite></testsuites>", encoding="utf-8")
    assert stages.unseen_tests(tmp_path / "unit.xml", tmp_path) == [
        "a.b: a test that is expected to fail proves nothing"]


def test_the_options_of_the_unit_tests_are_those_of_the_settings():
    settings = (notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'addopts = "{stages.ADDOPTS}"' in settings and "python_f" not in settings and "python_c" not in settings
