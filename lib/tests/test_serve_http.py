"""The endpoint over HTTP, with replies that are written down: answers, leavers, crowds, malformed requests."""
from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic, sleep
from types import SimpleNamespace

import httpx
import psutil
import pytest

from lib import generation
from lib.machinery import serve
from lib.machinery.serving import server
from lib.machinery.serving.answer import Desk, answer
from lib.machinery.serving.line import Line
from lib.machinery.serving.notes import Notes
from lib.tests import tiny
from lib.tests.paced import PacedModel

QUESTION = {"question": "What is a token?"}
NOTES = Notes()
CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
CALL = '{"name": "multiply", "arguments": {"a": 1234, "b": 5678}}'


@contextmanager
def endpoint(*replies, pause: float = 0.0, notes: Notes = NOTES, **options):
    """A running endpoint: its address, its model, and a client of it."""
    model = PacedModel(list(replies), pause, **options)
    with (server.running(model, notes=notes) as url,
          httpx.Client(base_url=url, timeout=30, headers={"Content-Type": "application/json"}) as client):
        yield SimpleNamespace(url=url, model=model, client=client, port=int(url.rsplit(":", 1)[1]))


def events(text: str) -> list[dict]:
    """The events of a stream; comments left out."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def ask(client: httpx.Client, **body) -> list[dict]:
    """The events of an answer."""
    response = client.post("/answer", json=QUESTION | body)
    assert response.status_code == 200, response.text
    return events(response.text)


def text_of(found: list[dict]) -> str:
    """The answer's text: the pieces after the last words that were taken back."""
    texts: list[str] = []
    for event in found:
        if event["type"] == "aside":
            texts.clear()
        elif event["type"] == "piece":
            texts.append(event["text"])
    return "".join(texts)


def wait_until(holds, seconds: float = 20) -> None:
    """Wait for something to hold; a failure in place of a test that hangs."""
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, "it never came about"
        sleep(0.01)


def is_at_rest(client: httpx.Client) -> bool:
    """Whether nobody is served or waits."""
    health = client.get("/healthz").json()
    return not health["answering"] and not health["waiting"]


@contextmanager
def reader(port: int, body: dict = QUESTION, path: str = "/answer", buffer: int | None = None):
    """A raw connection that has asked."""
    data = json.dumps(body).encode()
    with socket.socket() as connection:
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", port))
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        yield connection


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """What comes up to the first `mark`."""
    got = b""
    while mark not in got:
        part = connection.recv(4096)
        assert part, f"it ended without {mark!r}: {got[-300:]!r}"
        got += part
    return got


# --- answers ----------------------------------------------------------------

def test_an_answer_from_the_notes_event_by_event():
    with endpoint("Xin chào, a token is a piece of text. 🎉") as here:
        found = ask(here.client, question="  What is a token?  ")
        assert [event["type"] for event in found[:3]] == ["waiting", "sources", "piece"]
        assert text_of(found) == "Xin chào, a token is a piece of text. 🎉"
        sources, done = found[1], found[-1]
        assert len(sources["sources"]) == serve.PASSAGES and sources["language"] == "en"
        assert sources["sources"][0].keys() == {"id", "title", "text"}
        assert done["type"] == "done" and (done["status"], done["tokens"]) == ("answered", 10)
        assert done["prompt_tokens"] == len(here.model.prompts[0])
        wait_until(lambda: is_at_rest(here.client))
        assert here.client.get("/healthz").json() == {
            "status": "ok", "model": "scripted", "answering": False, "waiting": 0, "tokens": 10}
        prompt = here.model.decode(here.model.prompts[0])
        assert all(source["text"] in prompt for source in sources["sources"])
        assert "Question: What is a token?<" in prompt


def test_an_answer_is_held_against_its_sources():
    with endpoint("A token [1], or 31415 of them [7].") as here:
        done = ask(here.client)[-1]
        assert (done["status"], done["cited"], done["unsupported"]) == ("answered", [1], ["31415"])


