"""The figures of the Vietnamese notes' post on sampling: the default model's logits, and transformers' own rules.

Where the post supposes a number, it stands in SUPPOSED, and what follows in the text is computed from it.
"""

from __future__ import annotations

import json
import math
import random
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import torch
from safetensors import safe_open
from transformers import GenerationConfig
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from lib import models
from lib.tests.figures.check import Entry
from lib.tests.figures.en_2 import generation
from lib.tests.figures.read import QWEN, config, ids, path, pieces, prompt, user, vietnamese

SUPPOSED = SimpleNamespace(
    cold=0.5, warm=1.5, hot=2, p=0.9, share=0.1, penalties=(1.3, 1.5),
    presence=0.5, frequency=0.5, times=3,             # of one token in the answer so far
    seed=42, alone=0.6, voters=(3, 5),
)
CAPITAL = "Thủ đô của Việt Nam là"
TET, CAT = "Tết Nguyên Đán là", "Con mèo nhà tôi tên là"
FINE = "Hôm nay trời đẹp, có nhiều cây xanh, cây mọc, cây cỏ,"
CYCLE, OPENING, NEXT = " cây thao,", " cây", " thao"
PHONE = "09" * 5
ASKED = f"Số điện thoại của tôi là {PHONE}. Hãy chép lại số điện thoại."
BEGUN = f"Số điện thoại của bạn là {PHONE[:8]}"
TWICE = " Hà Nội đẹp, Hà"


# --- how figures are written ------------------------------------------------


def short(value: float, digits: int = 2) -> str:
    """A number with some digits after the comma."""
    return vietnamese(f"{value:,.{digits}f}")


def plain(value: float) -> str:
    """A number with no more digits than it needs."""
    return vietnamese(f"{value:g}")


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return short(100 * share, digits) + "%"


def about(value: int, step: int) -> int:
    """A count rounded to a multiple of `step`: rounding in the logits must not change it."""
    return round(value / step) * step


# --- what the model predicts ------------------------------------------------


@lru_cache
def model():
    """The default model, loaded."""
    path(QWEN)
    return models.load(QWEN)


@lru_cache
def after(*prompt_ids: int) -> torch.Tensor:
    """The logits of the token after these, shape [vocabulary]."""
    return model().logits(list(prompt_ids)).double()


def logits(text: str) -> torch.Tensor:
    """The logits of the token after a text."""
    return after(*ids(QWEN, text))


def best(text: str, rank: int = 0) -> int:
    """The id of the best next token, or of the one at another rank."""
    return int(logits(text).argsort(descending=True)[rank])


def named(text: str, *words: str) -> list[int]:
    """The ids of the best next tokens, which have to be these words."""
    found = [best(text, rank) for rank in range(len(words))]
    assert [model().decode([id]) for id in found] == list(words), found
    return found


def chances(text: str, temperature: float = 1) -> list[float]:
    """The probabilities of all tokens at a temperature, best first."""
    return (logits(text) / temperature).softmax(-1).sort(descending=True).values.tolist()


def chance(text: str, word: str) -> float:
    """The probability of a word's first token."""
    return logits(text).softmax(-1)[ids(QWEN, word)[0]].item()


def lead() -> float:
    """By how much the logit of the best token exceeds that of the second after CAPITAL."""
    first, second = named(CAPITAL, " Hà", " Hồ")
    return (logits(CAPITAL)[first] - logits(CAPITAL)[second]).item()


def choices(text: str) -> int:
    """e to the power of the entropy: as many equal choices would be as uncertain."""
    p = logits(text).softmax(-1)
    return round(math.exp(-(p * p.log()).sum().item()))


def two_steps(word: str, following: str) -> tuple[float, float]:
    """The probability of a token after TET, and that of the best that can follow, which has to be `following`."""
    named(TET + word, following)
    return chance(TET, word), chances(TET + word)[0]


def cycling(times: int) -> float:
    """The probability that a phrase begun anew goes on as before, when it has stood `times` times."""
    return chance(FINE + CYCLE * times + OPENING, NEXT)


def met(text: str) -> float:
    """The probability that two draws at temperature one give the same token."""
    return sum(p * p for p in chances(text))


# --- rules that cut the tail, penalties -------------------------------------


def kept(text: str, *rules) -> int:
    """How many tokens are left after the rules, applied one after the other."""
    scores = logits(text)[None]
    for rule in rules:
        scores = rule(None, scores)
    return int(scores.isfinite().sum())


@lru_cache
def copied(penalty: float) -> torch.Tensor:
    """The logits of the next digit of a telephone number that is copied, after a repetition penalty."""
    said = [span.id for span in prompt(QWEN, user(ASKED))] + ids(QWEN, BEGUN)
    return RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([said]), after(*said)[None].clone())[0]


def digit(penalty: float, word: str = "0") -> float:
    """The logit of a digit there."""
    [id] = ids(QWEN, word)
    return copied(penalty)[id].item()


def digit_chance(penalty: float, word: str = "0") -> float:
    """The probability of a digit there."""
    [id] = ids(QWEN, word)
    return copied(penalty).softmax(-1)[id].item()


