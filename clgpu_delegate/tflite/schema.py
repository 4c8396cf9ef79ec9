"""The .tflite format by name, as the package ``tflite`` has it.

Tables of options are read and written through the names of the generated functions, so an
operation or an option that the schema gains needs no change here.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from clgpu_delegate.errors import DependencyError

_ADVICE = "install it with: pip install 'clgpu_delegate[quantize]'"


@functools.cache
def module(name: str) -> Any:
    """Import ``flatbuffers``, ``tflite`` or a module in one of them.

    Raises
    ------
    DependencyError
        If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or name).split(".", maxsplit=1)[0]
        raise DependencyError(
            f"reading .tflite graphs needs the package {package}, which is not installed; {_ADVICE}"
        ) from None


@functools.cache
def enum(name: str) -> dict[str, int]:
    """Names and values of an enum."""
    members = vars(getattr(module(f"tflite.{name}"), name))
    return {key: value for key, value in members.items() if isinstance(value, int)}


@functools.cache
def enum_names(name: str) -> dict[int, str]:
    """Values and names of an enum."""
    return {value: key for key, value in enum(name).items()}


@functools.cache
def _fields(table: str) -> tuple[str, ...]:
    prefix = f"{table}Add"
    return tuple(n[len(prefix) :] for n in vars(module(f"tflite.{table}")) if n.startswith(prefix))


def read_table(table: str, raw: Any) -> dict[str, Any]:
    """Read a table of options.

    Parameters
    ----------
    table
        Its name in the schema.
    raw
        The generic table that stands for it in its union.

    Returns
    -------
    dict
        Fields in camel case: numbers, bytes (strings) and arrays (vectors). A string or a vector
        that is not in the file is left out.
    """
    view = getattr(module(f"tflite.{table}"), table)()
    view.Init(raw.Bytes, raw.Pos)
    values: dict[str, Any] = {}
    for field in _fields(table):
        as_array = getattr(view, f"{field}AsNumpy", None)
        value = as_array() if as_array else getattr(view, field)()
        if value is None or (as_array and not isinstance(value, np.ndarray)):
            continue
        values[field] = value
    return values


def write_table(builder: Any, table: str, values: dict[str, Any]) -> int:
    """Write a table that `read_table` has read, and return its offset; no table may be open."""
    functions = module(f"tflite.{table}")
    stored = {}
    for field, value in values.items():
        if isinstance(value, np.ndarray):
            stored[field] = builder.CreateNumpyVector(value)
        elif isinstance(value, bytes):
            stored[field] = builder.CreateString(value)
        else:
            stored[field] = value
    getattr(functions, f"{table}Start")(builder)
    for field, value in stored.items():
        getattr(functions, f"{table}Add{field}")(builder, value)
    return int(getattr(functions, f"{table}End")(builder))