def test_without_a_source_the_model_is_not_asked():
    with endpoint("Never.") as here:
        found = ask(here.client, question="Quasar zebra?")
        assert found[1]["sources"] == [] and "do not know" in text_of(found) and here.model.prompts == []
        assert (found[-1]["status"], found[-1]["tokens"]) == ("no_source", 0)


def test_a_question_typed_in_loose_accents_is_the_same_question():
    with endpoint("Có.") as here:
        for question in ("Hu\u1ea5n luy\u1ec7n", "Hua\u0302\u0301n luye\u0323\u0302n"):
            ask(here.client, question=question, mode="agent")
        assert here.model.prompts[0] == here.model.prompts[1]


def test_steps_come_before_the_answer_and_no_call_is_ever_shown():
    with endpoint(f"```json\n{CALL}\n```", "1234 nhân 5678 bằng 7006652.") as here:
        found = ask(here.client, question="1234 nhân 5678?", mode="agent")
        kinds = [event["type"] for event in found]
        assert kinds.index("step") < kinds.index("piece") and "aside" not in kinds
        step = found[kinds.index("step")]
        assert step == {"type": "step", "name": "multiply", "arguments": {"a": 1234, "b": 5678},
                        "written": "1234, 5678", "ok": True, "result": "7006652"}
        assert text_of(found) == "1234 nhân 5678 bằng 7006652." and found[-1]["status"] == "answered"
        assert "".join(event["text"] for event in found if event["type"] == "piece") == text_of(found)


def test_words_before_a_call_are_taken_back():
    with endpoint(f"I will multiply. <tool_call>{CALL}</tool_call>", "It is 7006652.") as here:
        found = ask(here.client, mode="agent")
        assert [event["text"] for event in found if event["type"] == "aside"] == ["I will multiply."]
        assert text_of(found) == "It is 7006652."


@pytest.mark.parametrize("reply, result", [
    ('<tool_call>{"name": "delete", "arguments": {}}</tool_call>', "there is no tool"),
    ('<tool_call>{"name": "add", "arguments": {"a": "x"}}</tool_call>', "must be number"),
    ("<tool_call>{</tool_call>", "no valid JSON")])
def test_a_call_that_cannot_run_is_a_step_that_says_so(reply, result):
    with endpoint(reply, "Sorry.") as here:
        found = ask(here.client, mode="agent")
        step = next(event for event in found if event["type"] == "step")
        assert not step["ok"] and result in step["result"] and text_of(found) == "Sorry."


def test_an_agent_searches_the_notes():
    with endpoint('{"name": "search_notes", "arguments": {"query": "tokenizer"}}', "A tokenizer cuts.") as here:
        step = next(event for event in ask(here.client, mode="agent") if event["type"] == "step")
        assert step["ok"] and "token" in step["result"]


@pytest.mark.parametrize("mode", ["rag", "agent"])
def test_an_answer_ends_at_the_limit_of_tokens(mode):
    with endpoint(serve.MAX_TOKENS + 50) as here:
        found = ask(here.client, mode=mode)
        assert found[-1]["status"] == "token_limit" and found[-1]["tokens"] == serve.MAX_TOKENS


def test_an_agent_has_one_limit_of_tokens_for_all_its_turns():
    long = f"<tool_call>{CALL}</tool_call> " + "word " * 99
    with endpoint(long) as here:
        found = ask(here.client, mode="agent")
        assert found[-1]["status"] in ("token_limit", "loop") and here.model.computed <= serve.MAX_TOKENS + 1


@pytest.mark.parametrize("mode", ["rag", "agent"])
def test_an_answer_ends_at_the_limit_of_seconds(mode, monkeypatch):
    monkeypatch.setattr(server, "Line", partial(Line, seconds=0.3))
    with endpoint(200, pause=0.02) as here:
        found = ask(here.client, mode=mode)
        assert found[-1]["status"] == "time_limit" and here.model.computed < 200
        assert text_of(found).startswith("t0 t1") and "aside" not in {event["type"] for event in found}


