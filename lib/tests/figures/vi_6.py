"""The figures of the Vietnamese post on serving many readers: formulas on real configs, and queues of real lengths.

Where the post supposes a number, it stands in SUPPOSED, and what follows in the text is computed from it. The answers
that wait for a place are as long as the rules of the bookshop's prompt.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from heapq import heapify, heapreplace
from statistics import mean
from types import SimpleNamespace

from lib.generation import CHUNK
from lib.tests.figures.check import Entry
from lib.tests.figures.en_3 import attention_operations, body, default_limit, full_kv, kv, matrix_operations, weights
from lib.tests.figures.read import QWEN, count, prompt, tokenizer, user
from lib.tests.figures.vi_5 import DATA, dec, parameters, percent, rules

SUPPOSED = SimpleNamespace(
    cores=4, clock=3e9, per_cycle=32, transfers=3200e6, width=8,  # the processor and the memory of the posts
    readers=12, context=600, crowd=64, long=2000,                 # readers; tokens
    places=4, page=16, memory=8e9, each=2000,                     # in a batch; tokens; bytes; tokens
    put_aside=1500, disk=500e6,                                   # tokens; bytes a second
    arrivals=12, stay=25,                                         # a minute; seconds
    coming=12, served=10, minutes=60,                             # a minute; a minute
    load=0.8, machines=2, work=10,                                # share of time; machines; seconds
    sent=20,                                                      # questions that one reader sends at once
    bucket=10, refill=2,                                          # requests; a minute
    pace=4, calls=5, slow=0.05,                                   # syllables a second; calls to a model; share
    rent=5000, batches=(1, 8, 30),                                # dong an hour; readers
    price=10_000, discount=0.1, daily=1000, days=30,              # dong per million tokens read
)  # fmt: skip

PROMPTS = (
    "Hủy đơn giúp mình.",
    "Shop còn size M màu xanh không ạ?",
    "Mình đặt hôm thứ hai mà tới giờ chưa thấy giao, shop kiểm tra giúp mình đơn này đang ở đâu nhé.",
    "Đổi trả thế nào?",
)
SONG = "Công cha như núi Thái Sơn, nghĩa mẹ như nước trong nguồn chảy ra."
BRIEF = "Giá bao nhiêu ạ?"


# --- the machine ------------------------------------------------------------


def bandwidth() -> float:
    """Bytes a second of the supposed memory."""
    return SUPPOSED.transfers * SUPPOSED.width


def arithmetic() -> float:
    """Operations a second of the supposed processor."""
    return SUPPOSED.cores * SUPPOSED.clock * SUPPOSED.per_cycle


def pass_bytes(readers: int, context: int = 0) -> float:
    """Bytes that a pass reads: the weights once, each reader's keys and values."""
    return weights(QWEN) + readers * context * kv(QWEN)


def pass_seconds(readers: int, context: int = 0) -> float:
    """The least time of a pass: that of its bytes or that of its operations, whichever is longer."""
    return max(pass_bytes(readers, context) / bandwidth(), 2 * parameters() * readers / arithmetic())


def free_rows() -> int:
    """Readers whose arithmetic takes as long as reading the weights once."""
    return round(weights(QWEN) / bandwidth() / (2 * parameters() / arithmetic()))


def feeding_seconds(tokens: int) -> float:
    """The least time to read a prompt."""
    return (matrix_operations(tokens) + attention_operations(tokens)) / arithmetic()


def chunk_seconds() -> float:
    """The least time of the last chunk of the long prompt, the longest of them."""
    before = SUPPOSED.long - CHUNK
    attention = attention_operations(SUPPOSED.long) - attention_operations(before)
    return (2 * body(QWEN) * CHUNK + attention) / arithmetic()


# --- batches ----------------------------------------------------------------


@lru_cache
def lengths() -> tuple[int, ...]:
    """Tokens of each rule of the bookshop, without its number."""
    return tuple(count(QWEN, rule.split(". ", 1)[1]) for rule in rules())


def padded() -> tuple[int, int]:
    """Tokens of the four prompts, and places that they take when all are filled up to the longest."""
    sizes = [len(prompt(QWEN, user(text))) for text in PROMPTS]
    return sum(sizes), len(sizes) * max(sizes)


