"""The figures of the Vietnamese post on quantisation: measured on the models' weights, or computed by its formulas.

Where the post supposes a number, it stands in SUPPOSED, and what follows in the text is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from safetensors import safe_open

from lib.machinery import gguf
from lib.models import MODELS
from lib.tests.figures.check import Entry
from lib.tests.figures.en_3 import (
    FLOAT,
    block,
    embedding,
    full_kv,
    intensity,
    parameters,
    per_weight,
    relative_error,
)
from lib.tests.figures.read import QWEN, SMOL, config, ids, path, tensors, vietnamese

LARGER = "qwen2.5-coder-1.5b"
GATE, DOWN = "model.layers.0.mlp.gate_proj.weight", "model.layers.2.mlp.down_proj.weight"
EMBEDDING = "model.embed_tokens.weight"
HALF = torch.float16.itemsize  # bytes
SHOP = Path(__file__).parents[3] / "data" / "prompts" / "bookshop.md"
Recode = Callable[[np.ndarray], np.ndarray]

SUPPOSED = SimpleNamespace(
    weights=(0.70, -0.22, 0.34, 0.06),  # quantised by hand
    sizes=(16, 32, 64, 128),            # of blocks
    bits=4,                             # of a small integer
    rows=1000,                          # of the embedding table
    tokens=128,                         # of the text that is read
    bandwidth=40e9, arithmetic=200e9,   # of a machine: bytes, operations per second
    prompt=1000,                        # tokens
)


# --- how figures are written ------------------------------------------------


def short(value: float, digits: int = 1) -> str:
    """A number with some digits after the comma, and a true minus sign."""
    return vietnamese(f"{value:,.{digits}f}").replace("-", "\u2212")


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage."""
    return short(100 * share, digits) + "%"


def gb(size: float) -> str:
    """Bytes in units of a billion."""
    return short(size / 1e9, 2)


# --- quantising -------------------------------------------------------------


@lru_cache
def weight(key: str, rows: int | None = None) -> np.ndarray:
    """A weight of the default model, or its first rows."""
    with safe_open(path(QWEN) / "model.safetensors", "np") as file:
        return file.get_slice(key)[:rows]


def top(bits: int) -> int:
    """The largest integer of a symmetric grid."""
    return 2 ** (bits - 1) - 1


