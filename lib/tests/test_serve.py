"""The endpoint: so far its limits, and an example of a reverse proxy before it that agrees with them."""
from __future__ import annotations

import re
from pathlib import Path

from lib.machinery import serve

CADDYFILE = Path(serve.__file__).with_name("Caddyfile").read_text(encoding="utf-8")


def test_the_proxy_asks_the_endpoint_where_it_listens():
    assert re.findall(r"reverse_proxy (\S+)", CADDYFILE) == [f"{serve.HOST}:{serve.PORT}"]


def test_the_proxy_has_the_same_limit():
    assert re.findall(r"max_size (\d+)", CADDYFILE) == [str(serve.MAX_BODY)]


def test_the_proxy_tells_of_readers_who_leave():
    assert "flush_interval" not in CADDYFILE  # a negative one keeps the request alive when the reader has gone


def test_a_whole_answer_fits_into_the_queue_to_its_reader():
    assert serve.PIECES >= serve.MAX_TOKENS
