"""The file that keeps tuned choices and compiled programs from process to process."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

import platformdirs

from clgpu_delegate import _core


def default_path() -> str:
    """What the option ``cache="auto"`` stands for.

    The environment variable ``CLGPU_CACHE`` (a path or ``off``), else a file in the user's cache
    folder.
    """
    named = os.environ.get("CLGPU_CACHE")
    if named:
        return named if named == "off" else str(Path(named).expanduser())
    return str(platformdirs.user_cache_path("clgpu_delegate", appauthor=False) / "cache.sqlite")


@functools.cache
def find_sqlite() -> None:
    """Tell the core of the SQLite that Python uses, which need not be the system's."""
    module = importlib.util.find_spec("_sqlite3")
    if module is not None and module.origin is not None and Path(module.origin).is_file():
        _core.add_sqlite_library(module.origin)
