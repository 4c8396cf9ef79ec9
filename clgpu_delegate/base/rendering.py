"""What rich renders, as text."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

WIDTH = 100  # columns

# Unicode's categories of control and format characters, surrogates, and separators of lines and
# paragraphs: terminals interpret or hide them, or reverse the text.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


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


def printable(text: str, keep: str = "") -> str:
    r"""The text with escapes such as ``\x1b`` for characters that a terminal would interpret.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters to leave as they are; without ``"\n"`` the result is one line.
    """
    return text if text.isprintable() else "".join(_escaped(c, keep) for c in text)


def one_line(text: object) -> str:
    """A text, such as an exception of a runtime, as one line that is safe to print."""
    return printable(" ".join(str(text).split()))


def _escaped(character: str, keep: str) -> str:
    if character in keep or unicodedata.category(character) not in _UNPRINTABLE:
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def as_text(what: Any, width: int = WIDTH) -> str:
    """Lines without colours and without blanks at their ends."""
    console = SafeConsole(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().strip().splitlines())


class Shown:
    """A result that a notebook shows like ``str()``: tables in a fixed-width font, in colour."""

    def _repr_html_(self) -> str:
        return as_html(self)


def as_html(what: Any, width: int = WIDTH) -> str:
    """What rich renders, or the text of anything else, as HTML that loads nothing."""
    console = SafeConsole(file=io.StringIO(), width=width, record=True, force_jupyter=False)
    console.print(what if hasattr(what, "__rich__") else str(what), highlight=False)
    return console.export_html(
        inline_styles=True,
        code_format='<pre style="line-height: 1.2; overflow-x: auto">{code}</pre>',
    )


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
