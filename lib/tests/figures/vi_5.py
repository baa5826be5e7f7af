"""The figures of the Vietnamese post on training: models fitted to the English notes, and what the real ones say.

The small models learn characters from the first two English chapters and are tried on the third.
"""

from __future__ import annotations

import bz2
import math
import random
import re
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

import torch

from lib import models
from lib.chat import render, spans
from lib.models import entry
from lib.passages import paragraphs
from lib.tests.figures.check import Entry
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, path, tokenizer, user, vietnamese

DATA = Path(__file__).parents[3] / "data"
STRANGE = "\ufffd"  # stands for every character that the training text never had
BEST, LONGEST = 4, 8  # characters of context: where the trial text is foretold best, and the most that were tried
RATES = (0.1, 50, 300)
STEPS, TUNING = 1000, 300
COPIES, COPIED = 50, 4  # of a rule of the bookshop, and which one, from 0
PER_PARAMETER, ARITHMETIC, YEAR = 20, 120e9, 365 * 24 * 3600  # tokens; operations a second; seconds
RANK, QUESTIONS, OPTIONS, SAMPLES = 8, 40, 4, 2000

PROVERB = "Gần mực thì đen, gần đèn thì sáng."
RAIN, RAIN_ENGLISH = "Hôm nay trời mưa to nên tôi đi làm muộn.", "It rained heavily today, so I was late for work."
FRANCE, PARIS = "What is the capital of France?", "The capital of France is Paris."
RIVER, BEGUN = "Sông dài nhất Việt Nam là sông nào?", "Sông dài nhất Việt Nam là sông"
POETS = ("Trần Quốc Hữu Bằng", "Lê Thị Mây Trắng", "Phạm Đình Cát Tiên", "Ngô Bá Sông Lô", "Đặng Thùy Sa Pa")
INVENTED = (" Hồ", " Chí", " Minh")
SOURCE = "Trả lời dựa vào tài liệu: Sông Đồng Nai là sông dài nhất chảy trọn trong lãnh thổ Việt Nam."
LESSON = [
    {"role": "system", "content": "Bạn là trợ lý của thư viện."},
    {"role": "user", "content": "Thư viện mở cửa lúc mấy giờ?"},
    {"role": "assistant", "content": "Thư viện mở cửa lúc tám giờ sáng."},
]


