"""The command line: help, complaints, the way to the right Python, and how every kind of end is told."""
import argparse
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lib.machinery import Stop, commands, environment, install, preflight

ROOT = environment.ROOT


def lib(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """`python -m lib` with these arguments, as a person runs it."""
    return subprocess.run([sys.executable, "-m", "lib", *arguments], cwd=ROOT, capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, **variables})


def test_without_arguments_the_help_is_shown():
    answer = lib()
    assert (answer.returncode, answer.stderr) == (0, "")
    assert all(f"    {name} " in answer.stdout for name in commands.COMMANDS)
    assert "examples:" in answer.stdout


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_has_a_sentence_and_an_example_that_can_be_parsed(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        commands.parse([name, "--help"])
    shown = capsys.readouterr().out
    command = commands.COMMANDS[name]
    assert command.sentence[:40] in shown and f"example: python3 -m lib {name}" in shown
    assert commands.parse(command.example.split()).command == name


@pytest.mark.parametrize("line, fields", [
    ("run", {"notebooks": []}), ("run 01 3", {"notebooks": ["01", "3"]}),
    ("test 02 --all --junit x.xml", {"notebooks": ["02"], "all": True, "junit": "x.xml"}),
    ("test", {"notebooks": [], "all": False, "junit": None}), ("record --times", {"notebooks": [], "times": True}),
    ("lab", {"notebooks": [], "no_browser": False, "port": None}),
    ("lab 01 --no-browser --port 0", {"notebooks": ["01"], "no_browser": True, "port": 0}),
    ("reset 1", {"notebooks": ["1"]}), ("doctor --deep", {"deep": True}), ("clean", {"yes": False}),
    ("fetch a b", {"names": ["a", "b"]}),
    ("evaluate loop", {"evaluation": "loop", "models": None, "again": False, "check": None}),
    ("evaluate loop --model a --model b --again", {"models": ["a", "b"], "again": True}),
    ("drift", {"notebooks": [], "whole": False, "emulated": False}),
    ("drift 01 2 --whole", {"notebooks": ["01", "2"], "whole": True}), ("drift --emulated", {"emulated": True}),
    ("evaluate loop --check 3", {"check": 3}), ("evaluate loop --check all", {"check": sys.maxsize}),
])
def test_a_command_line_becomes_fields(line, fields):
    found = vars(commands.parse(line.split()))
    assert {name: found[name] for name in fields} == fields


@pytest.mark.parametrize("line, sentence", [
    (["tset"], "There is no command 'tset'; did you mean 'test'?"), (["doktor"], "did you mean 'doctor'?"),
    (["zzz"], "there are: run, test,"), (["run", "--al"], "Unrecognized arguments: --al; python3 -m lib --help"),
    (["reset"], "The following arguments are required: NN; python3 -m lib reset --help"),
    (["lab", "--port", "x"], "invalid int value: 'x'; python3 -m lib lab --help shows how."),
    (["evaluate"], "The following arguments are required: NAME; python3 -m lib evaluate --help"),
    (["evaluate", "loop", "--check", "0"], "'0' is no number of rows: give 1, 2, ... or all; python3"),
    (["evaluate", "loop", "--check", "-1"], "'-1' is no number of rows"),
    (["evaluate", "loop", "--check", "²"], "'²' is no number of rows"),
    (["lab", "01", "02"], "Unrecognized arguments: 02"), (["Chào"], "There is no command 'Chào'"),
])
def test_a_wrong_line_is_one_sentence(line, sentence, capsys):
    with pytest.raises(SystemExit, match="2"):
        commands.parse(line)
    complaint = capsys.readouterr().err
    assert sentence in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize("error, code, words", [
    (Stop("Do this."), 1, "Do this.\n"), (KeyboardInterrupt(), 130, "Interrupted; run the same command again"),
    (OSError(errno.ENOSPC, "x", "/a/b"), 1, "/a/b: the disk is full: make room"),
    (OSError(errno.ENOSPC, "x"), 1, "While writing, the disk is full"),
    (PermissionError(errno.EACCES, "x", "/a"), 1, "/a: permission is denied"),
    (OSError(errno.EROFS, "x", "/a"), 1, "/a: the disk can only be read"),
    (MemoryError(), 1, "COURSE_MODEL=smollm2-135m"),
    (MemoryError("it needs 9 GB: take another"), 1, "it needs 9 GB: take another"),
])
def test_what_its_user_can_mend_is_one_sentence(error, code, words, capsys):
    assert commands.verdict(error) == code
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("x"), FileNotFoundError(errno.ENOENT, "x", "/a")])
def test_a_fault_of_ours_is_shown_whole(error, capsys):
    assert commands.verdict(error) == 1
    said = capsys.readouterr().err
    assert type(error).__name__ in said and "fault of the course" in said and "doctor" in said