def in_groups() -> int:
    """Passes when a batch starts only after the whole batch before it has ended."""
    starts = range(0, len(lengths()), SUPPOSED.places)
    return sum(max(lengths()[start : start + SUPPOSED.places]) for start in starts)


def finishes(answers: tuple[int, ...]) -> list[int]:
    """The pass at which each answer ends when a free place is given to the next at once."""
    free = [0] * SUPPOSED.places
    heapify(free)
    ends = []
    for length in answers:
        ends.append(free[0] + length)
        heapreplace(free, ends[-1])
    return ends


def in_order() -> tuple[int, ...]:
    """The lengths, shortest first."""
    return tuple(sorted(lengths()))


def used(passes: int) -> float:
    """The share of places in some passes that wrote a token."""
    return sum(lengths()) / passes / SUPPOSED.places


# --- keys and values --------------------------------------------------------


def readers_that_fit() -> int:
    """Readers whose keys and values fit beside the weights."""
    return int((SUPPOSED.memory - weights(QWEN)) / (SUPPOSED.each * kv(QWEN)))


def in_pages() -> int:
    """Tokens that the pages of all answers have room for."""
    return sum(math.ceil(length / SUPPOSED.page) * SUPPOSED.page for length in lengths())


@lru_cache
def shop() -> str:
    """The bookshop's prompt as it is."""
    return (DATA / "prompts" / "bookshop.md").read_text(encoding="utf-8").strip()


def shared_tokens() -> int:
    """Tokens of the bookshop's prompt."""
    return count(QWEN, shop())


# --- queues -----------------------------------------------------------------


def waiting(servers: int) -> float:
    """Mean seconds in line before one of some servers under the supposed load (Erlang, 1917)."""
    offered = servers * SUPPOSED.load
    terms = [offered**n / math.factorial(n) for n in range(servers)]
    full = offered**servers / math.factorial(servers) / (1 - SUPPOSED.load)
    return full / (sum(terms) + full) * SUPPOSED.work / (servers * (1 - SUPPOSED.load))


def line_after() -> int:
    """Readers in line after the supposed minutes of overload."""
    return (SUPPOSED.coming - SUPPOSED.served) * SUPPOSED.minutes


def at_most(minutes: int) -> int:
    """Requests that a token bucket lets through."""
    return SUPPOSED.bucket + SUPPOSED.refill * minutes


def operations(prompt_tokens: int) -> float:
    """Operations to read a prompt."""
    return matrix_operations(prompt_tokens) + attention_operations(prompt_tokens)


def long_question() -> int:
    """Tokens of a question with the bookshop's prompt pasted before it."""
    return len(prompt(QWEN, user(shop() + "\n\n" + BRIEF)))


def short_question() -> int:
    """Tokens of the bare question."""
    return len(prompt(QWEN, user(BRIEF)))


# --- streaming --------------------------------------------------------------


def pieces() -> list[str]:
    """The folk verse token by token; every piece is whole characters."""
    found = [tokenizer(QWEN).decode([id]) for id in tokenizer(QWEN)(SONG)["input_ids"]]
    assert "".join(found) == SONG and not any("\ufffd" in piece for piece in found)
    return found


def syllables() -> int:
    """Of the folk verse."""
    return len(SONG.split())


def by_two() -> list[str]:
    """The folk verse by two syllables, each part with the space before it."""
    return re.findall(r"\s?\S+\s\S+", SONG)


def wire(parts: list[str]) -> int:
    """Bytes of the parts as server-sent events of JSON."""
    return sum(len(f"data: {json.dumps({'piece': part}, ensure_ascii=False)}\n\n".encode()) for part in parts)


# --- money ------------------------------------------------------------------


def per_million(readers: int) -> int:
    """Dong for a million written tokens when a pass serves so many readers."""
    return round(SUPPOSED.rent / 3600 * pass_seconds(readers, SUPPOSED.context) / readers * 1e6)


def monthly(price: float) -> int:
    """Dong a month for reading the bookshop's prompt with every question."""
    return round(shared_tokens() * SUPPOSED.daily * SUPPOSED.days * price / 1e6)


