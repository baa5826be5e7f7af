"""The figures of the post "Từ văn bản đến token": read from tokenizers and configs, or computed from them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

from lib.tests.figures.en_1 import join, listed, merge_numbers, nfd, one, point, texts, total, vocabulary
from lib.tests.figures.en_1 import width as octets
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, prompt, tokenizer, tokenizer_json, user, vietnamese

# The inputs of the worked examples; what the notes make of them is computed below.
WISH, OPENING, NAME, LETTER = "Chúc mừng năm mới", "Trăm năm trong cõi người ta", "Nguyễn", "ộ"
KIEU = (
    "Trăm năm trong cõi người ta, Chữ tài chữ mệnh khéo là ghét nhau. "
    "Trải qua một cuộc bể dâu, Những điều trông thấy mà đau đớn lòng."
)
BOOKING, BARE = "tôi muốn đặt bàn cho hai người", "toi muon dat ban cho hai nguoi"
LANGUAGE, BROKEN = "tiếng Việt", "tiáº¿ng Viá»‡t"
TOY = {"nghe": 6, "ngon": 5, "nghỉ": 4, "nhà": 4, "nghĩ": 3}
PAIRS = [
    ("Ca trực tối nay thiếu một người.", "Tonight's shift is one person short."),
    ("Đơn hàng của chị đã giao sáng nay.", "Your order was delivered this morning."),
    ("Máy chủ hết bộ nhớ lúc nửa đêm.", "The server ran out of memory at midnight."),
    ("Cho tôi hai tô phở và một ly trà đá.", "Two bowls of pho and an iced tea, please."),
    ("Bệnh nhân cần uống thuốc sau bữa ăn.", "The patient must take the medicine after meals."),
    ("Anh gửi lại giúp em bản hợp đồng nhé.", "Could you send me the contract again?"),
    ("Tàu chạy chậm vì đường ngập nước.", "The train is slow because the track is flooded."),
    ("Con bé học lớp ba và rất thích vẽ.", "The little girl is in third grade and loves drawing."),
]
VIETNAMESE, ENGLISH = ([pair[side] for pair in PAIRS] for side in (0, 1))
COUNTRY = "Cộng hòa xã hội chủ nghĩa Việt Nam"
MIXED = "Deploy con service này lên server giúp anh nhé."
WRITTEN_OUT, SHORT = "hôm nay mình không đi được nhé bạn ơi", "hnay mk ko đi dc nha bn oi"
GROUPED, PLAIN, MILLIONS = "1.250.000 đồng", "1250000 đồng", "1,25 triệu đồng"
THOUSAND, DAY = "1.500", "12/03"
RECORD = {"thành phố": "Đà Nẵng", "thời tiết": "mưa rào"}
QUESTION = "Quán mình mở cửa đến mấy giờ?"
COMMON = (
    "là và của có không được người một trong cho những với các đã khi này để ra về như lại thì mà phải đến cũng vào "
    "còn nhiều rất"
)
OURS = "ảạắằẳẵặấầẩẫậẻẽẹếềểễệỉịỏọốồổỗộơớờởỡợủụưứừửữựỳỷỹỵ"  # letters that hardly any other language uses


def ratio(part: float, whole: float) -> str:
    """A quotient with two digits after the comma."""
    return vietnamese(f"{part / whole:.2f}")


def neighbours(name: str, text: str) -> list[str]:
    """The entries on either side of a text that is one token."""
    return [tokenizer(name).decode([int(one(name, text)) + step]) for step in (-1, 1)]


def beside(name: str, text: str, before: str) -> str:
    """The id of a text; AssertionError unless `before` stands in front of it in the table, and Arabic after it."""
    first, last = neighbours(name, text)
    assert first == before and re.fullmatch("[\u0600-\u06ff ]+", last)
    return one(name, text)


def misread(text: str) -> str:
    """A text written in UTF-8 and read as Windows-1252."""
    return text.encode().decode("cp1252")


def toy_counts(times: int = 2) -> list[int]:
    """How often the pairs of the first merges occur in the toy text."""
    return [number for _, number in toy_merges(times)]


def toy_merges(times: int = 2) -> list[tuple[tuple[str, str], int]]:
    """The first merges of byte-pair encoding on the toy text, letter by letter, with the counts of their pairs."""
    words, learnt = {word: list(word) for word in TOY}, []
    for _ in range(times):
        pairs: Counter = Counter()
        for word, parts in words.items():
            for pair in zip(parts, parts[1:], strict=False):
                pairs[pair] += TOY[word]
        learnt += pairs.most_common(1)
        words = {word: join(parts, learnt[-1][0]) for word, parts in words.items()}
    assert [pair for pair, _ in learnt] == [("n", "g"), ("ng", "h")]
    return learnt


def ours(name: str) -> list[str]:
    """The entries that are whole characters and hold a letter of `OURS`, small or capital."""
    return [text for text in texts(name) if re.search(f"[{OURS}{OURS.upper()}]", text)]


def capitals(name: str) -> list[str]:
    """Those of them with two letters or more, all of them capitals."""
    return [text for text in ours(name) if len(text.strip()) > 1 and text.strip().isupper()]


def across(name: str) -> int:
    """Entries with a space between two letters."""
    return sum(bool(re.search(r"[^\W\d_] [^\W\d_]", text)) for text in texts(name))


def place(name: str, text: str) -> int:
    """The number of the merge that makes an entry of ASCII letters with a space or without."""
    return merge_numbers(name)[text.replace(" ", "Ġ")]


def last_merge(name: str, text: str) -> int:
    """The number of the merge that makes a text that is one token, whatever its letters."""
    sign = tokenizer(name).convert_ids_to_tokens(int(one(name, text)))
    return merge_numbers(name)[sign]


def merges(name: str) -> int:
    """How many merges the tokenizer has."""
    return len(tokenizer_json(name)["model"]["merges"])


def framed(name: str, text: str) -> int:
    """The tokens of the prompt that a message by the user makes."""
    return len(prompt(name, user(text)))


def rate(name: str) -> float:
    """Characters of the poem for each of its tokens."""
    return len(KIEU) / count(name, KIEU)


def room(name: str, digits: int) -> str:
    """Characters at that rate that fill the model's context, rounded."""
    return vietnamese(f"{round(config(name).max_position_embeddings * rate(name), digits):,.0f}")