def test_an_exit_passes_through():
    with pytest.raises(SystemExit, match="7"):
        commands.verdict(SystemExit(7))


@pytest.fixture
def path(monkeypatch) -> list[str]:
    """Stand-ins for everything on the way to a command, which note that they were passed."""
    passed: list[str] = []

    def note(word: str, value: object = None):
        return lambda *arguments: passed.append(word) or value
    monkeypatch.setattr(preflight, "check_memory", note("memory"))
    monkeypatch.setattr(environment, "ready", note("ready"))
    monkeypatch.setattr(install, "make", note("make", Path("/made/python")))
    monkeypatch.setattr(environment, "is_running", lambda python: False)
    monkeypatch.setattr(commands, "hand_over", note("hand over", 5))
    monkeypatch.setattr(commands, "function", lambda command: note("work", 6))
    return passed


@pytest.mark.parametrize("name, ready, passed, code", [
    ("run", False, ["memory", "ready", "make", "hand over"], 5), ("fetch", False, ["ready", "make", "hand over"], 5),
    ("evaluate", False, ["ready", "make", "hand over"], 5), ("bench", False, ["ready", "make", "hand over"], 5),
    ("segment", False, ["ready", "make", "hand over"], 5),
    ("run", True, ["memory", "ready", "hand over"], 5), ("doctor", True, ["ready", "hand over"], 5),
    ("doctor", False, ["ready", "work"], 6), ("clean", True, ["work"], 6), ("clean", False, ["work"], 6),
])
def test_the_way_to_a_command(name, ready, passed, code, path, monkeypatch):
    if ready:
        monkeypatch.setattr(environment, "ready", lambda: path.append("ready") or Path("/ready/python"))
    assert commands.dispatch(argparse.Namespace(command=name), [name]) == code
    assert path == passed


def test_on_the_ready_python_a_command_is_run_in_its_surroundings(path, monkeypatch):
    seen: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", {**os.environ, commands.HANDED_OVER: sys.executable})
    monkeypatch.setattr(environment, "ready", lambda: Path(sys.executable))
    monkeypatch.setattr(environment, "is_running", lambda python: True)
    monkeypatch.setattr(commands, "function", lambda command: lambda arguments: seen.update(os.environ) or 3)
    assert commands.dispatch(argparse.Namespace(command="run"), ["run"]) == 3
    assert seen["JUPYTER_PREFER_ENV_PATH"] == "1" and commands.HANDED_OVER not in seen


@pytest.mark.skipif(os.name == "nt", reason="there a child is started in place of exec")
def test_handing_over_keeps_arguments_and_code(tmp_path):
    stub = tmp_path / "python"
    stub.write_text(f"#!{sys.executable}\nimport os, sys\n"
                    "print(sys.argv[1:], os.environ['PYTHONUTF8'])\nsys.exit(9)\n", encoding="utf-8")
    stub.chmod(0o755)
    code = ("import pathlib, sys; from lib.machinery import commands;"
            "commands.hand_over(pathlib.Path(sys.argv[1]), ['run', '01', 'a b'])")
    answer = subprocess.run([sys.executable, "-c", code, str(stub)], cwd=ROOT, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (9, "['-m', 'lib', 'run', '01', 'a b'] 1\n")


def test_an_interpreter_that_is_handed_to_twice_is_our_fault(monkeypatch):
    monkeypatch.setenv(commands.HANDED_OVER, "/ready/python")
    with pytest.raises(RuntimeError, match="does not see itself"):
        commands.hand_over(Path("/ready/python"), ["run"])


@pytest.mark.parametrize("command", [command for command in commands.COMMANDS.values()], ids=list(commands.COMMANDS))
def test_every_command_has_its_function(command):
    assert callable(commands.function(command))


@pytest.mark.parametrize("buffered", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_reader_that_goes_away_is_met_with_silence(buffered):
    script = ("import sys; from lib.machinery import commands\ninput()\n"
              "commands.dispatch = lambda arguments, argv: print('much') or 0\n"
              "sys.exit(commands.main(['doctor']))")
    process = subprocess.Popen([sys.executable, *buffered, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write("\n")
    process.stdin.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait() == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking")
@pytest.mark.parametrize("name, code", [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_lets_the_command_clean_up(name, code, tmp_path):
    script = ("import sys, time; from lib.machinery import commands\n"
              "def work(arguments):\n"
              "    try:\n        print('begun', flush=True); time.sleep(30)\n"
              "    finally:\n        print('cleaned', flush=True)\n"
              "commands.dispatch = lambda arguments, argv: work(arguments)\n"
              "sys.exit(commands.main(['doctor']))")
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, "cleaned\n") and "Traceback" not in err
