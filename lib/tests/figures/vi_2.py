"""The figures of the post "Bên trong mô hình": read from configs and weights, or seen in the default model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace

import torch

from lib import models
from lib.tests.figures.en_1 import one
from lib.tests.figures.en_2 import head_size, normed, pairs, rms, rope_base, share, silu, softmax, total
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, path, tensors, tokenizer, vietnamese

# The inputs of the worked examples; what the notes make of them is computed below.
CAPITAL = "Hà Nội là thủ đô của"
SENTENCE, BARE = f"{CAPITAL} Việt Nam.", "Ha Noi la thu do cua"
WORDS = {
    "mẹ": "mother", "nước": "water", "tháng": "month", "ngày": "day", "biển": "sea", "đất": "land", "trời": "sky",
    "chó": "dog", "đẹp": "beautiful", "người": "person", "tiền": "money", "bán": "sell", "đỏ": "red", "sách": "book",
    "học": "study", "cửa": "door",
}
VECTOR, SCORES = (1, 7), (3, 1, 0)
TEA, COFFEE, ROAD = "Bát chè này nhiều đường", "Ly cà phê pha thêm đường", "Xe máy chạy trên đường"
EARLY, MIDDLE, LATE, WINS = 8, 17, 18, 22  # layers after which a vector is looked at
LOVED, TURNED = "Minh yêu Lan. Người được Minh yêu là", "Lan yêu Minh. Người được Minh yêu là"
ASKED, TOLD = (
    "Mật khẩu wifi của quán là",
    "Mật khẩu wifi của quán là hoaphuong. Khách hỏi, quán đáp: mật khẩu wifi là",
)
SUM, IMPORT = "2+3=", "import numpy as"
BUFFALO, FRUIT = "Con trâu là đầu cơ", "Ăn quả nhớ kẻ trồng"


def tenths(value: float, digits: int = 2) -> str:
    """A number with some digits after the comma."""
    return vietnamese(f"{value:.{digits}f}")


# --- passes of the default model ---------------------------------------------


@lru_cache
def network():
    """The default model's network."""
    path(QWEN)
    return models.load(QWEN).network


@lru_cache
@torch.inference_mode()
def passed(text: str) -> SimpleNamespace:
    """One pass: `states` (before each layer, and the normed end), `logits`, `attention` (layers, heads, to, from)."""
    usual = network().config._attn_implementation
    network().set_attn_implementation("eager")  # the only one that gives its weights away
    try:
        out = network()(
            torch.tensor([ids(QWEN, text)]), output_hidden_states=True, output_attentions=True, use_cache=False
        )
    finally:
        network().set_attn_implementation(usual)
    return SimpleNamespace(
        states=torch.stack(out.hidden_states)[:, 0], logits=out.logits[0], attention=torch.stack(out.attentions)[:, 0]
    )


def chance(text: str, token: str, place: int = -1) -> float:
    """The probability of a token (the first of a text) after a prompt, or after the token at another place."""
    return passed(text).logits[place].softmax(-1)[ids(QWEN, token)[0]].item()


def best(text: str, token: str, digits: int = 2) -> str:
    """The probability of the likeliest next token; AssertionError unless it is `token`."""
    found = tokenizer(QWEN).decode([int(passed(text).logits[-1].argmax())])
    assert found == token, found
    return tenths(chance(text, token), digits)


def unlikely(text: str, token: str) -> None:
    """AssertionError unless a token's probability after a text is below a thousandth."""
    assert chance(text, token) < 1e-3, chance(text, token)


def lowest() -> float:
    """The least value of SiLU, to three digits."""
    return min(silu(step / 1000) for step in range(-5000, 0))


def wrong_sum() -> str:
    """The digit that the model prefers as the result of the sum; AssertionError if it is right."""
    found = tokenizer(QWEN).decode([int(passed(SUM).logits[-1].argmax())])
    assert found.isdigit() and found != right_sum()
    return found


