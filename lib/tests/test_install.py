"""How .venv is made, completed and made anew; pip itself is a stand-in here, test_setup.py runs the real one."""
import http.server
import io
import os
import shutil
import socket
import sys
import threading
import time

import pytest

from lib.machinery import Stop, environment, install, machine, pip, preflight
from lib.machinery.pip_failures import PipFailure
from lib.machinery.progress import Progress
from lib.tests.test_environment import VERSION, checkout, make_venv, package  # noqa: F401 (a fixture)


@pytest.fixture
def paths(checkout, monkeypatch):  # noqa: F811
    """A checkout for install.py, which has its own names for the paths."""
    monkeypatch.setattr(install, "ROOT", checkout)
    monkeypatch.setattr(install, "VENV", checkout / ".venv")
    monkeypatch.setenv("COURSE_CACHE", str(checkout / "cache"))
    return checkout


@pytest.fixture
def steps(paths, monkeypatch) -> list[str]:
    """Stand-ins for everything that starts a process; the steps taken, in order."""
    taken: list[str] = []

    def create(progress, descriptor, log):
        taken.append("venv")
        make_venv(paths, None, torch="0", tiny_package="0")
        environment.write_stamp("making")

    def pip_install(python, arguments, *rest):
        taken.append(" ".join(argument for argument in arguments if not argument.startswith("--only")))
        packages = environment.packages_of(environment.VENV, VERSION)
        shutil.rmtree(packages)
        for name, version in environment.pins().items():
            package(packages, name, version)
    monkeypatch.setattr(install, "_create", create)
    monkeypatch.setattr(install, "_has_pip", lambda: True)
    monkeypatch.setattr(install, "answers", lambda url: False)
    monkeypatch.setattr(install, "check_space", lambda: None)
    monkeypatch.setattr(pip, "install", pip_install)
    return taken


def make() -> str:
    """What set-up prints."""
    stream = io.StringIO()
    assert install.make(Progress(stream)) == environment.python_of(environment.VENV)
    return stream.getvalue()


def test_from_nothing_all_steps_are_taken_and_the_stamp_comes_last(steps):
    said = make()
    assert [step.split()[0] for step in steps] == ["venv", "--no-deps", ":all:", "--no-deps"]
    assert environment.stamp()["stage"] == "whole" and environment.venv_fault() is None
    assert "2 packages" in said and "minutes" in said and "GB" in said


def test_what_is_whole_is_not_touched(steps, paths):
    make_venv(paths)
    assert make() == "" and steps == []


@pytest.mark.parametrize("stage", ["made", "whole"])
def test_what_was_interrupted_or_is_outdated_is_completed(stage, steps, paths):
    make_venv(paths, stage, tiny_package="1.4")
    make()
    assert "venv" not in steps and environment.venv_fault() is None


@pytest.mark.parametrize("spoil", [
    lambda venv: environment.write_stamp("making"),
    lambda venv: (venv / "course.json").write_text('{"stage": "whole", "checkout": "/elsewhere"}', encoding="utf-8"),
    lambda venv: (environment.python_of(venv).unlink(), environment.python_of(venv).symlink_to("/gone/python3")),
])
def test_what_cannot_be_trusted_is_made_anew(spoil, steps, paths):
    make_venv(paths)
    (paths / ".venv" / "old").mkdir()
    spoil(paths / ".venv")
    make()
    assert steps[0] == "venv" and not (paths / ".venv" / "old").exists() and environment.venv_fault() is None


def test_a_clearing_that_was_killed_is_gone_on_with(steps, paths):
    make_venv(paths, "making")
    (paths / ".venv" / "pyvenv.cfg").unlink()
    shutil.rmtree(environment.python_of(paths / ".venv").parent)
    make()
    assert steps[0] == "venv"


def test_somebody_elses_broken_folder_is_left_alone(steps, paths):
    (paths / ".venv").mkdir()
    (paths / ".venv" / "thesis.txt").write_text("years", encoding="utf-8")
    with pytest.raises(Stop, match="not made by this course"):
        make()
    assert (paths / ".venv" / "thesis.txt").exists() and steps == []


def test_somebody_elses_environment_that_runs_is_completed(steps, paths):
    make_venv(paths, None, tiny_package="1.4")
    make()
    assert "venv" not in steps and environment.stamp()["stage"] == "whole"


def test_a_set_up_whose_packages_do_not_come_out_right_does_not_count(steps, monkeypatch):
    monkeypatch.setattr(pip, "install", lambda *arguments: None)
    with pytest.raises(Stop, match="still not right.*doctor"):
        make()
    assert environment.stamp()["stage"] == "made" and environment.ready() is None


