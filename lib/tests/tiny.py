"""A byte-level tokenizer and a tiny random network, made in a moment: the real code paths without a real model."""

from __future__ import annotations

from functools import lru_cache

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from lib.generation import Model

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|im_end|>\n"
    "{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@lru_cache
def tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """Every byte is a token; three control tokens, and <tool_call> with its closing tag as plain added tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*CONTROLS, *alphabet]
    backend = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in CONTROLS])
    backend.add_tokens([AddedToken(word, normalized=False) for word in ("<tool_call>", "</tool_call>")])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", chat_template=template)


def model(architecture: str = "qwen2", context: int = 2048, seed: int = 0) -> Model:
    """A random network of two layers over the tiny tokenizer's vocabulary."""
    config, network = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}[
        architecture
    ]
    torch.manual_seed(seed)
    sizes = config(
        vocab_size=len(tokenizer()),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=2,
    )
    sizes._attn_implementation = "sdpa"
    return Model(f"tiny-{architecture}", network(sizes).float().eval(), tokenizer(), (0, 2), context)
