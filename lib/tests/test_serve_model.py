"""The endpoint with the course's own model: who leaves stops it, a call comes as data, an answer names its source."""
from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from lib import generation, models
from lib.machinery.serving import server
from lib.machinery.serving.answer import Desk, answer
from lib.machinery.serving.line import Line
from lib.tests.test_serve_http import NOTES, events, is_at_rest, text_of, wait_until
from lib.tests.test_serve_openai import MULTIPLY, USER

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture(scope="module")
def model():
    if not models.is_ready(models.DEFAULT):
        pytest.fail(f"{models.DEFAULT} is not ready: run `python3 -m lib fetch {models.DEFAULT}`")
    return models.load(models.DEFAULT)


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """The number of tokens of every pass through the network, noted as it begins."""
    made: list[int] = []
    feed = generation.Model._feed

    def counted(self, fed, ids):
        made.append(len(ids))
        return feed(self, fed, ids)
    monkeypatch.setattr(generation.Model, "_feed", counted)
    return made


@pytest.mark.parametrize("pieces", [0, 1, 4])
def test_who_leaves_stops_the_model_within_one_pass(model, passes, pieces):
    async def story() -> int:
        desk, left = Desk(model, NOTES, Line()), pieces
        stream = answer(desk, "How do tokens become vectors, and what does attention do?")
        async for event in stream:
            left -= event["type"] == "piece"
            if left == 0 and event["type"] in ("sources", "piece"):
                break
        before = len(passes)
        await stream.aclose()
        while desk.line.served:
            await asyncio.sleep(0.005)
        return len(passes) - before
    model.cache.clear()
    assert asyncio.run(asyncio.wait_for(story(), 300)) <= 1 and max(passes, default=0) <= generation.CHUNK


def test_over_http_an_answer_a_leaver_and_a_call_as_data(model):
    with (server.running(model, notes=NOTES) as url,
          httpx.Client(base_url=url, timeout=300) as client):
        question = {"question": "What kind of method was byte-pair encoding at first?"}
        found = events(client.post("/answer", json=question).text)
        assert found[1]["sources"][0]["id"] == "1-text-into-tokens/17" and text_of(found)
        assert found[-1]["status"] == "answered" and found[-1]["cited"] == []  # nobody asks the model for numbers
        with client.stream("POST", "/answer", json={"question": "Explain attention in detail."}) as response:
            next(line for line in response.iter_lines() if '"piece"' in line)
        wait_until(lambda: is_at_rest(client), 120)
        body = {"model": model.name, "messages": [USER], "tools": [MULTIPLY]}
        choice = client.post("/v1/chat/completions", json=body).json()["choices"][0]
        (call,) = choice["message"]["tool_calls"]
        assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "multiply")
        assert json.loads(call["function"]["arguments"]) == {"a": 1234, "b": 5678}
