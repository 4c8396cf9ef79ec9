"""Types of numbers: bfloat16 is none of NumPy's own, which calls its kind "V", plain bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

_NAME = "bfloat16"
_FILE = "<V2"  # how .npy files and `dtype.str` name it


def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of a type as NumPy has it, such as ``"f"``; bfloat16 is a float, too."""
    return "f" if dtype.name == _NAME else dtype.kind


def named(text: str) -> np.dtype[Any]:
    """The inverse of ``dtype.str``, also of bfloat16; there is no other type of two plain bytes.

    Raises
    ------
    TypeError
        If there is no such type.
    """
    if text != _FILE:
        return np.dtype(text)
    try:
        import ml_dtypes  # noqa: PLC0415  # only models with bfloat16 need it
    except ImportError:
        raise TypeError("bfloat16 needs the package ml_dtypes, which is not installed") from None
    return np.dtype(ml_dtypes.bfloat16)
