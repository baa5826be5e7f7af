"""The figures of the Vietnamese notes' post on speed: read from models and code, or computed by its formulas.

Where the post supposes a number, it stands in SUPPOSED, and what follows in the text is computed from it.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from types import SimpleNamespace

from transformers import DynamicCache

from lib.generation import CHUNK
from lib.prefix_cache import KEPT_TOKENS, Fed, PrefixCache, common_prefix
from lib.tests.figures.check import Entry
from lib.tests.figures.en_3 import attention_operations, body, chunks, crossing, kv, matrix_operations, weights
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, prompt, tensors, vietnamese

SUPPOSED = SimpleNamespace(
    silence=2, gap=0.1, answer=31,                    # seconds to the first token, between two; tokens
    pace=10, prompt=1000, room=1e9,                   # tokens a second; tokens; bytes of free memory
    cores=4, clock=3e9, vector_bits=256, units=2,     # of a processor; units multiply and add at once
    memory="DDR4-3200", bus=8,                        # million transfers a second; bytes of each
    card_bus=192, card_rate=15e9,                     # of a graphics card: bits, bits a second on each
)
DELIVERY = "Đơn hàng của bạn đã rời kho Thủ Đức lúc chín giờ sáng và dự kiến đến tay bạn trước năm giờ chiều mai."
RULES = """Bạn là nhân viên trực tin nhắn của một quán cà phê ở Đà Lạt. Hãy trả lời ngắn gọn, lịch sự bằng tiếng Việt.
- Quán mở cửa từ sáu giờ sáng đến mười giờ tối, kể cả chủ nhật; ngày Tết nghỉ ba hôm.
- Khách đặt bàn trước phải cho biết số người, giờ đến và số điện thoại. Bàn được giữ mười lăm phút.
- Giao hàng trong bán kính năm cây số, miễn phí cho đơn từ hai trăm nghìn đồng.
- Không tự ý giảm giá. Khách có thẻ thành viên thì được tặng một ly sau mười ly.
- Cà phê rang xay bán theo gói nửa ký, đổi trả trong bảy ngày nếu còn nguyên tem.
- Quán xuất hóa đơn điện tử trong ngày, khách gửi mã số thuế trước khi thanh toán.
- Khách hỏi về thành phần thì nói rõ món nào có sữa, đậu phộng hoặc gluten.
- Không bàn chuyện chính trị, không tư vấn sức khỏe, không nói về khách khác.
- Không biết thì nói không biết và mời khách gọi cho quản lý."""
TABLE, BEANS = "Quán còn bàn cho bốn người tối nay không?", "Cho mình hỏi cà phê rang xay giá bao nhiêu?"
TALK = (
    TABLE,
    "Dạ còn ạ. Anh chị cho quán xin giờ đến và số điện thoại nhé.",
    "Bảy giờ tối, số của mình là không chín một hai ba bốn năm sáu bảy tám.",
    "Dạ quán đã giữ bàn bốn người lúc bảy giờ tối. Bàn được giữ mười lăm phút ạ.",
    "Quán có món nào không có sữa không?",
    "Dạ có cà phê đen, trà sen và nước ép cam ạ.",
    BEANS,
)
CLOCKS = ("Bây giờ là chín giờ năm phút.", "Bây giờ là chín giờ sáu phút.")
OLD, NEW = "hóa đơn", "hoá đơn"


# --- how figures are written ------------------------------------------------


def short(value: float, digits: int = 1) -> str:
    """A number with some digits after the comma."""
    return vietnamese(f"{value:,.{digits}f}")


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return short(100 * share, digits) + "%"


# --- limits of the supposed machines ----------------------------------------


def total_seconds() -> float:
    """Time of the supposed answer: its first token, then a gap before each of the others."""
    return SUPPOSED.silence + (SUPPOSED.answer - 1) * SUPPOSED.gap


def per_cycle() -> int:
    """Operations of one core in one cycle: numbers in a vector, units, a product and a sum each."""
    return SUPPOSED.vector_bits // 32 * SUPPOSED.units * 2


def operations() -> float:
    """Operations per second of the whole processor."""
    return SUPPOSED.cores * SUPPOSED.clock * per_cycle()


def asked(tokens: int) -> int:
    """Operations that a prompt takes, attention included."""
    return matrix_operations(tokens) + attention_operations(tokens)


def transfers() -> int:
    """Millions of transfers per second, as the memory's name says."""
    return int(SUPPOSED.memory.split("-")[1])


def bandwidth(sticks: int = 1) -> float:
    """Bytes per second of the supposed memory."""
    return sticks * transfers() * 1e6 * SUPPOSED.bus


def card() -> float:
    """Bytes per second of the supposed graphics card's memory."""
    return SUPPOSED.card_bus * SUPPOSED.card_rate / 8


def limit(rate: float) -> float:
    """The most tokens per second that the default model can write with this many bytes per second."""
    return rate / weights(QWEN)


def used() -> float:
    """Operations per second at that limit: two for each parameter."""
    return 2 * weights(QWEN) / 4 * limit(bandwidth())


