"""One call of pip: what it says becomes progress, a log and, where it fails, one sentence."""
import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from lib.machinery import environment, pip
from lib.machinery.pip_failures import PipFailure
from lib.machinery.progress import Progress


def errors(*lines: str) -> str:
    """pip's output with these errors at its end."""
    return "Looking in links: /some/wheels\n" + "".join(f"ERROR: {line}\n" for line in lines)


RETRY = "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by "
OFFLINE = (RETRY + "'NewConnectionError('<HTTPSConnection object at 0x7f>: Failed to establish a new connection: "
           "[Errno 111] Connection refused')': /simple/x/\n" + errors("No matching distribution found for torch==2"))
PROXY = RETRY + "'ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407'))': /simple/x/\n"
CERTIFICATE = "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"
ABSENT = errors("Could not find a version that satisfies the requirement torch==9.9 (from versions: 2.12.0, 2.13.0)",
                "No matching distribution found for torch==9.9")
WRONG_PYTHON = errors("Ignored the following versions that require a different python version: 4.1.2 Requires-Python "
                      ">=3.11.4; 4.1.3 Requires-Python >=3.11.5; 9.0 Requires-Python >=3.12",
                      "No matching distribution found for soupsieve==4.1.3")
FULL = errors("Could not install packages due to an OSError: [Errno 28] No space left on device")
DENIED = errors("Could not install packages due to an OSError: [Errno 13] Permission denied: '/x/y'")
CONFLICT = errors("Cannot install a==1 and b==2 because these package versions have conflicting dependencies.")


@pytest.mark.parametrize("text, kind, words", [
    (OFFLINE, "network", ["HTTPS_PROXY", "PIP_INDEX_URL", "run the same command again"]),
    (PROXY, "network", ["HTTPS_PROXY"]),
    (CERTIFICATE, "network", ["PIP_CERT"]),
    (ABSENT, "absent", ["torch==9.9", "PIP_INDEX_URL"]),
    (WRONG_PYTHON, "absent", ["soupsieve==4.1.3", "needs Python >=3.11.5"]),
    (FULL, "disk", ["full", "make room"]), (FULL + OFFLINE, "disk", ["full"]),
    (DENIED, "permission", ["Permission denied: '/x/y'", ".venv"]),
    (CONFLICT, "other", ["conflicting dependencies"]), ("", "other", ["it said nothing"]),
])
def test_a_failure_is_one_sentence_that_says_what_to_do(text, kind, words):
    failure = PipFailure(text, ".venv/setup.log")
    assert failure.kind == kind
    assert all(word in str(failure) for word in [*words, ".venv/setup.log"]), str(failure)
    assert "\n" not in str(failure)


def test_the_progress_follows_what_pip_says():
    watch = pip.Watch(3, lambda: 2)
    said = []
    for line in ["Collecting torch==2.0 (from -r x (line 1))\n", "  Downloading torch-2.0-cp311.whl (191.8 MB)\n",
                 "Requirement already satisfied: Tiny_Package==1.5 in ./x\n", "Collecting torch==2.0\n",
                 "WARNING: Retrying (Retry(total=4)) after connection broken\n",
                 "Installing collected packages: a, torch\n"]:
        watch.hear(line)
        said.append(watch.state())
    assert said == ["fetching, 1 of 3, torch", "fetching, 1 of 3, torch-2.0-cp311.whl (191.8 MB)",
                    "fetching, 2 of 3, Tiny_Package", "fetching, 2 of 3, torch",
                    "the package index does not answer; pip tries again", "installing, 2 of 3"]


@pytest.mark.parametrize("fetched, words", [(0, "fetching, 1 of 9, a"),
                                            (57_300_000, "fetching, 1 of 9, a, 57 MB so far")])
def test_what_is_fetched_is_counted(fetched, words):
    watch = pip.Watch(9, lambda: 0, lambda: fetched)
    watch.hear("Collecting a==1\n")
    assert watch.state() == words


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    (tmp_path / ".venv" / "tmp").mkdir(parents=True)
    return tmp_path