@pytest.mark.parametrize("platform, answers, failure, indexes", [
    ("linux", True, None, ["cpu"]), ("linux", False, None, ["usual"]),
    ("linux", True, "No matching distribution found for torch==2.0", ["cpu", "usual"]),
    ("linux", True, "connection broken by 'ReadTimeoutError'", ["cpu", "usual"]),
    ("darwin", True, None, ["usual"]), ("win32", True, None, ["usual"]),
])
def test_torch_is_asked_of_the_cpu_index_first(platform, answers, failure, indexes, steps, paths, monkeypatch):
    asked = []

    def pip_install(python, arguments, *rest):
        assert "--no-deps" in arguments and "torch==2.0" in arguments
        asked.append("cpu" if install.CPU_INDEX in arguments else "usual")
        if failure and asked == ["cpu"]:
            raise PipFailure(failure, "log")
    make_venv(paths, torch="1.0")
    monkeypatch.setattr(install.sys, "platform", platform)
    monkeypatch.setattr(install, "answers", lambda url: answers)
    monkeypatch.setattr(pip, "install", pip_install)
    install.torch(environment.python_of(paths / ".venv"), "2.0", Progress(io.StringIO()), 0, paths / "log")
    assert asked == indexes


def test_a_full_disk_is_not_tried_twice(steps, paths, monkeypatch):
    def full(*arguments):
        raise PipFailure("No space left on device", "log")
    make_venv(paths, torch="1.0")
    monkeypatch.setattr(install, "answers", lambda url: True)
    monkeypatch.setattr(pip, "install", full)
    with pytest.raises(Stop, match="disk became full"):
        install.torch(environment.python_of(paths / ".venv"), "2.0", Progress(io.StringIO()), 0, paths / "log")


def record(folder, *rows: str) -> None:
    (folder / "RECORD").write_text("\n".join(rows) + "\n", encoding="utf-8")


WHOLE = ["tiny/__init__.py,sha256=x,5", "tiny/__pycache__/x.cpython-311.pyc,,",
         "tiny-1.dist-info/INSTALLER,sha256=y,4", "tiny-1.dist-info/RECORD,,"]


@pytest.mark.parametrize("rows, size, sound", [
    (WHOLE, 5, True), (WHOLE, 4, False), (WHOLE, None, False), (WHOLE[:2], 5, False), ([], 5, False),
    (["tiny/__init__.py,sha256=x,many", *WHOLE[1:]], 5, False),
])
def test_a_half_written_package_is_forgotten(rows, size, sound, tmp_path):
    folder = package(tmp_path, "tiny", "1")
    (folder / "INSTALLER").write_text("pip\n", encoding="ascii", newline="\n")
    if size is not None:
        (tmp_path / "tiny").mkdir()
        (tmp_path / "tiny" / "__init__.py").write_text("x" * size, encoding="ascii")
    record(folder, *rows)
    (tmp_path / "~iny").mkdir()  # what pip renames a package to while it replaces it
    install.sweep(tmp_path)
    assert (folder.exists(), (tmp_path / "~iny").exists()) == (sound, False)


def test_the_packages_of_this_environment_are_sound():
    """The rule of `is_sound` holds for packages that pip really installed."""
    found = environment.Distribution.discover(name="packaging")
    assert install.is_sound(next(iter(found)).locate_file("packaging-26.4.dist-info"))


@pytest.mark.parametrize("one_disk, free, stops", [(True, 5.0e9, True), (True, 6.0e9, False), (False, 3.9e9, False),
                                                   (False, 2.0e9, True)])
def test_space_is_counted_per_disk(one_disk, free, stops, paths, monkeypatch):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    monkeypatch.setattr(machine, "same_disk", lambda one, other: one_disk)
    monkeypatch.setattr(machine, "disk_free", lambda path: free)
    monkeypatch.setattr(machine, "disk_used", lambda path: 0)
    if stops:
        with pytest.raises(Stop, match="make room"):
            install.check_space()
    else:
        install.check_space()


def test_what_is_installed_already_needs_no_room(paths, monkeypatch):
    monkeypatch.setattr(preflight, "model_disk", lambda: 0)
    monkeypatch.setattr(machine, "disk_free", lambda path: install.SCRATCH_BYTES + 1)
    monkeypatch.setattr(machine, "disk_used", lambda path: install.ENVIRONMENT_BYTES)
    install.check_space()


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_HEAD(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("status, reachable", [(200, True), (403, False), (404, False), (503, False)])
def test_a_probe_takes_the_servers_word(status, reachable, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        server.timeout = 10  # seconds; without a loopback interface nobody comes
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert install.answers(f"http://127.0.0.1:{server.server_port}/{status}", 5) == reachable
        thread.join()


@pytest.mark.parametrize("listening", [True, False])
def test_a_probe_takes_no_longer_than_it_may(listening, monkeypatch):
    """`listening`: the connection stands and no answer comes, the worst that a firewall does."""
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listening:
            silent.listen()
        begun = time.monotonic()
        assert not install.answers(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.3)
        assert time.monotonic() - begun < 1.5


def test_pip_is_handed_the_lock_so_that_an_orphan_keeps_it(paths, monkeypatch):
    if os.name == "nt":
        pytest.skip("Windows gives a lock back with its process")
    (paths / ".venv" / "tmp").mkdir(parents=True)
    with open(paths / "lock", "w", encoding="utf-8") as file:
        code = f"import os; print(os.fstat({file.fileno()}).st_ino)"
        watch = pip.Watch(0, lambda: 0)
        pip.run([sys.executable, "-c", code], watch, Progress(io.StringIO()), file.fileno(), paths / "log")
        assert watch.lines == [str(os.fstat(file.fileno()).st_ino)]
