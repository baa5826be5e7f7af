"""The reader of GGUF headers: right on good files, clear on damaged ones, never anything but ValueError."""
import struct

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.machinery.gguf import read_header
from lib.tests import sources


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    sources.write_gguf(path)
    return path


def test_the_metadata_is_what_was_written(tiny):
    metadata = read_header(tiny).metadata
    tokens, types = sources.vocabulary("qwen2")
    assert metadata["general.architecture"] == "qwen2"
    assert metadata["tokenizer.ggml.tokens"] == tokens
    assert metadata["tokenizer.ggml.token_type"] == types
    assert metadata["tokenizer.ggml.merges"] == ["h i", "Ġ hi"]
    assert metadata["qwen2.context_length"] == 128
    assert metadata["qwen2.rope.freq_base"] == 10000.0


def test_tensors_equal_those_of_the_reference_reader(tiny):
    header, reference = read_header(tiny), gguf.GGUFReader(tiny)
    assert list(header.tensors) == [tensor.name for tensor in reference.tensors]
    for expected in reference.tensors:
        tensor = header.tensors[expected.name]
        assert tensor.shape == tuple(int(size) for size in expected.shape[::-1])
        assert (tensor.type, tensor.offset, tensor.nbytes) == (
            expected.tensor_type, expected.data_offset, expected.n_bytes)
        values = dequantize(header.rows(tensor.name), tensor.type).reshape(tensor.shape)
        assert np.array_equal(values, dequantize(expected.data, expected.tensor_type).reshape(tensor.shape))


@pytest.mark.parametrize("kind, form, value", [
    (0, "B", 255), (1, "b", -1), (2, "H", 65535), (3, "h", -2), (4, "I", 7), (5, "i", -7), (6, "f", 0.5),
    (7, "?", True), (10, "Q", 2**63), (11, "q", -(2**62)), (12, "d", 0.1)])
def test_every_type_of_number_is_read(tmp_path, kind, form, value):
    path = tmp_path / "one.gguf"
    path.write_bytes(header_of("k", struct.pack("<I" + form, kind, value)))
    assert read_header(path).metadata == {"k": value}


def test_empty_and_unicode_texts_and_lists_of_lists(tmp_path):
    path = tmp_path / "texts.gguf"
    texts = ["", "Việt", "👩‍👩‍👧"]
    inner = struct.pack("<IQ", 8, len(texts)) + b"".join(text_of(text) for text in texts)
    path.write_bytes(header_of("k", struct.pack("<IIQ", 9, 9, 1) + inner))
    assert read_header(path).metadata == {"k": [texts]}


@pytest.mark.parametrize("content, words", [
    (b"", "cannot be read"),
    (b"GGUF", "cut short"),
    (b"PK\3\4" + b"\0" * 60, "begin with the four letters GGUF"),
    (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 60), "cut short"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "cut short"),
])
def test_what_is_no_gguf_file_is_named_as_such(tmp_path, content, words):
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as error:
        read_header(path)
    assert "odd.gguf" in str(error.value)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(tiny, tmp_path, share):
    path = tmp_path / "cut.gguf"
    data = tiny.read_bytes()
    path.write_bytes(data[:int(len(data) * share)])
    with pytest.raises(ValueError, match="cut short"):
        read_header(path)


@settings(max_examples=200, deadline=None, derandomize=True, database=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), value=st.binary(min_size=1, max_size=8))
def test_a_damaged_header_ends_in_a_header_or_a_value_error(tiny, tmp_path, place, value):
    path = tmp_path / "damaged.gguf"
    data = bytearray(tiny.read_bytes()[:20_000])
    at = int(place * 8_000)
    data[at:at + len(value)] = value
    path.write_bytes(data)
    try:
        read_header(path)
    except ValueError as error:
        assert "damaged.gguf" in str(error)


def header_of(key: str, value: bytes) -> bytes:
    """A file without tensors and with one key."""
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_of(key) + value


def text_of(text: str) -> bytes:
    """A text as GGUF stores it."""
    return struct.pack("<Q", len(text.encode())) + text.encode()
