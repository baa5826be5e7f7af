"""The command `serve`: its limits, an example of a proxy that agrees with them, its start, end and complaints."""
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lib.machinery import Stop, commands, environment, serve
from lib.machinery.serving import server
from lib.tests.test_serve_http import QUESTION, events, read_until, reader, text_of

CADDYFILE = Path(serve.__file__).with_name("Caddyfile").read_text(encoding="utf-8")


def test_the_proxy_asks_the_endpoint_where_it_listens():
    assert re.findall(r"reverse_proxy (\S+)", CADDYFILE) == [f"{serve.HOST}:{serve.PORT}"]


def test_the_proxy_has_the_same_limit():
    assert re.findall(r"max_size (\d+)", CADDYFILE) == [str(serve.MAX_BODY)]


def test_the_proxy_tells_of_readers_who_leave():
    assert "flush_interval" not in CADDYFILE  # a negative one keeps the request alive when the reader has gone


def test_the_proxy_is_told_with_the_name_that_the_endpoint_needs():
    (name,) = re.findall(r"^(\S+) \{$", CADDYFILE, re.M)
    line = re.search(r"python3 -m lib (serve [^`]+)`", CADDYFILE)[1]
    assert commands.parse(line.split()).name == [name]


def test_a_whole_answer_fits_into_the_queue_to_its_reader():
    assert serve.PIECES >= serve.MAX_TOKENS


@pytest.mark.parametrize("line, fields", [
    ("serve", {"port": None, "host": "127.0.0.1", "name": []}), ("serve --port 0", {"port": 0}),
    ("serve --host 0.0.0.0 --name a --name b", {"host": "0.0.0.0", "name": ["a", "b"]})])
def test_a_command_line_becomes_fields(line, fields):
    found = vars(commands.parse(line.split()))
    assert {name: found[name] for name in fields} == fields and serve.HOST == "127.0.0.1"


# --- the port ---------------------------------------------------------------

def test_a_port_in_use_is_a_sentence():
    with server.listen(serve.HOST, 0) as taken:
        with pytest.raises(Stop, match=r"^Port \d+ is in use.*--port N") as stop:
            server.listen(serve.HOST, taken.getsockname()[1])
        assert "\n" not in str(stop.value)


@pytest.mark.parametrize("host, port, words", [
    ("127.0.0.1", 70_000, "no port 70000"), ("127.0.0.1", -1, "no port -1"), ("203.0.113.7", 0, "no address"),
    ("no.such.host.invalid", 0, "no address"), ("", -5, "no port"), ("a" * 300, 0, "no address")])
def test_what_cannot_be_listened_to_is_a_sentence(host, port, words):
    with pytest.raises(Stop, match=words):
        server.listen(host, port)


@pytest.mark.parametrize("host, start, is_open", [
    ("127.0.0.1", "http://127.0.0.1:", False), ("localhost", "http://127.0.0.1:", False),
    ("0.0.0.0", "http://127.0.0.1:", True)])
def test_the_address_and_whether_others_can_reach_it(host, start, is_open):
    with server.listen(host, 0) as listening:
        assert server.address(listening) == f"{start}{listening.getsockname()[1]}"
        assert server.is_open(listening) == is_open


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_of_ipv6_has_brackets():
    try:
        listening = server.listen("::1", 0)
    except Stop:
        pytest.skip("this machine has no address ::1")
    with listening:
        assert server.address(listening).startswith("http://[::1]:") and not server.is_open(listening)


# --- the command ------------------------------------------------------------

CHILD = """
import sys
from lib import models
from lib.machinery import commands, fetch
from lib.tests.paced import PacedModel
models.load = lambda: PacedModel([250], 0.05)
fetch.ensure = lambda names: None
commands.prepare()
try:
    arguments = commands.parse(sys.argv[1:])
    sys.exit(commands.function(commands.COMMANDS["serve"])(arguments))
except BaseException as error:
    sys.exit(commands.verdict(error))
"""


@contextmanager
def command(*options: str):
    """The command in a process of its own, with a model that is written down; and its port."""
    process = subprocess.Popen([sys.executable, "-c", CHILD, "serve", "--port", "0", *options], cwd=environment.ROOT,
                               env={**os.environ, "PYTHONPATH": str(environment.ROOT)}, text=True, encoding="utf-8",
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    clock = threading.Timer(90, process.kill)  # nothing here may hang
    clock.start()
    try:
        lines = []
        while not (lines and (found := re.search(r"answers at http://127\.0\.0\.1:(\d+) ", lines[-1]))):
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        yield process, int(found[1]), lines
    finally:
        clock.cancel()
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 0), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_it_ends_in_seconds_with_a_sentence_while_an_answer_is_under_way(number, code):
    with command() as (process, port, _), reader(port) as connection:
        read_until(connection, b"t2")
        process.send_signal(number)
        assert b"shutting down" in read_until(connection, b'"error"') + connection.recv(4096)
        said, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints) == (code, "") and said.strip() == "The endpoint has ended."


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_it_says_when_others_can_reach_it_and_takes_its_names():
    with command("--host", "0.0.0.0", "--name", "course.example") as (process, port, lines):
        assert any("without a password" in line for line in lines)
        url = f"http://127.0.0.1:{port}/healthz"
        assert httpx.get(url, headers={"Host": "course.example"}).status_code == 200
        assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 421
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_who_comes_before_the_model_is_there_waits_for_it():
    from lib.tests.paced import PacedModel
    with server.listen(serve.HOST, 0) as listening:
        with httpx.Client(base_url=server.address(listening), timeout=30) as client:
            answers: list[str] = []
            early = threading.Thread(target=lambda: answers.append(client.post("/answer", json=QUESTION).text))
            early.start()
            endpoint = server.Server(PacedModel(["Here."]), listening)  # the model has been loaded
            thread = threading.Thread(target=endpoint.serve_here, daemon=True)
            thread.start()
            early.join(30)
            endpoint.should_exit = True
            thread.join(30)
    assert text_of(events(answers[0])) == "Here." and not thread.is_alive()
