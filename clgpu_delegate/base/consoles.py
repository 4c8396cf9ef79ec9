"""Printing with rich, which the library does not need and the commands do."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from clgpu_delegate.base.characters import printable


class SafeConsole(Console):
    """A console that prints untrusted text safely.

    Names in models and messages of drivers may contain terminal commands and Rich's markup. This
    console prints markup as text, and escapes all characters that `printable` escapes.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of a renderable, without control characters other than line ends."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(printable(segment.text, keep="\n"), segment.style)


def as_html(what: Any, width: int, code_format: str) -> str:
    """What rich renders, or the text of anything else, as HTML that loads nothing.

    Parameters
    ----------
    what
        Anything.
    width
        Columns.
    code_format
        As in ``Console.export_html``.
    """
    console = SafeConsole(file=io.StringIO(), width=width, record=True, force_jupyter=False)
    console.print(what if hasattr(what, "__rich__") else str(what), highlight=False)
    return console.export_html(inline_styles=True, code_format=code_format)