def exchange() -> float:
    """Prompt tokens that are read in the time of writing one."""
    return operations() / (2 * body(QWEN)) / limit(bandwidth())


def syllables() -> int:
    """Words between spaces of the delivery message."""
    return len(DELIVERY.split())


def spoken(name: str) -> float:
    """Syllables per second at the supposed pace."""
    return SUPPOSED.pace * syllables() / count(name, DELIVERY)


def moved(name: str) -> float:
    """Bytes of weights read while a model writes the delivery message."""
    return count(name, DELIVERY) * weights(name)


def down() -> tuple[int, int]:
    """Shape of the last matrix of a feed-forward block."""
    return tensors(QWEN)["model.layers.0.mlp.down_proj.weight"].shape


# --- the café's prompts -----------------------------------------------------


@lru_cache
def asked_of(name: str, system: str, turns: tuple[str, ...]) -> list[int]:
    """The ids of the prompt with this system message and these turns, the customer's first."""
    said = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(turns)]
    return [span.id for span in prompt(name, [{"role": "system", "content": system}, *said])]


def cafe(question: str = TABLE, system: str = RULES, name: str = QWEN) -> list[int]:
    """The ids of a first question to the café."""
    return asked_of(name, system, (question,))


def reply() -> int:
    """Tokens of the café's first reply, the end token included."""
    return count(QWEN, TALK[1]) + 1


def without_cache() -> int:
    """Tokens fed for that reply when everything is fed again for each token."""
    return sum(len(cafe()) + written for written in range(reply()))


def dated(first: bool) -> tuple[int, int]:
    """Tokens that a question shares with one asked a minute before, of how many; the time stands first or last."""
    systems = [f"{clock}\n{RULES}" if first else f"{RULES}\n{clock}" for clock in CLOCKS]
    before, after = cafe(TABLE, systems[0]), cafe(BEANS, systems[1])
    return common_prefix(before, after), len(after)


def decomposed(name: str) -> list[int]:
    """The café's prompt with its rules in NFD."""
    return cafe(system=unicodedata.normalize("NFD", RULES), name=name)


def swollen() -> tuple[int, int, int]:
    """Tokens of the small model's prompt in NFD and in NFC, and how many they share; the default's are the same."""
    assert decomposed(QWEN) == cafe()
    composed = cafe(name=SMOL)
    return len(decomposed(SMOL)), len(composed), common_prefix(composed, decomposed(SMOL))


def renamed() -> tuple[int, int]:
    """Tokens shared, of how many, when one word of the rules has its tone mark on the other vowel."""
    other = cafe(system=RULES.replace(OLD, NEW))
    return common_prefix(cafe(), other), len(other)


def talk(start: int, end: int) -> list[int]:
    """The prompt with the rules and a part of the conversation."""
    return asked_of(QWEN, RULES, TALK[start:end])


def fed_next(start: int) -> int:
    """Tokens fed for the last question when the prompt before it is known; the turns before `start` are dropped."""
    following = talk(start, len(TALK))
    return len(following) - common_prefix(talk(0, len(TALK) - 2), following)


