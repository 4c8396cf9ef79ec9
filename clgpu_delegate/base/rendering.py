"""Results and numbers, as people read them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from clgpu_delegate.base.characters import one_line, printable
from clgpu_delegate.base.tables import WIDTH, Block, Fitting, Group, Table, Text

__all__ = [
    "WIDTH", "Block", "Fitting", "Group", "Shown", "Table", "Text", "as_html", "as_text", "extents",
    "one_line", "printable", "size",
]  # fmt: skip

_PAGE = '<pre style="line-height: 1.2; overflow-x: auto">{code}</pre>'


def as_text(what: Any, width: int = WIDTH) -> str:
    """Lines without colours and without blanks at their ends, safe to print.

    Parameters
    ----------
    what
        A text, a table or a group, or a result whose ``__rich__`` is one.
    width
        Columns.
    """
    block: Block | Group = (
        what if isinstance(what, (Text, Table, Fitting, Group)) else what.__rich__()
    )
    return "\n".join(line.rstrip() for line in block.lines(width)).strip("\n")


class Shown:
    """A result that a notebook shows like ``str()``: tables in a fixed-width font.

    They are in colour where rich is installed.
    """

    def _repr_html_(self) -> str:
        return as_html(self)


def as_html(what: Any, width: int = WIDTH) -> str:
    """What `tables` or rich render, or the text of anything else, as HTML that loads nothing."""
    try:
        from clgpu_delegate.base import consoles  # noqa: PLC0415
    except ModuleNotFoundError:  # rich
        return _PAGE.format(code=html.escape(printable(str(what), keep="\n")))
    return consoles.as_html(what, width, _PAGE)


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
