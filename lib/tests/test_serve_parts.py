"""The parts of the endpoint without HTTP: the line of readers, what is held back, the guard, notes, events."""
from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import unicodedata
from contextlib import aclosing
from time import monotonic

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from lib.machinery.serving import line as lines
from lib.machinery.serving.events import EventStream, encoded, sse, unless_gone
from lib.machinery.serving.guard import Guard, read
from lib.machinery.serving.held import Held, certain
from lib.machinery.serving.line import Full, Line, Ticket
from lib.machinery.serving.notes import Notes, has_accents
from lib.tests.test_cases import OWN, tools
from lib.tests.test_cases import read as read_case
from lib.tools import parse_reply

TOOLS = tools(lambda call: None)
CASES = [read_case(line) for line in (OWN / "tool_calls.jsonl").read_text(encoding="utf-8").splitlines()]


def run(coroutine, seconds: float = 20):
    """What a coroutine returns; TimeoutError in place of a test that hangs."""
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


# --- the line ---------------------------------------------------------------

class Work:
    """Work that waits in the model's thread until it is told to end or cancelled; `order` notes who began."""

    def __init__(self, name: str, order: list, free: bool = False):
        self.name, self.order, self.end, self.stopped = name, order, threading.Event(), threading.Event()
        if free:
            self.end.set()

    def __call__(self, ticket: Ticket) -> None:
        self.order.append(self.name)
        patience = monotonic() + 20  # a thread that went on for ever would keep the tests from ending
        while not self.end.wait(0.005) and not ticket.cancel.is_set() and monotonic() < patience:
            pass
        if ticket.cancel.is_set():
            self.stopped.set()
        ticket.emit({"type": "done", "reason": ticket.reason})


async def begun(line: Line, work: Work):
    """The stream of a reader who has joined, and its first event."""
    stream = line.serve(work)
    return stream, await anext(stream)


async def last(stream) -> dict:
    return [event async for event in stream][-1]


def test_first_come_first_served_and_everyone_is_told_their_place():
    async def story():
        line, order = Line(), []
        works = [Work(name, order) for name in "abc"]
        (a, first), (b, second), (c, third) = [await begun(line, work) for work in works]
        assert [event["ahead"] for event in (first, second, third)] == [0, 1, 2]
        works[0].end.set()
        assert (await last(a))["type"] == "done"
        assert (await anext(b))["ahead"] == 0 and (await anext(c))["ahead"] == 1
        for work in works[1:]:
            work.end.set()
        assert [(await last(each))["type"] for each in (b, c)] == ["done", "done"] and order == ["a", "b", "c"]
    run(story())


def test_nobody_waits_behind_an_answer_that_is_done():
    async def story():
        line, holds = Line(), threading.Event()

        def work(ticket):
            ticket.emit({"type": "done"})
            holds.wait(10)
        a = line.serve(work)
        await last(a)
        joining = asyncio.ensure_future(begun(line, Work("b", [], free=True)))
        await asyncio.sleep(0.05)
        holds.set()
        stream, event = await joining
        assert event == {"type": "waiting", "ahead": 0} and (await last(stream))["type"] == "done"
    run(story())