def run(checkout, code: str, watch: pip.Watch | None = None) -> tuple[int, str]:
    """The exit code of a stand-in for pip, and the log it left."""
    log, stream = checkout / ".venv" / "setup.log", io.StringIO()
    with open(checkout / "lock", "w", encoding="utf-8") as lock:
        result = pip.run([sys.executable, "-c", code], watch or pip.Watch(1, lambda: 0), Progress(stream, every=0),
                         lock.fileno(), log)
    return result, log.read_text(encoding="utf-8")


def test_everything_pip_says_is_kept_in_the_log(checkout):
    watch = pip.Watch(1, lambda: 0)
    code, log = run(checkout, "import sys; print('Collecting xin-chào'); sys.exit('ERROR: ô')", watch)
    assert code == 1 and log == "Collecting xin-chào\nERROR: ô\n" and watch.lines == log.splitlines()


def test_pip_unpacks_inside_venv_and_nothing_sends_packages_elsewhere(checkout, monkeypatch):
    given = {"PIP_TARGET": "x", "PIP_USER": "1", "PYTHONPATH": "y", "PIP_INDEX_URL": "https://mirror"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    code = ("import os, tempfile; print(tempfile.gettempdir(), os.environ['PIP_USER'], os.environ['PIP_INDEX_URL'],"
            "'PIP_TARGET' in os.environ, 'PYTHONPATH' in os.environ)")
    scratch = str(checkout / ".venv" / "tmp")
    assert run(checkout, code)[1].split() == [scratch, "0", "https://mirror", "False", "False"]


@pytest.mark.skipif(os.name == "nt", reason="there a console's Ctrl-C reaches all of them")
def test_an_interrupt_leaves_neither_pip_nor_its_children_at_work(checkout):
    traces = [checkout / "pip", checkout / "its child"]
    busy = "import sys, time\nwhile True:\n    open(sys.argv[1], 'a').write('x')\n    time.sleep(0.01)"
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}, {str(traces[1])!r}])"
    code = f"{child}; sys.argv[1:] = [{str(traces[0])!r}]; exec({busy!r})"

    def interrupt():
        while not all(trace.exists() for trace in traces):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(checkout, code)
    sizes = [trace.stat().st_size for trace in traces]
    time.sleep(0.2)
    assert [trace.stat().st_size for trace in traces] == sizes


def test_the_python_of_a_failing_install_is_told_its_log(checkout):
    stub = checkout / "stub"
    stub.write_text(f"#!{sys.executable}\nimport sys\n"
                    "sys.exit('ERROR: No matching distribution found for ' + sys.argv[-1])\n", encoding="utf-8")
    stub.chmod(0o755)
    if subprocess.run([stub], capture_output=True).returncode != 1:
        pytest.skip("this system runs no scripts by their first line")
    with pytest.raises(PipFailure, match=r"torch==9.*\.venv/setup\.log") as failure, \
            open(checkout / "lock", "w", encoding="utf-8") as lock:
        pip.install(stub, ["torch==9"], 1, Progress(io.StringIO()), lock.fileno(), checkout / ".venv" / "setup.log")
    assert failure.value.kind == "absent"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream, expected", [
    (io.StringIO(), "1/1 work ...\n    half, 0 s\n1/1 work: done, 0 s\n"),
    (Terminal(), "\r\x1b[K1/1 work    0 s\r\x1b[K1/1 work  half  0 s\r\x1b[K1/1 work: done, 0 s\n"),
])
def test_a_log_gets_lines_and_a_terminal_one_moving_line(stream, expected):
    progress = Progress(stream, every=0)
    progress.step("1/1 work")
    progress.spoken -= 1
    progress.tell("half")
    progress.done()
    assert stream.getvalue() == expected


def test_a_log_is_not_filled_with_progress():
    progress = Progress(stream := io.StringIO(), every=60)
    progress.step("work")
    for _ in range(100):
        progress.tell("half")
    assert stream.getvalue() == "work ...\n"
