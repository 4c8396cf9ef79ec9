"""Generates parts of files from the table of options, src_cpp/delegate/options.cpp.

    python tools/render_options.py           shows the differences
    python tools/render_options.py --write   writes them

The table is that of the compiled extension: compile first. The generated parts are between marks,
``options: NAME`` and ``/options``: the arguments' and fields' types, defaults and documentation in
clgpu_delegate/options.py, and the table of docs/options.md.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path
from typing import Any, Callable

from clgpu_delegate import _core

ROOT = Path(__file__).resolve().parents[1]
FILES = ("clgpu_delegate/options.py", "docs/options.md")
WIDTH = 100

# By the kind of value: its type in Python; what the page says of values that are no list of words.
TYPES = {
    "device": "str | int",
    "switch": "bool",
    "count": "int",
    "bytes": "int | str | None",
    "path": "str | os.PathLike[str]",
    "engines": "Engines",
    "nodes": "Nodes",
    "carried": "Carried",
}
FORMS = {
    "device": "an index, or part of a name",
    "bytes": 'bytes, or a text such as `"64 MiB"`',
    "path": 'a path, `"auto"`, `"off"`',
    "engines": "`{family: engine}`",
    "nodes": "indices and operation names",
    "carried": "`{name: {graph: (input, output)}}`",
    "switch": "`True`, `False`",
}

_PLACE = re.compile(
    r"(?P<begin>^ *(?:# |<!-- )options: (?P<name>\w+)(?: -->)?\n)"
    r".*?"
    r"(?P<end>^ *(?:# |<!-- )/options)",
    re.MULTILINE | re.DOTALL,
)


def python_type(row: dict[str, Any]) -> str:
    """The annotation; type checkers see each allowed word in it."""
    words = f"Literal[{', '.join(map(quoted, row['words']))}]"
    types = {
        "choice": words,
        "choice or count": f"{words} | int",
        "choice or number": f"{words} | float",
        "choice or plan": f"{words} | Plan",
    }
    return types.get(row["kind"]) or TYPES[row["kind"]]


def python_default(row: dict[str, Any]) -> str:
    """The default as an expression."""
    text = row["default"]
    if row["kind"] == "switch":
        return str(text == "on")
    return text if row["kind"] == "count" else quoted(text)


def quoted(text: str) -> str:
    """A text as an expression."""
    return f'"{text}"'


def sentence(phrase: str) -> str:
    """A phrase of the table as a sentence."""
    return f"{phrase[0].upper()}{phrase[1:]}."


def settings(table: list[dict[str, Any]]) -> str:
    """Of the class of keyword arguments."""
    return "".join(f"    {row['key']}: {python_type(row)}\n" for row in table)


def fields(table: list[dict[str, Any]]) -> str:
    """Of the dataclass, with their documentation."""
    return "\n".join(map(field, table))


def field(row: dict[str, Any]) -> str:
    """One of `fields`."""
    phrase = f"{row['help']}; {row['allowed']}" if row["kind"] == "count" else row["help"]
    text = f'"""{sentence(phrase)} {" ".join(row["more"].split())}'.rstrip() + '"""'
    lines = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    head = f"{row['key']}: {python_type(row)} = {python_default(row)}"
    return textwrap.indent("\n".join([head, *lines]) + "\n", "    ")


def table(rows: list[dict[str, Any]]) -> str:
    """Of the page."""
    lines = ["| option | values | default | |", "| --- | --- | --- | --- |"]
    for row in rows:
        words = ", ".join(f"`{quoted(word)}`" for word in row["words"])
        values = {
            "choice": words, "choice or count": f"{words}, {row['least']} to {row['most']}",
            "choice or number": f"{words}, a number from 0 on",
            "choice or plan": f"{words}, a plan", "count": row["allowed"],
        }.get(row["kind"]) or FORMS[row["kind"]]  # fmt: skip
        cells = (f"`{row['key']}`", values, f"`{python_default(row)}`", row["help"])
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


PARTS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "settings": settings,
    "fields": fields,
    "table": table,
}


def rendered(text: str, rows: list[dict[str, Any]]) -> str:
    """The text of a file, generated from the rows of the table."""

    def part(match: re.Match[str]) -> str:
        return match["begin"] + PARTS[match["name"]](rows) + match["end"]

    return _PLACE.sub(part, text)


def main() -> int:
    """Exit status: 1 if files differ from the table and are not written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the files")
    write = parser.parse_args().write
    differing = []
    for name in FILES:
        file = ROOT / name
        before = file.read_text(encoding="utf-8")
        after = rendered(before, _core.option_table())
        if after != before:
            differing.append(name)
            if write:
                file.write_text(after, encoding="utf-8")
    for name in differing:
        print(f"{name} {'is written' if write else 'differs from src_cpp/delegate/options.cpp'}")
    return int(bool(differing) and not write)


if __name__ == "__main__":
    raise SystemExit(main())
