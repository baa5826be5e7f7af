"""One connection of the endpoint: bytes behind a request, idle ones, too many of them, readers who take nothing."""
from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from time import monotonic, sleep

import pytest

from lib.generation import Generation
from lib.machinery import serve
from lib.machinery.serving import connection, line, server
from lib.tests.paced import PacedModel
from lib.tests.test_serve_http import (
    CALL,
    CHAT,
    NOTES,
    QUESTION,
    ask,
    endpoint,
    is_at_rest,
    read_until,
    text_of,
    wait_until,
)

HEAD = b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def rest(raw: socket.socket) -> bytes:
    """What comes until the other side closes; empty where it breaks off."""
    raw.settimeout(20)
    got = b""
    try:
        while part := raw.recv(65_536):
            got += part
    except ConnectionError:
        pass
    return got


def opened(here) -> socket.socket:
    return socket.create_connection(("127.0.0.1", here.port), timeout=20)


# --- before anything is computed --------------------------------------------

@pytest.mark.parametrize("question", ["a" + "\u0301" * 15_500 + "\u0316" * 15_500, "x" * 2001, "\u0958" * 1_500])
def test_a_long_question_is_refused_before_it_is_normalised(question):
    with endpoint("Never.") as here:
        begun = monotonic()
        body = json.dumps({"question": question}, ensure_ascii=False).encode()
        response = here.client.post("/answer", content=body)
        assert response.status_code == 413 and monotonic() - begun < 2 and here.model.prompts == []


