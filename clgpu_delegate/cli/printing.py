"""What the commands print."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rich.markup import escape

from clgpu_delegate.base.characters import printable
from clgpu_delegate.base.consoles import SafeConsole

_PIPE_WIDTH = 120  # pipes have no width, which would wrap tables; terminals have one


class _Console(SafeConsole):
    def on_broken_pipe(self) -> NoReturn:  # rich would end the process
        raise BrokenPipeError


def rich_console() -> SafeConsole:
    """The console for what rich can render."""
    console = _Console()
    return console if console.is_terminal else _Console(width=_PIPE_WIDTH)


def print_rich(what: Any) -> None:
    """Print what rich can render; to files and pipes without blanks at the ends of lines."""
    print_by(lambda console: console.print(what))


def print_by(show: Callable[[SafeConsole], object]) -> None:
    """Print what prints itself to a console; the same for files and pipes."""
    console = rich_console()
    if console.is_terminal:
        show(console)
    else:
        with console.capture() as shown:  # tables of the commands are rich's own
            show(console)
        lines = shown.get().strip("\n").splitlines()
        print("\n".join(line.rstrip() for line in lines))


def print_text(text: str) -> None:
    """Print lines that may contain text from a model, a capsule or a driver."""
    print(printable(text, keep="\n"))


def print_json(data: Any) -> None:
    """Print plain data as JSON, which has no numbers that are not finite: null stands for them."""
    print(json.dumps(_finite(data), indent=2, allow_nan=False))


def count(number: int, noun: str) -> str:
    """A number and a noun that agree: ``1 row``, ``2 rows``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def paragraphs(*lines: str) -> str:
    """Lines of a help text, which Typer would join."""
    return "\n\n".join(map(escape, lines))


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
