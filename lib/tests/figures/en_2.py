"""The figures of the notes' second chapter, each with the expression that computes or reads it."""
from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors import safe_open
from transformers import BertConfig
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopPLogitsWarper,
)

from lib import models
from lib.dense import LIMIT
from lib.generation import Model
from lib.models import entry
from lib.tests.figures.quoted import ARTICLE, QUOTED, quoted
from lib.tests.figures.read import QWEN, SMOL, config, count, ids, path, prompt, tensors, tokenizer, user
from lib.text_stream import TextStream
from lib.trace import NEAR_TIE

# The inputs of the worked examples; what the notes make of them is computed below.
VECTOR, SCORES, GATES, LOGITS = (3, 4), (2, 1, 0), (4, 1, -4), (2, 1, 0.5)
LONG_PROMPT, PAGE, BATCH = 8000, 500, 64
COLD, HOT = 0.5, 2
CHANCES, TOP_K, TOP_P, MIN_P = (0.5, 0.25, 0.15, 0.06, 0.04), 40, 0.9, 0.1
PENALTY, SEEN, RIVAL = 1.1, (8, -2), 7.5
TREE = ((0.5, 0.4), (0.4, 0.9))  # of two first tokens: their probability, and that of the best that can follow
STOP, BEGUN = "</tool_call>", "</tool"
BIG, ONE = np.float32(100_000_000), np.float32(1)
TYPICAL, NEAR_ONE, WHOLE = 20, 1.01, 256
HALF, TRIPLE, SURE, UNSURE = 0.5, (0.5, 0.25, 0.125), 0.9, 0.01
SLOW, FAST = 0.1, 1.1
LARGEST, WEIGHT = 2.54, 0.333
TOKENS = ((1, 2), (3, 0), (2, 4))
SUN = "The sun rises in the east and sets in the west."
SUN_OPEN, BACKWARDS = SUN.removesuffix(" west."), "west the in sets and east the in rises sun The."
COLOUR, CAPITAL = "My favourite colour is", "The capital of France is"
AUSTRALIA = "The capital of Australia is"
VIETNAMESE = "Hà Nội là thủ đô của Việt Nam."


# --- text of a value --------------------------------------------------------

def percent(part: int, whole: int, form: str = ".0f") -> str:
    """A part as a percentage of the whole."""
    return f"{100 * part / whole:{form}}%"


def point(vector, form: str = "g") -> str:
    """The numbers of a vector, with commas between them."""
    return ", ".join(f"{value:{form}}" for value in vector).replace("-", "\u2212")


def listed(values, form: str = "g") -> str:
    """Numbers as `a, b and c`."""
    *first, last = [point([value], form) for value in values]
    return ", ".join(first) + " and " + last if first else last


def scientific(value: float) -> str:
    """A number as one decimal times a power of ten."""
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits}e{int(exponent):+d}".replace("+", "")


def factors() -> list[str]:
    """The two numbers that the article asked a model to multiply."""
    words = next(words for text, figure, words in QUOTED if (text, figure) == (ARTICLE, "6,888,032"))
    return re.findall(r"\d+", words)[:2]


# --- counting parameters -----------------------------------------------------

def parameters(name: str, pattern: str = "") -> int:
    """How many parameters the tensors have whose name matches `pattern`."""
    return sum(math.prod(tensor.shape) for key, tensor in tensors(name).items() if re.search(pattern, key))


def share(name: str, pattern: str, form: str = ".0f") -> str:
    """Those parameters as a percentage of all."""
    return percent(parameters(name, pattern), entry(name)["parameters"], form)


def layer(name: str) -> int:
    """The parameters of one layer: attention, three feed-forward matrices, two norms."""
    width, inner = config(name).hidden_size, config(name).intermediate_size
    return parameters(name, r"layers\.0\.self_attn") + 3 * width * inner + 2 * width


def total(name: str) -> int:
    """All parameters, added up part by part; must be what the registry says and the file holds."""
    settings = config(name)
    parts = layer(name) * settings.num_hidden_layers + (settings.vocab_size + 1) * settings.hidden_size
    if not parts == entry(name)["parameters"] == parameters(name):
        raise AssertionError(f"the parts of {name} add up to {parts:,}")
    return parts


