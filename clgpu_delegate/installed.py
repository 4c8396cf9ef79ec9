"""Finds the installed package where Python has found the source folder in its place.

Python looks into the current folder first. In a clone, ``import clgpu_delegate`` therefore finds
the sources, beside which no compiled extension lies once ``pip install .`` has put it elsewhere.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

_NAME = "clgpu_delegate"


def folder_of_another_copy() -> str | None:
    """The folder of an installed copy, where this one has no compiled extension and that one has.

    Import hooks count: an editable install takes this folder's modules and its own extension.
    """
    if find_spec(f"{_NAME}._core") is not None:
        return None
    here = Path(__file__).resolve().parent
    for entry in sys.path:
        folder = Path(entry, _NAME)
        extensions = (folder / f"_core{suffix}" for suffix in EXTENSION_SUFFIXES)
        is_package = (folder / "__init__.py").is_file() and any(e.is_file() for e in extensions)
        if is_package and folder.resolve() != here:
            return str(folder)
    return None
