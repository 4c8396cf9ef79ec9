"""The file format: a zip of few known members, read as what a stranger has sent."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from clgpu_delegate.errors import FileError, ModelError
from clgpu_delegate.quantization.graph import Array

FORMAT = 1

MANIFEST = "manifest.json"
_LIMITS = {  # bytes, unpacked
    MANIFEST: 4 << 20,
    "model.tflite": 2 << 30,
    "inputs.npz": 2 << 30,
    "expected.npz": 2 << 30,
    "got.npz": 2 << 30,
    "options.json": 1 << 20,
    "build_log.txt": 16 << 20,
    "device.json": 4 << 20,
    "explain.json": 64 << 20,
    "memory_map.json": 64 << 20,
    "kernels/programs.json": 16 << 20,
}
_KERNEL_LIMIT = 4 << 20
_MOST_MEMBERS = 1000
_MOST_BYTES = 4 << 30
_NPY = b"\x93NUMPY"
# Not the newline.
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(members: Mapping[str, bytes], manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a file: the same for the same members."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    head = to_json({"format": FORMAT, **manifest, "files": dict(sorted(hashes.items()))})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [(MANIFEST, head), *sorted(members.items())]:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()


def unpack(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and members of a file; nothing is written anywhere.

    Raises
    ------
    FileError
        If it cannot be read.
    ModelError
        If it is no capsule, is damaged, or was written by a newer version of this package.
    """
    name = os.fspath(path)
    try:
        size = Path(path).stat().st_size
        content = Path(path).read_bytes() if size <= _MOST_BYTES else b""
    except OSError as error:
        raise FileError(f"cannot read the capsule {name}: {error.strerror}") from None
    try:
        return _unpack(io.BytesIO(content))
    except ModelError as error:
        raise ModelError(f"{name} {error}") from None
    except Exception:  # whatever zipfile, zlib and json run into
        raise ModelError(f"{name} is not a capsule, or is damaged") from None


def _unpack(file: io.BytesIO) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if MANIFEST not in names:
            raise ModelError("is not a capsule: it has no manifest")
        if len(infos) > _MOST_MEMBERS or len(set(names)) < len(names):
            raise ModelError("is not a capsule: too many members, or some twice")
        manifest = without_controls(from_json(_member(archive, archive.getinfo(MANIFEST))))
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise ModelError("is not a capsule: its manifest has no format")
        if manifest["format"] > FORMAT:
            version = str(manifest.get("package", {}).get("clgpu_delegate", "a newer version"))
            raise ModelError(
                f"is a capsule of format {manifest['format']:d}, and this version of the package "
                f"reads up to {FORMAT}; it was written by clgpu_delegate {version[:40]!r}"
            )
        listed = manifest["files"]
        members, total = {}, 0
        for info in infos:
            if info.filename == MANIFEST or info.filename not in listed:
                continue  # nobody reads what is not listed
            total += info.file_size
            if total > _MOST_BYTES:
                raise ModelError("unpacks to more than a capsule may have")
            content = _member(archive, info)
            if hashlib.sha256(content).hexdigest() != listed[info.filename]:
                raise ModelError(f"is damaged: {info.filename!r} is not what was written")
            members[info.filename] = content
        missing = [name for name in [*listed, "model.tflite", "inputs.npz"] if name not in members]
        if missing:
            raise ModelError(f"is damaged: it lacks {missing[0][:80]!r}")
        return manifest, members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    limit = _LIMITS.get(info.filename)
    if limit is None and info.filename.startswith("kernels/"):
        limit = _KERNEL_LIMIT
    if limit is None:
        raise ModelError(f"is not a capsule: {info.filename[:80]!r} is no part of one")
    with archive.open(info) as member:
        # The size in the directory may lie, so what is read is counted.
        content = member.read(limit + 1)
    if len(content) > limit:
        raise ModelError(f"is not a capsule: {info.filename!r} has more than {limit >> 20} MiB")
    return content


def to_json(data: Any) -> bytes:
    """Plain data as text that people can read, too."""
    return (json.dumps(_plain(data), indent=1, sort_keys=False) + "\n").encode()


def from_json(content: bytes) -> Any:
    """The inverse; ValueError if it is none."""
    return json.loads(content.decode("utf-8"))


def without_controls(data: Any) -> Any:
    """Plain data without characters that would tell a terminal to do something."""
    if isinstance(data, str):
        return _CONTROLS.sub(" ", data)
    if isinstance(data, dict):
        return {without_controls(key): without_controls(value) for key, value in data.items()}
    return [without_controls(item) for item in data] if isinstance(data, list) else data


def to_npz(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as NumPy's own format, not compressed: the capsule is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), content.getvalue())
    return out.getvalue()


def from_npz(content: bytes) -> dict[str, Array]:
    """The inverse of `to_npz`; a ModelError if it is damaged or has anything but plain numbers."""
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(content):
                    raise ModelError("is damaged: its arrays are not as they were written")
                arrays[info.filename.removesuffix(".npy")] = _array(archive.read(info))
    except (zipfile.BadZipFile, ValueError, EOFError, SyntaxError, TypeError, KeyError,
            struct.error, NotImplementedError, RuntimeError, IndexError) as error:  # fmt: skip
        if isinstance(error, ModelError):
            raise
        raise ModelError("is damaged: its arrays cannot be read") from None
    return arrays


def _array(content: bytes) -> Array:
    """An array of which the header is believed only where the bytes bear it out."""
    if content[:6] != _NPY or content[6] not in (1, 2):
        raise ValueError
    width = 2 if content[6] == 1 else 4
    start = 8 + width + int.from_bytes(content[8 : 8 + width], "little")
    if start > 65536:
        raise ValueError
    header = ast.literal_eval(content[8 + width : start].decode("latin1"))
    dtype = np.dtype(header["descr"])
    shape = tuple(int(extent) for extent in header["shape"])
    if dtype.kind not in "fiubcS" or header["fortran_order"] or min(shape, default=0) < 0:
        raise ValueError
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError
    return np.frombuffer(content, dtype, offset=start).reshape(shape)


def _plain(data: Any) -> Any:
    """JSON has no infinities."""
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return data