FIGURES: list[Entry] = [
    (
        "một người có {} token ngữ cảnh, qwen2.5-coder-0.5b ở float32 đọc {} MB",
        lambda: (SUPPOSED.context, round(pass_bytes(1, SUPPOSED.context) / 1e6)),
    ),
    (
        "gộp {} người như thế, mỗi lượt ra ngần ấy token và tính theo đầu token chỉ tốn {} MB",
        lambda: (
            SUPPOSED.readers,
            round(pass_bytes(SUPPOSED.readers, SUPPOSED.context) / SUPPOSED.readers / 1e6),
        ),
    ),
    ("với CPU bốn nhân {} GHz có AVX2, một thanh DDR4-3200", lambda: int(SUPPOSED.clock / 1e9)),
    ("ranh giới ấy nằm ở {} người", free_rows),
    (
        "phục vụ {} người cùng lúc thì qwen2.5-coder-0.5b ở float32 viết tối đa {} token mỗi giây cho cả máy",
        lambda: (SUPPOSED.crowd, round(SUPPOSED.crowd / pass_seconds(SUPPOSED.crowd))),
    ),
    ("từng người chỉ nhận {} token mỗi giây", lambda: dec(1 / pass_seconds(SUPPOSED.crowd), 1)),
    ("cộng lại là {} token; xếp thành khối chữ nhật phải giữ {} chỗ", padded),
    ("tức {} là phần độn", lambda: percent(1 - padded()[0] / padded()[1])),
    ("cộng lại chạm {} token", lambda: round(weights(QWEN) / kv(QWEN))),
    (
        "Lấy {} điều nội quy hiệu sách trong `data/prompts/bookshop.md`",
        lambda: len(lengths()),
    ),
    ("câu ngắn nhất {} token, câu dài nhất {}", lambda: (min(lengths()), max(lengths()))),
    ("hết {} lượt, mà chỉ {} số chỗ", lambda: (in_groups(), percent(used(in_groups())))),
    (
        "xong sau {} lượt, bớt được {} so với",
        lambda: (max(finishes(lengths())), percent(1 - max(finishes(lengths())) / in_groups())),
    ),
    (
        "prompt {} token cho qwen2.5-coder-0.5b, một CPU bốn nhân {} GHz có AVX2 cần ít nhất {} giây",
        lambda: (SUPPOSED.long, int(SUPPOSED.clock / 1e9), dec(feeding_seconds(SUPPOSED.long), 1)),
    ),
    ("mỗi lượt đọc {} token như khóa học vẫn làm", lambda: CHUNK),
    ("cũng tính theo cận dưới, chỉ còn {} giây", lambda: dec(chunk_seconds(), 1)),
    (
        "trung bình một câu xong sau {} lượt; xếp từ ngắn đến dài thì còn {}",
        lambda: (round(mean(finishes(lengths()))), round(mean(finishes(in_order())))),
    ),
    ("cả loạt xong muộn hơn {} lượt", lambda: max(finishes(in_order())) - max(finishes(lengths()))),
    (
        "máy có {} GB cho qwen2.5-coder-0.5b ở float32 và mỗi cuộc trò chuyện được dùng tới {} token",
        lambda: (int(SUPPOSED.memory / 1e9), SUPPOSED.each),
    ),
    ("còn đủ chỗ cho {} người", readers_that_fit),
    ("chỉ nhận nổi {} người", lambda: int((SUPPOSED.memory - weights(QWEN)) / full_kv())),
    ("được giữ sẵn {} token", default_limit),
    (
        "chỉ dùng {} phần đã giữ",
        lambda: percent(sum(lengths()) / (len(lengths()) * default_limit())),
    ),
    ("mỗi trang {} token", lambda: SUPPOSED.page),
    ("tỉ lệ dùng lên {}", lambda: percent(sum(lengths()) / in_pages())),
    (
        "dài {} token, ở qwen2.5-coder-0.5b float32 là {} MB",
        lambda: (shared_tokens(), dec(shared_tokens() * kv(QWEN) / 1e6, 1)),
    ),
    ("thì hết {} MB", lambda: round(SUPPOSED.readers * shared_tokens() * kv(QWEN) / 1e6)),
    (
        "{} token của qwen2.5-coder-0.5b ở float32 nặng {} MB, ổ đĩa đọc {} MB mỗi giây trả lại trong {} giây",
        lambda: (
            SUPPOSED.put_aside,
            dec(SUPPOSED.put_aside * kv(QWEN) / 1e6, 1),
            int(SUPPOSED.disk / 1e6),
            dec(SUPPOSED.put_aside * kv(QWEN) / SUPPOSED.disk),
        ),
    ),
    (
        "CPU bốn nhân {} GHz có AVX2 mất ít nhất {} giây",
        lambda: (int(SUPPOSED.clock / 1e9), dec(feeding_seconds(SUPPOSED.put_aside), 1)),
    ),
    (
        "nhận {} câu hỏi mỗi phút, mỗi câu từ lúc gửi tới chữ cuối mất {} giây",
        lambda: (SUPPOSED.arrivals, SUPPOSED.stay),
    ),
    ("có {} câu đang dở dang", lambda: SUPPOSED.arrivals * SUPPOSED.stay // 60),
    (
        "Mỗi phút đến {} câu mà máy chỉ trả lời được {} câu thì sau {} phút có {} người",
        lambda: (SUPPOSED.coming, SUPPOSED.served, SUPPOSED.minutes, line_after()),
    ),
    ("phải đợi {} phút", lambda: line_after() // SUPPOSED.served),
    (
        "máy nào cũng trả lời từng câu một và bận {} thời gian, một câu trả lời mất trung bình {} giây",
        lambda: (percent(SUPPOSED.load), SUPPOSED.work),
    ),
    (
        "chia hai hàng riêng thì đợi trung bình {} giây, chung một hàng chỉ đợi {} giây",
        lambda: (round(waiting(1)), round(waiting(SUPPOSED.machines))),
    ),
    ("gửi liền một lúc {} câu", lambda: SUPPOSED.sent),
    ("prompt {} token của qwen2.5-coder-0.5b; dán", short_question),
    (
        "thành {} token, số phép tính để đọc gấp {} lần",
        lambda: (long_question(), round(operations(long_question()) / operations(short_question()))),
    ),
    ("tối đa {} thẻ, mỗi phút rót thêm {} thẻ", lambda: (SUPPOSED.bucket, SUPPOSED.refill)),
    ("được nhận nhiều nhất {} câu", lambda: at_most(60)),
    ("có {} tiếng, qwen2.5-coder-0.5b cắt thành {} token", lambda: (syllables(), len(pieces()))),
    (
        "đọc lướt {} tiếng mỗi giây thì mô hình phải viết {} token mỗi giây",
        lambda: (SUPPOSED.pace, dec(SUPPOSED.pace * len(pieces()) / syllables(), 1)),
    ),
    ("chiếm {} byte UTF-8", lambda: len(SONG.encode())),
    ("thì thành {} byte", lambda: wire(pieces())),
    ("Gom hai tiếng một lần thì còn {} byte", lambda: wire(by_two())),
    ("chỉ hết {} byte", lambda: wire([SONG])),
    (
        "gọi mô hình {} lần, mỗi lần có {} khả năng",
        lambda: (SUPPOSED.calls, percent(SUPPOSED.slow)),
    ),
    ("thì {} lượt hỏi dính", lambda: percent(1 - (1 - SUPPOSED.slow) ** SUPPOSED.calls)),
    (
        "giá {} đồng một giờ, mỗi người giữ {} token ngữ cảnh",
        lambda: (SUPPOSED.rent, SUPPOSED.context),
    ),
    ("một triệu token giá {} đồng", lambda: per_million(SUPPOSED.batches[0])),
    ("gộp {} người còn {} đồng, gộp", lambda: (SUPPOSED.batches[1], per_million(SUPPOSED.batches[1]))),
    ("đồng, gộp {} người còn {} đồng", lambda: (SUPPOSED.batches[2], per_million(SUPPOSED.batches[2]))),
    (
        "{} câu một ngày suốt {} ngày, với giá giả định {} đồng",
        lambda: (SUPPOSED.daily, SUPPOSED.days, SUPPOSED.price),
    ),
    ("tốn {} đồng một tháng", lambda: monthly(SUPPOSED.price)),
    (
        "chỉ tính {} giá thì còn {} đồng",
        lambda: (percent(SUPPOSED.discount), monthly(SUPPOSED.price * SUPPOSED.discount)),
    ),
]
