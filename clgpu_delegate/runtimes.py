"""Finding a TensorFlow Lite runtime to run models with."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from typing import Any, Literal, NamedTuple

import numpy as np

from clgpu_delegate.errors import RuntimeNotFoundError

RuntimeName = Literal["ai_edge_litert", "tflite_runtime", "tensorflow"]

# Name -> module with Interpreter, the preferred one first.
_MODULES: dict[RuntimeName, str] = {
    "ai_edge_litert": "ai_edge_litert.interpreter",
    "tflite_runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite",
}
NAMES: tuple[RuntimeName, ...] = tuple(_MODULES)


class Runtime(NamedTuple):
    """A TensorFlow Lite runtime."""

    name: str
    version: str
    module: Any
    """Has ``Interpreter`` and, in the two small packages, ``load_delegate``."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find_runtime(name: str | None = None) -> Runtime:
    """Import a runtime.

    Parameters
    ----------
    name
        ``"ai_edge_litert"``, ``"tflite_runtime"`` or ``"tensorflow"``; None for the first of these
        that is installed and works.

    Raises
    ------
    RuntimeNotFoundError
        If there is none; the message says what to install.
    """
    if name is not None and name not in _MODULES:
        raise RuntimeNotFoundError(f"unknown runtime {name!r}; runtimes are: {', '.join(_MODULES)}")
    failures = []
    for package in [name] if name else _MODULES:
        failure = _obstacle(package)
        if failure is None:
            try:
                module = importlib.import_module(_MODULES[package])
            except ImportError as error:
                failure = f"cannot be imported: {error}"
            else:
                return Runtime(package, _version(package), module)
        failures.append(f"{package} {failure}")
    raise RuntimeNotFoundError(
        f"no TensorFlow Lite runtime was found ({'; '.join(failures)}); "
        f"install one with: {_advice()}"
    )


def _obstacle(name: str) -> str | None:
    if importlib.util.find_spec(name) is None:
        return "is not installed"
    if name == "tflite_runtime" and int(np.__version__.split(".", maxsplit=1)[0]) >= 2:
        return f"needs numpy<2 and numpy is {np.__version__}"
    return None


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(name), "__version__", ""))


def _advice() -> str:
    advice = []
    if sys.version_info >= (3, 10):
        advice.append("pip install 'clgpu_delegate[litert]'")
    if sys.version_info < (3, 12):
        advice.append("pip install 'clgpu_delegate[tflite]'")
    return " or ".join(advice)
