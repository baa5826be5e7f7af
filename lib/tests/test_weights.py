"""The stream writer of safetensors files: the library's own reader finds what was written, at aligned places."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from lib.machinery import weights
from lib.machinery.weights import Weight, by_rows, header, write_weights
from lib.tests import sources


def weight_of(name: str, values: np.ndarray) -> Weight:
    rows = values.reshape(-1, values.shape[-1])
    return Weight(name, values.shape, by_rows(len(rows), values.shape[-1], lambda start, stop: rows[start:stop]))


def test_what_is_written_is_read_back_in_order_and_hashed(tmp_path):
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.float32([np.nan, -0.0, np.inf]),
              "ü": np.ones((1, 1, 1), np.float32)}
    told = []
    path = tmp_path / "w.safetensors"
    digest = write_weights(path, [weight_of(name, values) for name, values in arrays.items()], told.append)
    assert digest == sources.digest(path)
    assert sum(told) == path.stat().st_size
    with safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt"}
        assert {name: file.get_tensor(name).tobytes() for name in file.keys()} == {
            name: values.tobytes() for name, values in arrays.items()}


@settings(deadline=None, max_examples=50, derandomize=True, database=None)
@given(st.lists(st.text(min_size=1, max_size=30), max_size=6, unique=True))
def test_values_begin_at_a_multiple_of_64(names):
    assert len(header([Weight(name, (3,), []) for name in names])) % 64 == 0


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_the_bytes_do_not_depend_on_the_chunks(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(weights, "CHUNK", chunk)
    values = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    write_weights(tmp_path / "w", [weight_of("x", values)])
    assert (tmp_path / "w").read_bytes().endswith(values.tobytes())


def test_too_few_values_are_noticed(tmp_path):
    short = Weight("x", (4,), [lambda: np.zeros(3, np.float32)])
    with pytest.raises(ValueError, match="x: 3 values"):
        write_weights(tmp_path / "w", [short])


def test_a_failing_part_is_not_swallowed(tmp_path):
    def fail():
        raise RuntimeError("no")
    with pytest.raises(RuntimeError, match="no"):
        write_weights(tmp_path / "w", [Weight("x", (1,), [fail])])