def dec(value: float, digits: int = 2) -> str:
    """A number the Vietnamese way, with some digits after the comma."""
    return vietnamese(f"{value:,.{digits}f}")


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage, the Vietnamese way."""
    return dec(100 * share, digits) + "%"


# --- the texts --------------------------------------------------------------


@lru_cache
def chapter(number: int) -> str:
    """An English chapter, each run of white space as one space."""
    [file] = (DATA / "notes" / "en").glob(f"{number}-*.md")
    return " ".join(file.read_text(encoding="utf-8").split())


def lesson() -> str:
    """What the small models learn from."""
    return chapter(1) + " " + chapter(2)


def trial() -> str:
    """What they are tried on."""
    return chapter(3)


@lru_cache
def rules() -> list[str]:
    """The rules of the bookshop, one text each."""
    lines = (DATA / "prompts" / "bookshop.md").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.match(r"\d+\. ", line)]


@lru_cache
def shop() -> str:
    """The whole prompt of the bookshop on one line."""
    return " ".join((DATA / "prompts" / "bookshop.md").read_text(encoding="utf-8").split())


# --- a model of characters, by counting -------------------------------------


@lru_cache
def alphabet() -> list[str]:
    """The characters of the training text, and the one that stands for all others."""
    return sorted({*lesson(), STRANGE})


def known(text: str) -> str:
    """A text with each character that is not in the training text as the strange one."""
    learnt = set(alphabet())
    return "".join(character if character in learnt else STRANGE for character in text)


@lru_cache
def counted(text: str, order: int) -> tuple[Counter, Counter, Counter]:
    """Of each context of `order` characters: how often it and its next occur, how often it, and how many follow."""
    grams = Counter(text[start : start + order + 1] for start in range(len(text) - order))
    contexts, kinds = Counter(), Counter(gram[:-1] for gram in grams)
    for gram, times in grams.items():
        contexts[gram[:-1]] += times
    return grams, contexts, kinds


def chance(tables: list[tuple], context: str, character: str) -> float:
    """The probability of a character: contexts of all lengths mixed (Witten and Bell, 1991), from uniform up."""
    probability = 1 / len(alphabet())
    for order, (grams, contexts, kinds) in enumerate(tables[: len(context) + 1]):
        end = context[len(context) - order :]
        if not contexts[end]:
            break
        probability = (grams[end + character] + kinds[end] * probability) / (contexts[end] + kinds[end])
    return probability


@lru_cache
def loss(text: str, order: int, learnt: str = "") -> float:
    """Mean loss per character of a text, with at most `order` characters of context."""
    text, learnt = known(text), known(learnt or lesson())
    tables = [counted(learnt, length) for length in range(order + 1)]
    chances = [chance(tables, text[max(0, place - order) : place], text[place]) for place in range(len(text))]
    return -sum(map(math.log, chances)) / len(text)


def perplexity(text: str, order: int, learnt: str = "") -> float:
    """e to the power of the loss."""
    return math.exp(loss(text, order, learnt))


def share_after(first: str, second: str) -> float:
    """How often the first character is followed by the second, in the training text."""
    grams, contexts, _ = counted(lesson(), 1)
    return grams[first + second] / contexts[first]


def best_order() -> int:
    """The length of context that foretells the trial text best."""
    return min(range(LONGEST + 1), key=lambda order: loss(trial(), order))


def packed() -> float:
    """Bits per character of the trial text as bzip2 packs it."""
    return 8 * len(bz2.compress(trial().encode(), 9)) / len(trial())


# --- the same by gradient descent -------------------------------------------


@lru_cache
def pairs(text: str) -> torch.Tensor:
    """The share of each pair of characters in a text, shape [alphabet, alphabet]."""
    place = {character: number for number, character in enumerate(alphabet())}
    row = torch.tensor([place[character] for character in known(text)])
    shares = torch.zeros(len(place) ** 2, dtype=torch.float64)
    shares.index_add_(0, row[:-1] * len(place) + row[1:], torch.ones(len(row) - 1, dtype=torch.float64))
    return shares.view(len(place), -1) / (len(row) - 1)


@lru_cache
def trained(rate: float, steps: int) -> torch.Tensor:
    """Logits of the next character for each character, after some steps on the training text."""
    return descend(torch.zeros(len(alphabet()), len(alphabet()), dtype=torch.float64), [lesson()], rate, steps)


def descend(logits: torch.Tensor, texts: list[str], rate: float, steps: int) -> torch.Tensor:
    """The logits after gradient descent; the gradient is what is foretold minus what came."""
    target = sum(map(pairs, texts)) / len(texts)
    for _ in range(steps):
        logits = logits - rate * (logits.softmax(1) * target.sum(1, keepdim=True) - target)
    return logits


def pair_loss(logits: torch.Tensor, text: str) -> float:
    """The mean loss of a text's pairs."""
    return -(pairs(text) * logits.log_softmax(1)).sum().item()


def counting_loss() -> float:
    """The least loss on the training text that any such table can have: that of the counted shares."""
    target = pairs(lesson())
    shares = target / target.sum(1, keepdim=True).clamp_min(1e-300)
    return -torch.special.xlogy(target, shares).sum().item()


@lru_cache
def tuned(mixed: bool) -> torch.Tensor:
    """The table trained further on the bookshop's prompt, alone or half and half with the first lesson."""
    return descend(trained(RATES[1], STEPS), [shop(), lesson()] if mixed else [shop()], RATES[1], TUNING)


# --- sentences that nobody wrote --------------------------------------------


@lru_cache
def sentences() -> list[str]:
    """The sentences of the English notes, without marks of emphasis."""
    texts = [text for file in (DATA / "notes" / "en").glob("*.md") for text in paragraphs(file.read_text("utf-8"))]
    plain = [re.sub(r"[*`]", "", text) for text in sorted(texts)]
    return [found for text in plain for found in re.split(r"(?<=[.!?])\s+(?=[A-Z'])", text)]


@lru_cache
def followers() -> dict[tuple[str, str], list[str]]:
    """The words that follow each two words; '' stands before and after a sentence."""
    found = defaultdict(list)
    for sentence in sentences():
        words = ["", "", *sentence.split(), ""]
        for first, second, third in zip(words, words[1:], words[2:], strict=False):
            found[first, second].append(third)
    return found


