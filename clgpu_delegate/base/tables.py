"""Tables and styled lines: as text by themselves, in colour where rich is installed.

The library does not need rich. Its results are made of these, ``str()`` lays them out as text, and
what prints with rich gets rich's own objects of their ``__rich__``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from clgpu_delegate.base.characters import printable

if TYPE_CHECKING:
    import rich.console
    import rich.padding
    import rich.table
    import rich.text

WIDTH = 100  # columns
_GAP = 2  # blanks between columns


class Text:
    """A text whose parts may have styles, as rich names them; text prints without them.

    Parameters
    ----------
    text
        May contain line ends. What a terminal would interpret is printed as an escape.
    style
        Of this part; `append` adds others.
    wrap
        Whether lines may be broken; a command to copy stays in one line.
    indent
        Blanks in front of each line.
    """

    def __init__(
        self, text: str = "", style: str = "", *, wrap: bool = True, indent: int = 0
    ) -> None:
        self.parts = [(text, style)] if text else []
        self.wrap = wrap
        self.indent = indent

    def append(self, text: str, style: str = "") -> Text:
        """Add a part, and return the text itself."""
        self.parts.append((text, style))
        return self

    @property
    def plain(self) -> str:
        """Without styles, safe to print."""
        return "".join(printable(text, keep="\n") for text, _ in self.parts)

    def lines(self, width: int = WIDTH) -> list[str]:
        """Lay it out in lines of so many columns."""
        plain = self.plain
        lines = _wrapped(plain, max(width - self.indent, 1)) if self.wrap else plain.split("\n")
        return [" " * self.indent + line for line in lines]

    def __rich__(self) -> rich.text.Text | rich.padding.Padding:
        from rich.padding import Padding  # noqa: PLC0415
        from rich.text import Text as RichText  # noqa: PLC0415

        text = RichText() if self.wrap else RichText(no_wrap=True, overflow="ignore")
        for part, style in self.parts:
            text.append(printable(part, keep="\n"), style or None)
        return Padding(text, (0, 0, 0, self.indent)) if self.indent else text

    def __str__(self) -> str:
        return self.plain


class _Column(NamedTuple):
    heading: str
    right: bool
    fold: bool
    width: int


class Table:
    """Rows of cells.

    Parameters
    ----------
    head
        Whether headings are shown, and a line below them.
    """

    def __init__(self, *, head: bool = True) -> None:
        self._head = head
        self._columns: list[_Column] = []
        self._rows: list[tuple[list[Text], str]] = []

    def add_column(
        self, heading: str = "", *, right: bool = False, fold: bool = False, width: int = 0
    ) -> None:
        """Add a column.

        Parameters
        ----------
        heading
            Its first line.
        right
            Whether its cells end at its right edge.
        fold
            Whether its cells are broken into lines where the table is too wide.
        width
            Columns of characters that it takes at least.
        """
        self._columns.append(_Column(heading, right, fold, width))

    def add_row(self, *cells: str | Text, style: str = "") -> None:
        """Add a row; columns without a cell are empty."""
        texts = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        self._rows.append((texts, style))

    @property
    def width(self) -> int:
        """Columns of characters that it takes where nothing is folded."""
        rows = [[cell.plain for cell in cells] for cells, _ in self._rows]
        return self._head * 2 + self._total(self._natural(rows))

    def fitting(self, lead: int) -> Fitting:
        """The table, or, where it does not fit, two lines for each row.

        Parameters
        ----------
        lead
            How many cells the first line has; the second one has the others after their headings.
        """
        narrow = []
        for cells, style in self._rows:
            plain = [cell.plain for cell in cells]
            narrow.append(Text(", ".join(filter(None, plain[:lead])), style))
            others = [
                f"{column.heading} {cell.strip()}"
                for column, cell in zip(self._columns[lead:], plain[lead:])
                if cell.strip()
            ]
            if others:
                narrow.append(Text(", ".join(others), style, indent=4))
        return Fitting(self, *narrow, Text())

    def lines(self, width: int = WIDTH) -> list[str]:
        """Lay it out; with headings there is an empty line above and below it.

        It is wider than ``width`` where columns that do not fold are.
        """
        margin = " " * self._head
        rows = [[cell.plain for cell in cells] for cells, _ in self._rows]
        widths = self._widths(rows, width - 2 * len(margin))
        lines = [margin + line for row in rows for line in self._row(row, widths)]
        if not self._head:
            return [line.rstrip() for line in lines]
        head = [margin + line for line in self._row([c.heading for c in self._columns], widths)]
        rule = margin + "─" * self._total(widths)
        return ["", *(line.rstrip() for line in [*head, rule, *lines]), ""]

    @staticmethod
    def _total(widths: Sequence[int]) -> int:
        return sum(widths) + _GAP * (len(widths) - 1)

    def _natural(self, rows: Sequence[Sequence[str]]) -> list[int]:
        widths = [max(c.width, _widest(c.heading) if self._head else 0) for c in self._columns]
        for row in rows:
            widths[: len(row)] = [max(w, _widest(cell)) for w, cell in zip(widths, row)]
        return widths

    def _widths(self, rows: Sequence[Sequence[str]], available: int) -> list[int]:
        widths = self._natural(rows)
        excess = self._total(widths) - available
        folding = [i for i, column in enumerate(self._columns) if column.fold]
        # The widest first, until it is as wide as the next.
        while excess > 0 and any(widths[i] > 1 for i in folding):
            widest = max(widths[i] for i in folding)
            these = [i for i in folding if widths[i] == widest]
            below = max((widths[i] for i in folding if widths[i] < widest), default=1)
            step = max(1, min(widest - below, excess // len(these)))
            for i in these[: max(1, excess // step)]:
                widths[i] -= step
                excess -= step
        return widths

    def _row(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        columns = [
            _wrapped(cell, width) if column.fold else cell.split("\n")
            for cell, width, column in zip(cells, widths, self._columns)
        ]
        height = max(map(len, columns), default=0)
        lines = []
        for at in range(height):
            padded = []
            for column, texts, width in zip(self._columns, columns, widths):
                text = texts[at] if at < len(texts) else ""
                blanks = " " * (width - _cells(text))
                padded.append(blanks + text if column.right else text + blanks)
            lines.append((" " * _GAP).join(padded))
        return lines

    def __rich__(self) -> rich.table.Table:
        from rich import box  # noqa: PLC0415
        from rich.table import Table as RichTable  # noqa: PLC0415

        if self._head:
            table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        else:
            table = RichTable.grid(padding=(0, _GAP, 0, 0))
        for column in self._columns:
            table.add_column(
                Text(column.heading).__rich__(),
                justify="right" if column.right else "left",
                no_wrap=not column.fold,
                overflow="fold" if column.fold else "ellipsis",
                width=column.width or None,
            )
        for cells, style in self._rows:
            table.add_row(*(cell.__rich__() for cell in cells), style=style or None)
        return table

    def __str__(self) -> str:
        return "\n".join(self.lines()).strip("\n")


class Fitting:
    """A table, or other texts where it is too wide.

    Parameters
    ----------
    table
        Where it fits.
    *narrow
        Where it does not.
    """

    def __init__(self, table: Table, *narrow: Text) -> None:
        self._table, self._narrow = table, narrow

    def lines(self, width: int = WIDTH) -> list[str]:
        """Those of the table or the texts."""
        return self._at(width).lines(width)

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        yield self._at(options.max_width).__rich__()

    def _at(self, width: int) -> Table | Group:
        return self._table if self._table.width <= width else Group(*self._narrow)


Block = Union[Text, Table, Fitting]


class Group:
    """Texts and tables below one another."""

    def __init__(self, *blocks: Block) -> None:
        self.blocks = blocks

    def lines(self, width: int = WIDTH) -> list[str]:
        """Those of its blocks."""
        return [line for block in self.blocks for line in block.lines(width)]

    def __rich__(self) -> rich.console.Group:
        from rich.console import Group as RichGroup  # noqa: PLC0415

        return RichGroup(*self.blocks)

    def __str__(self) -> str:
        return "\n".join(self.lines()).strip("\n")


def _cells(text: str) -> int:
    """Columns that a line takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _widest(text: str) -> int:
    return max(map(_cells, text.split("\n")))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many columns, broken between words where that is possible."""
    return [piece for line in text.split("\n") for piece in _pieces(line, width)]


def _pieces(line: str, width: int) -> Iterable[str]:
    if _cells(line) <= width:
        yield line
        return
    current = ""
    for word in re.findall(r"\s*\S+\s*|\s+", line):
        rest = word
        if current and _cells(current + rest.rstrip()) > width:
            yield current.rstrip()
            current = ""
        while _cells(rest.rstrip()) > width:
            head = _head(rest, width)
            yield head
            rest = rest[len(head) :]
        current += rest
    yield current.rstrip()


def _head(text: str, width: int) -> str:
    """As many characters as fit, at least one."""
    used = 0
    for at, character in enumerate(text):
        used += _cells_of(character)
        if used > width and at:
            return text[:at]
    return text
