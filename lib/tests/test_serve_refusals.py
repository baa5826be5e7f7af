"""What the endpoint refuses because it would break later, and what it takes because it harms nothing."""
from __future__ import annotations

import json
from contextlib import ExitStack

import httpx
import pytest

from lib.machinery.serving import server
from lib.machinery.serving.guard import Guard
from lib.tests.paced import PacedModel
from lib.tests.test_serve_http import (
    CHAT,
    NOTES,
    QUESTION,
    ask,
    endpoint,
    read_until,
    reader,
    wait_until,
)
from lib.tests.test_serve_openai import CALLED, MULTIPLY, PARAMETERS, RESULT, USER, called


@pytest.fixture(scope="module")
def here():
    """One endpoint for all that is refused: its model is never asked."""
    with endpoint("Never.") as started:
        yield started
        assert started.model.prompts == []


# --- what would break later, or quote what was sent -------------------------

def offering(parameters, name: str = "f") -> dict:
    """A tool with these parameters."""
    return {"tools": [{"type": "function", "function": {"name": name, "parameters": parameters}}]}


def nested(levels: int) -> dict:
    """A schema of this many levels."""
    schema: dict = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


CALLS = [{"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for number in (1, 2)]
ONE, TWO = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in CALLS]
BOTH = {"role": "assistant", "content": None, "tool_calls": CALLS}


@pytest.mark.parametrize("more", [
    *[offering({"properties": {"a": bad}}) for bad in (
        {"enum": 5}, {"enum": None}, {"enum": "xyz"}, {"enum": []}, {"items": []}, {"items": False},
        {"items": None}, {"type": "foo"}, {"type": None}, {"type": ["string"]}, {"required": [["a"]]},
        {"required": None}, {"required": "a"}, {"additionalProperties": 1}, {"description": 3}, {"title": []},
        {"properties": None}, None, [], "x", {"items": {"items": {"enum": 5}}})],
    offering({"type": "array"}), offering(nested(30)), offering(nested(400)), offering({"description": "\ud800"}),
    offering({"properties": {"\udfff": {}}}), offering({}, "\ud800"), offering({}, "f" * 65), offering({}, ""),
    {"messages": [USER, called('{"a": NaN}'), RESULT]}, {"messages": [USER, called('{"a": "\\ud800"}'), RESULT]},
    {"messages": [USER, called('{"a": 1, "a": 2}'), RESULT]},
    {"messages": [USER, called('{"a":' * 700 + "1" + "}" * 700), RESULT]},
    {"messages": [USER] * 257}, {"messages": [RESULT, CALLED]}, {"messages": [BOTH, ONE, USER, TWO]},
    {"messages": [BOTH, ONE, ONE]}, {"messages": [BOTH, ONE, TWO, TWO]}, {"messages": [USER | {"tool_calls": CALLS}]},
    {"n": True}, {"max_tokens": True}, {"max_tokens": "5"}, {"max_tokens": 5.0}, {"stream": "yes"}, {"stream": 1},
    {"temperature": False}, {"temperature": float("nan")}, {"top_p": -1}, {"top_p": 2}, {"top_logprobs": 1},
    {"logit_bias": {"5": 1}}, {"modalities": ["audio"]}, {"stream_options": {"include_usage": True}},
    {"functions": []}, {"k" * 60_000: 1}, {"a question?": 1}, offering({"x" * 50_000: 1}),
    {"tools": [MULTIPLY, MULTIPLY]}])
def test_what_would_break_later_is_refused_and_not_quoted(more, here):
    response = here.client.post("/v1/chat/completions", content=json.dumps(CHAT | more))
    assert response.status_code == 422 and len(response.text) < 500, response.text
    assert not any(word in response.text for word in ("kkk", "xxx", "fff", "multiply", "question?"))


@pytest.mark.parametrize("more", [
    {"logit_bias": None}, {"logit_bias": {}}, {"top_logprobs": None}, {"top_logprobs": 0}, {"modalities": ["text"]},
    {"functions": None, "function_call": None, "reasoning_effort": None, "verbosity": None},
    {"prompt_cache_key": "x"}, {"stream_options": None}, {"temperature": 0.0, "top_p": 1, "presence_penalty": 0},
    {"tools": [{"type": "function", "function": {"name": "f", "description": None, "parameters": None}}]},
    {"messages": [BOTH | {"tool_calls": [call | {"index": 0} for call in CALLS]}, TWO, ONE]},
    offering(PARAMETERS | {"additionalProperties": False, "title": "T"}),
    offering({"properties": {"a": {"type": "array", "items": {"enum": ["x", 1]}}}})])
def test_harmless_settings_are_taken(more):
    with endpoint("Yes.") as here:
        response = here.client.post("/v1/chat/completions", json=CHAT | more)
        assert response.status_code == 200, response.text
        usage = {"stream": True, "stream_options": {"include_usage": None}}
        assert here.client.post("/v1/chat/completions", json=CHAT | more | usage).status_code == 200


def test_a_key_given_twice_is_refused(here):
    body = b'{"question": "x", "question": "y"}'
    assert "key twice" in here.client.post("/answer", content=body).json()["error"]["message"]


@pytest.mark.parametrize("host", ["localhost/foo", "localhost?x", "a@localhost", "localhost:abc", "localhost#",
                                  "[::1]x", "localhost:80:80", "127.0.0.1 ", "localhost:\u00b2", "localhost\\"])
def test_what_is_no_host_is_not_ours(host):
    assert not Guard(None).is_ours(host)


@pytest.mark.parametrize("origin", ["http://[", "http://", "localhost", "//", "http://localhost@evil.example"])
def test_an_origin_that_cannot_be_read_is_foreign(origin, here):
    response = here.client.post("/answer", json=QUESTION, headers={"Origin": origin, "Host": "localhost"})
    assert response.status_code == 403


@pytest.mark.parametrize("value", ["bytes=0-1", "items=0-1", "bytes=99999999-"])
def test_the_page_is_always_sent_whole(value, here):
    whole, part = here.client.get("/page.js"), here.client.get("/page.js", headers={"Range": value})
    assert part.status_code == 200 and part.text == whole.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/models"])
def test_what_can_be_read_has_a_head(path, here):
    response = here.client.head(path)
    assert response.status_code == 200 and response.content == b""


def test_a_path_with_a_slash_too_many_is_none(here):
    assert here.client.post("/answer/", json=QUESTION).status_code == 404


def test_half_a_character_of_a_model_is_no_fault():
    with endpoint("a \ud800 b") as here:
        answer = here.client.post("/v1/chat/completions", json=CHAT).json()
        assert answer["choices"][0]["message"]["content"] == "a ? b"


def test_a_prompt_of_exactly_the_limit_is_read_in_both_ways(monkeypatch):
    with endpoint("Yes.") as here:
        ask(here.client, mode="agent")
        length = len(here.model.prompts[0])
        for most, status in [(length, 200), (length - 1, 413)]:
            monkeypatch.setattr("lib.machinery.serving.answer.MAX_PROMPT", most)
            response = here.client.post("/answer", json=QUESTION | {"mode": "agent"})
            assert response.status_code == status and ('"answered"' in response.text) == (status == 200)


def test_a_completion_under_way_at_the_end_is_told_to_come_back():
    with ExitStack() as stack:
        with server.running(PacedModel([250], 0.05), notes=NOTES) as url:
            raw = stack.enter_context(reader(int(url.rsplit(":", 1)[1]), CHAT, "/v1/chat/completions"))
            wait_until(lambda: httpx.get(f"{url}/healthz").json()["answering"])
        got = read_until(raw, b"shutting down")
        assert got.startswith(b"HTTP/1.1 503") and b"retry-after" in got.lower()
