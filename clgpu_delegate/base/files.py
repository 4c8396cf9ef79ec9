"""Reading models with checks, and writing files completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.errors import FileError, ModelError

Source = Union[str, "os.PathLike[str]", bytes]


def read_model(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a .tflite file.

    Raises
    ------
    FileError
        If it cannot be read.
    ModelError
        If it is not a model, or not a complete one.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read the model {os.fspath(path)}: {error.strerror}") from None
    return check_model(content, os.fspath(path))


def read_content(model: Source) -> bytes:
    """The bytes of a model given by path or as bytes; errors as `read_model`."""
    if isinstance(model, (bytes, bytearray)):
        return check_model(bytes(model), f"this value of {len(model)} bytes")
    return read_model(model)


def check_model(content: bytes, name: str) -> bytes:
    """The same bytes; a ModelError if they are no model, or a runtime would read past the end."""
    if content[4:8] != b"TFL3":
        raise ModelError(f"{name} is not a .tflite model: it lacks the mark TFL3")
    problem = _core.model_file_problem(content)
    if problem:
        raise ModelError(f"{name} is not a complete .tflite model: {problem}")
    problem = _core.model_operands_problem(content)
    if problem:
        raise ModelError(f"{name} is damaged: {problem}")
    return content


def read_arrays(path: str | os.PathLike[str]) -> Any:
    """The array of a .npy file, or a dict of those of a .npz file; a FileError if it is neither."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:  # of the operating system, of zip, of pickle
        reason = getattr(error, "strerror", None) or "it is not a .npy or .npz file of numbers"
        raise FileError(f"cannot read the arrays {os.fspath(path)}: {reason}") from None


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write a .npz file; see `write_atomically`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # savez() has arguments with other meanings
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def check_writable(out: str | os.PathLike[str]) -> Path:
    """Return the path to write to; raises a FileError before the work if it cannot be written."""
    path = Path(out)
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder")
    if _is_special(path):
        if not os.access(path, os.W_OK):
            raise FileError(f"cannot write {path}: no permission to write to it")
        return path
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"cannot write {path}: no permission to write to {path.parent}")
    return path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file as a whole or not at all; an old one stays until then. Raises FileError.

    A pipe or a device, such as /dev/stdout, is written to, not replaced.
    """
    path = Path(path)
    temporary: Path | None = None
    try:
        if _is_special(path):
            path.write_bytes(content)
            return
        # Not `tempfile`, whose files only their owner may read. The kernel applies the umask, which
        # a process cannot read without changing it for all threads. Mode "x" follows no link.
        unused = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        with unused.open("xb") as file:
            temporary = unused
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()
