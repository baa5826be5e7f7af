"""The figures of the chapter "Why it is fast or slow": read from models and code, or computed by its formulas.

Where the chapter supposes a number, it stands in SUPPOSED, and what follows in the text is computed from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from math import ceil, prod
from pathlib import Path
from statistics import mean, median
from types import SimpleNamespace

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize
from safetensors import safe_open

from lib.fast_linear import FEW
from lib.generation import CHUNK, Model
from lib.models import MODELS
from lib.prefix_cache import KEPT_TOKENS, common_prefix
from lib.tests.figures.quoted import ARTICLE, CHAPTER, quoted
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, path, pieces, prompt, tensors

LARGER = "qwen2.5-coder-1.5b"
DATA = Path(__file__).parents[3] / "data"
FLOAT, BFLOAT, INT8 = (kind.itemsize for kind in (torch.float32, torch.bfloat16, torch.int8))  # bytes
INT8_MAX = torch.iinfo(torch.int8).max

SUPPOSED = SimpleNamespace(
    bandwidth=20e9, arithmetic=120e9, disk=500e6,     # of a machine: bytes, operations, bytes per second
    prompt=1000, answer=100, short_prompt=32,         # tokens
    first=3, pace=10, claim=100, observed=8,          # seconds to the first token; tokens per second
    turns=10, turn_tokens=100,
    bits=4, rows=1000,                                # of a small integer; of the embedding table
    parallel=0.9, cores=4,                            # share of a pass
    batch=8, context=500, page=16,                    # readers; tokens
    lengths=(20, 40, 60, 200),                        # of four answers, in tokens
    arrivals=0.5, stay=12, service=10, calm=0.5, crowded=0.9,   # a second; seconds; shares of time
    guesses=4, accepted=0.8,
    price_read=0.5, price_write=1.5, hour=0.1, used=0.1, questions=1000,  # euros per million tokens, per hour
    runs=(4.1, 4.0, 4.2, 4.0, 9.2),                   # seconds
    sums=("(0.1 + 0.2) + 0.3", "0.1 + (0.2 + 0.3)"),
)


# --- how figures are written ------------------------------------------------

def whole(value: float) -> str:
    """A number rounded to a whole one, with thousands separators."""
    return f"{round(value):,}"


def short(value: float, digits: int = 1) -> str:
    """A number with some digits after the point."""
    return f"{value:,.{digits}f}"


def gb(size: float) -> str:
    """Bytes in units of a billion."""
    return short(size / 1e9, 2)


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f}%"


# --- the models -------------------------------------------------------------

def parameters(name: str) -> int:
    """The number of parameters."""
    return MODELS[name]["parameters"]


def weights(name: str) -> int:
    """Bytes of all weights in float32."""
    return FLOAT * parameters(name)


def embedding(name: str) -> int:
    """Parameters of the table of token vectors, which is the output matrix as well."""
    return config(name).vocab_size * config(name).hidden_size


def body(name: str) -> int:
    """Parameters outside that table."""
    return parameters(name) - embedding(name)


def layer_bytes(name: str) -> int:
    """Bytes of one layer's weights, as the file holds them."""
    return sum(tensor.bytes for key, tensor in tensors(name).items() if key.startswith("model.layers.0."))


def head_size(name: str) -> int:
    """The width of one attention head."""
    return config(name).hidden_size // config(name).num_attention_heads


def heads_per_group(name: str) -> int:
    """Query heads that share a key-value head."""
    return config(name).num_attention_heads // config(name).num_key_value_heads


def kv(name: str) -> int:
    """Bytes of keys and values per token in float32."""
    return prod(kv_sizes(name))


def kv_sizes(name: str) -> tuple[int, ...]:
    """A key and a value, layers, key-value heads, head size, bytes of a float32."""
    facts = config(name)
    return len(("key", "value")), facts.num_hidden_layers, facts.num_key_value_heads, head_size(name), FLOAT


def kv_factors(name: str) -> str:
    """The same as a product in writing."""
    return " × ".join(map(str, kv_sizes(name)))


def full_kv() -> int:
    """Bytes of keys and values at the default model's full context."""
    return kv(QWEN) * config(QWEN).max_position_embeddings


# --- reading and writing ----------------------------------------------------

def chunks(tokens: int) -> int:
    """Passes that it takes to feed a prompt."""
    return ceil(tokens / CHUNK)


