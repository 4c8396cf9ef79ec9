"""The file format: a zip with a few known members, read as untrusted input."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from clgpu_delegate.base.number_types import kind_of, named
from clgpu_delegate.errors import FileError, ModelError
from clgpu_delegate.tflite.graph import Array

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
# A zip may unpack to a thousand times its size. A file is read only if all its members together
# have at most this many bytes, or at most this multiple of the file's size.
_SMALL_BYTES = 256 << 20
_MOST_GROWTH = 32
_CHUNK = 1 << 20
_LONGEST_HEADER = 4096  # of an array; Python's parser is slow for malicious ones
_NPY = b"\x93NUMPY"
# Not the newline.
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(members: Mapping[str, bytes], manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a file: the same for the same members."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    head = to_json({"format": FORMAT, **manifest, "files": dict(sorted(hashes.items()))})
    out = io.BytesIO()
    everything = [(MANIFEST, head), *sorted(members.items())]
    _write(out, everything, zipfile.ZIP_DEFLATED)
    if sum(len(content) for _, content in everything) > _most_bytes(out.tell()):
        # For example only zeros. Data that would look like a zip bomb is not compressed.
        out.seek(0)
        out.truncate()
        _write(out, everything, zipfile.ZIP_STORED)
    return out.getvalue()


def _write(out: io.BytesIO, members: list[tuple[str, bytes]], compression: int) -> None:
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = compression
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)


def _most_bytes(size: int) -> int:
    """The most bytes that a file of a size may unpack to."""
    return min(_MOST_BYTES, max(_SMALL_BYTES, _MOST_GROWTH * size))


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
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise FileError(f"cannot read the capsule {name}: it is not a regular file")
        file = Path(path).open("rb")  # noqa: SIM115  # closed below, where other errors are handled
    except OSError as error:
        raise FileError(f"cannot read the capsule {name}: {error.strerror}") from None
    try:
        with file:
            return _unpack(file, _most_bytes(status.st_size))
    except ModelError as error:
        raise ModelError(f"{name} {error}") from None
    except Exception:  # any error of zipfile, zlib and json
        raise ModelError(f"{name} is not a capsule, or is damaged") from None


def _unpack(file: BinaryIO, most_bytes: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if MANIFEST not in names:
            raise ModelError("is not a capsule: it has no manifest")
        if len(infos) > _MOST_MEMBERS or len(set(names)) < len(names):
            raise ModelError("is not a capsule: it has too many members, or duplicate ones")
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
                continue  # unlisted members are ignored
            total += info.file_size
            if total > most_bytes:
                raise ModelError(
                    f"is not read: it unpacks to more than {most_bytes >> 20} MiB, the limit for "
                    "a file of its size"
                )
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
        raise ModelError(f"is not a capsule: {info.filename[:80]!r} is not a member of capsules")
    if info.file_size > limit:
        raise ModelError(f"is not a capsule: {info.filename!r} has more than {limit >> 20} MiB")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # `zipfile` unpacks the others without a bound.
        raise ModelError(
            f"is not a capsule: {info.filename!r} has another compression than in capsules"
        )
    # The size in the directory may be wrong, so the bytes are counted, and no more are read.
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(_CHUNK):
            content += chunk
            if len(content) > info.file_size:
                break
    if len(content) != info.file_size:
        raise ModelError(f"is damaged: the size of {info.filename!r} differs from the directory")
    return bytes(content)


def to_json(data: Any) -> bytes:
    """Plain data as text that people can read, too."""
    return (json.dumps(_plain(data), indent=1, sort_keys=False) + "\n").encode()


def from_json(content: bytes) -> Any:
    """The inverse; ValueError for anything else."""
    return json.loads(content.decode("utf-8"))


def without_controls(data: Any) -> Any:
    """Plain data without control characters for terminals."""
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
            if sum(info.file_size for info in archive.infolist()) > len(content):
                raise ModelError("is damaged: its arrays overlap")
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(content):
                    raise ModelError("is damaged: its arrays are not as they were written")
                arrays[info.filename.removesuffix(".npy")] = _array(archive.read(info))
    except (zipfile.BadZipFile, ValueError, EOFError, SyntaxError, TypeError, KeyError,
            struct.error, NotImplementedError, RuntimeError, IndexError,
            MemoryError) as error:  # fmt: skip
        if isinstance(error, ModelError):
            raise
        raise ModelError("is damaged: its arrays cannot be read") from None
    return arrays


def _array(content: bytes) -> Array:
    """An array whose header is checked against the number of its bytes."""
    if content[:6] != _NPY or content[6] not in (1, 2):
        raise ValueError
    width = 2 if content[6] == 1 else 4
    start = 8 + width + int.from_bytes(content[8 : 8 + width], "little")
    if start > _LONGEST_HEADER:
        raise ValueError
    header = ast.literal_eval(content[8 + width : start].decode("latin1"))
    dtype = named(header["descr"])
    shape = tuple(int(extent) for extent in header["shape"])
    if kind_of(dtype) not in "fiubcS" or header["fortran_order"] or min(shape, default=0) < 0:
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