def lowered() -> float:
    """What presence and frequency penalty take off a logit."""
    return SUPPOSED.presence + SUPPOSED.frequency * SUPPOSED.times


def tokens_of_a_name() -> int:
    """Tokens of the capital's name; the second may not follow the first again under a ban on repeated pairs."""
    said = ids(QWEN, TWICE)
    scores = NoRepeatNGramLogitsProcessor(2)(torch.tensor([said]), torch.zeros(1, config(QWEN).vocab_size))[0]
    assert [model().decode([int(id)]) for id in scores.isinf().nonzero()[:, 0]] == [" Nội"]
    return len(pieces(QWEN, " Hà Nội"))


# --- chance and rounding ----------------------------------------------------


def drawn() -> tuple[float, float, float, float]:
    """A random number, and the sums of probabilities after one, two and three tokens, of which it meets the third."""
    named(TET, " một", " món", " loại")
    first, second, third, *_ = chances(TET)
    number = random.Random(SUPPOSED.seed).random()
    assert 0 < number - (first + second) < min(third, 0.002)  # less than two thousandths beyond the border
    return number, first, first + second, first + second + third


def of_torch() -> float:
    """The first random number of PyTorch from the same seed."""
    return torch.rand(1, generator=torch.Generator().manual_seed(SUPPOSED.seed)).item()


@lru_cache
def products() -> np.ndarray:
    """The products whose sum compares the embeddings of the two best tokens after CAPITAL."""
    first, second = named(CAPITAL, " Hà", " Hồ")
    with safe_open(path(QWEN) / "model.safetensors", "np") as file:
        table = file.get_slice("model.embed_tokens.weight")
        return table[first : first + 1][0] * table[second : second + 1][0]


def added(values: np.ndarray) -> np.float32:
    """The sum of numbers in float32, one after the other."""
    total = np.float32(0)
    for value in values:
        total += value
    return total


def orders() -> tuple[int, str, str, str]:
    """How many products there are, and their sum from the left, from the right, and as the sum of two halves."""
    values, half = products(), len(products()) // 2
    sums = added(values), added(values[::-1]), added(values[:half]) + added(values[half:])
    return len(values), *[short(float(total), 8) for total in sums]