def answer_seconds() -> float:
    """Time of the supposed answer: its first token, then the others at the supposed pace."""
    return SUPPOSED.first + (SUPPOSED.answer - 1) / SUPPOSED.pace


def matrix_operations(tokens: int) -> int:
    """Operations of the default model's weight matrices for a prompt; the output matrix once."""
    return 2 * body(QWEN) * tokens + 2 * embedding(QWEN)


def attention_operations(tokens: int) -> int:
    """Operations of causal attention in the default model: 2 * layers * width * tokens squared."""
    return 2 * config(QWEN).num_hidden_layers * config(QWEN).hidden_size * tokens ** 2


def crossing() -> float:
    """Tokens at which attention takes as many operations as the matrices of the layers."""
    return body(QWEN) / (config(QWEN).num_hidden_layers * config(QWEN).hidden_size)


def operations_saved() -> float:
    """Operations of the output matrix beside those of all others, per token."""
    return embedding(QWEN) / body(QWEN)


def intensity(tokens: int) -> float:
    """Operations per byte of float32 weights when `tokens` share a pass."""
    return 2 * tokens / FLOAT


def balance() -> float:
    """Operations per byte of the supposed machine."""
    return SUPPOSED.arithmetic / SUPPOSED.bandwidth


def break_even() -> float:
    """Tokens per pass at which intensity and balance are equal."""
    return balance() / intensity(1)


def limit(name: str, bytes_per_weight: float = FLOAT) -> float:
    """The most tokens per second that the supposed memory allows."""
    return SUPPOSED.bandwidth / (bytes_per_weight * parameters(name))


def prefill_seconds(tokens: int) -> float:
    """The least time to read a prompt on the supposed machine."""
    return (matrix_operations(tokens) + attention_operations(tokens)) / SUPPOSED.arithmetic


def read_seconds() -> float:
    """The least time for one more token of a prompt on the supposed machine."""
    return 2 * body(QWEN) / SUPPOSED.arithmetic


def exchange() -> float:
    """Prompt tokens that are read in the time of writing one."""
    return 1 / limit(QWEN) / read_seconds()


# --- the two texts ----------------------------------------------------------

def number(text: str, figure: str) -> float:
    """A quoted figure as a number."""
    return float(quoted(text, figure).replace(",", ""))


def article_line() -> tuple[float, float]:
    """Fixed seconds and seconds per token through the article's two shortest prompts."""
    (x, y), (u, v) = [(number(ARTICLE, tokens), number(ARTICLE, milliseconds) / 1e3)
                      for tokens, milliseconds in (("37", "71"), ("657", "481"))]
    slope = (v - y) / (u - x)
    return y - slope * x, slope


def article_fixed_share() -> float:
    """The fixed part as a share of the article's shortest time."""
    return article_line()[0] * 1e3 / number(ARTICLE, "71")


def article_factor() -> float:
    """By how much the line's time for the article's longest prompt exceeds that without retrieval."""
    fixed, slope = article_line()
    short_one, long_one = (fixed + slope * number(ARTICLE, tokens) for tokens in ("55", "898"))
    assert number(ARTICLE, "6") <= long_one / short_one <= number(ARTICLE, "8")  # as the text goes on to say
    return long_one / short_one


def added_tokens() -> float:
    """By how many tokens the article's longest prompts grew."""
    return number(ARTICLE, "898") - number(ARTICLE, "55")


def chapter_parameters() -> float:
    """Parameters of the chapter's model."""
    return number(CHAPTER, "361,821,120")


def chapter_traffic() -> float:
    """Billions of bytes per second that the chapter's pace takes in float32."""
    return FLOAT * chapter_parameters() * number(CHAPTER, "4.0") / 1e9


def chapter_seconds() -> float:
    """Seconds of the chapter's episodes at their average pace."""
    return number(CHAPTER, "227") / number(CHAPTER, "4.0")


def chapter_tokens_per_episode() -> float:
    """Tokens generated per episode of the chapter's loop."""
    return number(CHAPTER, "227") / number(CHAPTER, "10")


# --- caches -----------------------------------------------------------------

def fed_without_cache() -> int:
    """Tokens fed for the supposed answer when everything is fed again for each token."""
    return sum(SUPPOSED.short_prompt + written for written in range(SUPPOSED.answer))


