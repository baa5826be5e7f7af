"""The figures of the Vietnamese post on the endpoint: read from its limits and its proxy's example, or computed."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

from lib.generation import CHUNK
from lib.machinery import serve
from lib.tests.figures.check import Entry
from lib.tests.figures.read import vietnamese

CADDYFILE = Path(serve.__file__).with_name("Caddyfile").read_text(encoding="utf-8")
LONGEST = "\u1ec7" * serve.MAX_QUESTION  # a question of a letter that takes most bytes


def code(status: HTTPStatus) -> str:
    """A status as HTTP writes it."""
    return str(status.value)


def pieces() -> int:
    """Pieces that a reader's queue holds, as many as an answer has tokens; ValueError where the two differ."""
    if serve.PIECES != serve.MAX_TOKENS:
        raise ValueError(f"the queue holds {serve.PIECES} pieces, an answer has {serve.MAX_TOKENS} tokens")
    return serve.PIECES


def places() -> int:
    """The place of the first reader who is turned away: after the one who is served and those who wait."""
    return 1 + serve.WAITING + 1


def longest_wait() -> int:
    """Seconds that the last in the line may wait: one is served and all others of the line go first."""
    return serve.WAITING * serve.MAX_SECONDS


def minutes(seconds: int) -> int:
    """Whole minutes; ValueError for seconds that are none."""
    whole, rest = divmod(seconds, 60)
    if rest:
        raise ValueError(f"{seconds} seconds are no whole minutes")
    return whole


def escaped() -> int:
    """Bytes of the longest question as JSON in ASCII, without its quotation marks."""
    return len(json.dumps(LONGEST).encode()) - len('""')


def directives() -> int:
    """Lines of the proxy's example that are neither empty nor a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in CADDYFILE.splitlines())


FIGURES: list[Entry] = [
    ("lấy {} đoạn có điểm BM25 cao nhất", lambda: serve.PASSAGES),
    ("Hàng này chứa được ít nhất {} mẩu chữ, vừa bằng số token tối đa", pieces),
    ("Hàng chờ của endpoint có {} chỗ", lambda: serve.WAITING),
    ("người thứ {} nhận mã {} (Service Unavailable)", lambda: (places(), code(HTTPStatus.SERVICE_UNAVAILABLE))),
    ("Mã {} của endpoint luôn kèm header Retry-After với giá trị {}",
     lambda: (code(HTTPStatus.SERVICE_UNAVAILABLE), serve.RETRY_AFTER)),
    ("cỡ {} × {} = {} giây, tức {} phút",
     lambda: (serve.WAITING, serve.MAX_SECONDS, longest_wait(), minutes(longest_wait()))),
    ("Mã {} (Content Too Large)", lambda: code(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)),
    ("không được quá {} byte", lambda: serve.MAX_BODY),
    ("không được quá {} ký tự", lambda: serve.MAX_QUESTION),
    ("không được quá {} token", lambda: serve.MAX_PROMPT),
    ("chiếm {} byte trong UTF-8, và {} byte nếu", lambda: (len(LONGEST.encode()), escaped())),
    ("Mã {} (Unprocessable Content)", lambda: code(HTTPStatus.UNPROCESSABLE_ENTITY)),
    ("rồi mới trả mã {}", lambda: code(HTTPStatus.OK)),
    ("cứ {} giây không có sự kiện nào", lambda: serve.PING),
    ("dài tối đa {} token", lambda: CHUNK),
    ("dành cho mỗi lần ghi xuống mạng {} giây", lambda: serve.SEND_SECONDS),
    ("bị chặn bởi hai giới hạn: {} token và {} giây", lambda: (serve.MAX_TOKENS, serve.MAX_SECONDS)),
    ("trung bình ít nhất {} token mỗi giây",
     lambda: vietnamese(f"{serve.MAX_TOKENS / serve.MAX_SECONDS:.1f}")),
    ("ở địa chỉ {}, cổng {}, tức", lambda: (serve.HOST, str(serve.PORT))),
    ("chỉ có {} dòng, không kể dòng trống và chú thích", directives),
]
