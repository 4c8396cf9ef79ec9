"""What rich renders, as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console

WIDTH = 100  # columns


def as_text(what: Any, width: int = WIDTH) -> str:
    """Lines without colours and without blanks at their ends."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().strip().splitlines())


def size(count: float) -> str:
    """Bytes in a unit that people can read."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def extents(shape: Sequence[int]) -> str:
    """A shape, as ``1x28x28x6``."""
    return "x".join(map(str, shape)) or "scalar"
