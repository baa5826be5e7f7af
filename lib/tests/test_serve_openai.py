"""Chat completions in OpenAI's form: what is taken and refused, and what the real client of OpenAI makes of them."""
from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from lib.generation import Generation
from lib.machinery import serve
from lib.machinery.serving.completions import message_of
from lib.machinery.serving.wanted import Wanted
from lib.tests.test_cases import tools
from lib.tests.test_serve_http import CALL, CHAT, endpoint, is_at_rest, wait_until

PARAMETERS = {"type": "object", "required": ["a", "b"],
              "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
MULTIPLY = {"type": "function",
            "function": {"name": "multiply", "description": "Multiply.", "parameters": PARAMETERS}}
USER = {"role": "user", "content": "1234 nhân 5678?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "multiply", "arguments": '{"a": 1, "b": 2}'}}]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "2"}


def called(arguments: str) -> dict:
    """A message with a call whose arguments are this text."""
    call = CALLED["tool_calls"][0]
    return CALLED | {"tool_calls": [call | {"function": {"name": "multiply", "arguments": arguments}}]}


# --- what may be asked for --------------------------------------------------

@pytest.mark.parametrize("more, words", [
    ({"messages": []}, "messages"), ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages.0"),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, "half a character"),
    ({"messages": [USER, RESULT]}, "tool_call_id"), ({"messages": [USER, called("{"), RESULT]}, "no JSON object"),
    ({"messages": [USER, called("[]"), RESULT]}, "no JSON object"),
    ({"messages": [USER, called("[" * 20_000), RESULT]}, "no JSON object"),
    ({"temperature": 0.7}, "greedy"), ({"temperature": -1}, "greedy"), ({"n": 2}, "n:"), ({"n": 0}, "n:"),
    ({"presence_penalty": 1}, "presence_penalty"), ({"logprobs": True}, "logprobs"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"), ({"stop": ""}, "stop"), ({"stop": [""]}, "stop"),
    ({"tool_choice": "required"}, "tool_choice"), ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"parallel_tool_calls": False}, "parallel_tool_calls"), ({"made_up": 1}, "made_up"),
    ({"tools": [MULTIPLY, MULTIPLY]}, "share a name"), ({"tools": [{"type": "retrieval"}]}, "tools.0"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"anyOf": []}}}]}, "unchecked"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": []}}}]}, "properties")])
def test_what_cannot_be_served_is_refused_in_words(more, words):
    with endpoint("Never.") as here:
        response = here.client.post("/v1/chat/completions", content=json.dumps(CHAT | more))
        error = response.json()["error"]
        assert response.status_code == 422 and words in error["message"], error
        assert error["type"] == "invalid_request_error" and here.model.prompts == []


@pytest.mark.parametrize("more", [
    {"temperature": 0}, {"temperature": None, "n": None, "stop": None, "max_tokens": None, "tools": None}, {"n": 1},
    {"top_p": 0.9, "seed": 7, "user": "me"}, {"response_format": {"type": "text"}}, {"stop": ["x"]}, {"stop": "x"},
    {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [
        {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]},
    {"messages": [USER, CALLED, RESULT], "tools": [MULTIPLY]}, {"messages": [USER, called(""), RESULT]}])
def test_what_can_be_served_is(more):
    with endpoint("Yes.") as here:
        response = here.client.post("/v1/chat/completions", json=CHAT | more)
        assert response.status_code == 200, response.text
        assert response.json()["choices"][0]["message"]["content"] == "Yes."


def test_messages_become_those_of_the_chat_template():
    developer = {"role": "developer", "content": "Be brief."}
    wanted = Wanted.model_validate(CHAT | {"messages": [developer, USER, CALLED, RESULT]})
    assert wanted.conversation == [
        {"role": "system", "content": "Be brief."}, USER,
        {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "multiply", "arguments": {"a": 1, "b": 2}}}]},
        {"role": "tool", "content": "2"}]