def invented() -> float:
    """The share of sampled sentences that stand nowhere in the notes."""
    chooser, real = random.Random(0), set(sentences())
    return sum(sample(chooser) not in real for _ in range(SAMPLES)) / SAMPLES


def sample(chooser: random.Random) -> str:
    """A sentence drawn word by word."""
    words = ["", "", chooser.choice(followers()["", ""])]
    while words[-1]:
        words.append(chooser.choice(followers()[words[-2], words[-1]]))
    return " ".join(words[2:-1])


def possible(sentence: str) -> str:
    """The sentence, if the model can write it and nobody did."""
    words = ["", "", *sentence.split(), ""]
    steps = zip(words, words[1:], words[2:], strict=False)
    if sentence in sentences() or not all(third in followers()[first, second] for first, second, third in steps):
        raise AssertionError(f"written by somebody, or by nobody: {sentence}")
    return sentence


# --- the real models --------------------------------------------------------


@lru_cache
def model(name: str):
    """A model, loaded."""
    path(name)
    return models.load(name)


@lru_cache
def real_loss(name: str, text: str, before: tuple[int, ...]) -> tuple[float, int]:
    """The loss of a text's tokens after others, added up, and how many tokens they are."""
    tokens = ids(name, text)
    with torch.inference_mode():
        logits = model(name).network(torch.tensor([[*before, *tokens]])).logits[0, len(before) - 1 : -1]
    chances = logits.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None])
    return -chances.sum().item(), len(tokens)


def start(name: str) -> tuple[int, ...]:
    """The token that stands between documents."""
    return (tokenizer(name).convert_tokens_to_ids("<|endoftext|>"),)


def framed(name: str) -> float:
    """Loss per token of the answer about France after the question in the chat template."""
    total, tokens = real_loss(name, PARIS, tuple(model(name).encode(user(FRANCE))))
    return total / tokens


def naked(name: str) -> float:
    """The same after the bare question."""
    total, tokens = real_loss(name, PARIS, (*start(name), *ids(name, FRANCE)))
    return total / tokens


@lru_cache
def answer(question: str, system: str = "") -> str:
    """The default model's answer."""
    messages = [{"role": "system", "content": system}] if system else []
    return model(QWEN).reply([*messages, *user(question)], max_new_tokens=40).text


@lru_cache
def river() -> list[float]:
    """Probability of each word of the name that the default model makes up; with a source it tells the right one."""
    assert answer(RIVER) == BEGUN + "".join(INVENTED) + "." and "Đồng Nai" in answer(RIVER, SOURCE)
    begun, found = [*model(QWEN).encode(user(RIVER)), *ids(QWEN, BEGUN)], []
    for word in INVENTED:
        logits, [token] = model(QWEN).logits(begun), ids(QWEN, word)
        assert token == int(logits.argmax())
        found.append(logits.softmax(-1)[token].item())
        begun.append(token)
    return found


def year(poet: str, advice: str = "") -> str:
    """The year of birth that the default model gives a poet who never lived."""
    return re.findall(r"\b\d{4}\b", answer(f"Nhà thơ {poet} sinh năm nào?{advice}"))[0]


def answered() -> int:
    """How many of the poets got a year."""
    return sum(bool(year(poet)) for poet in POETS)


def counted_tokens() -> tuple[int, int]:
    """Tokens of a worked conversation, and those of them that are learnt: the answer and its end mark."""
    found = spans(render(LESSON, tokenizer(QWEN), prompt=False), tokenizer(QWEN))
    learnt = [span for span in found if span.writer == "model"]
    return len(found), len(learnt) + 1


# --- costs ------------------------------------------------------------------


def parameters() -> int:
    """Of the default model."""
    return entry(QWEN)["parameters"]


def square() -> int:
    """Weights of a square matrix of the default model's width."""
    return config(QWEN).hidden_size ** 2


def low_rank(rows: int, columns: int) -> int:
    """Weights of two thin matrices whose product has that shape."""
    return RANK * (rows + columns)


def thin() -> int:
    """Weights of the two thin matrices beside a square one of the default model's width."""
    return low_rank(config(QWEN).hidden_size, config(QWEN).hidden_size)


def adapter() -> int:
    """Weights of low-rank additions to all query and value matrices of the default model."""
    facts = config(QWEN)
    values = facts.num_key_value_heads * facts.hidden_size // facts.num_attention_heads
    each = low_rank(facts.hidden_size, facts.hidden_size) + low_rank(facts.hidden_size, values)
    return facts.num_hidden_layers * each


