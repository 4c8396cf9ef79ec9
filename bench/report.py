"""Output of the commands: tables, CSV files, and the rows measured so far."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, Union

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.setting import Setting

_Row = TypeVar("_Row")


Value = Union[str, Callable[[Any], Any]]


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    heading
        Its first line.
    value
        An attribute of the row, or a function of it. None is an empty cell.
    form, scale
        Format as in `format`, and a factor that is applied before.
    is_text
        Whether it is aligned on the left.
    wraps
        Whether a long cell has several lines.
    is_optional
        Whether it is left out if all cells are empty.
    """

    heading: str
    value: Value
    form: str = ""
    is_text: bool = False
    wraps: bool = False
    is_optional: bool = False
    scale: float = 0.0

    def cell(self, row: Any) -> str:
        """Return the text for a row."""
        value = getattr(row, self.value) if isinstance(self.value, str) else self.value(row)
        if value is None:
            return ""
        return format(value * self.scale if self.scale else value, self.form)


def megabytes(heading: str, value: Value) -> Column:
    """Return a column of bytes."""
    return Column(f"{heading} MB", value, ".1f", scale=1e-6)


def name_column(heading: str, value: Value, **options: Any) -> Column:
    """Return a column of words, which may be long."""
    return Column(heading, value, is_text=True, wraps=True, **options)


@dataclasses.dataclass(frozen=True)
class TextTable:
    """A table as texts, for the terminal and for files."""

    title: str
    columns: tuple[Column, ...]
    rows: list[tuple[str, ...]]
    styles: tuple[str, ...]

    @classmethod
    def of(
        cls,
        title: str,
        rows: Iterable[Any],
        columns: Iterable[Column],
        style: Callable[[Any], str] = lambda _: "",
    ) -> TextTable:
        """Return a table with a line for each row; ``style`` is that of the line, for rich."""
        rows = list(rows)
        kept = [
            (column, cells)
            for column in columns
            if any(cells := [column.cell(row) for row in rows]) or not column.is_optional
        ]
        texts = list(zip(*(cells for _, cells in kept)))
        return cls(title, tuple(column for column, _ in kept), texts, tuple(map(style, rows)))

    def rich(self) -> Table:
        """Return it for a terminal."""
        table = Table(
            title=self.title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True,
            title_justify="left", title_style="bold",
        )  # fmt: skip
        for column in self.columns:
            justify = "left" if column.is_text else "right"
            table.add_column(
                column.heading, justify=justify, no_wrap=not column.wraps, overflow="fold"
            )
        for row, style in zip(self.rows, self.styles):
            table.add_row(*map(Text, row), style=style)  # brackets are no markup
        return table

    def markdown(self) -> str:
        """Return it for a note."""
        headings = [column.heading for column in self.columns]
        lines = [self.title, "", _line(headings), _line(["---"] * len(headings))]
        return "\n".join([*lines, *map(_line, self.rows)]) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def make_console(width: int = 150) -> Console:
    """Return a console; the width is that of files and pipes."""
    return Console(width=None if Console().is_terminal else width)


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write mappings with the same keys."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


class Report(Generic[_Row]):
    """The rows of a command: collected during the measurement, and shown at the end.

    Parameters
    ----------
    setting
        Of the command.
    width
        Of the output if it is not a terminal.
    peers
        ``runtime``, ``threads`` and ``torch`` for the JSON file, as in `bench.record.Sheet.write`.
    """

    def __init__(self, setting: Setting, *, width: int = 150, **peers: Any) -> None:
        self.rows: list[_Row] = []
        self.console = make_console(width)
        self._setting = setting
        self._peers = peers
        self._networks: set[str] = set()

    def add(
        self, rows: Iterable[_Row], progress: str = "", *, network: str = "", peaks: Any = None
    ) -> None:
        """Add rows, and renew the JSON file.

        Parameters
        ----------
        rows
            Dataclasses.
        progress
            Printed if the output is not a terminal, which shows a status instead.
        network
            The network whose plans were measured.
        peaks
            Of the device, for the JSON file.
        """
        self.rows.extend(rows)
        self._networks.add(network)
        if self._setting.sheet is not None:
            self._setting.sheet.write(
                self.rows, device=self._setting.found, networks=self._networks - {""},
                peaks=peaks, **self._peers,
            )  # fmt: skip
        if progress and not self.console.is_terminal:
            self.say(progress)

    def say(self, text: str) -> None:
        """Print a sentence."""
        self.console.print(text, highlight=False, markup=False)

    def finish(self, table: TextTable, **front: str) -> list[_Row]:
        """Print the table, and write the CSV file: ``front``, and then the fields of a row."""
        self.console.print(table.rich())
        self.write_csv(**front)
        return self.rows

    def write_csv(self, **front: str) -> None:
        """Write the CSV file, if there is one: ``front``, and then the fields of a row."""
        if self._setting.csv is not None:
            write_csv(self._setting.csv, [{**front, **_fields(row)} for row in self.rows])


def _fields(row: Any) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