@pytest.mark.parametrize("asked, limit", [
    ({}, 256), ({"max_tokens": 9}, 9), ({"max_completion_tokens": 7}, 7), ({"max_tokens": 999}, 256),
    ({"max_tokens": 9, "max_completion_tokens": 7}, 7)])
def test_the_smaller_limit_counts(asked, limit):
    assert Wanted.model_validate(CHAT | asked).limit(256) == limit


def test_another_model_and_too_long_a_prompt():
    with endpoint("Never.") as here:
        assert here.client.post("/v1/chat/completions", json=CHAT | {"model": "gpt"}).status_code == 404
        long = [{"role": "user", "content": "x" * (serve.MAX_PROMPT + 1)}]
        refused = here.client.post("/v1/chat/completions", json=CHAT | {"messages": long, "stream": True})
        assert refused.status_code == 413 and "tokens" in refused.json()["error"]["message"]


def test_a_choice_of_no_tools_hides_them():
    with endpoint(CALL) as here:
        body = CHAT | {"tools": [MULTIPLY], "tool_choice": "none"}
        message = here.client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
        assert message["content"] == CALL and "tool_calls" not in message
        assert "multiply" not in here.model.decode(here.model.prompts[0])


# --- what a reply becomes ---------------------------------------------------

ADD = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'


@pytest.mark.parametrize("text, reason, content, refused, calls, finish", [
    ("", "eos", "", False, 0, "stop"), ("Xin chào", "eos", "Xin chào", False, 0, "stop"),
    ("Xin", "length", "Xin", False, 0, "length"), ("Xin", "cancelled", "Xin", False, 0, "length"),
    ("a", "stop", "a", False, 0, "stop"), (ADD, "eos", None, False, 1, "tool_calls"),
    (ADD + ADD, "eos", None, False, 2, "tool_calls"), ("I add. " + ADD, "eos", "I add.", False, 1, "tool_calls"),
    ('```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```', "eos", None, False, 1, "tool_calls"),
    ("<tool_call>{</tool_call>", "eos", None, True, 0, "stop"), (ADD[:30], "length", None, True, 0, "length"),
    (ADD.replace("add", "drop"), "eos", None, True, 0, "stop"), ("4 <tool_response>5", "eos", None, True, 0, "stop")])
def test_a_message_and_why_it_ended(text, reason, content, refused, calls, finish):
    result = Generation(text, [1], 1, 0, stop_reason=reason)
    message, ended = message_of(result, tools(lambda call: None))
    assert (message["content"], bool(message["refusal"]), ended) == (content, refused, finish)
    assert len(message.get("tool_calls", [])) == calls and (not refused or text in message["refusal"])


def streamed(here, **more) -> tuple[list[dict], str]:
    """(chunks, the last line) of a stream."""
    text = here.client.post("/v1/chat/completions", json=CHAT | {"stream": True} | more).text
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines[:-1]], lines[-1]


def test_a_stream_chunk_by_chunk():
    with endpoint("Xin chào bạn") as here:
        chunks, end = streamed(here, stream_options={"include_usage": True})
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        assert deltas[0] == {"role": "assistant", "content": ""} and deltas[-1] == {} and end == "[DONE]"
        assert "".join(delta.get("content", "") for delta in deltas) == "Xin chào bạn"
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 3
        assert {chunk["usage"] for chunk in chunks[:-1]} == {None} and len({chunk["id"] for chunk in chunks}) == 1


def test_a_streamed_call_comes_whole_at_the_end_and_never_as_text():
    with endpoint(f"Let me see. <tool_call>{CALL}</tool_call>") as here:
        deltas = [chunk["choices"][0]["delta"] for chunk in streamed(here, tools=[MULTIPLY])[0]]
        assert "".join(delta.get("content", "") for delta in deltas) == "Let me see."
        (call,), = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
        assert (call["index"], call["function"]["name"]) == (0, "multiply")
        assert json.loads(call["function"]["arguments"]) == {"a": 1234, "b": 5678}


