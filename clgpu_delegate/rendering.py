"""What rich renders, as text."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

WIDTH = 100  # columns


def as_text(what: Any, width: int = WIDTH) -> str:
    """Lines without colours and without blanks at their ends."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().strip().splitlines())