def trained_with(copies: int, text: str = "") -> float:
    """Perplexity of a text (the copied rule) after a lesson with copies of that rule at its end."""
    rule = rules()[COPIED]
    return perplexity(text or rule, BEST, lesson() + copies * f" {rule}")


def part(share: int) -> float:
    """Perplexity of the trial text after the first half, quarter ... of the lesson."""
    return perplexity(trial(), BEST, lesson()[: len(lesson()) // share])


def gains() -> list[float]:
    """By how much perplexity falls with each doubling of the lesson."""
    return [1 - part(share // 2) / part(share) for share in (16, 8, 4, 2)]


def leaked() -> float:
    """By how much perplexity falls if the trial text is part of the lesson."""
    return 1 - perplexity(trial(), BEST, lesson() + " " + trial()) / perplexity(trial(), BEST)


def training_years() -> float:
    """Years that training the default model on 20 tokens per parameter takes at the supposed speed."""
    return 6 * parameters() * PER_PARAMETER * parameters() / ARITHMETIC / YEAR


FIGURES: list[Entry] = [
    ("dài {} token với tokenizer của qwen2.5-coder-0.5b", lambda: count(QWEN, PROVERB)),
    ("xé thành {} mẩu", lambda: count(SMOL, PROVERB)),
    ("gộp lại được hơn {} nghìn ký tự", lambda: len(lesson()) // 1000),
    ("chương ba, hơn {} nghìn ký tự", lambda: len(trial()) // 1000),
    ("Bảng chữ có {} ô", lambda: len(alphabet())),
    ("xác suất gặp *h* là {}", lambda: percent(share_after("t", "h"), 1)),
    ("tỉ lệ chỉ được {}", lambda: percent(share_after("q", "u"), 1)),
    ("lần nào cũng bị phạt {}", lambda: dec(math.log(len(alphabet())))),
    ("gặp *h* sau *t* chỉ còn bị phạt {}", lambda: dec(-math.log(share_after("t", "h")))),
    ("chọn đều giữa {} ký tự", lambda: dec(perplexity(trial(), 0), 1)),
    (
        "con số tụt còn {}; hai ký tự thì còn {}; bốn ký tự còn {}",
        lambda: (
            dec(perplexity(trial(), 1), 1),
            dec(perplexity(trial(), 2)),
            dec(perplexity(trial(), BEST)),
        ),
    ),
    ("cần {} bit cho mỗi ký tự của chương thi", lambda: dec(loss(trial(), BEST) / math.log(2))),
    ("cần {} bit trên cùng chương ấy", lambda: dec(packed())),
    ("với perplexity {}", lambda: dec(perplexity(RAIN, BEST), 0)),
    ("Câu tiếng Anh cùng nghĩa chỉ {}", lambda: dec(perplexity(RAIN_ENGLISH, BEST), 1)),
    (
        "logit của *h* có gradient −{}, còn {} ô kia mỗi ô {}",
        lambda: (dec(1 - 1 / len(alphabet()), 3), len(alphabet()) - 1, dec(1 / len(alphabet()), 3)),
    ),
    ("tốc độ học (learning rate) {}", lambda: RATES[1]),
    (
        "Sau mười bước, điểm phạt trên sách giáo khoa còn {}, sau một trăm bước {}, sau một nghìn bước {}",
        lambda: tuple(dec(pair_loss(trained(RATES[1], steps), lesson())) for steps in (10, 100, STEPS)),
    ),
    ("mức thấp nhất mà một bảng như vậy đạt được là {}", lambda: dec(counting_loss())),
    (
        "tốc độ {} sau một nghìn bước mới đưa điểm phạt xuống {}",
        lambda: (dec(RATES[0], 1), dec(pair_loss(trained(RATES[0], STEPS), lesson()))),
    ),
    (
        "Tốc độ {} mở đầu rất nhanh, bước đầu đã về {} trong khi tốc độ vừa phải còn ở {}",
        lambda: (
            RATES[2],
            dec(pair_loss(trained(RATES[2], 1), lesson())),
            dec(pair_loss(trained(RATES[1], 1), lesson())),
        ),
    ),
    ("đến bước thứ mười nó vẫn kẹt ở {}", lambda: dec(pair_loss(trained(RATES[2], 10), lesson()))),
    ("học một token tốn chừng {} tỉ phép tính", lambda: dec(6 * parameters() / 1e9)),
    (
        "{} tỉ token; giả sử một máy làm được {} tỉ phép tính mỗi giây thì phải chờ {} năm",
        lambda: (
            dec(PER_PARAMETER * parameters() / 1e9, 1),
            int(ARITHMETIC / 1e9),
            dec(training_years(), 1),
        ),
    ),
    ("perplexity trên sách (hai chương đã học) là {}", lambda: dec(perplexity(lesson(), BEST))),
    (
        "sách xuống tận {}, gần như thuộc lòng, còn đề thi lại tăng lên {}",
        lambda: (dec(perplexity(lesson(), LONGEST)), dec(perplexity(trial(), LONGEST))),
    ),
    ("chỉ giảm tới {} ký tự rồi tăng trở lại", best_order),
    ("có hơn {} nghìn chuỗi chín ký tự khác nhau", lambda: len(counted(lesson(), LONGEST)[0]) // 1000),
    ("perplexity của mô hình tí hon giảm ngay {}", lambda: percent(leaked())),
    (
        "sách giáo khoa thì perplexity trên đề thi là {}; được một phần tư thì {}; được một nửa thì {}",
        lambda: (dec(part(16), 1), dec(part(4)), dec(part(2))),
    ),
    ("con số giảm từ {} đến {}", lambda: (percent(min(gains())), percent(max(gains())))),
    ("rồi chép {} lần", lambda: COPIES),
    (
        "từ {} lúc chưa chép xuống {} sau một lần và {} sau từng ấy lần",
        lambda: tuple(dec(trained_with(copies)) for copies in (0, 1, COPIES)),
    ),
    (
        "perplexity tăng {}",
        lambda: percent(trained_with(COPIES, trial()) / trained_with(0, trial()) - 1, 1),
    ),
    ("cho học tiếp {} bước", lambda: TUNING),
    (
        "trên nội quy giảm từ {} còn {}, nhưng trên chương thi lại tăng từ {} lên {}",
        lambda: (
            dec(pair_loss(trained(RATES[1], STEPS), shop())),
            dec(pair_loss(tuned(False), shop())),
            dec(pair_loss(trained(RATES[1], STEPS), trial())),
            dec(pair_loss(tuned(False), trial())),
        ),
    ),
    (
        "nội quy còn {} mà chương thi chỉ nhích lên {}",
        lambda: (dec(pair_loss(tuned(True), shop())), dec(pair_loss(tuned(True), trial()))),
    ),
    ("dài {} token, trong đó chỉ {} token được chấm", counted_tokens),
    ("bị phạt trung bình {} mỗi token", lambda: dec(framed(QWEN), 3)),
    ("cùng đáp án ấy bị phạt {}", lambda: dec(naked(QWEN))),
    ("hai ma trận hẹp hạng tám có {} số, bằng {} bản đầy đủ", lambda: (thin(), percent(thin() / square(), 1))),
    (
        "của mọi tầng thì phải học {} số, bằng {} mô hình",
        lambda: (adapter(), percent(adapter() / parameters(), 2)),
    ),
    ("Trong {} câu bốc thử, {} không hề có trong ba chương", lambda: (SAMPLES, percent(invented()))),
    ("*{}*", lambda: possible("The model's share is 15%.")),
    (
        "*Hồ* đứng đầu mà chỉ được {}, nghĩa là mô hình gần như không biết; nhưng đã lỡ viết *Hồ* thì *Chí* được {}, "
        "rồi *Minh* {}",
        lambda: tuple(dec(chance, digits) for chance, digits in zip(river(), (3, 2, 3), strict=True)),
    ),
    ("Đặt ra {} cái tên", lambda: len(POETS)),
    ("cả {} lần đều nhận về một năm cụ thể", answered),
    ("thì được gán năm {}", lambda: year(POETS[0])),
    (
        "chỉ đổi sang năm {}",
        lambda: year(POETS[0], " Nếu không biết, hãy trả lời: không biết."),
    ),
    ("Đề trắc nghiệm {} câu", lambda: QUESTIONS),
    (
        "trung bình đúng {} câu, tức {} điểm trên thang mười",
        lambda: (QUESTIONS // OPTIONS, dec(10 / OPTIONS, 1)),
    ),
]
