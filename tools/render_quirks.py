"""Writes the table of drivers' quirks into docs/devices.md.

    python tools/render_quirks.py           shows the differences
    python tools/render_quirks.py --write   writes them

The table is that of the compiled extension, src_cpp/base/quirks.cpp: compile first. The page has it
between the marks ``quirks`` and ``/quirks``.
"""

from __future__ import annotations

import argparse
import difflib
import re
from pathlib import Path

from clgpu_delegate import _core

PAGE = Path(__file__).resolve().parents[1] / "docs" / "devices.md"
_PLACE = re.compile(r"(?<=<!-- quirks -->\n).*?(?=<!-- /quirks -->)", re.DOTALL)


def table() -> str:
    """The rows as Markdown."""
    lines = [
        "| name | devices | drivers | what is different | why | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    columns = ("devices", "drivers", "change", "why", "source")
    for row in _core.quirk_table():
        cells = [f"`{row['name']}`", *(row[column] for column in columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit status: 1 if the page differs from the table and is not written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/devices.md")
    arguments = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after = _PLACE.sub(lambda _: table(), before)
    if before == after:
        return 0
    if arguments.write:
        PAGE.write_text(after, encoding="utf-8")
        return 0
    difference = difflib.unified_diff(
        before.splitlines(True), after.splitlines(True), "kept", "now"
    )
    print("".join(difference))
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