def majority(voters: int) -> float:
    """The probability that most of some independent answers are right."""
    p = SUPPOSED.alone
    return sum(math.comb(voters, n) * p**n * (1 - p) ** (voters - n) for n in range(voters // 2 + 1, voters + 1))


def default(name: str) -> object:
    """What transformers takes for a setting that nobody has set."""
    return GenerationConfig()._get_default_generation_params()[name]


# --- the table --------------------------------------------------------------

FIGURES: list[Entry] = [
    ("logit cao nhất thuộc về ` Hà`, {}, kế đến là ` Hồ` với {}",
     lambda: tuple(short(logits(CAPITAL)[id].item()) for id in named(CAPITAL, " Hà", " Hồ"))),
    ("hai logit ấy có nghĩa là ` Hà` dễ ra gấp {} lần ` Hồ`", lambda: short(math.exp(lead()), 1)),
    ("Sau *Tết Nguyên Đán là*, qwen2.5-coder-0.5b phân vân ngang với {} lựa chọn đều nhau; sau *Con mèo nhà tôi tên "
     "là* thì ngang với {}",
     lambda: (choices(TET), choices(CAT))),
    ("greedy chọn ` một` với xác suất {}, rồi token tốt nhất sau đó được {}, nhân lại còn {}",
     lambda: (*map(short, two_steps(" một", " món")), short(math.prod(two_steps(" một", " món"))))),
    ("Nhánh ` món` khởi đầu thấp hơn, {}, nhưng theo sau là ` ăn` với {}, nhân lại được {}",
     lambda: (*map(short, two_steps(" món", " ăn")), short(math.prod(two_steps(" món", " ăn"))))),
    ("xác suất đi tiếp đúng vết cũ mới là {}; viết hai lần thì lên {}; viết ba lần thì thành {}",
     lambda: tuple(short(cycling(times)) for times in (1, 2, 3))),
    ("có xác suất {}; hạ nhiệt độ xuống {} thì thành {}, tăng lên {} thì chỉ còn {}",
     lambda: (short(chances(TET)[0]), plain(SUPPOSED.cold), short(chances(TET, SUPPOSED.cold)[0]), SUPPOSED.hot,
              short(chances(TET, SUPPOSED.hot)[0], 3))),
    ("ở nhiệt độ {} tỉ lệ giữa ` Hà` và ` Hồ` giãn ra thành {}, ở nhiệt độ {} co lại còn {}",
     lambda: (plain(SUPPOSED.cold), short(math.exp(lead() / SUPPOSED.cold), 1), SUPPOSED.hot,
              short(math.exp(lead() / SUPPOSED.hot), 1))),
    ("ở nhiệt độ {}, năm mươi token tốt nhất của qwen2.5-coder-0.5b gộp lại chỉ còn {}",
     lambda: (SUPPOSED.hot, percent(sum(chances(CAPITAL, SUPPOSED.hot)[:50])))),
    ("tự điền top-k bằng {}", lambda: default("top_k")),
    ("nhóm được giữ chiếm {} xác suất; sau *Con mèo nhà tôi tên là* thì chỉ {}",
     lambda: tuple(percent(sum(chances(text)[: default("top_k")])) for text in (TET, CAT))),
    ("Với p bằng {}, qwen2.5-coder-0.5b giữ {} token sau *Tết Nguyên Đán là* và chừng {} token",
     lambda: (plain(SUPPOSED.p), kept(TET, TopPLogitsWarper(SUPPOSED.p)),
              about(kept(CAT, TopPLogitsWarper(SUPPOSED.p)), 100))),
    ("Với tỉ lệ {}, ngưỡng của qwen2.5-coder-0.5b sau *Tết Nguyên Đán là* nằm ở {} và {} token qua được; sau *Con "
     "mèo nhà tôi tên là* ngưỡng tụt xuống {} và {} token qua được",
     lambda: (plain(SUPPOSED.share), short(SUPPOSED.share * chances(TET)[0], 3),
              kept(TET, MinPLogitsWarper(SUPPOSED.share)), short(SUPPOSED.share * chances(CAT)[0], 4),
              kept(CAT, MinPLogitsWarper(SUPPOSED.share)))),
    ("nhiệt độ {} kéo số token lọt qua top-p {} từ chưa đầy một trăm lên chừng {}",
     lambda: (plain(SUPPOSED.warm), plain(SUPPOSED.p),
              about(kept(TET, TemperatureLogitsWarper(SUPPOSED.warm), TopPLogitsWarper(SUPPOSED.p)), 1000))),
    ("chép lại số điện thoại *{}*. Khi đã viết xong tám chữ số, logit của chữ số không (chữ số đúng) là {} khi "
     "chưa phạt và {} với mức phạt {}, trong khi chữ số một, chưa xuất hiện ở đâu, vẫn giữ nguyên {}",
     lambda: (PHONE, short(digit(1.0), 1), short(digit(SUPPOSED.penalties[0]), 1), plain(SUPPOSED.penalties[0]),
              short(digit(SUPPOSED.penalties[0], "1"), 1))),
    ("Mức phạt {} hạ xác suất viết đúng chữ số kế tiếp từ hơn chín mươi chín phần trăm xuống {}, còn chữ số "
     "một, không hề có trong đề, leo lên {}",
     lambda: (plain(SUPPOSED.penalties[1]), percent(digit_chance(SUPPOSED.penalties[1])),
              percent(digit_chance(SUPPOSED.penalties[1], "1")))),
    ("Đặt cả hai bằng {}, một token đã viết {} lần mất {} đơn vị logit, tức là tỉ lệ xác suất của nó so với một "
     "token mới phải nhân với {}",
     lambda: (plain(SUPPOSED.presence), SUPPOSED.times, short(lowered(), 0), short(math.exp(-lowered())))),
    ("` Hà Nội` gồm {} token", lambda: tokens_of_a_name()),
    ("seed {} cho số đầu tiên là {}", lambda: (SUPPOSED.seed, short(drawn()[0], 4))),
    ("không làm tròn: ` một` tới {}, thêm ` món` tới {}, thêm ` loại` tới {}",
     lambda: tuple(short(math.floor(1000 * value) / 1000, 3) for value in drawn()[1:])),
    ("bộ sinh số của PyTorch cho ra {}", lambda: short(of_torch(), 4)),
    ("sau *Tết Nguyên Đán là*, hai lần bốc trùng nhau với xác suất {}; sau *Con mèo nhà tôi tên là* chỉ {}",
     lambda: (percent(met(TET)), percent(met(CAT), 1))),
    ("gồm {} tích số. Cộng từ trái sang được {}, cộng từ phải sang được {}, cộng riêng hai nửa rồi gộp lại được {}",
     lambda: orders()),
    ("ghi rõ `do_sample` là {}, `repetition_penalty` bằng {} và liệt kê {} token kết thúc",
     lambda: (json.dumps(generation(QWEN)["do_sample"]), plain(generation(QWEN)["repetition_penalty"]),
              len(generation(QWEN)["eos_token_id"]))),
    ("xác suất của ` Hà` từ {} tụt xuống {} và chữ số một vọt lên đầu với {}",
     lambda: (short(chance(CAPITAL, " Hà")), short(chance(CAPITAL + " ", " Hà")),
              short(logits(CAPITAL + " ").softmax(-1)[named(CAPITAL + " ", "1")].item()))),
    ("viết thường hết, *thủ đô của việt nam là*, thì ` Hà` chỉ còn {}",
     lambda: short(chance(CAPITAL.lower(), " Hà"))),
    ("đúng {} số lần và các lần độc lập với nhau, lấy đa số của {} lần nâng lên {}, của {} lần lên {}",
     lambda: (percent(SUPPOSED.alone), SUPPOSED.voters[0], percent(majority(SUPPOSED.voters[0]), 1),
              SUPPOSED.voters[1], percent(majority(SUPPOSED.voters[1]), 1))),
]
