"""Models in, models out."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Union

from clgpu_delegate.comparison import read_model
from clgpu_delegate.errors import ClgpuError, QuantizationError

Source = Union[str, "os.PathLike[str]", bytes]


def read_content(model: Source) -> bytes:
    """The bytes of a model given by path or as bytes; a ClgpuError if the file is none."""
    return bytes(model) if isinstance(model, (bytes, bytearray)) else read_model(model)


def check_writable(out: str | os.PathLike[str]) -> Path:
    """Return where to write; an error now, rather than after the work, if that cannot be."""
    path = Path(out)
    if path.is_dir():
        raise QuantizationError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise QuantizationError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise QuantizationError(f"cannot write {path}: no right to write to {path.parent}")
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file such that nobody ever sees a part of it; an old one stays until then."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        raise ClgpuError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