def right_sum() -> str:
    """The result of the sum."""
    return str(sum(map(int, re.findall(r"\d", SUM))))


def logit(text: str, token: str) -> float:
    """The score of a token that is one id."""
    return passed(text).logits[-1][int(one(QWEN, token))].item()


def lead(text: str, first: str, second: str) -> float:
    """The difference of two tokens' scores."""
    return logit(text, first) - logit(text, second)


@torch.inference_mode()
def rank(text: str, token: str, layer: int) -> int:
    """The rank of a token, from one, when the last vector after some layers is scored at once."""
    state = passed(text).states[layer, -1]
    scores = network().lm_head(network().model.norm(state))
    return int((scores > scores[int(one(QWEN, token))]).sum()) + 1


def wins_from(text: str, token: str) -> int:
    """The first layer from which on the token is at the top to the end."""
    layers = config(QWEN).num_hidden_layers
    wins = [rank(text, token, layer) == 1 for layer in range(1, layers)]
    assert passed(text).logits[-1].argmax() == int(one(QWEN, token))
    return layers - wins[::-1].index(False) if False in wins else 1


def rounded(value: int, digits: int) -> int:
    """A whole number rounded to a power of ten."""
    return round(value, -digits)


def within(value: int, step: int) -> int:
    """The next multiple of a step that is no smaller."""
    return math.ceil(value / step) * step


def length(text: str, place: int, layer: int) -> float:
    """The length of a token's vector after some layers, before any norm."""
    return passed(text).states[layer, place].norm().item()


def place_of(text: str, token: str) -> int:
    """The place of a token in a text."""
    return ids(QWEN, text).index(int(one(QWEN, token)))


def alike(first: str, second: str, layer: int) -> float:
    """The cosine of the last vectors of two texts after some layers."""
    vectors = [passed(text).states[layer, -1] for text in (first, second)]
    return torch.cosine_similarity(*vectors, dim=0).item()


def to_first(text: str) -> float:
    """The attention that the last token pays to the first, averaged over layers and heads."""
    return passed(text).attention[:, :, -1, 0].mean().item()