def test_those_whose_prompts_are_made_take_up_room():
    async def story():
        line, holds = Line(limit=1), threading.Event()
        making = [asyncio.ensure_future(line.prepared(holds.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(Full):
            await line.prepared(int)
        holds.set()
        assert await asyncio.gather(*making) == [True, True] and await line.prepared(int) == 0
        await line.close()
        with pytest.raises(Full, match="shutting down"):
            await line.prepared(int)
    run(story())


def test_the_line_is_full_and_then_has_room_again():
    async def story():
        line, order = Line(limit=1), []
        works = [Work(name, order) for name in "abc"]
        (a, _), (b, _) = [await begun(line, work) for work in works[:2]]
        with pytest.raises(Full):
            await anext(line.serve(works[2]))
        await b.aclose()
        c, event = await begun(line, works[2])
        assert event["ahead"] == 1
        await a.aclose()
        works[2].end.set()
        assert (await last(c))["type"] == "done" and order == ["a", "c"]
    run(story())


def test_who_leaves_while_waiting_is_never_served_and_the_others_move_up():
    async def story():
        line, order = Line(), []
        works = [Work(name, order) for name in "abc"]
        (a, _), (b, _), (c, _) = [await begun(line, work) for work in works]
        await b.aclose()
        assert (await anext(c))["ahead"] == 1
        for work in works:
            work.end.set()
        await last(a)
        await last(c)
        assert order == ["a", "c"]
    run(story())


def test_the_model_is_free_only_when_its_thread_has_ended():
    async def story():
        line, holds, order = Line(), threading.Event(), []

        def stubborn(ticket):  # a pass of the network that cannot be interrupted
            ticket.cancel.wait(10)
            holds.wait(10)
            order.append("a")
        a, _ = await begun(line, stubborn)
        b, event = await begun(line, Work("b", order, free=True))
        await a.aclose()
        await asyncio.sleep(0.05)
        assert line.served is not None and event["ahead"] == 1 and order == []
        holds.set()
        await last(b)
        assert order == ["a", "b"]
    run(story())


def test_a_limit_of_seconds_counts_from_the_first_step():
    async def story():
        line, order = Line(seconds=0.15), []
        a, _ = await begun(line, Work("a", order))
        b, _ = await begun(line, Work("b", order))
        assert [(await last(each))["reason"] for each in (a, b)] == ["time_limit", "time_limit"]
    run(story())


def test_a_fault_in_the_work_is_an_event_and_a_line_without_its_text(caplog):
    def broken(ticket):
        raise ValueError("my secret question")

    async def story():
        line = Line()
        assert await last(line.serve(broken)) == lines.FAULT
        assert (await last(line.serve(Work("b", [], free=True))))["type"] == "done"
    run(story())
    assert "secret" not in caplog.text and re.search(r"ValueError in test_serve_parts\.py, line \d+", caplog.text)


def test_closing_sends_everyone_away_and_waits_for_the_model():
    async def story():
        line, order = Line(), []
        works = [Work(name, order) for name in "ab"]
        (a, _), (b, _) = [await begun(line, work) for work in works]
        await line.close()
        assert line.served is None and works[0].stopped.is_set() and order == ["a"]
        assert await last(b) == lines.ENDS
        assert [event async for event in a][0]["reason"] == "closing"
        with pytest.raises(Full):
            await anext(line.serve(works[0]))
    run(story())


def test_a_reader_who_reads_nothing_never_holds_the_model():
    def writes(ticket):
        for number in range(5 * lines.ROOM):
            ticket.piece(str(number))
        ticket.emit({"type": "done"})

    async def story():
        line = Line()
        stalled, _ = await begun(line, writes)
        served = await last(line.serve(Work("b", [], free=True)))
        assert served["type"] == "done"
        kept = [event async for event in stalled]
        assert len(kept) <= lines.ROOM and kept[-1]["type"] == "piece"  # a full queue counts as gone
    run(story())


def test_silence_is_broken_by_pings(monkeypatch):
    monkeypatch.setattr(lines, "PING", 0.02)

    async def story():
        work = Work("a", [])
        stream, _ = await begun(Line(), work)
        assert (await anext(stream))["type"] == "ping"
        work.end.set()
        assert (await last(stream))["type"] == "done"
    run(story())


def test_nothing_is_kept_of_those_who_were_served():
    async def story():
        line = Line()
        for number in range(50):
            stream = line.serve(Work("x", [], free=True))
            await anext(stream)
            if number % 2:
                await last(stream)
            else:
                await stream.aclose()
        while line.served:
            await asyncio.sleep(0.01)
        gc.collect()
        assert [each for each in gc.get_objects() if type(each) is Ticket] == []
    run(story())


def test_leaving_counts_even_at_the_moment_in_which_an_event_comes():
    async def story():
        ticket = Ticket(lambda ticket: None)
        reading = asyncio.ensure_future(anext(aiter(ticket)))
        await asyncio.sleep(0.01)
        ticket.put({"type": "piece"})
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    run(story())


# --- text that may still become a call --------------------------------------

@pytest.mark.parametrize("text, length", [
    ("", 0), (" \n", 0), ("Xin chào", 8), ("Xin ", 3), ("{", 0), ('{"a', 0), ("[", 0), ("[1, 2] is a list", 16),
    ("[{", 0), ("```", 0), ("```json\n", 0), ('```json\n{"n', 0), ("```python\nprint()", 17), ("js", 0), ("json", 0),
    ("json is a form", 14), ("t", 0), ("tool_ca", 0), ("tools help", 10), ("A <", 1), ("A <tool_", 1), ("1 < 2", 5),
    ("A <tool_call>", 1), ("a <b> c", 7), ('a <call>{"', 1), ("a <call> ", 1), ("so </th", 2), ("so <think>", 2),
    ("so <function=f", 2), ("see [", 3), ("see [1]", 7), ("see [TOOL_CALLS] [", 3), ("it is to", 5),
    ("it is tooth", 11),
    ("x tool_call>", 1), ("Hà Nội <tool_response>", 6), ("\ufeff{", 0), ("👋 t", 1)])
def test_what_is_certain_of_a_reply(text, length):
    assert certain(text) == length


def streamed(text: str, cuts: list[int]) -> tuple[str, str]:
    """(what was sent while `text` came in pieces, what is left to say of its answer)."""
    sent: list[str] = []
    held, places = Held(sent.append), sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for start, end in zip(places, places[1:], strict=False):
        held.add(text[start:end])
    before = "".join(sent)
    wrong = held.close(parse_reply(text, TOOLS, "lenient").answer or "")
    return before, wrong or "".join(sent)


PARTS = st.sampled_from(["<tool_call>", "</tool_call>", '{"name": "now", "arguments": {}}', "```", "json\n", "[", "{",
                         "<", "think>", "</think>", "<tool_response>", " Xin chào ", "\n", "tool_call>",
                         "[TOOL_CALLS]", "x", '"name"', "<b>", "<function=now>", "<|tool", "1 < 2 and 3 > 1",
                         "\ufeff", "🎉"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200, derandomize=True,
          database=None)
@given(st.lists(PARTS, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=30))
@example('I add.\n<tool_call>{"name": "now", "arguments": {}}</tool_call>', list(range(80)))
def test_no_part_of_a_call_is_ever_sent(text, cuts):
    reply = parse_reply(text, TOOLS, "lenient")
    before, _ = streamed(text, cuts)
    lead = len(text) - len(text.lstrip())
    assert text[lead:].startswith(before)
    for finding in reply.candidates:
        if (finding.start, finding.end) != (0, len(reply.text)):
            assert lead + len(before) <= finding.start
    if reply.calls and not reply.prose and "</think>" not in text:  # which makes thinking of all before it
        assert before == ""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200, derandomize=True,
          database=None)
@given(st.lists(PARTS, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=30))
def test_an_answer_arrives_whole(text, cuts):
    answer = parse_reply(text, TOOLS, "lenient").answer
    before, after = streamed(text, cuts)
    if answer is not None and answer.startswith(before):
        assert after == answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases_of_other_projects_show_no_call(case):
    reply = parse_reply(case["reply"], TOOLS, "lenient", case.get("truncated", False))
    before, _ = streamed(case["reply"], list(range(len(case["reply"]))))
    assert not (reply.calls and re.search(r"[{}]|tool_call", before))


# --- the guard --------------------------------------------------------------

@pytest.mark.parametrize("host, ours", [
    ("127.0.0.1:8000", True), ("localhost", True), ("LOCALHOST:1", True), ("[::1]:8000", True), ("10.0.0.7", True),
    ("course.example", True), ("course.example:443", True), ("", False), ("evil.example:8000", False),
    ("127.0.0.1.evil.example", False), ("localhost.evil.example", False), ("[::1", False),
    ("a@127.0.0.1:1@evil.example", False)])
def test_only_its_own_names_reach_it(host, ours):
    assert Guard(None, ["Course.example"]).is_ours(host.lower()) == ours


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("method, headers, status", [
    ("POST", JSON, None), ("POST", {"content-type": "Application/JSON; charset=utf-8"}, None), ("GET", {}, None),
    ("POST", {}, 415), ("POST", {"content-type": "text/plain"}, 415),
    ("POST", {"content-type": "application/x-www-form-urlencoded"}, 415),
    ("POST", JSON | {"origin": "http://localhost:8000"}, None),
    ("POST", JSON | {"origin": "https://localhost:8000"}, None),
    ("POST", JSON | {"origin": "http://localhost:8001"}, 403), ("POST", JSON | {"origin": "null"}, 403),
    ("POST", JSON | {"origin": "https://evil.example"}, 403), ("GET", {"origin": "https://evil.example"}, None),
    ("DELETE", {"origin": "https://evil.example"}, 403), ("GET", {"host": "evil.example"}, 421)])
def test_who_may_ask(method, headers, status):
    def check():
        Guard(None).check(method, Headers({"host": "localhost:8000", **headers}))
    if status is None:
        return check()
    with pytest.raises(HTTPException) as refused:
        check()
    assert refused.value.status_code == status


def receiving(*bodies: bytes):
    """An ASGI `receive` that gives a body in parts, then nothing more for ever."""
    messages = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]

    async def receive():
        if not messages:
            await asyncio.sleep(60)
        return messages.pop(0)
    return receive


@pytest.mark.parametrize("length, bodies, status", [
    ("70000", [], 413), ("-1", [], 413), ("1e3", [], 413), ("²", [], 413), ("5", [b"x" * 40_000, b"x" * 40_000], 413),
    ("5", [b"x"], 408)])
def test_a_body_that_is_too_long_or_too_slow(length, bodies, status, monkeypatch):
    monkeypatch.setattr("lib.machinery.serving.guard.READ_SECONDS", 0.05)
    with pytest.raises(HTTPException) as refused:
        run(read(receiving(*bodies), Headers({"content-length": length})))
    assert refused.value.status_code == status


# --- notes and events -------------------------------------------------------

@pytest.mark.parametrize("text, accents", [
    ("", False), ("What is a token?", False), ("Token là gì?", True), ("đ", True), ("Đ", True), ("1 + 1", False),
    (unicodedata.normalize("NFD", "Huấn luyện"), True), ("🎉 “ban”", False)])
def test_accents(text, accents):
    assert has_accents(text) is accents


def test_the_notes_are_searched_in_the_language_of_the_question(tmp_path):
    for language, text in {"en": "A kite flies.\n\nA river.", "vi": "Con diều bay.\n\nDòng sông."}.items():
        (tmp_path / language).mkdir()
        (tmp_path / language / "1-note.md").write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    notes = Notes(tmp_path)
    assert [passage.text for passage in notes.search("a kite")][0] == "A kite flies."
    assert [passage.text for passage in notes.search("con diều")] == ["Con diều bay."]
    assert [passage.text for passage in notes.search("“con dieu” bay the nao")] == ["Con diều bay."]
    assert notes.search("quasar") == [] == notes.search("") and notes.language("Gì đó") == "vi"
    assert notes.language("quasar") == notes.language("") == "en" and notes.language("dong song") == "vi"
    passage = notes.search("river")[0]
    assert (passage.document, passage.heading, passage.text) == ("1-note", "Title", "A river.")


def test_a_language_without_notes_is_answered_from_the_english_ones(tmp_path):
    (tmp_path / "en").mkdir()
    assert Notes(tmp_path).language("Token là gì?") == "en" and Notes(tmp_path).search("gì") == []


@pytest.mark.parametrize("text", ["", "a\nb\r\n\n", "\u2028", "Hà Nội 🎉", "</script>", "\x00"])
def test_an_event_is_one_block_whatever_it_holds(text):
    block = sse({"type": "piece", "text": text}).decode()
    assert block.endswith("\n\n") and block.count("\n") == 2
    assert json.loads(block.removeprefix("data: "))["text"] == text


def test_half_a_character_is_no_fault():
    assert b"?" in sse({"type": "step", "arguments": {"a": "\ud800"}})


def test_closing_the_bytes_closes_the_events():
    closed = []

    async def events():
        try:
            yield {"type": "a"}
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    async def story():
        async with aclosing(encoded(events())) as parts:
            await anext(parts)
    run(story())
    assert closed == [True]


@pytest.mark.parametrize("gone, result", [(False, 3), (True, None)])
def test_work_ends_when_its_reader_leaves(gone, result):
    async def receive():
        await asyncio.sleep(0 if gone else 60)
        return {"type": "http.disconnect"}

    async def work():
        await asyncio.sleep(60 if gone else 0)
        return 3
    assert run(unless_gone(receive, work())) == result


def test_leaving_counts_even_at_the_moment_in_which_a_part_is_sent():
    async def story():
        sent: list[bytes] = []

        async def parts():
            for _ in range(50):
                yield b"next"

        async def send(message):
            sent.append(message.get("body"))
            await asyncio.sleep(0)
            if len(sent) == 5:
                sending.cancel()
        sending = asyncio.ensure_future(EventStream(b"first", parts())._send(send))
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert len(sent) <= 6
    run(story())


def test_a_reader_who_accepts_nothing_counts_as_gone(monkeypatch):
    monkeypatch.setattr("lib.machinery.serving.events.SEND_SECONDS", 0.05)
    sent, closed = [], []

    async def parts():
        try:
            while True:
                yield b"next"
        finally:
            closed.append(True)

    async def send(message):
        sent.append(message.get("body"))
        if message.get("body") == b"next":
            await asyncio.sleep(60)

    async def receive():
        await asyncio.sleep(60)
    run(EventStream(b"first", parts())({"type": "http"}, receive, send))
    assert sent == [None, b"first", b"next"] and closed == [True]