def test_a_fault_is_an_error_in_their_form():
    with endpoint(ValueError("secret")) as here:
        whole = here.client.post("/v1/chat/completions", json=CHAT)
        assert whole.status_code == 500 and whole.json()["error"]["type"] == "server_error"
        text = here.client.post("/v1/chat/completions", json=CHAT | {"stream": True}).text
        assert '"error"' in text and "secret" not in text + whole.text and "[DONE]" not in text


# --- the real client --------------------------------------------------------

@pytest.fixture
def client():
    """Makes an OpenAI client of an endpoint."""
    openai = pytest.importorskip("openai", reason="openai is not installed (lib/tests/extras.txt)")

    def make(here) -> SimpleNamespace:
        made = openai.OpenAI(base_url=f"{here.url}/v1", api_key="none", timeout=30, max_retries=0)
        return SimpleNamespace(openai=openai, models=made.models, create=made.chat.completions.create)
    return make


ASK = {"model": "scripted", "messages": [USER]}


@pytest.mark.slow
def test_the_client_lists_the_model_and_reads_an_answer(client):
    with endpoint("Bằng 7006652.") as here:
        made = client(here)
        assert [model.id for model in made.models.list()] == ["scripted"]
        assert made.models.retrieve("scripted").id == "scripted"
        answer = made.create(**ASK)
        assert answer.choices[0].message.content == "Bằng 7006652." and answer.choices[0].finish_reason == "stop"
        assert answer.usage.prompt_tokens == len(here.model.prompts[0]) and answer.usage.total_tokens == \
            answer.usage.prompt_tokens + 2


@pytest.mark.slow
def test_the_client_reads_a_stream_and_may_leave_it(client):
    with endpoint("Bằng 7006652.", 250) as here:
        made = client(here)
        chunks = list(made.create(**ASK, stream=True, stream_options={"include_usage": True}))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Bằng 7006652."
        assert chunks[-1].usage.completion_tokens == 2
        here.model.pause = 0.05
        with made.create(**ASK, stream=True) as stream:
            assert next(stream).choices[0].delta.role == "assistant"
        wait_until(lambda: is_at_rest(here.client))
        here.model.pause = 0
        assert made.create(**ASK).choices[0].finish_reason == "stop" and here.model.computed < 200


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_client_runs_a_tool_and_gives_back_its_result(client, stream):
    with endpoint(CALL, "Bằng 7006652.") as here:
        made, messages = client(here), [USER]
        answer = made.create(model="scripted", messages=messages, tools=[MULTIPLY], stream=stream)
        if stream:
            chunks = [chunk.choices[0] for chunk in answer]
            call = next(each.delta.tool_calls for each in chunks if each.delta.tool_calls)[0]
            finish = chunks[-1].finish_reason
            messages.append(CALLED | {"tool_calls": [call.model_dump(exclude={"index"})]})
        else:
            call, finish = answer.choices[0].message.tool_calls[0], answer.choices[0].finish_reason
            messages.append(answer.choices[0].message)
        values = json.loads(call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(values["a"] * values["b"])})
        last = made.create(model="scripted", messages=messages, tools=[MULTIPLY])
        assert finish == "tool_calls" and last.choices[0].message.content == "Bằng 7006652."
        assert "7006652" in here.model.decode(here.model.prompts[1])


@pytest.mark.slow
def test_the_client_knows_each_error(client):
    with endpoint(ValueError("x"), "Yes.") as here:
        made = client(here)
        for kind, more in [("NotFoundError", {"model": "gpt"}), ("UnprocessableEntityError", {"temperature": 1.0}),
                           ("InternalServerError", {})]:
            with pytest.raises(getattr(made.openai, kind)):
                made.create(**ASK | more)
        here.model.replies = [ValueError("x")]
        with pytest.raises(made.openai.APIError):
            list(made.create(**ASK, stream=True))