@lru_cache
def gates(text: str) -> torch.Tensor:
    """What goes into SiLU, for every layer and token."""
    seen: list[torch.Tensor] = []
    hooks = [
        layer.mlp.gate_proj.register_forward_hook(lambda module, given, out: seen.append(out.flatten()))
        for layer in network().model.layers
    ]
    try:
        with torch.inference_mode():
            network()(torch.tensor([ids(QWEN, text)]), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat(seen)


# --- the embedding matrix ----------------------------------------------------


def rows(words: list[str]) -> torch.Tensor:
    """The rows of words that are one token after a space, at length one."""
    table = network().get_input_embeddings().weight.detach()
    return torch.nn.functional.normalize(table[[int(one(QWEN, f" {word}")) for word in words]], dim=1)


def cosine(first: str, second: str) -> str:
    """The cosine of two words' rows."""
    return tenths((rows([first]) @ rows([second]).T).item())


def others(cosines: torch.Tensor) -> float:
    """The mean of a square matrix off its diagonal."""
    return ((cosines.sum() - cosines.trace()) / (cosines.numel() - len(cosines))).item()


def translated() -> torch.Tensor:
    """The cosines of the Vietnamese words (rows) with the English ones (columns)."""
    return rows(list(WORDS)) @ rows(list(WORDS.values())).T


def compatriots() -> torch.Tensor:
    """The cosines of the Vietnamese words with each other."""
    return rows(list(WORDS)) @ rows(list(WORDS)).T


# --- sizes -------------------------------------------------------------------


def size(name: str, pattern: str) -> int:
    """The weights of the one tensor whose name matches."""
    [found] = [tensor for key, tensor in tensors(name).items() if re.search(pattern, key)]
    return math.prod(found.shape)


def of_layer(name: str) -> int:
    """The tensors of one layer; AssertionError unless they, the embedding and one norm are all."""
    layer = sum(key.startswith("model.layers.0.") for key in tensors(name))
    assert len(tensors(name)) == layer * config(name).num_hidden_layers + 2
    return layer


def numbers(values) -> tuple[str, ...]:
    """Numbers with two digits after the comma, one for each placeholder."""
    return tuple(tenths(value) for value in values)


FIGURES: list[tuple[str, Callable[[], object]]] = [
    ("hàm nhận {} con số và trả lại {} con số, mỗi con số ứng",
     lambda: (count(QWEN, CAPITAL), passed(CAPITAL).logits.shape[-1])),
    ("Mô hình qwen2.5-coder-0.5b có {} tầng, smollm2-135m nhỏ hơn mà lại có {}",
     lambda: (config(QWEN).num_hidden_layers, config(SMOL).num_hidden_layers)),
    ("sẽ thấy {} tensor, tức mảng số có tên: mỗi tầng góp {} mảng", lambda: (len(tensors(QWEN)), of_layer(QWEN))),
    ("mỗi dòng là một vector gồm {} số thực, với smollm2-135m là {}",
     lambda: (config(QWEN).hidden_size, config(SMOL).hidden_size)),
    ("hai dòng ấy trong qwen2.5-coder-0.5b đạt {}", lambda: cosine("hóa", "hoá")),
    ("chỉ lệch một dấu thanh, lại chỉ được {}", lambda: cosine("bán", "bạn")),
    ("Thử {} từ như mẹ, biển, sách", lambda: len(WORDS)),
    ("có cosine trung bình {}, cao hơn hẳn mức {} khi",
     lambda: (tenths(translated().diagonal().mean().item()), tenths(others(translated())))),
    ("nghĩa chẳng liên quan, cũng được {}", lambda: tenths(others(compatriots()))),
    ("có {} lần ghi, mỗi tầng hai lần", lambda: 2 * config(QWEN).num_hidden_layers),
    ("dài {} khi vừa rời bảng embedding, lên tới {} trước tầng cuối cùng",
     lambda: tuple(tenths(length(SENTENCE, place_of(SENTENCE, " Nam"), layer), 1)
                   for layer in (0, config(QWEN).num_hidden_layers - 1))),
    ("Vector ({}; {}) có căn ấy bằng {} nên trở thành ({}; {})",
     lambda: (*VECTOR, f"{rms(VECTOR):g}", *(tenths(value, 1) for value in normed(VECTOR)))),
    ("chia cho {} đầu (head), mỗi đầu làm việc với vector {} số",
     lambda: (config(QWEN).num_attention_heads, head_size(QWEN))),
    ("được điểm {}, {} và {} sẽ nhận trọng số {}, {} và {}: hơn nhau hai điểm là phần chia đã gấp {} lần",
     lambda: (*SCORES, *numbers(softmax(SCORES)), tenths(math.exp(SCORES[0] - SCORES[1]), 1))),
    ("dài {} token, tính trung bình mọi tầng", lambda: count(QWEN, SENTENCE)),
    ("dấu chấm cuối câu dành {} cho mẩu 'H' đứng đầu; chia đều thì mỗi chỗ chỉ {}",
     lambda: (tenths(to_first(SENTENCE)), tenths(1 / count(QWEN, SENTENCE)))),
    ("dài bất thường, {} sau tầng bốn, trong khi của token liền sau chỉ {}",
     lambda: (round(length(SENTENCE, 0, 4)), tenths(length(SENTENCE, 1, 4), 1))),
    ("giữa đường trong chè và đường trong cà phê là {}, giữa đường trong chè và đường cho xe chạy chỉ còn {}",
     lambda: (tenths(alike(TEA, COFFEE, EARLY)), tenths(alike(TEA, ROAD, EARLY)))),
    ("Trong câu {} token, thay vì {} cặp hỏi đáp chỉ còn {} cặp được phép",
     lambda: (count(QWEN, SENTENCE), count(QWEN, SENTENCE) ** 2, pairs(count(QWEN, SENTENCE)))),
    ("cặp nhanh nhất xoay {} độ mỗi token", lambda: tenths(math.degrees(rope_base(QWEN) ** 0), 1)),
    ("' Lan' có xác suất {}; đổi câu đầu thành 'Lan yêu Minh.' thì tụt xuống dưới một phần nghìn",
     lambda: unlikely(TURNED, " Lan") or best(LOVED, " Lan")),
    ("xác suất ấy nhảy lên {}", lambda: unlikely(ASKED, " ho") or best(TOLD, " ho")),
    ("vector {} số được hai ma trận nở ra thành {} số",
     lambda: (config(QWEN).hidden_size, config(QWEN).intermediate_size)),
    ("Mỗi ma trận chứa {} trọng số", lambda: size(QWEN, r"layers\.0\.mlp\.up_proj")),
    ("trên tổng cộng {} cổng, {} nhận giá trị âm",
     lambda: (gates(SENTENCE).numel(), f"{100 * (gates(SENTENCE) < 0).double().mean():.0f}%")),
    ("vào khoảng hẹp từ {} đến không", lambda: tenths(lowest()).replace("-", "\u2212")),
    ("chấm ' Việt' {} và ' nước' {}", lambda: numbers(logit(CAPITAL, token) for token in (" Việt", " nước"))),
    ("hơn nhau {} điểm tức là khả năng gấp {} lần",
     lambda: (tenths(lead(CAPITAL, " Việt", " nước")), round(math.exp(lead(CAPITAL, " Việt", " nước"))))),
    ("' Việt' được xác suất {}", lambda: best(CAPITAL, " Việt")),
    ("nó đứng quãng {}; sau tầng mười bảy còn khoảng {}; sau tầng mười tám vào nhóm {} token đầu; từ tầng {} trở lên",
     lambda: (rounded(rank(CAPITAL, " Việt", 0), 3), rounded(rank(CAPITAL, " Việt", MIDDLE), 2),
              within(rank(CAPITAL, " Việt", LATE), 10), wins_from(CAPITAL, " Việt"))),
    ("cho ' Nam' sau ' Việt' xác suất {}, cho ' đô' sau ' thủ' {}, nhưng cho ' thủ' sau ' là' chỉ {}",
     lambda: (tenths(chance(SENTENCE, " Nam", place_of(SENTENCE, " Việt")), 3),
              tenths(chance(SENTENCE, " đô", place_of(SENTENCE, " thủ"))),
              tenths(chance(SENTENCE, " thủ", place_of(SENTENCE, " là")), 3))),
    ("token được chấm cao nhất là ' ban' mà xác suất vỏn vẹn {}", lambda: best(BARE, " ban")),
    ("MLP giữ {}, bảng embedding {}, attention vỏn vẹn {}",
     lambda: tuple(vietnamese(share(QWEN, part, ".1f")) for part in ("mlp", "embed", "self_attn"))),
    ("Cộng hết được {}, gần nửa tỉ", lambda: total(QWEN)),
    ("{} đầu query dùng chung {} đầu key và value, nên ma trận key chỉ có {} trọng số trong khi ma trận query có {}",
     lambda: (config(QWEN).num_attention_heads, config(QWEN).num_key_value_heads,
              size(QWEN, r"layers\.0\.self_attn\.k_proj\.weight"),
              size(QWEN, r"layers\.0\.self_attn\.q_proj\.weight"))),
    ("Đưa '{}' vào qwen2.5-coder-0.5b, token được chấm cao nhất là '{}', với xác suất tới {}; "
     "chữ số đúng chỉ được {}",
     lambda: (SUM, wrong_sum(), best(SUM, wrong_sum()), tenths(chance(SUM, right_sum()), 3))),
    ("nó cho ' np' {}", lambda: best(IMPORT, " np", 3)),
    ("chọn ' của' với xác suất {}", lambda: best(BUFFALO, " của")),
    ("nhưng cũng chỉ dám đặt {}", lambda: best(FRUIT, " cây")),
]
