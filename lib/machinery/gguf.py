"""Reads the header of a GGUF file: its metadata, and where each tensor lies; the values stay on disk.

The layout is ggml's docs/gguf.md: magic, version, counts, key-value pairs, tensor table, padding, data.
"""
from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

VERSIONS = (2, 3)
ALIGNMENT = 32  # of the data, where the metadata does not say otherwise
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
DAMAGE = (struct.error, IndexError, UnicodeDecodeError, KeyError, TypeError, OverflowError, MemoryError,
          ZeroDivisionError, RecursionError)  # what reading a damaged header can end in


class Tensor(NamedTuple):
    """One tensor of the file: its shape in torch's order, its ggml type, and its bytes from the file's start."""

    name: str
    shape: tuple[int, ...]
    type: GGMLQuantizationType
    offset: int
    nbytes: int


class Header(NamedTuple):
    """What stands before the values of a GGUF file."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]

    def rows(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The stored bytes of the tensor's rows from `start` up to `stop`, a row of the matrix per row.

        A read-only view of the file; its memory is given back with it.
        """
        tensor = self.tensors[name]
        count = prod(tensor.shape[:-1])
        width = tensor.nbytes // count
        stop = count if stop is None else min(stop, count)
        return np.memmap(self.path, np.uint8, "r", tensor.offset + start * width, (stop - start, width))


def read_header(path: Path) -> Header:
    """The header of the GGUF file at `path`; ValueError where it is no GGUF file, or cut short."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as blob:
            metadata, tensors = _Cursor(blob).header()
            size = len(blob)
    except DAMAGE as error:
        raise ValueError(f"{path} is cut short or damaged: its header cannot be read ({error}).") from error
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a GGUF file: {error}") from error
    for tensor in tensors.values():
        if tensor.offset + tensor.nbytes > size:
            raise ValueError(f"{path} is cut short: {tensor.name} ends after the file's {size:,} bytes.")
    return Header(Path(path), metadata, tensors)


class _Cursor:
    """A position in the header that moves forward as values are read."""

    def __init__(self, blob: mmap.mmap) -> None:
        self.blob, self.at = blob, 0

    def header(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Metadata and tensors of the whole header."""
        if self.blob[:4] != b"GGUF":
            raise ValueError("it does not begin with the four letters GGUF.")
        self.at = 4
        version, tensors, pairs = self.unpack("IQQ")
        if version not in VERSIONS:
            raise ValueError(f"it is of version {version}; versions 2 and 3 are known.")
        metadata = dict(self.pair() for _ in range(pairs))
        return metadata, self.table(tensors, metadata.get("general.alignment", ALIGNMENT))

    def unpack(self, form: str) -> tuple:
        """The next values, little-endian and unpadded."""
        values = struct.unpack_from("<" + form, self.blob, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def string(self) -> str:
        """The next string: its length in 8 bytes, then UTF-8."""
        start = self.at + 8
        end = start + int.from_bytes(self.blob[self.at:start], "little")
        if end > len(self.blob):
            raise IndexError("a text runs past the file's end")
        self.at = end
        return self.blob[start:end].decode()

    def pair(self) -> tuple[str, Any]:
        """The next key and its value."""
        key = self.string()
        return key, self.value(*self.unpack("I"))

    def value(self, kind: int) -> Any:
        """The next value of the type `kind`."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.unpack("IQ")
            return self.array(element, count)
        return self.unpack(SCALARS[kind])[0]

    def array(self, element: int, count: int) -> list:
        """The next `count` values of one type."""
        if count > len(self.blob):
            raise IndexError("a list runs past the file's end")
        if element in SCALARS:
            return list(self.unpack(f"{count}{SCALARS[element]}"))
        read: Callable[[], Any] = self.string if element == STRING else lambda: self.value(element)
        return [read() for _ in range(count)]

    def table(self, count: int, alignment: int) -> dict[str, Tensor]:
        """The tensor table; offsets are made absolute by adding where the aligned data begins."""
        entries = [self.entry() for _ in range(count)]
        start = -(-self.at // alignment) * alignment
        return {entry.name: entry._replace(offset=start + entry.offset) for entry in entries}

    def entry(self) -> Tensor:
        """The next row of the tensor table; its offset counts from the beginning of the data."""
        name = self.string()
        shape = self.unpack(f"{self.unpack('I')[0]}Q")[::-1]  # ggml names the fastest dimension first
        kind, offset = self.unpack("IQ")
        return Tensor(name, shape, GGMLQuantizationType(kind), offset, _size(name, shape, kind))


def _size(name: str, shape: tuple[int, ...], kind: int) -> int:
    """How many bytes a tensor of this shape and type takes."""
    block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    if not shape or shape[-1] % block:
        raise ValueError(f"the rows of {name}, {shape}, are no multiple of its block of {block} values.")
    return prod(shape) // block * block_bytes