def fed_with_cache() -> int:
    """Tokens fed for the supposed answer with a KV cache; its last token is never fed."""
    return SUPPOSED.short_prompt + SUPPOSED.answer - 1


def fed_in_turns(turns: int = SUPPOSED.turns) -> int:
    """Tokens fed in the supposed conversation when each turn sends all of it again."""
    return sum(turn * SUPPOSED.turn_tokens for turn in range(1, turns + 1))


@lru_cache
def shared(place: str) -> tuple[int, int]:
    """Tokens that a second customer's prompt shares with the first's, of how many; the name is at `place`."""
    rules = (DATA / "prompts" / "bookshop.md").read_text(encoding="utf-8").strip()
    requests = []
    for name in ("Anna", "Minh"):
        parts = [f"The customer is called {name}.", rules][::1 if place == "first" else -1]
        messages = [{"role": "system", "content": "\n\n".join(parts)},
                    {"role": "user", "content": "Do you have a book about birds?"}]
        requests.append([span.id for span in prompt(QWEN, messages)])
    return common_prefix(*requests), len(requests[1])


def line_breaks() -> tuple[str, str]:
    """The id of one line break, and the id of two encoded together."""
    (one,), (both,) = ids(QWEN, "\n"), ids(QWEN, "\n\n")
    return str(one), str(both)


def parrot() -> int:
    """Tokens of one emoji, the first of which is no whole character."""
    assert "\ufffd" in pieces(QWEN, "🦜")[0]
    return count(QWEN, "🦜")


def sums() -> tuple[str, str, str, str]:
    """Two sums of the same numbers and what Python makes of them."""
    left, right = SUPPOSED.sums
    return left, str(eval(left)), right, str(eval(right))


# --- bytes per weight -------------------------------------------------------

def eps(kind: str) -> float:
    """The relative distance of neighbouring numbers of a torch type."""
    return torch.finfo(getattr(torch, kind)).eps


def block(kind: str) -> tuple[int, int]:
    """Weights and bytes of a block of a quantised format."""
    return GGML_QUANT_SIZES[GGMLQuantizationType[kind]]


def per_weight(kind: str) -> float:
    """Bytes per weight of a quantised format, scales included."""
    return block(kind)[1] / block(kind)[0]


def file_bits(name: str) -> float:
    """Bits per parameter of the file that a model is converted from."""
    return 8 * MODELS[name]["file_bytes"] / parameters(name)


def relative_error(values: np.ndarray, kind: str) -> float:
    """Root mean square of what quantising changes, relative to the values."""
    back = dequantize(quantize(values, GGMLQuantizationType[kind]), GGMLQuantizationType[kind])
    return float(np.sqrt(np.mean((back - values) ** 2) / np.mean(values ** 2)))


@lru_cache
def rounding_error(kind: str) -> float:
    """The relative error for a million normal random weights."""
    return relative_error(np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32), kind)


@lru_cache
def embedding_error(kind: str) -> float:
    """The relative error for the first rows of the default model's embedding table."""
    with safe_open(path(QWEN) / "model.safetensors", "np") as file:
        return relative_error(file.get_slice("model.embed_tokens.weight")[:SUPPOSED.rows], kind)


# --- many readers, guesses, money -------------------------------------------

def amdahl(cores: int) -> float:
    """Speed-up of a pass of which the supposed share is spread over `cores`."""
    return 1 / (1 - SUPPOSED.parallel + SUPPOSED.parallel / cores)


def bytes_per_token(readers: int) -> float:
    """Bytes moved per token written when `readers` of the supposed context share a pass."""
    return weights(QWEN) / readers + kv(QWEN) * SUPPOSED.context


def places() -> int:
    """Places of a batch that lasts as long as its longest answer."""
    return len(SUPPOSED.lengths) * max(SUPPOSED.lengths)


def lengths() -> str:
    """The supposed lengths of answers as a list in words."""
    *others, last = map(str, SUPPOSED.lengths)
    return f"{', '.join(others)} and {last}"


def runs() -> str:
    """The supposed times of runs as a list in words."""
    *others, last = map(str, SUPPOSED.runs)
    return f"{', '.join(others)} and {last}"


def stay(utilisation: float) -> float:
    """Average seconds at a single server with random arrivals: service time / idle share."""
    return SUPPOSED.service / (1 - utilisation)