@pytest.mark.parametrize("path, body", [
    ("/answer", QUESTION), ("/answer", QUESTION | {"mode": "agent"}), ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", CHAT | {"stream": True})])
def test_a_full_line_makes_no_prompt(path, body, monkeypatch):
    made = []
    monkeypatch.setattr(line.Line, "is_full", True)
    monkeypatch.setattr(PacedModel, "encode", lambda *given: made.append(1), raising=False)
    with endpoint("Never.") as here:
        assert here.client.post(path, json=body).status_code == 503 and made == []


def test_a_prompt_of_too_many_characters_never_reaches_the_tokenizer(monkeypatch):
    made = []
    monkeypatch.setattr(PacedModel, "encode", lambda *given: made.append(1), raising=False)
    with endpoint("Never.") as here:
        body = CHAT | {"messages": [{"role": "user", "content": "x" * 40_000}]}
        response = here.client.post("/v1/chat/completions", json=body)
        assert response.status_code == 413 and made == []


# --- bytes behind a request -------------------------------------------------

@pytest.mark.parametrize("more", [b"\r\n", b"x", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
def test_bytes_behind_a_request_end_its_answer(more, at_once, close):
    with endpoint(250, pause=0.05) as here, opened(here) as raw:
        data = json.dumps(QUESTION).encode()
        request = HEAD + close + f"Content-Length: {len(data)}\r\n\r\n".encode() + data
        raw.sendall(request + more if at_once else request)
        if not at_once:
            read_until(raw, b"t2")
            raw.sendall(more)
        rest(raw)
        wait_until(lambda: is_at_rest(here.client))
        assert here.model.computed < 125


def test_one_request_after_the_other_may_share_a_connection():
    with endpoint("Fine.") as here:
        assert [text_of(ask(here.client)) for _ in range(3)] == ["Fine."] * 3


# --- connections that wait --------------------------------------------------

@pytest.mark.parametrize("data", [b"", b"GET / HT", HEAD])
def test_a_connection_that_asks_nothing_is_closed(data, monkeypatch):
    monkeypatch.setattr(connection, "READ_SECONDS", 0.3)
    with endpoint("x") as here, opened(here) as raw:
        raw.sendall(data)
        begun = monotonic()
        assert rest(raw) == b"" and monotonic() - begun < 5


def test_bytes_in_drops_keep_no_connection_after_an_answer(monkeypatch):
    monkeypatch.setattr(connection, "READ_SECONDS", 0.5)
    with endpoint("x") as here, opened(here) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(raw, b'"tokens"')
        begun = monotonic()
        with pytest.raises(OSError):
            while monotonic() - begun < 5:
                raw.sendall(b"G")
                sleep(0.05)
        assert monotonic() - begun < 4


def test_a_slow_answer_is_no_waiting_connection(monkeypatch):
    monkeypatch.setattr(connection, "READ_SECONDS", 0.1)
    with endpoint(20, pause=0.03) as here:
        assert ask(here.client)[-1]["status"] == "answered"


@pytest.mark.parametrize("length, body, status", [(10**9, b"x" * 70_000, b"413"), (100, b"{", b"408")])
def test_after_a_body_too_long_or_too_slow_the_connection_closes(length, body, status, monkeypatch):
    monkeypatch.setattr("lib.machinery.serving.guard.READ_SECONDS", 0.3)
    with endpoint("x") as here, opened(here) as raw:
        raw.sendall(HEAD + f"Content-Length: {length}\r\n\r\n".encode() + body)
        got = rest(raw)
        assert got.startswith(b"HTTP/1.1 " + status) and b"connection: close" in got.lower() and b'"error"' in got


def test_one_connection_too_many_is_told_so_in_the_form_of_every_error(monkeypatch):
    monkeypatch.setattr(connection, "CONNECTIONS", 3)
    with endpoint("x") as here, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(opened(here))
        for method, path in [("GET", "/"), ("POST", "/answer")]:
            refused = here.client.request(method, path, content=b"{}")
            assert refused.status_code == 503 and refused.headers["Retry-After"] == str(serve.RETRY_AFTER)
            assert refused.json()["error"]["type"] == "overloaded_error"
            assert "x-content-type-options" in refused.headers
            assert refused.headers["Connection"] == "close"
        stack.close()
        wait_until(lambda: here.client.get("/healthz").status_code == 200)


@pytest.mark.parametrize("data", [
    b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\r\n\r\n\r\n", b"GET /" + b"x" * 70_000])
def test_what_is_no_http_is_told_so_in_the_form_of_every_error(data):
    with endpoint("x") as here, opened(here) as raw:
        raw.sendall(data)
        head, _, body = rest(raw).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400") and json.loads(body)["error"]["code"] == 400
        assert b"content-security-policy" in head.lower()


# --- readers who take nothing -----------------------------------------------

def stalled(port: int) -> socket.socket:
    """A reader who asks for much and takes nothing of it."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    raw.settimeout(20)
    raw.connect(("127.0.0.1", port))
    raw.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return raw


@pytest.fixture
def big(monkeypatch):
    """A page too large for any buffer between the two sides."""
    from fastapi import Response
    made = server.create_app

    def create(*given):
        app = made(*given)
        app.add_api_route("/big", lambda: Response(b"x" * 30_000_000))
        return app
    monkeypatch.setattr(server, "create_app", create)


def test_a_reader_who_takes_nothing_does_not_keep_the_endpoint_from_its_end(big, capfd):
    with server.running(PacedModel(["x"]), notes=NOTES) as url:
        raw = stalled(int(url.rsplit(":", 1)[1]))
        sleep(0.3)
        begun = monotonic()
    raw.close()
    assert monotonic() - begun < server.PATIENCE - 5 and capfd.readouterr() == ("", "")


def test_a_reader_who_takes_nothing_is_cut_off(big, monkeypatch):
    monkeypatch.setattr(connection, "SEND_SECONDS", 0.3)
    with endpoint("x") as here, stalled(here.port) as raw:
        sleep(1)
        assert len(rest(raw)) < 30_000_000


# --- whatever a model does --------------------------------------------------

@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
@pytest.mark.parametrize("path, body, status", [("/answer", QUESTION, 200), ("/v1/chat/completions", CHAT, 500)])
@pytest.mark.parametrize("where", ["encode", "generate"])
def test_no_exception_of_a_model_is_silence(kind, path, body, status, where, monkeypatch, capfd, caplog):
    def broken(*given, **options):
        raise kind("my secret question")
    with endpoint("x") as here:
        monkeypatch.setattr(here.model, where, broken)
        response = here.client.post(path, json=body)
        assert response.status_code == (500 if where == "encode" else status) and '"error"' in response.text
        monkeypatch.undo()
        assert text_of(ask(here.client)) == "x"
    said = "".join(capfd.readouterr()) + caplog.text
    assert "secret" not in said + response.text and f"{kind.__name__} in test_serve_connection.py" in said


def test_an_agent_has_one_limit_of_tokens_even_where_tokens_have_no_text(monkeypatch):
    def silent(ids, max_new_tokens=256, stop=(), on_token=None, cancel=None):
        limits.append(max_new_tokens)
        count = 0 if cancel.is_set() else min(100, max_new_tokens)
        text = f"<tool_call>{CALL.replace('1234', str(len(limits)))}</tool_call>" if count else ""
        return Generation(text, [65] * count, len(ids), 0, 0.0, 0.0, [1.0] * count, "eos" if count else "cancelled")
    limits: list[int] = []
    with endpoint("x") as here:
        monkeypatch.setattr(here.model, "generate", silent)
        done = ask(here.client, mode="agent")[-1]
        assert done["status"] == "token_limit" and done["tokens"] == serve.MAX_TOKENS and limits[:3] == [256, 156, 56]
