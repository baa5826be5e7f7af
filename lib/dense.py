"""Retrieval by meaning: a text becomes a vector of length 1, and vectors close together mean much the same.

The vector is the mean of a model's last layer over the tokens, divided by its length. Two models make it:
all-MiniLM-L6-v2 (`minilm`), for English, and multilingual-e5-small, for a hundred languages, which was trained on
texts that say of themselves whether they are a `query: ` or a `passage: `. A model reads so many tokens and no more;
what is beyond them is left out of the vector, which is counted and said. Each text goes through the network alone, so
that its vector does not depend on what is embedded beside it, and is kept in the cache.
"""
from __future__ import annotations

import hashlib
import os
import unicodedata
import uuid
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib import models
from lib.retrieval import Hit, best, texts, words

WIDTH = 384  # of the vectors of both models


class Encoder(NamedTuple):
    """How a model is used: the most tokens it reads, its own included, and what goes before each kind of text."""
    limit: int
    query: str = ""
    passage: str = ""


ENCODERS = {"minilm": Encoder(256), "multilingual-e5-small": Encoder(512, "query: ", "passage: ")}
MODEL = "minilm"
LIMIT = ENCODERS[MODEL].limit
_RECORD = np.dtype([("left_out", "<i4"), ("vector", "<f4", (WIDTH,))])  # a file of the cache


class TextCut(UserWarning):
    """A text is longer than the model reads, so its end cannot be found."""


class Embedding(NamedTuple):
    """A text's vector (float32, 384 values, length 1), and how many of its tokens had no part in it."""
    vector: np.ndarray
    left_out: int


class Dense:
    """An index of vectors with the `search` of BM25; scores are cosines, from -1 to 1, to six decimals.

    `left_out` has the tokens left out of a document that was too long, by its index; a warning says so too.
    """

    def __init__(self, documents: Iterable[str], model: str = MODEL):
        self.model, limit = model, encoder(model).limit
        documents = texts(documents)
        self.indices = [index for index, document in enumerate(documents) if words(document)]
        embedded = [embed(documents[index], model) for index in self.indices]
        self.matrix = np.array([each.vector for each in embedded], np.float64).reshape(-1, WIDTH)
        self.left_out = {index: each.left_out for index, each in zip(self.indices, embedded, strict=True)
                         if each.left_out}
        if self.left_out:
            warnings.warn(f"{len(self.left_out)} of {len(documents)} documents are longer than {limit} tokens: their "
                          "ends cannot be found (left_out says how many tokens)", TextCut, stacklevel=2)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The k closest documents, best first, ties by index; none for a query without a word."""
        if not words(query):
            return best([], k)
        vector, left_out = embed(query, self.model, "query")
        if left_out:
            warnings.warn(f"the last {left_out} tokens of the query are not looked at", TextCut, stacklevel=2)
        cosines = np.round(self.matrix @ vector.astype(np.float64), 6)  # float32 noise would decide ties
        return best(zip(self.indices, cosines.tolist(), strict=True), k)


def encoder(model: str) -> Encoder:
    """How the embedding model is used; ValueError for a name that is not one of them."""
    if model not in ENCODERS:
        raise ValueError(f"{model!r} makes no vectors; these do: {', '.join(ENCODERS)}")
    return ENCODERS[model]


def embed(text: str, model: str = MODEL, kind: str = "passage") -> Embedding:
    """The embedding of a text (in NFC) of the kind `query` or `passage`, from the cache or else computed.

    Fetches the model where it isn't ready; ValueError for an unknown model or kind.
    """
    text = prefix(model, kind) + unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode("utf-8")
    path = _place(text, model)
    if (kept := _read(path)) is not None:
        return kept
    computed = compute(text, model)
    _keep(path, computed)
    return computed


def prefix(model: str, kind: str) -> str:
    """What the model reads before a text of this kind; ValueError for one that is neither query nor passage."""
    if kind not in ("query", "passage"):
        raise ValueError(f"a text is of the kind query or passage, not {kind!r}")
    return getattr(encoder(model), kind)


def compute(text: str, model: str = MODEL) -> Embedding:
    """The embedding of a text as it stands, by the network; a long one keeps its first tokens and the closing one."""
    import torch

    limit, (tokenizer, network) = encoder(model).limit, _load(model)
    ids = tokenizer.encode(text).ids
    fed = ids if len(ids) <= limit else [*ids[:limit - 1], ids[-1]]
    with torch.inference_mode():
        mean = network(input_ids=torch.tensor([fed])).last_hidden_state[0].mean(dim=0)
        return Embedding((mean / mean.norm()).numpy(), len(ids) - len(fed))


@cache
def _load(model: str) -> tuple:
    """The tokenizer, which cuts and fills up nothing, and the network, in float32 on the CPU."""
    models.make_ready(model)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when transformers is imported, so before that
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModel

    torch.set_num_threads(min(torch.get_num_threads(), models.usable_cores()))
    path = models.folder(model)
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    network = AutoModel.from_pretrained(path, local_files_only=True, dtype=torch.float32, attn_implementation="sdpa",
                                        add_pooling_layer=False)
    return tokenizer, network.eval()


# --- the cache: a file for each text and model ------------------------------

def _place(text: str, model: str = MODEL) -> Path:
    """Where the embedding of a text is kept: by the hash of the model's source, and of the text."""
    source = f"{model}-{models.folder(model).name}-{encoder(model).limit}"
    return models.cache_folder() / "vectors" / source / hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read(path: Path) -> Embedding | None:
    """What a file of the cache holds; None where there is none, or no vector of length 1 in it."""
    try:
        left_out, vector = np.frombuffer(path.read_bytes(), _RECORD).item()
    except (OSError, ValueError):
        return None
    is_sound = np.abs(vector).max() <= 1.001 and abs(np.linalg.norm(vector) - 1) < 1e-4 and left_out >= 0
    return Embedding(np.asarray(vector, np.float32), left_out) if is_sound else None


def _keep(path: Path, embedding: Embedding) -> None:
    """Write a file of the cache, whole or not at all; one that can't be written costs time, and nothing else."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(np.array((embedding.left_out, embedding.vector), _RECORD).tobytes())
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