def default_limit() -> int:
    """The default of max_new_tokens."""
    return inspect.signature(Model.generate).parameters["max_new_tokens"].default


def expected_tokens() -> float:
    """Tokens expected per pass of the large model: the sum of p**i for i from 0 to k."""
    return sum(SUPPOSED.accepted ** guess for guess in range(SUPPOSED.guesses + 1))


def speculative_gain() -> float:
    """Expected tokens over the cost of k draft passes and a check, counted in passes of the large model."""
    return expected_tokens() / (SUPPOSED.guesses * weights(QWEN) / weights(LARGER) + 1)


def price(value: float, digits: int = 2) -> str:
    """An amount of money."""
    return short(value, digits)


def request_cost() -> float:
    """Euros for the supposed prompt and answer."""
    return (SUPPOSED.prompt * SUPPOSED.price_read + SUPPOSED.answer * SUPPOSED.price_write) / 1e6


def own_price() -> float:
    """Euros per million tokens of a machine that is never idle."""
    return SUPPOSED.hour / (limit(QWEN) * 3600) * 1e6


# --- the table --------------------------------------------------------------

FIGURES: list[tuple[str, Callable[[], object]]] = [
    ("{} tokens a pass", lambda: whole(CHUNK)),
    ("A prompt of {} tokens with an answer of {} tokens takes {} passes to read and {} more to write",
     lambda: (whole(SUPPOSED.prompt), whole(SUPPOSED.answer), whole(chunks(SUPPOSED.prompt)),
              whole(SUPPOSED.answer - 1))),
    ("Suppose the first token comes after {} seconds and {} tokens a second follow: an answer of {} tokens is "
     "complete after {} seconds",
     lambda: (whole(SUPPOSED.first), whole(SUPPOSED.pace), whole(SUPPOSED.answer), short(answer_seconds()))),
    ("only {} tokens a second", lambda: short(SUPPOSED.answer / answer_seconds())),
    ("For the {} parameters of the default model, qwen2.5-coder-0.5b, this makes about {} million operations "
     "for each token of an answer",
     lambda: (whole(parameters(QWEN)), whole(2 * parameters(QWEN) / 1e6))),
    ("That leaves {} million parameters of the default model, qwen2.5-coder-0.5b, which every prompt token has to "
     "meet",
     lambda: short(body(QWEN) / 1e6)),
    ("reading {} tokens takes about {} billion operations",
     lambda: (whole(SUPPOSED.prompt), whole(matrix_operations(SUPPOSED.prompt) / 1e9))),
    ("One chunk of {} prompt tokens would otherwise produce {} rows of {} numbers, or {} MB",
     lambda: (whole(CHUNK), whole(CHUNK), whole(config(QWEN).vocab_size),
              whole(CHUNK * config(QWEN).vocab_size * FLOAT / 1e6))),
    ("for the default model, qwen2.5-coder-0.5b, {} more operations", lambda: percent(operations_saved())),
    ("For {} tokens in the default model, qwen2.5-coder-0.5b, attention takes {} billion operations",
     lambda: (whole(SUPPOSED.prompt), whole(attention_operations(SUPPOSED.prompt) / 1e9))),
    ("The two become equal only at about {} tokens", lambda: whole(round(crossing(), -2))),
    ("A single layer of the default model, qwen2.5-coder-0.5b, takes {} MB, and there are {} layers and the output "
     "matrix",
     lambda: (whole(layer_bytes(QWEN) / 1e6), whole(config(QWEN).num_hidden_layers))),
    ("the default model moves {} GB through the processor for every token it writes", lambda: gb(weights(QWEN))),
    ("{} bytes long", lambda: FLOAT),
    ("In decode that gives {} operations per byte", lambda: short(intensity(1))),
    ("a chunk of {} tokens reaches {} operations per byte", lambda: (whole(CHUNK), whole(intensity(CHUNK)))),
    ("Suppose a laptop computes {} billion operations and reads {} billion bytes a second: its ratio is {} "
     "operations per byte",
     lambda: (whole(SUPPOSED.arithmetic / 1e9), whole(SUPPOSED.bandwidth / 1e9), whole(balance()))),
    ("the two meet at {} tokens per pass on such a machine", lambda: whole(break_even())),
    ("every linear layer that sees at most {} rows", lambda: whole(FEW)),
    ("With a memory that delivers {} GB a second, the default model, qwen2.5-coder-0.5b, cannot exceed {} "
     "tokens a second",
     lambda: (whole(SUPPOSED.bandwidth / 1e9), short(limit(QWEN)))),
    ("A memory of {} GB a second allows the default model, qwen2.5-coder-0.5b, at most {} tokens a second, "
     "qwen2.5-coder-1.5b {} and smollm2-135m {}, all in float32",
     lambda: (whole(SUPPOSED.bandwidth / 1e9), short(limit(QWEN)), short(limit(LARGER)), short(limit(SMOL)))),
    ("the larger model has {} times the bytes of the default one and is at best so many times slower",
     lambda: short(weights(LARGER) / weights(QWEN))),
    ("Somebody reports {} tokens a second from the default model, qwen2.5-coder-0.5b, in float32: the memory would "
     "have to deliver {} GB a second",
     lambda: (whole(SUPPOSED.claim), whole(SUPPOSED.claim * weights(QWEN) / 1e9))),
    ("The model smollm2-135m has {} layers of {} MB each, the default model, qwen2.5-coder-0.5b, {} layers of {} MB",
     lambda: (whole(config(SMOL).num_hidden_layers), whole(layer_bytes(SMOL) / 1e6),
              whole(config(QWEN).num_hidden_layers), whole(layer_bytes(QWEN) / 1e6))),
    ("{} entries in the vocabulary of the default model, qwen2.5-coder-0.5b", lambda: whole(config(QWEN).vocab_size)),
    ("That is {} MB, or {} of the model's bytes",
     lambda: (whole(FLOAT * embedding(QWEN) / 1e6), percent(embedding(QWEN) / parameters(QWEN)))),
    ("the share is {}", lambda: percent(embedding(LARGER) / parameters(LARGER))),
    ("At {} billion operations a second, {} prompt tokens keep the default model, qwen2.5-coder-0.5b, busy for at "
     "least {} seconds",
     lambda: (whole(SUPPOSED.arithmetic / 1e9), whole(SUPPOSED.prompt), short(prefill_seconds(SUPPOSED.prompt)))),
    ("With {} billion operations and {} billion bytes a second, the default model, qwen2.5-coder-0.5b, needs {} ms "
     "for a prompt token and {} ms for a token of the answer",
     lambda: (whole(SUPPOSED.arithmetic / 1e9), whole(SUPPOSED.bandwidth / 1e9),
              whole(1e3 * read_seconds()), whole(1e3 / limit(QWEN)))),
    ("One written token then costs as much time as {} read ones", lambda: whole(exchange())),
    ("a prompt of {} tokens in chunks of {} reads them {} times instead of once",
     lambda: (whole(SUPPOSED.prompt), whole(CHUNK), whole(chunks(SUPPOSED.prompt)))),
    ("its prompts grew from between {} and {} tokens to between {} and {}",
     lambda: (quoted(ARTICLE, "37"), quoted(ARTICLE, "55"), quoted(ARTICLE, "657"), quoted(ARTICLE, "898"))),
    ("{} to {} times longer", lambda: (quoted(ARTICLE, "16"), quoted(ARTICLE, "18"))),
    ("the first token came only {} to {} times later", lambda: (quoted(ARTICLE, "6"), quoted(ARTICLE, "8"))),
    ("{} tokens in {} ms and {} tokens in {} ms",
     lambda: (quoted(ARTICLE, "37"), quoted(ARTICLE, "71"), quoted(ARTICLE, "657"), quoted(ARTICLE, "481"))),
    ("{} ms per token and a fixed part of {} ms",
     lambda: (short(1e3 * article_line()[1], 2), whole(1e3 * article_line()[0]))),
    ("The fixed part is {} of the shortest wait", lambda: percent(article_fixed_share())),
    ("For the longest prompts the line predicts a factor of {}", lambda: short(article_factor())),
    ("At {} ms per token, a model of its size does about {} billion operations a second",
     lambda: (short(1e3 * article_line()[1], 2), whole(2 * body(QWEN) / article_line()[1] / 1e9))),
    ("the {} threads that the article names", lambda: quoted(ARTICLE, "2")),
    ("{} tokens per second", lambda: quoted(CHAPTER, "4.0")),
    ("Its {} parameters in float32 are {} GB; writing at that pace would take only {} GB a second from memory",
     lambda: (whole(chapter_parameters()), gb(FLOAT * chapter_parameters()), short(chapter_traffic()))),
    ("{} tokens in {} episodes", lambda: (quoted(CHAPTER, "227"), quoted(CHAPTER, "10"))),
    ("at its average pace they took about {} seconds", lambda: whole(chapter_seconds())),
    ("fewer than {} tokens an episode", lambda: whole(ceil(chapter_tokens_per_episode()))),
    ("A prompt of {} tokens and an answer of {} would then feed {} tokens; with the cache it is {}",
     lambda: (whole(SUPPOSED.short_prompt), whole(SUPPOSED.answer), whole(fed_without_cache()),
              whole(fed_with_cache()))),
    ("For the default model, qwen2.5-coder-0.5b, this is {} = {} bytes per token",
     lambda: (kv_factors(QWEN), whole(kv(QWEN)))),
    ("The model smollm2-135m keeps {} bytes for each token, the default model, qwen2.5-coder-0.5b, with {} times "
     "its parameters only {}",
     lambda: (whole(kv(SMOL)), short(parameters(QWEN) / parameters(SMOL)), whole(kv(QWEN)))),
    ("{} layers with {} key-value heads each in the small model, against {} layers with {} in the default one",
     lambda: (whole(config(SMOL).num_hidden_layers), whole(config(SMOL).num_key_value_heads),
              whole(config(QWEN).num_hidden_layers), whole(config(QWEN).num_key_value_heads))),
    ("The default model, qwen2.5-coder-0.5b, has {} query heads but only {} key-value heads",
     lambda: (whole(config(QWEN).num_attention_heads), whole(config(QWEN).num_key_value_heads))),
    ("If each query head had its own, a token would cost {} bytes instead of {}, {} times as much",
     lambda: (whole(kv(QWEN) * heads_per_group(QWEN)), whole(kv(QWEN)), whole(heads_per_group(QWEN)))),
    ("After {} tokens that is {} MB on top of the {} GB of the default model, qwen2.5-coder-0.5b, which nobody "
     "notices",
     lambda: (whole(SUPPOSED.prompt), short(kv(QWEN) * SUPPOSED.prompt / 1e6), gb(weights(QWEN)))),
    ("At its full context of {} tokens it is {} MB, {} as much as the weights",
     lambda: (whole(config(QWEN).max_position_embeddings), whole(full_kv() / 1e6),
              percent(full_kv() / weights(QWEN)))),
    ("With the name after the rules, the second request shares {} of its {} tokens with the first; with the "
     "name before the rules it shares {} of {}",
     lambda: (whole(shared("last")[0]), whole(shared("last")[1]), whole(shared("first")[0]),
              whole(shared("first")[1]))),
    ("each with the id {}", lambda: line_breaks()[0]),
    ("the single token {}", lambda: line_breaks()[1]),
    ("Suppose each of {} turns adds {} tokens: sending the whole conversation each time feeds {} tokens, "
     "keeping what was read feeds {}",
     lambda: (whole(SUPPOSED.turns), whole(SUPPOSED.turn_tokens), whole(fed_in_turns()),
              whole(SUPPOSED.turns * SUPPOSED.turn_tokens))),
    ("With twice the turns the first figure becomes {} times as large",
     lambda: short(fed_in_turns(2 * SUPPOSED.turns) / fed_in_turns())),
    ("at most {} tokens, which for the default model, qwen2.5-coder-0.5b, are {} MB and for smollm2-135m {} MB",
     lambda: (whole(KEPT_TOKENS), whole(KEPT_TOKENS * kv(QWEN) / 1e6), whole(KEPT_TOKENS * kv(SMOL) / 1e6))),
    ("in Python, {} is {}, while {} is {}", lambda: (sums()[0], sums()[1], sums()[2], sums()[3])),
    ("In float32, at {} bytes, smollm2-135m takes {} GB, the default model qwen2.5-coder-0.5b {} GB and "
     "qwen2.5-coder-1.5b {} GB",
     lambda: (FLOAT, gb(weights(SMOL)), gb(weights(QWEN)), gb(weights(LARGER)))),
    ("needs {} MB", lambda: whole(FLOAT * parameters("minilm") / 1e6)),
    ("At {} bytes a weight the default model, qwen2.5-coder-0.5b, shrinks to {} GB",
     lambda: (BFLOAT, gb(BFLOAT * parameters(QWEN)))),
    ("neighbouring bfloat16 numbers lie up to {} of their size apart, those of float32 about {} millionths",
     lambda: (percent(eps("bfloat16"), 1), short(1e6 * eps("float32"), 2))),
    ("{} byte instead of float32's {}", lambda: (INT8, FLOAT)),
    ("{} weights as {} bytes and one scale of {} bytes, together {} bytes",
     lambda: (block("Q8_0")[0], block("Q8_0")[0], block("Q8_0")[1] - block("Q8_0")[0], block("Q8_0")[1])),
    ("That makes {} bytes per weight, or {} bits",
     lambda: (short(per_weight("Q8_0"), 4), short(8 * per_weight("Q8_0")))),
    ("{}", lambda: whole(INT8_MAX)),
    ("{} of the largest in its block", lambda: percent(0.5 / INT8_MAX, 2)),
    ("{} possible values within its block", lambda: whole(2 ** SUPPOSED.bits)),
    ("{} weights into {} bytes, which is {} bytes per weight",
     lambda: (block("Q4_0")[0], block("Q4_0")[1], short(per_weight("Q4_0"), 4))),
    ("takes {} bytes per weight", lambda: short(per_weight("Q4_1"), 3)),
    ("Against float32 the first is {} times smaller", lambda: short(FLOAT / per_weight("Q4_0"))),
    ("For bell-shaped random weights the root-mean-square error is {} with Q8_0, {} with Q5_0 and {} with Q4_0",
     lambda: (percent(rounding_error("Q8_0"), 1), percent(rounding_error("Q5_0"), 1),
              percent(rounding_error("Q4_0"), 1))),
    ("Squeezing its first {} rows into Q5_0 changes them by {}, into Q4_0 by {}",
     lambda: (whole(SUPPOSED.rows), percent(embedding_error("Q5_0"), 1), percent(embedding_error("Q4_0"), 1))),
    ("The file that brings the default model, qwen2.5-coder-0.5b, has Q4_K_M in its name and {} bits per parameter",
     lambda: short(file_bits(QWEN), 2)),
    ("blocks of {}, and rows of {} do not", lambda: (block("Q4_K")[0], config(QWEN).hidden_size)),
    ("For qwen2.5-coder-1.5b the figure is {}", lambda: short(file_bits(LARGER), 2)),
    ("storing the default model, qwen2.5-coder-0.5b, in Q8_0 raises its limit at {} GB a second from {} to {} "
     "tokens a second",
     lambda: (whole(SUPPOSED.bandwidth / 1e9), short(limit(QWEN)), short(limit(QWEN, per_weight("Q8_0"))))),
    ("Three notebooks with the default model, qwen2.5-coder-0.5b, need {} GB for its weights together, and not {} GB",
     lambda: (gb(weights(QWEN)), gb(3 * weights(QWEN)))),
    ("From a disk that reads {} MB a second, the weights of the default model, qwen2.5-coder-0.5b, take {} seconds",
     lambda: (whole(SUPPOSED.disk / 1e6), short(weights(QWEN) / SUPPOSED.disk))),
    ("Suppose {} of a pass is spread over the cores: {} cores make it {} times as fast, and even endless cores "
     "no more than {} times",
     lambda: (percent(SUPPOSED.parallel), whole(SUPPOSED.cores), short(amdahl(SUPPOSED.cores), 2),
              whole(1 / (1 - SUPPOSED.parallel)))),
    ("With {} readers, each with a context of {} tokens, the default model, qwen2.5-coder-0.5b, moves {} MB per "
     "token written; a single reader moves {} MB",
     lambda: (whole(SUPPOSED.batch), whole(SUPPOSED.context), whole(bytes_per_token(SUPPOSED.batch) / 1e6),
              whole(bytes_per_token(1) / 1e6))),
    ("{} readers at the full context of the default model, qwen2.5-coder-0.5b, would need {} GB of keys and values, "
     "more than the {} GB of its weights",
     lambda: (whole(SUPPOSED.batch), short(SUPPOSED.batch * full_kv() / 1e9), gb(weights(QWEN)))),
    ("Suppose four answers of {} tokens start together: the batch lasts {} passes, and of its {} places only {} "
     "produce a token, which is {}",
     lambda: (lengths(), whole(max(SUPPOSED.lengths)), whole(places()), whole(sum(SUPPOSED.lengths)),
              percent(sum(SUPPOSED.lengths) / places()))),
    ("Reserving the full context of the default model, qwen2.5-coder-0.5b, takes {} MB per reader, although one "
     "with {} tokens uses only {} MB",
     lambda: (whole(full_kv() / 1e6), whole(SUPPOSED.context), short(kv(QWEN) * SUPPOSED.context / 1e6))),
    ("With pages of {} tokens, {} bytes each", lambda: (whole(SUPPOSED.page), whole(kv(QWEN) * SUPPOSED.page))),
    ("If {} requests come in a second and each takes {} seconds from question to last token, then on average {} "
     "are in progress",
     lambda: (short(SUPPOSED.arrivals), whole(SUPPOSED.stay), whole(SUPPOSED.arrivals * SUPPOSED.stay))),
    ("At {} seconds of work per request, a server that is busy {} of the time keeps each reader for {} seconds; "
     "one that is busy {} keeps them for {}",
     lambda: (whole(SUPPOSED.service), percent(SUPPOSED.calm), whole(stay(SUPPOSED.calm)),
              percent(SUPPOSED.crowded), whole(stay(SUPPOSED.crowded)))),
    ("by default {} tokens in the course's `generate`", lambda: whole(default_limit())),
    ("For the default model, qwen2.5-coder-0.5b, that would be {} tokens",
     lambda: whole(config(QWEN).max_position_embeddings)),
    ("If each guess is right with probability {} and {} are made, the expected yield is {} tokens per pass",
     lambda: (percent(SUPPOSED.accepted), whole(SUPPOSED.guesses), short(expected_tokens(), 2))),
    ("The default model, qwen2.5-coder-0.5b, has {} of the bytes of qwen2.5-coder-1.5b: with {} guesses, {} of them "
     "right, and a check no dearer than one pass, the text comes {} times as fast",
     lambda: (percent(weights(QWEN) / weights(LARGER)), whole(SUPPOSED.guesses), percent(SUPPOSED.accepted),
              short(speculative_gain(), 2))),
    ("its vocabulary of {} entries is not the {} of the other two",
     lambda: (whole(config(SMOL).vocab_size), whole(config(QWEN).vocab_size))),
    ("the parrot 🦜 is {} tokens in the vocabulary of the default model, qwen2.5-coder-0.5b, and the first of them "
     "alone is no valid text",
     lambda: whole(parrot())),
    ("a chunk of {} prompt tokens", lambda: whole(CHUNK)),
    ("Suppose reading costs {} and writing {} euros per million: {} tokens read and {} written cost {} "
     "euros",
     lambda: (price(SUPPOSED.price_read), price(SUPPOSED.price_write), whole(SUPPOSED.prompt),
              whole(SUPPOSED.answer), f"{request_cost():.5f}")),
    ("the longest prompts grew from {} to {} tokens", lambda: (quoted(ARTICLE, "55"), quoted(ARTICLE, "898"))),
    ("at {} euros per million tokens read, the {} added tokens make {} questions dearer by {} euros",
     lambda: (price(SUPPOSED.price_read), whole(added_tokens()), whole(SUPPOSED.questions),
              price(SUPPOSED.questions * added_tokens() * SUPPOSED.price_read / 1e6))),
    ("A machine at {} euros an hour that writes at its limit of {} tokens a second makes a million tokens for {} "
     "euros",
     lambda: (price(SUPPOSED.hour), short(limit(QWEN), 2), price(own_price()))),
    ("only {} of the time, the price rises to {} euros",
     lambda: (percent(SUPPOSED.used), price(own_price() / SUPPOSED.used))),
    ("Suppose {} runs take {} seconds, because the last met a backup job: their mean is {} seconds and their "
     "median {}",
     lambda: (whole(len(SUPPOSED.runs)), runs(), short(mean(SUPPOSED.runs)), short(median(SUPPOSED.runs)))),
    ("If the default model, qwen2.5-coder-0.5b, writes {} tokens a second in float32 where a memory of {} GB a "
     "second allows {}, it uses {} of the memory's speed",
     lambda: (whole(SUPPOSED.observed), whole(SUPPOSED.bandwidth / 1e9), short(limit(QWEN)),
              percent(SUPPOSED.observed / limit(QWEN)))),
]