def syllables() -> int:
    """The poem's syllables."""
    return len(KIEU.split())


def dumped(ascii_only: bool) -> int:
    """The tokens of the record as `json.dumps` writes it."""
    return count(QWEN, json.dumps(RECORD, ensure_ascii=ascii_only))


def whole(name: str, words: str) -> int:
    """How many syllables that follow a space are one token; AssertionError unless all are."""
    assert all(count(name, f" {word}") == 1 for word in words.split())
    return len(words.split())


FIGURES: list[tuple[str, Callable[[], object]]] = [
    ("ta nhận về {} token là Ch, úc, mừng, năm, mới, tức dãy `[{}]`",
     lambda: (count(QWEN, WISH), listed(ids(QWEN, WISH)))),
    ("mẩu ' Việt' kèm dấu cách mang số {}, ngay trước nó là ' rất'", lambda: beside(QWEN, " Việt", " rất")),
    ("' Nam' là {} ở qwen2.5-coder-0.5b nhưng là {} ở smollm2-135m", lambda: (one(QWEN, " Nam"), one(SMOL, " Nam"))),
    ("có dấu cách phía trước, là {} token; cũng họ ấy đứng ngay đầu chuỗi lại bị cắt thành {} mẩu",
     lambda: (count(QWEN, f" {NAME}"), count(QWEN, NAME))),
    ("Chữ a không dấu chiếm {} byte, chữ ă chiếm {}, còn chữ ờ vừa có móc vừa có thanh huyền chiếm {}",
     lambda: tuple(map(octets, "aăờ"))),
    ("vì thế có {} ký tự mà tới {} byte", lambda: (len(OPENING), octets(OPENING))),
    ("đúng một mã là {}", lambda: point(LETTER)),
    ("chồng thêm {} (dấu nặng) và {} (dấu mũ)", lambda: tuple(map(point, nfd(LETTER)[1:]))),
    ("Nguyễn theo NFC dài {} mã, theo NFD dài {}", lambda: (len(NAME), len(nfd(NAME)))),
    ("tốn {} token khi dựng sẵn, nhưng tốn tới {} token khi tổ hợp",
     lambda: (count(SMOL, WISH), count(SMOL, nfd(WISH)))),
    ("' hóa' kiểu cũ mang id {}, ' hoá' kiểu mới mang id {}", lambda: (one(QWEN, " hóa"), one(QWEN, " hoá"))),
    ("' thủy' là {} token mà ' thuỷ' phải {}", lambda: (count(QWEN, " thủy"), count(QWEN, " thuỷ"))),
    ("vào qwen2.5-coder-0.5b là {} token; bỏ sạch dấu thành '" + BARE + "' lại là {},",
     lambda: (count(QWEN, BOOKING), count(QWEN, BARE))),
    ("mới lợi: từ {} xuống {}", lambda: (count(SMOL, BOOKING), count(SMOL, BARE))),
    ("sẽ hiện ra '" + BROKEN + "', cảnh quen thuộc với ai từng mở thẳng tệp CSV bằng Excel. Qua "
     "qwen2.5-coder-0.5b, chuỗi đúng là {} token, chuỗi hỏng là {}",
     lambda: (count(QWEN, LANGUAGE), count(QWEN, misread(LANGUAGE)))),
    ("có 'nghe' {} lần, 'ngon' {} lần, 'nghỉ' {} lần, 'nhà' {} lần và 'nghĩ' {} lần", lambda: tuple(TOY.values())),
    ("Cặp n với g gặp {} lần nên được ghép đầu tiên, kế đến ng với h gặp {} lần", lambda: tuple(toy_counts())),
    ("lần ghép thứ {} đã hoàn thành từ tiếng Anh ' the'", lambda: place(QWEN, " the")),
    ("Mẩu 'ng', vốn cũng có đầy trong tiếng Anh, ra đời ở lần thứ {}", lambda: place(QWEN, "ng")),
    ("phải đợi đến lần thứ {} trên tổng số {}", lambda: (last_merge(QWEN, " người"), merges(QWEN))),
    ("Trong {} mục của qwen2.5-coder-0.5b có {} mục như thế", lambda: (len(vocabulary(QWEN)), len(ours(QWEN)))),
    ("thử {} tiếng cửa miệng như là, của, không, được, người", lambda: whole(QWEN, COMMON)),
    ("Trong {} mục của smollm2-135m đếm ra đúng {}", lambda: (len(vocabulary(SMOL)), len(ours(SMOL)))),
    ("riêng chữ ộ đã mất {} token, và một tiếng như ' được' bị xé thành {} mẩu",
     lambda: (count(SMOL, LETTER), count(SMOL, " được"))),
    ("khoảng trống ở giữa nên ít nhất là {}", lambda: count(QWEN, " máy tính")),
    ("số mục có dấu cách kẹp giữa hai chữ cái là {}", lambda: across(QWEN) + across(SMOL)),
    ("Lấy {} cặp câu đời thường", lambda: len(PAIRS)),
    ("phần tiếng Việt là {} token, phần tiếng Anh {}, gấp {} lần",
     lambda: (total(QWEN, VIETNAMESE), total(QWEN, ENGLISH), ratio(total(QWEN, VIETNAMESE), total(QWEN, ENGLISH)))),
    ("Ở smollm2-135m là {} so với {}, gấp {} lần",
     lambda: (total(SMOL, VIETNAMESE), total(SMOL, ENGLISH), ratio(total(SMOL, VIETNAMESE), total(SMOL, ENGLISH)))),
    ("còn ít ký tự hơn, {} so với {}", lambda: (sum(map(len, VIETNAMESE)), sum(map(len, ENGLISH)))),
    ("có {} tiếng. Mô hình qwen2.5-coder-0.5b cần {} token, trung bình {} token mỗi tiếng",
     lambda: (syllables(), count(QWEN, KIEU), ratio(count(QWEN, KIEU), syllables()))),
    ("smollm2-135m cần {}, tức {}", lambda: (count(SMOL, KIEU), ratio(count(SMOL, KIEU), syllables()))),
    ("viết thường tốn {} token ở qwen2.5-coder-0.5b; viết toàn chữ hoa như đầu công văn thì thành {}",
     lambda: (count(QWEN, COUNTRY), count(QWEN, COUNTRY.upper()))),
    ("hầu như riêng của tiếng Việt chỉ là {}, gồm ẠI và ẢN", lambda: len(capitals(QWEN))),
    ("Hà Nội, Đà Nẵng và Sài Gòn đều là {} token",
     lambda: max(count(QWEN, town) for town in (" Hà Nội", " Đà Nẵng", " Sài Gòn"))),
    ("Cần Thơ lên {}, Buôn Ma Thuột lên {}", lambda: (count(QWEN, " Cần Thơ"), count(QWEN, " Buôn Ma Thuột"))),
    ("đĩa rau muống dân dã tốn {} token", lambda: count(QWEN, " rau muống")),
    ("chỉ hết {} token, ba từ tiếng Anh mỗi từ một token", lambda: count(QWEN, MIXED)),
    ("'" + WRITTEN_OUT + "' là {} token, rút còn '" + SHORT + "' vẫn {}",
     lambda: (count(QWEN, WRITTEN_OUT), count(QWEN, SHORT))),
    ("Viết '{}' cho qwen2.5-coder-0.5b tốn {} token, bỏ dấu chấm thành '{}' còn {}, viết '{}' chỉ còn {}",
     lambda: (GROUPED, count(QWEN, GROUPED), PLAIN, count(QWEN, PLAIN), MILLIONS, count(QWEN, MILLIONS))),
    ("Chuỗi '{}' trên hóa đơn Việt Nam là một nghìn rưỡi, trong bảng tính tiếng Anh là một phẩy năm, mà cả hai cùng "
     "ra {} token", lambda: (THOUSAND, count(QWEN, THOUSAND))),
    ("Ngày giỗ ghi '{}'", lambda: tokenizer(QWEN).decode(ids(QWEN, DAY))),
    ("để mặc định thì thành {} token ở qwen2.5-coder-0.5b; thêm tham số `ensure_ascii=False` còn {}",
     lambda: (dumped(True), dumped(False))),
    ("tự thân là {} token ở qwen2.5-coder-0.5b, nhưng prompt hoàn chỉnh là {}",
     lambda: (count(QWEN, QUESTION), framed(QWEN, QUESTION))),
    ("mỗi token của qwen2.5-coder-0.5b chở trung bình {} ký tự, mỗi token của smollm2-135m chỉ chở {}",
     lambda: (vietnamese(f"{rate(QWEN):.2f}"), vietnamese(f"{rate(SMOL):.2f}"))),
    ("chứa khoảng {} ký tự tiếng Việt ở mô hình đầu và chừng {} ở mô hình sau",
     lambda: (room(QWEN, -3), room(SMOL, -2))),
    ("ở qwen2.5-coder-0.5b gồm {} mẩu: nghi, ê, ng", lambda: count(QWEN, " nghiêng")),
]