def grid(values: np.ndarray, bits: int, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Integers and scales, one scale for each block of `size` values along a row; one for all values without it."""
    blocks = values.reshape(-1, size or values.size)
    scales = np.abs(blocks).max(1, keepdims=True) / top(bits)
    return np.rint(blocks / np.where(scales == 0, 1, scales)), scales


def back(values: np.ndarray, bits: int, size: int | None = None) -> np.ndarray:
    """The values as they come back from a grid."""
    integers, scales = grid(values, bits, size)
    return (integers * scales).reshape(values.shape)


def error(values: np.ndarray, changed: np.ndarray) -> float:
    """Root mean square of the change, relative to the values."""
    return float(np.sqrt(np.mean((changed - values) ** 2) / np.mean(values ** 2)))


def lost(values: np.ndarray, bits: int, size: int | None = None) -> float:
    """The relative error of a grid."""
    return error(values, back(values, bits, size))


def zeros(values: np.ndarray, bits: int, size: int | None = None) -> float:
    """The share of the values that a grid rounds to zero."""
    return float(np.mean(grid(values, bits, size)[0] == 0))


def by_hand() -> tuple[np.ndarray, float, np.ndarray]:
    """Integers, scale and returned values of the supposed weights."""
    values = np.array(SUPPOSED.weights)
    integers, scales = grid(values, SUPPOSED.bits)
    return integers[0].astype(int), float(scales[0, 0]), back(values, SUPPOSED.bits)


def magnitudes() -> np.ndarray:
    """The two largest magnitudes of the matrix with the outlier, the largest first."""
    return np.sort(np.abs(weight(DOWN)).ravel())[-2:][::-1]


def zeros_beside_the_largest() -> int:
    """How many values become zero that share a block with the matrix's largest; all do, as the text says."""
    size = block("Q4_0")[0]
    integers = grid(weight(DOWN), SUPPOSED.bits, size)[0]
    nulls = int(np.sum(integers[np.abs(weight(DOWN)).argmax() // size] == 0))
    assert nulls == size - 1
    return nulls


def first_block() -> tuple[int, int]:
    """The weights of the first block of a matrix that was stored in Q5_0, and the different values among them."""
    assert relative_error(weight(GATE), "Q5_0") < 1e-6  # on the grid of Q5_0 already
    values = weight(GATE)[0, :block("Q5_0")[0]]
    return len(values), len(np.unique(values))


def output_error(kind: str) -> float:
    """The relative error of products with random vectors."""
    kept, stored = weight(DOWN), GGMLQuantizationType[kind]
    vectors = np.random.default_rng(0).standard_normal((kept.shape[1], 64)).astype(np.float32)
    return error(kept @ vectors, dequantize(quantize(kept, stored), stored) @ vectors)


# --- a model with other weights ---------------------------------------------


def through(kind: str) -> Recode:
    """A format of GGUF: there and back."""
    stored = GGMLQuantizationType[kind]
    return lambda values: dequantize(quantize(values, stored), stored)


WAYS: dict[str, Recode] = {
    "kept": lambda values: values,
    "Q8_0": through("Q8_0"),
    "Q4_0": through("Q4_0"),
    "one scale": lambda values: back(values, SUPPOSED.bits),
}


@lru_cache
def reading(way: str) -> tuple[float, int]:
    """Perplexity, and tokens guessed rightly, of the small model whose matrices went one of WAYS."""
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(path(SMOL), dtype=torch.float32).eval()
    text = torch.tensor(ids(SMOL, SHOP.read_text(encoding="utf-8"))[:SUPPOSED.tokens])
    with torch.inference_mode():
        for matrix in [each for each in network.parameters() if each.ndim == 2]:
            matrix.data = torch.from_numpy(WAYS[way](matrix.numpy()).astype(np.float32))
        logits = network(text[None]).logits[0, :-1]
    loss = torch.nn.functional.cross_entropy(logits, text[1:])
    return float(loss.exp()), int((logits.argmax(-1) == text[1:]).sum())


def ruined() -> int:
    """Tokens guessed rightly with one scale a matrix; the perplexity is in the tens of millions, as the text says."""
    perplexity, right = reading("one scale")
    assert 1e7 < perplexity < 1e8
    return right


# --- formats, limits, parts of the model ------------------------------------


def bits_per_weight(kind: str) -> float:
    """Bits per weight of a format, scales included."""
    return 8 * per_weight(kind)


def with_scales(size: int) -> float:
    """Bits per weight of four-bit integers with a float16 scale for each block."""
    return SUPPOSED.bits + 8 * HALF / size


def super_block() -> tuple[int, int, int, int]:
    """Of Q4_K: weights, bytes, bytes of the four-bit integers, bytes of all else."""
    count, size = block("Q4_K")
    integers = count * SUPPOSED.bits // 8
    return count, size, integers, size - integers


def down_share() -> float:
    """The share of the parameters that lie in rows which a super-block divides."""
    shapes = [tensor.shape for tensor in tensors(QWEN).values() if len(tensor.shape) == 2]
    fitting = [rows * width for rows, width in shapes if width % block("Q4_K")[0] == 0]
    assert len(fitting) == config(QWEN).num_hidden_layers  # the down projections
    return sum(fitting) / parameters(QWEN)


def limit(bytes_per_weight: float) -> float:
    """The most tokens per second that the supposed memory allows the default model."""
    return SUPPOSED.bandwidth / (bytes_per_weight * parameters(QWEN))


def break_even(bytes_per_weight: float) -> float:
    """Tokens per pass at which arithmetic takes as long as reading on the supposed machine."""
    return SUPPOSED.arithmetic / SUPPOSED.bandwidth / intensity(1) * bytes_per_weight / FLOAT


def unpacked() -> float:
    """Bytes moved per weight when Q4_0 is written out as float32 first and read again."""
    return per_weight("Q4_0") + FLOAT + FLOAT


def vectors() -> list[int]:
    """The sizes of the default model's tensors of one dimension."""
    return [tensor.shape[0] for tensor in tensors(QWEN).values() if len(tensor.shape) == 1]


def full_kv_in(size: float) -> float:
    """Bytes of keys and values at the default model's full context, at `size` bytes a number."""
    return full_kv() / FLOAT * size


# --- the table --------------------------------------------------------------

FIGURES: list[Entry] = [
    ("một bit dấu, {} bit mũ và {} bit định trị",
     lambda: (np.finfo(np.float32).nexp, np.finfo(np.float32).nmant)),
    ("trọng số có độ lệch chuẩn {} và số lớn nhất cũng chỉ {}",
     lambda: (short(weight(GATE).std(), 4), short(np.abs(weight(GATE)).max(), 3))),
    ("ở float16 chiếm {} GB; ghi bằng Q8_0 (tám bit) còn {} GB, bằng Q4_0 (bốn bit) còn {} GB",
     lambda: tuple(gb(size * MODELS[LARGER]["parameters"])
                   for size in (HALF, per_weight("Q8_0"), per_weight("Q4_0")))),
    ("bốn trọng số {}, {}, {} và {} xuống", lambda: tuple(short(value, 2) for value in SUPPOSED.weights)),
    ("Số nguyên lớn nhất dùng được là {}, nên scale bằng trọng số lớn nhất chia cho số ấy, tức {}",
     lambda: (top(SUPPOSED.bits), short(by_hand()[1], 2))),
    ("ta ghi lại {}, {}, {} và {}", lambda: tuple(short(value, 0) for value in by_hand()[0])),
    ("thì được {}, {}, {} và {}", lambda: tuple(short(value, 2) for value in by_hand()[2])),
    ("lệch nhiều nhất {}", lambda: short(np.abs(by_hand()[2] - SUPPOSED.weights).max(), 2)),
    ("Q4_0 thuộc loại đầu: {} trọng số chiếm {} byte", lambda: block("Q4_0")),
    ("nhỏ nhất của cả nhóm và chiếm {} byte", lambda: block("Q4_1")[1]),
    ("Đo trên {} hàng đầu của bảng embedding", lambda: SUPPOSED.rows),
    ("mỗi nhóm {} trọng số một scale", lambda: block("Q4_0")[0]),
    ("là {} với bảy bit, {} với sáu, {} với năm, {} với bốn, {} với ba và {} với hai bit",
     lambda: tuple(percent(lost(weight(EMBEDDING, SUPPOSED.rows), bits, block("Q4_0")[0]))
                   for bits in (7, 6, 5, 4, 3, 2))),
    ("có độ lệch chuẩn {}, vậy mà một trọng số đạt độ lớn {}, gấp {} lần độ lệch chuẩn",
     lambda: (short(weight(DOWN).std(), 4), short(magnitudes()[0], 2),
              round(float(magnitudes()[0] / weight(DOWN).std())))),
    ("trong cùng ma trận chỉ tới {}", lambda: short(magnitudes()[1], 2)),
    ("theo cách ấy, {} trọng số bị làm tròn", lambda: percent(zeros(weight(DOWN), 8))),
    ("trong hơn bốn triệu trọng số chỉ còn {} số khác không",
     lambda: int(np.count_nonzero(grid(weight(DOWN), SUPPOSED.bits)[0]))),
    ("Với block {} và bốn bit, down_proj của model.layers.2 chỉ còn {} trọng số thành số không",
     lambda: (block("Q4_0")[0], percent(zeros(weight(DOWN), SUPPOSED.bits, block("Q4_0")[0])))),
    ("rơi từ {} xuống {}",
     lambda: (percent(lost(weight(DOWN), SUPPOSED.bits)),
              percent(lost(weight(DOWN), SUPPOSED.bits, block("Q4_0")[0])))),
    ("cả {} số ấy thành không", zeros_beside_the_largest),
    ("block {} tốn {} bit cho mỗi trọng số", lambda: (SUPPOSED.sizes[0], short(with_scales(SUPPOSED.sizes[0]), 0))),
    ("block {} tốn {}, block", lambda: (SUPPOSED.sizes[1], short(with_scales(SUPPOSED.sizes[1]), 1))),
    ("block {} tốn {} và block {} tốn {}",
     lambda: (SUPPOSED.sizes[2], short(with_scales(SUPPOSED.sizes[2]), 2),
              SUPPOSED.sizes[3], short(with_scales(SUPPOSED.sizes[3]), 3))),
    ("theo thứ tự đó là {}, {}, {} và {}",
     lambda: tuple(percent(lost(weight(DOWN), SUPPOSED.bits, size)) for size in SUPPOSED.sizes)),
    ("thường lấy nhóm {}", lambda: max(SUPPOSED.sizes)),
    ("{} trọng số đầu tiên chỉ mang {} giá trị khác nhau", first_block),
    ("bằng chính Q5_0, sai số là {}", lambda: percent(relative_error(weight(GATE), "Q5_0"))),
    ("sang Q4_0 thì lệch {}", lambda: percent(relative_error(weight(GATE), "Q4_0"))),
    ("Q4_0 làm trọng số lệch {}", lambda: percent(relative_error(weight(DOWN), "Q4_0"), 2)),
    ("đầu ra lệch {} dù mỗi tích là tổng của {} số hạng",
     lambda: (percent(output_error("Q4_0"), 2), weight(DOWN).shape[1])),
    ("đọc {} token đầu của một bản quy định", lambda: SUPPOSED.tokens),
    ("perplexity là {}; nén mọi ma trận xuống Q8_0 thì {}, xuống Q4_0 thì {}",
     lambda: tuple(short(reading(way)[0]) for way in ("kept", "Q8_0", "Q4_0"))),
    ("đoán trúng {} trong {} token, so với {} lúc chưa nén",
     lambda: (ruined(), SUPPOSED.tokens - 1, reading("kept")[1])),
    ("nhận phiên bản {} và {}", lambda: gguf.VERSIONS),
    ("căn lề theo bội số của {} byte", lambda: gguf.ALIGNMENT),
    ("của Q4_K gồm {} trọng số", lambda: super_block()[0]),
    ("là {} byte, trong đó {} byte cho các số bốn bit và {} byte cho phần còn lại", lambda: super_block()[1:]),
    ("Trung bình {} bit một trọng số", lambda: short(bits_per_weight("Q4_K"))),
    ("mười sáu block con, và tốn {} bit", lambda: short(bits_per_weight("Q6_K"), 4)),
    ("hàng phải chia hết cho {}", lambda: super_block()[0]),
    ("có hàng dài {}, tức {} siêu block",
     lambda: (config(QWEN).hidden_size, short(config(QWEN).hidden_size / super_block()[0]))),
    ("có hàng dài {}, vừa khít {} siêu block",
     lambda: (config(QWEN).intermediate_size, config(QWEN).intermediate_size // super_block()[0])),
    ("phần ấy là {} tham số", lambda: percent(down_share())),
    ("băng thông bộ nhớ là {} GB mỗi giây", lambda: round(SUPPOSED.bandwidth / 1e9)),
    ("có trần {} token một giây ở float32, {} ở Q8_0 và {} ở Q4_0",
     lambda: tuple(short(limit(size)) for size in (FLOAT, per_weight("Q8_0"), per_weight("Q4_0")))),
    ("Lấy một máy làm {} tỉ phép tính và đọc {} tỉ byte mỗi giây",
     lambda: (round(SUPPOSED.arithmetic / 1e9), round(SUPPOSED.bandwidth / 1e9))),
    ("từ {} token trở lên trong một lượt", lambda: short(break_even(FLOAT), 0)),
    ("ngưỡng ấy là {} token", lambda: short(break_even(per_weight("Q4_0")))),
    ("Một prompt dài {} token", lambda: SUPPOSED.prompt),
    ("phải đọc {} byte, ghi {} byte và đọc lại {} byte: tổng cộng {} byte, tức gấp {} lần",
     lambda: (short(per_weight("Q4_0"), 4), FLOAT, FLOAT, short(unpacked(), 4), short(unpacked() / FLOAT))),
    ("gồm {} tensor một chiều với tổng cộng {} số, bằng {} tham số",
     lambda: (len(vectors()), sum(vectors()), percent(sum(vectors()) / parameters(QWEN), 3))),
    ("nặng {} MB thay vì {} MB nếu hạ xuống Q5_0",
     lambda: tuple(round(embedding(QWEN) * per_weight(kind) / 1e6) for kind in ("Q8_0", "Q5_0"))),
    ("KV cache ở float16 chiếm {} MB, bằng Q8_0 còn {} MB",
     lambda: (round(full_kv_in(HALF) / 1e6), round(full_kv_in(per_weight("Q8_0")) / 1e6))),
]