def entries() -> int:
    """Prompts as long as the café's, with nothing after the rules in common, that the prefix cache keeps."""
    cache = PrefixCache()
    for customer in range(KEPT_TOKENS // len(cafe()) * 2):
        cache.store(Fed([*cafe()[:-1], customer], DynamicCache()))
    return len(cache.entries)


def brief() -> int:
    """Tokens of the instruction to be brief."""
    return len(ids(QWEN, " Hãy trả lời ngắn gọn."))


# --- the table --------------------------------------------------------------

FIGURES: list[Entry] = [
    ("dài {} token, khóa học này đọc trọn trong {} lượt; câu đáp {} token, kể cả token kết thúc, cần thêm {} lượt",
     lambda: (len(cafe()), chunks(len(cafe())), reply(), reply() - 1)),
    ("Giả sử TTFT là {} giây và khoảng cách là {} giây thì câu đáp {} token xong sau {} giây",
     lambda: (SUPPOSED.silence, short(SUPPOSED.gap), SUPPOSED.answer, short(total_seconds(), 0))),
    ("có {} tiếng; qwen2.5-coder-0.5b cần {} token, smollm2-135m cần tới {}",
     lambda: (syllables(), count(QWEN, DELIVERY), count(SMOL, DELIVERY))),
    ("Cùng chạy {} token một giây, mô hình thứ nhất viết {} tiếng mỗi giây, mô hình thứ hai chỉ {} tiếng",
     lambda: (SUPPOSED.pace, short(spoken(QWEN)), short(spoken(SMOL)))),
    ("nó có {} hàng, {} cột", lambda: tuple(down())),
    ("Đưa {} token qua một lượt", lambda: CHUNK),
    ("bốn nhân chạy {} GHz, có AVX2 với hai bộ nhân-cộng (FMA), làm được {} phép trên số float32 ở mỗi nhân mỗi "
     "nhịp, tức tối đa {} tỉ phép mỗi giây cho cả máy",
     lambda: (int(SUPPOSED.clock / 1e9), per_cycle(), round(operations() / 1e9))),
    ("Prompt {} token tốn của qwen2.5-coder-0.5b khoảng {} tỉ phép, nên token đầu tiên đến sớm nhất sau {} giây",
     lambda: (SUPPOSED.prompt, round(asked(SUPPOSED.prompt) / 1e9),
              short(asked(SUPPOSED.prompt) / operations()))),
    ("với một nghìn token, attention chỉ chiếm {} số phép tính của qwen2.5-coder-0.5b",
     lambda: percent(attention_operations(SUPPOSED.prompt) / asked(SUPPOSED.prompt))),
    ("Lấp đầy ngữ cảnh {} token thì riêng attention đã tốn gấp {} lần",
     lambda: (config(QWEN).max_position_embeddings, short(config(QWEN).max_position_embeddings / crossing(), 2))),
    ("đó là {} byte cho mỗi token", lambda: weights(QWEN)),
    ("truyền {} triệu lần một giây, mỗi lần {} byte, tức {} GB mỗi giây: nhiều nhất {} token một giây",
     lambda: (transfers(), SUPPOSED.bus, short(bandwidth() / 1e9), short(limit(bandwidth())))),
    ("giao {} GB mỗi giây", lambda: short(bandwidth(2) / 1e9)),
    ("cũng lên gấp đôi, {} token một giây", lambda: short(limit(bandwidth(2)))),
    ("chỉ thực hiện {} tỉ phép tính mỗi giây, bằng {} sức của một CPU bốn nhân {} GHz có AVX2",
     lambda: (short(used() / 1e9), percent(used() / operations(), 1), int(SUPPOSED.clock / 1e9))),
    ("đường truyền {} bit, mỗi bit {} tỉ lần một giây, giao {} GB mỗi giây",
     lambda: (SUPPOSED.card_bus, int(SUPPOSED.card_rate / 1e9), round(card() / 1e9))),
    ("từ con số ấy ra trần {} token một giây", lambda: round(limit(card()))),
    ("nhẹ hơn {} lần so với qwen2.5-coder-0.5b", lambda: short(weights(QWEN) / weights(SMOL))),
    ("phải đọc tổng cộng {} GB trọng số, còn mô hình nhỏ đọc {} GB, chỉ bớt được {}",
     lambda: (short(moved(QWEN) / 1e9), short(moved(SMOL) / 1e9), percent(1 - moved(SMOL) / moved(QWEN)))),
    ("phải đưa {} lượt token qua mạng; có KV cache thì chỉ còn {}",
     lambda: (without_cache(), len(cafe()) + reply() - 1)),
    ("Với qwen2.5-coder-0.5b ở float32, mỗi token chiếm {} byte, nên {} GB RAM còn trống chứa được {} token",
     lambda: (kv(QWEN), int(SUPPOSED.room / 1e9), int(SUPPOSED.room // kv(QWEN)))),
    ("smollm2-135m tuy bé hơn lại tốn {} byte mỗi token và chỉ chứa được {}",
     lambda: (kv(SMOL), int(SUPPOSED.room // kv(SMOL)))),
    ("Sau một nghìn token, mỗi bước của qwen2.5-coder-0.5b chép lại {} MB",
     lambda: short(kv(QWEN) * SUPPOSED.prompt / 1e6)),
    ("bằng {} lượng trọng số phải đọc", lambda: percent(kv(QWEN) * SUPPOSED.prompt / weights(QWEN), 1)),
    ("trùng {} token đầu, nên chỉ còn {} token phải đưa qua mạng",
     lambda: (common_prefix(cafe(), cafe(BEANS)), len(cafe(BEANS)) - common_prefix(cafe(), cafe(BEANS)))),
    ("Đặt câu ấy trước nội quy, câu hỏi sau một phút chỉ trùng {} trong {} token; dời xuống cuối nội quy thì "
     "trùng {} trong {}",
     lambda: (*dated(True), *dated(False))),
    ("Với smollm2-135m thì không: prompt dạng NFD phình lên {} token so với {} của NFC, và hai bên chỉ trùng nhau {} "
     "token đầu",
     lambda: swollen()),
    ("phần dùng lại được dừng sau token thứ {}, tức mới {} prompt",
     lambda: (renamed()[0], percent(renamed()[0] / renamed()[1]))),
    ("Giữ nguyên lịch sử {} token thì lượt hỏi kế tiếp chỉ đưa thêm {} token gồm câu đáp vừa rồi và câu hỏi mới; bỏ "
     "cặp hỏi đáp đầu tiên thì prompt ngắn đi mà phải đưa {} token",
     lambda: (len(talk(0, len(TALK) - 2)), fed_next(0), fed_next(2))),
    ("giữ tối đa {} token, tức {} prompt dài cỡ của quán cà phê", lambda: (KEPT_TOKENS, entries())),
    ("viết một token lâu bằng đọc {} token", lambda: round(exchange())),
    ("Câu dặn *Hãy trả lời ngắn gọn.* dài {} token", lambda: brief()),
]
