"""LiteRT's Python package, and the library of this package that it loads."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import Any

from clgpu_delegate import _core
from clgpu_delegate.errors import FileError, RuntimeNotFoundError

LIBRARY = "libLiteRtGpuAccelerator.so"  # the first name that LiteRT looks for
OLDEST = (2, 2)
NEWEST = (2, 3)  # that the tests have run with

_INSTALL = "install LiteRT with: pip install 'ai-edge-litert>=2.3'"


def accelerator() -> Path:
    """The library that LiteRT loads; a FileError where the build has none."""
    path = Path(_core.__file__).resolve().with_name(LIBRARY)
    if not path.is_file():
        raise FileError(f"{path} is missing; install clgpu_delegate again")
    return path


def folder() -> Path:
    """The folder of the package ``ai_edge_litert``; a RuntimeNotFoundError where there is none."""
    spec = importlib.util.find_spec("ai_edge_litert")
    if spec is None or spec.origin is None:
        raise RuntimeNotFoundError(f"ai_edge_litert is not installed; {_INSTALL}")
    return Path(spec.origin).parent


def version() -> str:
    """The version of the package; empty if it is unknown."""
    try:
        return importlib.metadata.version("ai-edge-litert")
    except importlib.metadata.PackageNotFoundError:
        return ""


def support(text: str) -> str:
    """Whether a version can use the accelerator: `LiteRtSwitch.support`, but for "absent"."""
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        return "unknown"
    numbers = int(found[1]), int(found[2])
    if numbers < OLDEST:
        return "unsupported"
    return "tested" if numbers <= NEWEST else "untested"


def problem(text: str) -> str:
    """Why a version cannot use the accelerator; empty for those that can, and for unknown ones."""
    if support(text) != "unsupported":
        return ""
    return f"LiteRT {text} has another accelerator interface; supported: 2.2 and later"


def doubt(text: str) -> str:
    """A warning about an untested version that is not refused; empty for the others."""
    if support(text) != "untested":
        return ""
    return f"LiteRT {text} is newer than those that were tested (up to {NEWEST[0]}.{NEWEST[1]})"


def environment_class() -> Any:
    """LiteRT's class ``Environment``; a RuntimeNotFoundError where it is missing or too old."""
    folder()
    obstacle = problem(version())
    if obstacle:
        raise RuntimeNotFoundError(f"{obstacle}; {_INSTALL}")
    try:
        return importlib.import_module("ai_edge_litert.environment").Environment
    except ImportError as error:
        raise RuntimeNotFoundError(
            f"ai_edge_litert.environment cannot be imported: {error}; {_INSTALL}"
        ) from None