def widths() -> float:
    """How many times as long the default model's vectors are as the small one's."""
    return config(QWEN).hidden_size / config(SMOL).hidden_size


def norms(name: str) -> int:
    """The number of norms in the model."""
    return sum("norm" in key for key in tensors(name))


# --- attention --------------------------------------------------------------

def head_size(name: str) -> int:
    """Numbers per attention head."""
    return config(name).hidden_size // config(name).num_attention_heads


def group(name: str) -> int:
    """Query heads per key-value head."""
    return config(name).num_attention_heads // config(name).num_key_value_heads


def shared(name: str) -> int:
    """Numbers in the keys of one token and layer, all heads together."""
    return head_size(name) * config(name).num_key_value_heads


def ungrouped(name: str) -> int:
    """Parameters of a layer's attention if keys and values were as wide as queries."""
    width = config(name).hidden_size
    return parameters(name, r"layers\.0\.self_attn") + 2 * (width - shared(name)) * (width + 1)


def kept(name: str) -> int:
    """Numbers that the keys and values of one token take in all layers."""
    return 2 * config(name).num_hidden_layers * shared(name)


def wavelengths(name: str) -> list[float]:
    """Tokens per full turn of each rotary pair, fastest first."""
    size, base = head_size(name), rope_base(name)
    return [2 * math.pi * base ** (pair / size) for pair in range(0, size, 2)]


def rope_base(name: str) -> int:
    """The base of the rotary position embedding."""
    return int(config(name).rope_theta)


def pairs(length: int) -> int:
    """Pairs of a token and one at or before it."""
    return sum(range(1, length + 1))


# --- small calculations -----------------------------------------------------

def rms(vector) -> float:
    """The root of the mean square."""
    return math.sqrt(sum(x * x for x in vector) / len(vector))


def normed(vector) -> list[float]:
    """The vector divided by its root mean square."""
    return [x / rms(vector) for x in vector]


def mean(vectors) -> list[float]:
    """The average of vectors, number by number."""
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def unit(vector) -> list[float]:
    """The vector at length one."""
    return [x / math.hypot(*vector) for x in vector]


def softmax(logits, temperature: float = 1) -> list[float]:
    """Probabilities of logits at a temperature."""
    return torch.softmax(torch.tensor(logits, dtype=torch.float64) / temperature, 0).tolist()


def silu(x: float) -> float:
    """x times its sigmoid."""
    return x / (1 + math.exp(-x))


def kept_by(warper: Callable, chances) -> int:
    """How many of the probabilities a sampling rule keeps."""
    return int(warper(None, torch.tensor([chances]).log()).isfinite().sum())


def penalised(logits) -> list[float]:
    """The logits of tokens that occurred before, after the repetition penalty."""
    ids = torch.arange(len(logits))[None]
    return RepetitionPenaltyLogitsProcessor(PENALTY)(ids, torch.tensor([logits], dtype=torch.float32))[0].tolist()


def perplexity(chances) -> float:
    """Perplexity of tokens that had these probabilities."""
    return math.exp(-sum(map(math.log, chances)) / len(chances))


def underflow() -> int:
    """How many tokens at `HALF` each it takes until float32 holds zero."""
    product, tokens = np.float32(1), 0
    while product > 0:
        product, tokens = product * np.float32(HALF), tokens + 1
    return tokens


def descend(rate: float, steps: int = 10) -> float:
    """Size of a weight with the loss w squared after some steps of gradient descent from one."""
    w = 1.0
    for _ in range(steps):
        w -= rate * 2 * w
    return abs(w)


def power_of_two(value: int) -> int:
    """The largest power of two that divides the number."""
    return value & -value


# --- numbers in a computer, weights in a file -------------------------------

FLOAT_BYTES = torch.finfo(torch.float32).bits // 8
INT8 = torch.iinfo(torch.int8).max
FRACTION = {"float32": -int(math.log2(torch.finfo(torch.float32).eps)),
            "bfloat16": -int(math.log2(torch.finfo(torch.bfloat16).eps))}