def test_a_model_that_knows_no_tools_says_so_before_anything_is_streamed():
    ignores = tiny.TEMPLATE[tiny.TEMPLATE.index("{% for message"):]
    with endpoint("x", tokenizer=tiny.tokenizer(ignores)) as here:
        response = here.client.post("/answer", json=QUESTION | {"mode": "agent"})
        assert response.status_code == 422 and "ignores tools" in response.json()["error"]["message"]


# --- leaving ----------------------------------------------------------------

async def read_then_leave(desk: Desk, count: int, mode: str) -> None:
    """Read `count` pieces, close the answer, and wait until the model is at rest."""
    stream = answer(desk, "What is a token?", mode)
    async for event in stream:
        count -= event["type"] == "piece"
        if count < 0 or (count == 0 and event["type"] in ("piece", "waiting")):
            break
    before = desk.model.computed
    await stream.aclose()
    while desk.line.served:
        await asyncio.sleep(0.01)
    desk.model.after = desk.model.computed - before


@pytest.mark.parametrize("mode", ["rag", "agent"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_who_leaves_stops_the_model_within_one_token(mode, count):
    model = PacedModel([200], 0.02)
    asyncio.run(asyncio.wait_for(_leave(model, count, mode), 20))
    assert model.after <= 1 and model.computed < 100


async def _leave(model, count: int, mode: str) -> None:
    await read_then_leave(Desk(model, NOTES, Line()), count, mode)


def test_who_leaves_while_the_prompt_is_read_stops_it_within_one_pass(monkeypatch):
    model, fed = tiny.model(context=8192), []
    feed = generation.Model._feed
    monkeypatch.setattr(generation.Model, "_feed", lambda *given: (fed.append(1), sleep(0.1), feed(*given))[-1])

    async def story():
        desk = Desk(model, NOTES, Line())
        stream = answer(desk, "What is a token?")
        await anext(stream)
        while not fed:
            await asyncio.sleep(0.005)
        before = len(fed)
        await stream.aclose()
        while desk.line.served:
            await asyncio.sleep(0.01)
        return len(fed) - before
    assert asyncio.run(asyncio.wait_for(story(), 30)) <= 1
    prompt = len(model.cache.entries[0].ids)
    assert prompt == generation.CHUNK * len(fed) and len(fed) <= 3  # a part of the prompt, and no token


@pytest.mark.parametrize("path, body", [
    ("/answer", QUESTION), ("/answer", QUESTION | {"mode": "agent"}),
    ("/v1/chat/completions", CHAT | {"stream": True})])
def test_a_connection_that_closes_in_mid_answer_frees_the_model(path, body):
    with endpoint(250, pause=0.05) as here:
        with reader(here.port, body, path) as connection:
            read_until(connection, b"t2")
        wait_until(lambda: is_at_rest(here.client))
        assert here.model.computed < 125 and here.client.get("/healthz").json()["tokens"] == here.model.computed


def test_a_completion_that_nobody_waits_for_is_stopped():
    with endpoint(250, pause=0.05) as here:
        with reader(here.port, CHAT, "/v1/chat/completions"):
            assert here.model.begun.wait(20)
        wait_until(lambda: is_at_rest(here.client))
        assert here.model.computed < 125


def test_who_leaves_while_waiting_costs_the_model_nothing():
    with endpoint(250, pause=0.05) as here:
        with reader(here.port) as first:
            read_until(first, b"t2")
            with reader(here.port) as second:
                read_until(second, b'"ahead": 1')
            wait_until(lambda: here.client.get("/healthz").json()["waiting"] == 0)
        wait_until(lambda: is_at_rest(here.client))
        assert len(here.model.prompts) == 1


# --- many readers -----------------------------------------------------------

def test_a_full_line_says_when_to_come_back():
    with endpoint(250, pause=0.02) as here, ExitStack() as stack:
        connections = [stack.enter_context(reader(here.port)) for _ in range(serve.WAITING + 1)]
        for connection in connections:
            read_until(connection, b'"ahead"')
        for path, body in [("/answer", QUESTION), ("/v1/chat/completions", CHAT),
                           ("/v1/chat/completions", CHAT | {"stream": True})]:
            refused = here.client.post(path, json=body)
            assert refused.status_code == 503 and refused.headers["Retry-After"] == str(serve.RETRY_AFTER)
            assert refused.json()["error"]["type"] == "overloaded_error"
        stack.close()
        wait_until(lambda: is_at_rest(here.client))
        here.model.replies, here.model.pause = ["Again."], 0
        assert text_of(ask(here.client)) == "Again."


def crowd(url: str, leaves: bool) -> str:
    """One of many: asks until there is room, and reads the answer or leaves at its first piece."""
    end = monotonic() + 60
    with httpx.Client(base_url=url, timeout=60) as client:
        while monotonic() < end:
            with client.stream("POST", "/answer", json=QUESTION) as response:
                if response.status_code == 503:
                    response.read()
                    sleep(0.05)
                    continue
                text = ""
                for line in response.iter_lines():
                    text += f"{line}\n"
                    if leaves and '"piece"' in line:
                        return "left"
                return text_of(events(text))
    return "never served"


def test_twenty_readers_of_whom_half_leave():
    reply = "one two three four five six seven eight"
    with endpoint(reply, pause=0.005) as here:
        with ThreadPoolExecutor(20) as pool:
            results = list(pool.map(lambda number: crowd(here.url, number % 2 == 1), range(20)))
        assert results == [reply, "left"] * 10
        wait_until(lambda: is_at_rest(here.client))
        assert here.model.most_at_once == 1 and text_of(ask(here.client)) == reply


def test_a_reader_who_takes_one_byte_at_a_time_holds_nobody_up():
    with endpoint(serve.MAX_TOKENS) as here, reader(here.port, buffer=1024) as slow:
        taken, enough = bytearray(), threading.Event()

        def take():
            while not enough.wait(0.05):
                taken.extend(slow.recv(1))
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            wait_until(lambda: len(taken) > 2)
            assert ask(here.client)[-1]["status"] == "answered"
        finally:
            enough.set()
            thread.join(20)
        assert b"piece" not in taken and read_until(slow, b'"done"').count(b'"piece"') == serve.MAX_TOKENS


def test_memory_is_flat_over_200_requests(tmp_path):
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "1-note.md").write_text("What is a token? A piece of text.", encoding="utf-8")
    process = psutil.Process()
    with endpoint("one two three four", notes=Notes(tmp_path)) as here:
        sizes = []
        for number in range(200):
            ask(here.client, mode=("rag", "agent")[number % 2], question=f"What is token {number}? " + "word " * 20)
            here.model.prompts.clear()
            sizes.append(process.memory_info().rss)
        assert sizes[-1] - sizes[49] < 15_000_000  # 100 kB a request would show


# --- what is refused --------------------------------------------------------

NESTED = b'{"question": ' + b"[" * 30_000


@pytest.mark.parametrize("body, status", [
    (b"", 422), (b"{", 422), (b"null", 422), (b"[]", 422), (b'"x"', 422), (b"\xff\xfe", 422), (NESTED, 422),
    (b"NaN", 422), (b'{"question": 1}', 422), (b'{"question": null}', 422), (b'{"question": ""}', 422),
    (b'{"question": " \\n"}', 422),
    (b'{"question": ["x"]}', 422), (b'{"question": "x", "mode": "sql"}', 422), (b'{"question": "x", "y": 1}', 422),
    (b'{"question": "\\ud800"}', 422), (b'{"question": "' + b"x" * 2001 + b'"}', 413),
    (b'{"question": "' + b"x" * 70_000 + b'"}', 413), (b'{"mode": "rag"}', 422)])
def test_a_malformed_request_gets_a_sentence(body, status):
    with shared() as here:
        response = here.client.post("/answer", content=body)
        error = response.json()["error"]
        assert response.status_code == error["code"] == status and error["message"][-1] not in " \n"
        assert "xxx" not in response.text and "/" not in error["message"] and "Traceback" not in response.text


@pytest.mark.parametrize("method, path, headers, status", [
    ("GET", "/nothing", {}, 404), ("GET", "/../../etc/passwd", {}, 404), ("GET", "/page%2f..%2fserve.py", {}, 404),
    ("GET", "/answer", {}, 405), ("GET", "/docs", {}, 404), ("GET", "/openapi.json", {}, 404),
    ("POST", "/", {}, 405), ("OPTIONS", "/answer", {"Origin": "http://evil.example"}, 403),
    ("POST", "/answer", {"Origin": "http://evil.example"}, 403), ("POST", "/answer", {"Host": "evil.example"}, 421),
    ("GET", "/", {"Host": "evil.example"}, 421), ("POST", "/answer", {"Content-Type": "text/plain"}, 415)])
def test_a_strange_request_gets_a_sentence(method, path, headers, status):
    with shared() as here:
        response = here.client.request(method, path, headers=headers)
        assert response.status_code == status and response.json()["error"]["message"]
        assert "access-control-allow-origin" not in response.headers


@contextmanager
def shared():
    """One endpoint for all the requests that are refused; nothing that they do may change it."""
    if not hasattr(shared, "here"):
        shared.stack = endpoint("Never.")
        shared.here = shared.stack.__enter__()
    yield shared.here
    assert shared.here.model.prompts == [] and is_at_rest(shared.here.client)


@pytest.fixture(scope="module", autouse=True)
def end_shared():
    yield
    if hasattr(shared, "stack"):
        shared.stack.__exit__(None, None, None)


@pytest.mark.parametrize("data", [
    b"", b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"POST /answer HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", b"GET /" + b"x" * 70_000])
def test_broken_http_harms_nobody(data):
    with shared() as here, socket.create_connection(("127.0.0.1", here.port), timeout=20) as connection:
        connection.sendall(data)
        assert here.client.get("/healthz").status_code == 200


# --- the end, and silence ---------------------------------------------------

def test_an_answer_under_way_is_stopped_at_the_end_and_its_reader_is_told(capfd):
    model, stack = PacedModel([250], 0.05), ExitStack()
    with server.running(model, notes=NOTES) as url:
        port = int(url.rsplit(":", 1)[1])
        one, two = stack.enter_context(reader(port)), stack.enter_context(reader(port))
        read_until(one, b"t2")
        read_until(two, b"ahead")
        begun = monotonic()
    assert monotonic() - begun < server.PATIENCE and model.computed < 125
    for connection in (one, two):
        assert b"shutting down" in read_until(connection, b'"error"') + connection.recv(4096)
    stack.close()
    assert capfd.readouterr() == ("", "")


def test_a_port_is_free_again_at_once():
    with endpoint("One.") as here:
        with reader(here.port) as connection:
            read_until(connection, b'"done"')
        port = here.port
    for _ in range(2):
        with server.running(PacedModel(["Two."]), port, notes=NOTES) as url, httpx.Client(base_url=url) as client:
            assert text_of(ask(client)) == "Two."


def test_what_was_asked_is_in_no_log_and_no_error(capfd, caplog):
    caplog.set_level("DEBUG", "uvicorn")
    with endpoint(ValueError("What is a token? /home/me"), "fine") as here:
        found = ask(here.client)
        assert found[-1]["type"] == "error" and "token" not in found[-1]["message"]
        assert text_of(ask(here.client)) == "fine"
        here.client.post("/answer", content=b'{"question": "What is a token?", "x": "/home/me"}')
    said = "".join(capfd.readouterr()) + caplog.text
    assert "token?" not in said and "/home" not in said and "ValueError in paced.py" in said


def test_a_fault_outside_the_model_is_a_sentence_too(monkeypatch, capfd):
    def broken(question, k=3):
        raise RuntimeError(f"{question} /home/me")
    with endpoint("x") as here:
        monkeypatch.setattr(NOTES, "search", broken)
        response = here.client.post("/answer", json=QUESTION)
        assert response.status_code == 500 and "token" not in response.text and "/home" not in response.text
    assert "token?" not in "".join(capfd.readouterr())


def test_an_error_inside_the_block_is_not_swallowed():
    with pytest.raises(KeyError), server.running(PacedModel(["x"]), notes=NOTES):
        raise KeyError("mine")
