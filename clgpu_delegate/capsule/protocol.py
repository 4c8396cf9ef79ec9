"""Messages between a process and its worker: JSON and arrays, but no code."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from clgpu_delegate.base.number_types import named
from clgpu_delegate.tflite.graph import Array

_HEAD = struct.Struct("<QQ")  # bytes of the JSON, bytes of the arrays
_MOST = 1 << 36


def send(stream: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a message; the arrays are of numbers, booleans or bytes, never of objects."""
    layout = [(name, a.dtype.str, a.shape) for name, a in arrays.items()]
    text = json.dumps({"message": message, "arrays": layout}).encode()
    stream.write(_HEAD.pack(len(text), sum(a.nbytes for a in arrays.values())))
    stream.write(text)
    for array in arrays.values():
        stream.write(np.ascontiguousarray(array).tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a message; EOFError where the stream ends."""
    text_bytes, array_bytes = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if text_bytes + array_bytes > _MOST:
        raise EOFError
    data = json.loads(_exactly(stream, text_bytes))
    arrays = {}
    for name, dtype, shape in data["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        kind = named(dtype)
        content = _exactly(stream, count * kind.itemsize)
        arrays[name] = np.frombuffer(content, kind).reshape(shape)
    return data["message"], arrays


def numbered(arrays: Any, prefix: str) -> dict[str, Array]:
    """Arrays by names that keep their order."""
    return {f"{prefix}{i}": a for i, a in enumerate(arrays)}


def in_order(arrays: Mapping[str, Array], prefix: str) -> list[Array]:
    """The inverse of `numbered`."""
    found: list[Array] = []
    while f"{prefix}{len(found)}" in arrays:
        found.append(arrays[f"{prefix}{len(found)}"])
    return found


def _exactly(stream: BinaryIO, count: int) -> bytes:
    content = stream.read(count)
    if len(content) != count:
        raise EOFError
    return content