EXPONENT = {"float32": torch.finfo(torch.float32).bits - 1 - FRACTION["float32"]}
BITS = {"Q4_1": 8 * (GGML_QUANT_SIZES[GGMLQuantizationType.Q4_1][1] - 4) // 32}  # all but a scale and a minimum


def brief(value: float) -> float:
    """The number as bfloat16 holds it."""
    return torch.tensor(value, dtype=torch.bfloat16).item()


def next_whole() -> int:
    """The first whole number after `WHOLE` that bfloat16 holds."""
    return next(number for number in range(WHOLE + 1, 2 * WHOLE) if brief(number) == number)


def block(kind: str) -> tuple[int, int]:
    """Weights and bytes of a block."""
    return GGML_QUANT_SIZES[GGMLQuantizationType[kind]]


def per_weight(kind: str) -> float:
    """Bytes per weight."""
    return block(kind)[1] / block(kind)[0]


def steps(weight: float) -> int:
    """The whole number that stands for a weight in a block whose largest is `LARGEST`."""
    return round(weight / (LARGEST / INT8))


# --- programs of the course -------------------------------------------------

def generation(name: str) -> dict:
    """The model's generation settings."""
    return json.loads((path(name) / "generation_config.json").read_text(encoding="utf-8"))


def end_id(name: str, which: int) -> str:
    """The id of an end token."""
    return str(tokenizer(name).convert_tokens_to_ids(entry(name)["eos"][which]))


def limit_of_generate() -> int:
    """New tokens of `Model.generate` where nothing else is said."""
    return inspect.signature(Model.generate).parameters["max_new_tokens"].default


def held_back(stop: str, text: str) -> int:
    """Characters at the end of `text` that a stream withholds."""
    sent: list[str] = []
    TextStream(lambda ids: text, (stop,), sent.append).update([0])
    return len(text) - len("".join(sent))


# --- what the small model predicts ------------------------------------------

@lru_cache
def small():
    """The small model, loaded."""
    path(SMOL)
    return models.load(SMOL)


def cosine(name: str, *words: str) -> str:
    """The cosine of two tokens' rows in the embedding matrix."""
    rows = [ids(name, word) for word in words]
    with safe_open(path(name) / "model.safetensors", "pt") as file:
        vectors = [file.get_slice("model.embed_tokens.weight")[id:id + 1][0] for [id] in rows]
    return f"{torch.cosine_similarity(*vectors, dim=0):.2f}"


@lru_cache
def chances(text: str) -> torch.Tensor:
    """The small model's probabilities after the text, best first, shape [vocabulary]."""
    return after(text).sort(descending=True).values


@lru_cache
def after(text: str) -> torch.Tensor:
    """The small model's probability of every token as the next after a document's beginning."""
    start = small().tokenizer.convert_tokens_to_ids("<|endoftext|>")
    return small().logits([start, *ids(SMOL, text)]).softmax(-1)


def top(text: str, k: int) -> float:
    """The probability of the k best tokens together."""
    return chances(text)[:k].sum().item()


def best(text: str, rank: int = 0) -> str:
    """The best next token, or the one at another rank."""
    return small().decode([int(after(text).argsort(descending=True)[rank])]).strip()


def chance(text: str, rank: int = 0) -> float:
    """The probability of that token."""
    return chances(text)[rank].item()


def nucleus(text: str) -> int:
    """How many tokens top-p keeps."""
    return kept_by(TopPLogitsWarper(TOP_P), chances(text).tolist())


def above(text: str, fraction: float) -> int:
    """How many tokens min-p keeps."""
    return kept_by(MinPLogitsWarper(fraction), chances(text).tolist())


def of_text(text: str) -> float:
    """The small model's perplexity on a text that begins a document."""
    tokens = ids(SMOL, text)
    beginnings = [small().decode(tokens[:end]) for end in range(len(tokens))]
    return perplexity([after(begun)[token].item() for begun, token in zip(beginnings, tokens, strict=True)])


def chance_of_last(begun: str) -> float:
    """The probability of ` west` after a text."""
    [token] = ids(SMOL, " west")
    return after(begun)[token].item()


# --- the sentence model -----------------------------------------------------

def minilm_layers() -> int:
    """Layers of the sentence model, from its name."""
    return int(re.search(r"-L(\d+)-", entry("minilm")["what"])[1])


@lru_cache
def minilm_width() -> int:
    """The one width at which an encoder of BERT's shape has the registry's number of parameters."""
    bert = BertConfig()
    outside = bert.vocab_size + bert.max_position_embeddings + bert.type_vocab_size + 2  # tables, and a norm
    for width in range(1, bert.hidden_size + 1):
        square = width * (width + 1)
        inside = 4 * square + 8 * width * width + 5 * width + 4 * width  # attention; 4 × wider and back; two norms
        if outside * width + minilm_layers() * inside + square == entry("minilm")["parameters"]:
            return width
    raise AssertionError("no width fits")


FIGURES: list[tuple[str, Callable[[], object]]] = [
    ("a list of {} numbers in qwen2.5-coder-0.5b", lambda: config(QWEN).hidden_size),
    ("In smollm2-135m, the rows of *Monday* and *Tuesday* have a cosine of {}, those of *Monday* and *banana* one "
     "of {}",
     lambda: (cosine(SMOL, " Monday", " Tuesday"), cosine(SMOL, " Monday", " banana"))),
    ("{} in qwen2.5-coder-0.5b and {} in smollm2-135m", lambda: (config(QWEN).hidden_size, config(SMOL).hidden_size)),
    ("The wider of the two vectors has {} times as many entries, and such a matrix {} times as many",
     lambda: (f"{widths():.1f}", f"{widths() ** 2:.1f}")),
    ("The {} rows of qwen2.5-coder-0.5b hold {} numbers, {} of all its parameters",
     lambda: (config(QWEN).vocab_size, parameters(QWEN, "embed"), share(QWEN, "embed"))),
    ("smollm2-135m, with {} rows, spends {} on it", lambda: (config(SMOL).vocab_size, share(SMOL, "embed"))),
    ("{} of them in qwen2.5-coder-0.5b, {} in smollm2-135m",
     lambda: (config(QWEN).num_hidden_layers, config(SMOL).num_hidden_layers)),
    ("In qwen2.5-coder-0.5b it is annotated {} times", lambda: 2 * config(QWEN).num_hidden_layers),
    ("The vector ({}) has a root mean square of {} and becomes ({})",
     lambda: (point(VECTOR), f"{rms(VECTOR):.2f}", point(normed(VECTOR), ".2f"))),
    ("Two norms in each layer and one before the output make {} of them in qwen2.5-coder-0.5b, together {} "
     "weights, or {} of the model",
     lambda: (norms(QWEN), parameters(QWEN, "norm"), share(QWEN, "norm", ".3f"))),
    ("the setting `rms_norm_eps`, {} in qwen2.5-coder-0.5b and {} in smollm2-135m",
     lambda: (f"{config(QWEN).rms_norm_eps:.6f}", f"{config(SMOL).rms_norm_eps:.5f}")),
    ("which is {} for vectors of {} numbers", lambda: (f"{head_size(QWEN) ** 0.5:.0f}", head_size(QWEN))),
    ("Scores of {} for three tokens give weights of {}", lambda: (listed(SCORES), listed(softmax(SCORES), ".2f"))),
    ("{} heads of {} numbers make up the {} of qwen2.5-coder-0.5b",
     lambda: (config(QWEN).num_attention_heads, head_size(QWEN), config(QWEN).hidden_size)),
    ("and {} heads of {} the {} of smollm2-135m",
     lambda: (config(SMOL).num_attention_heads, head_size(SMOL), config(SMOL).hidden_size)),
    ("In qwen2.5-coder-0.5b, {} query heads share {} key-value heads, so that each pair serves {}",
     lambda: (config(QWEN).num_attention_heads, config(QWEN).num_key_value_heads, group(QWEN))),
    ("in smollm2-135m it is {} on {}, {} for each",
     lambda: (config(SMOL).num_attention_heads, config(SMOL).num_key_value_heads, group(SMOL))),
    ("For each token qwen2.5-coder-0.5b keeps {} numbers (a key and a value in {} layers, for {} heads of {})",
     lambda: (kept(QWEN), config(QWEN).num_hidden_layers, config(QWEN).num_key_value_heads, head_size(QWEN))),
    ("in float32 makes {} bytes, and would make {} without sharing",
     lambda: (4 * kept(QWEN), 4 * kept(QWEN) * group(QWEN))),
    ("keeps more, {} bytes", lambda: 4 * kept(SMOL)),
    ("A prompt that says only *Xin chào*, {} tokens with its frame, has {} allowed pairs of tokens out of {}",
     lambda: (len(prompt(QWEN, user("Xin chào"))), pairs(len(prompt(QWEN, user("Xin chào")))),
              len(prompt(QWEN, user("Xin chào"))) ** 2)),
    ("A head of {} numbers has {} pairs; the fastest makes a full turn every {} tokens, the slowest of "
     "qwen2.5-coder-0.5b takes {} million",
     lambda: (head_size(QWEN), head_size(QWEN) // 2, f"{wavelengths(QWEN)[0]:.1f}",
              f"{wavelengths(QWEN)[-1] / 1e6:.1f}")),
    ("and that of smollm2-135m {} million", lambda: f"{wavelengths(SMOL)[-1] / 1e6:.1f}"),
    ("{} in the first model and {} in the second", lambda: (rope_base(QWEN), rope_base(SMOL))),
    ("{} tokens in qwen2.5-coder-0.5b, {} in smollm2-135m, prompt and answer together",
     lambda: (config(QWEN).max_position_embeddings, config(SMOL).max_position_embeddings)),
    ("after {} tokens smollm2-135m can write at most {} more",
     lambda: (LONG_PROMPT, config(SMOL).max_position_embeddings - LONG_PROMPT)),
    ("In qwen2.5-coder-0.5b it widens the vector from {} numbers to {}, passes each through a curve, and narrows "
     "them again",
     lambda: (config(QWEN).hidden_size, config(QWEN).intermediate_size)),
    ("SiLU turns {} into {}", lambda: (listed(GATES), listed([silu(x) for x in GATES], ".2f"))),
    ("An up and a down matrix of qwen2.5-coder-0.5b, {} numbers together, would collapse into a square one of {}",
     lambda: (2 * config(QWEN).hidden_size * config(QWEN).intermediate_size, config(QWEN).hidden_size ** 2)),
    ("In a layer of qwen2.5-coder-0.5b it holds {} of {} parameters, {}",
     lambda: (parameters(QWEN, r"layers\.0\.mlp"), parameters(QWEN, r"layers\.0\."),
              percent(parameters(QWEN, r"layers\.0\.mlp"), parameters(QWEN, r"layers\.0\.")))),
    ("in smollm2-135m {}", lambda: percent(parameters(SMOL, r"layers\.0\.mlp"), parameters(SMOL, r"layers\.0\."))),
    ("Query and output are squares of {} by {}; key and value, being shared, only yield {} numbers, {} heads of {}",
     lambda: (config(QWEN).hidden_size, config(QWEN).hidden_size, shared(QWEN), config(QWEN).num_key_value_heads,
              head_size(QWEN))),
    ("The query, key and value each add a bias, which brings the sum to {} parameters",
     lambda: parameters(QWEN, r"layers\.0\.self_attn")),
    ("this half of the layer would need {}", lambda: ungrouped(QWEN)),
    ("A layer has {} in attention, {} in three feed-forward matrices and {} in two norms, together {}",
     lambda: (parameters(QWEN, r"layers\.0\.self_attn"),
              3 * config(QWEN).hidden_size * config(QWEN).intermediate_size, 2 * config(QWEN).hidden_size,
              layer(QWEN))),
    ("Times {} layers that is {}",
     lambda: (config(QWEN).num_hidden_layers, layer(QWEN) * config(QWEN).num_hidden_layers)),
    ("The embedding matrix adds {} and the last norm {}: {} in all",
     lambda: (config(QWEN).vocab_size * config(QWEN).hidden_size, config(QWEN).hidden_size, total(QWEN))),
    ("A layer has {} parameters in attention, {} in its feed-forward network and {} in its norms, {} together",
     lambda: (parameters(SMOL, r"layers\.0\.self_attn"),
              3 * config(SMOL).hidden_size * config(SMOL).intermediate_size, 2 * config(SMOL).hidden_size,
              layer(SMOL))),
    ("{} layers hold {}", lambda: (config(SMOL).num_hidden_layers, layer(SMOL) * config(SMOL).num_hidden_layers)),
    ("With {} for the embedding and {} for the last norm the total is {}",
     lambda: (config(SMOL).vocab_size * config(SMOL).hidden_size, config(SMOL).hidden_size, total(SMOL))),
    ("In qwen2.5-coder-0.5b the biases are {} numbers, {} of the model",
     lambda: (parameters(QWEN, "bias"), share(QWEN, "bias", ".3f"))),
    ("Untied, qwen2.5-coder-0.5b would have {} parameters instead of {}",
     lambda: (total(QWEN) + parameters(QWEN, "embed"), total(QWEN))),
    ("that token is {} times as likely, and with two units it is {} times as likely",
     lambda: (f"{math.exp(1):.1f}", f"{math.exp(2):.1f}")),
    ("The matrix of qwen2.5-coder-0.5b has {} rows, and its tokenizer knows {} tokens; {} rows belong to nobody",
     lambda: (config(QWEN).vocab_size, len(tokenizer(QWEN)), config(QWEN).vocab_size - len(tokenizer(QWEN)))),
    ("{}, which large machines split more evenly", lambda: power_of_two(config(QWEN).vocab_size)),
    ("Three logits of {} become probabilities of {}", lambda: (listed(LOGITS), listed(softmax(LOGITS), ".2f"))),
    ("Logits of {} give the best token a probability of {} at temperature {}, and of {} at temperature {}",
     lambda: (listed(LOGITS), f"{softmax(LOGITS, COLD)[0]:.2f}", f"{COLD:g}", f"{softmax(LOGITS, HOT)[0]:.2f}",
              f"{HOT:g}")),
    ("After *My favourite colour is*, smollm2-135m gives its {} best tokens a probability of {} together; all the "
     "others share {}",
     lambda: (TOP_K, f"{top(COLOUR, TOP_K):.2f}", f"{1 - top(COLOUR, TOP_K):.2f}")),
    ("After *The capital of France is* the first token alone has {}", lambda: f"{top(CAPITAL, 1):.2f}"),
    ("With probabilities of {} and p = {}, the first {} tokens stay",
     lambda: (listed(CHANCES), f"{TOP_P:g}", kept_by(TopPLogitsWarper(TOP_P), CHANCES))),
    ("with p = {} smollm2-135m keeps {} tokens after *The capital of France is* and more than {} after *My "
     "favourite colour is*",
     lambda: (f"{TOP_P:g}", nucleus(CAPITAL), nucleus(COLOUR) // 50 * 50)),
    ("With a fraction of {} and a best token at {}, the bar lies at {}",
     lambda: (f"{MIN_P:g}", f"{CHANCES[0]:g}", f"{MIN_P * CHANCES[0]:g}")),
    ("of the probabilities {} the first {} pass it",
     lambda: (listed(CHANCES), kept_by(MinPLogitsWarper(MIN_P), CHANCES))),
    ("after *My favourite colour is*, the same fraction leaves smollm2-135m {} tokens", lambda: above(COLOUR, MIN_P)),
    ("With a penalty of {}, logits of {} become {}",
     lambda: (f"{PENALTY:g}", listed(SEEN), listed(penalised(SEEN), ".2f"))),
    ("a token that led a new rival by {} now trails it by {}",
     lambda: (f"{SEEN[0] - RIVAL:.1f}", f"{RIVAL - penalised(SEEN)[0]:.2f}")),
    ("`do_sample` is {}, the repetition penalty is {}, and {} end tokens are listed",
     lambda: (json.dumps(generation(QWEN)["do_sample"]), generation(QWEN)["repetition_penalty"],
              len(generation(QWEN)["eos_token_id"]))),
    ("Qwen's chat turns end with `<|im_end|>`, id {}, and whole documents with `<|endoftext|>`, id {}",
     lambda: (end_id(QWEN, 0), end_id(QWEN, 1))),
    ("in smollm2-135m the same two have the ids {} and {}", lambda: (end_id(SMOL, 0), end_id(SMOL, 1))),
    ("The `generate` of this course stops after {} unless told otherwise", lambda: limit_of_generate()),
    ("With the stop string `{}`, an answer that ends with `{}` has {} characters withheld",
     lambda: (STOP, BEGUN, held_back(STOP, BEGUN))),
    ("Suppose one token has a probability of {} and its best successor {}, while its rival has {} and a successor "
     "of {}",
     lambda: (f"{TREE[0][0]:g}", f"{TREE[0][1]:g}", f"{TREE[1][0]:g}", f"{TREE[1][1]:g}")),
    ("with {} for both tokens, and never sees the second, with {}",
     lambda: (f"{math.prod(TREE[0]):.2f}", f"{math.prod(TREE[1]):.2f}")),
    ("A *float32* number has {} bits: one for the sign, {} for the exponent and {} for the fraction",
     lambda: (torch.finfo(torch.float32).bits, EXPONENT["float32"], FRACTION["float32"])),
    ("good for {} decimal digits and for sizes up to {}",
     lambda: (np.finfo(np.float32).precision, scientific(torch.finfo(torch.float32).max))),
    ("Around {}, a usual size for a logit, two neighbours lie {} apart",
     lambda: (TYPICAL, f"{np.spacing(np.float32(TYPICAL)):.7f}")),
    ("only {} bits of fraction in {} bits altogether",
     lambda: (FRACTION["bfloat16"], torch.finfo(torch.bfloat16).bits)),
    ("The number {} becomes {}, and after {} the next whole number it can hold is {}",
     lambda: (f"{NEAR_ONE:g}", f"{brief(NEAR_ONE):.7f}", WHOLE, next_whole())),
    ("In float32, {} plus {} minus {} gives {} when computed from left to right and {} when the two large numbers "
     "meet first",
     lambda: (int(BIG), int(ONE), int(BIG), f"{(BIG + ONE) - BIG:.0f}", f"{ONE + (BIG - BIG):.0f}")),
    ("calls a gap under {} a near tie", lambda: f"{NEAR_TIE:g}"),
    ("A hundred tokens at {} each have a probability of {}; after {} of them float32 holds nothing but zero",
     lambda: (f"{HALF:g}", scientific(HALF ** 100), underflow())),
    ("the natural logarithm of {} is {}, and a hundred of them add up to {}",
     lambda: (f"{HALF:g}", listed([math.log(HALF)], ".2f"), listed([100 * math.log(HALF)], ".1f"))),
    ("If three tokens had probabilities of {}, the perplexity is {}",
     lambda: (listed(TRIPLE), f"{perplexity(TRIPLE):.0f}")),
    ("has a perplexity of {}, one choice for each row", lambda: config(QWEN).vocab_size),
    ("The model smollm2-135m has a perplexity of {} on *The sun rises in the east and sets in the west.*, and of "
     "about {} on the same words in reverse order",
     lambda: (f"{of_text(SUN):.1f}", round(of_text(BACKWARDS) / 100) * 100)),
    ("*west* at the end gets a probability of {}, as the pattern leaves little else",
     lambda: f"{chance_of_last(SUN_OPEN):.2f}"),
    ("The sentence *{}* is {} tokens for qwen2.5-coder-0.5b and {} for smollm2-135m",
     lambda: (VIETNAMESE, count(QWEN, VIETNAMESE), count(SMOL, VIETNAMESE))),
    ("A page of {} tokens contains {} such exercises", lambda: (PAGE, PAGE - 1)),
    ("A probability of {} costs {}, one of {} costs {}",
     lambda: (f"{SURE:g}", f"{-math.log(SURE):.2f}", f"{UNSURE:g}", f"{-math.log(UNSURE):.2f}")),
    ("the loss of a model with the vocabulary of qwen2.5-coder-0.5b is near {}, the logarithm of {}",
     lambda: (f"{math.log(config(QWEN).vocab_size):.1f}", config(QWEN).vocab_size)),
    ("With a learning rate of {} the weight is {} after ten steps, well on its way to zero; with {} it is {}",
     lambda: (f"{SLOW:g}", f"{descend(SLOW):.2f}", f"{FAST:g}", f"{descend(FAST):.1f}")),
    ("a batch of {} is {} times steadier than one text, not {} times",
     lambda: (BATCH, f"{math.sqrt(BATCH):.0f}", BATCH)),
    ("four float32 numbers of {} bytes stand where one stood: {} GB for qwen2.5-coder-0.5b instead of {} GB",
     lambda: (FLOAT_BYTES, f"{4 * FLOAT_BYTES * total(QWEN) / 1e9:.1f}", f"{FLOAT_BYTES * total(QWEN) / 1e9:.1f}")),
    ("The article *From model to application* asked a model of half a billion parameters for {} times {} and "
     "reports the fluent answer {}; the product is {}",
     lambda: (factors()[0], factors()[1], quoted(ARTICLE, "6,888,032"), math.prod(map(int, factors())))),
    ("After *The capital of Australia is*, smollm2-135m gives *{}* a probability of {} and *{}* one of {}",
     lambda: (best(AUSTRALIA), f"{chance(AUSTRALIA):.2f}", best(AUSTRALIA, 1), f"{chance(AUSTRALIA, 1):.2f}")),
    ("The model qwen2.5-coder-1.5b has {} parameters, {} times as many as qwen2.5-coder-0.5b",
     lambda: (entry("qwen2.5-coder-1.5b")["parameters"],
              f"{entry('qwen2.5-coder-1.5b')['parameters'] / entry(QWEN)['parameters']:.1f}")),
    ("{} weights; a block keeps one scale in float16 and a whole number of {} bits for each weight, {} bytes in "
     "all, or {} bytes per weight",
     lambda: (block("Q8_0")[0], 8 * (block("Q8_0")[1] - 2) // block("Q8_0")[0], block("Q8_0")[1],
              f"{per_weight('Q8_0'):.4f}")),
    ("Against {} bytes in float32 such weights take {} times less room",
     lambda: (FLOAT_BYTES, f"{FLOAT_BYTES / per_weight('Q8_0'):.2f}")),
    ("{}, the largest whole number that the bits can hold", lambda: INT8),
    ("If the largest weight is {}, the scale is {}; a weight of {} becomes the whole number {} and is read back "
     "as {}",
     lambda: (f"{LARGEST:g}", f"{LARGEST / INT8:g}", f"{WEIGHT:g}", steps(WEIGHT),
              f"{steps(WEIGHT) * LARGEST / INT8:g}")),
    ("{} levels per weight", lambda: 2 ** BITS["Q4_1"]),
    ("A block of {} weights takes {} bytes, {} bits per weight",
     lambda: (block("Q4_1")[0], block("Q4_1")[1], f"{8 * per_weight('Q4_1'):g}")),
    ("With the finer embedding the whole file comes to {} bytes, {} times less than the {} of float32 weights",
     lambda: (entry(SMOL)["file_bytes"], f"{FLOAT_BYTES * total(SMOL) / entry(SMOL)['file_bytes']:.1f}",
              FLOAT_BYTES * total(SMOL))),
    ("{} bytes, and qwen2.5-coder-0.5b grows from {} to {} MB",
     lambda: (FLOAT_BYTES, f"{entry(QWEN)['file_bytes'] / 1e6:.0f}", round(FLOAT_BYTES * total(QWEN) / 1e6))),
    ("the model appears to have {} parameters too many", lambda: parameters(QWEN, "embed")),
    ("vectors of {} numbers with {} layers and {} parameters",
     lambda: (minilm_width(), minilm_layers(), entry("minilm")["parameters"])),
    ("Three token vectors ({}), ({}) and ({}) have the mean ({})",
     lambda: tuple(map(point, [*TOKENS, mean(TOKENS)]))),
    ("becomes ({})", lambda: point(unit(mean(TOKENS)), ".2f")),
    ("The sentence model minilm reads at most {} tokens of a text, although its table of positions has room for {}",
     lambda: (LIMIT, BertConfig().max_position_embeddings)),
    ("A vector of {} float32 numbers takes {} bytes, so a hundred thousand paragraphs fit into {} MB",
     lambda: (minilm_width(), FLOAT_BYTES * minilm_width(), f"{FLOAT_BYTES * minilm_width() * 1e5 / 1e6:.0f}")),
]
