"""``python -m bench boards``: compares docs/arm64.md with what is computed, or writes it."""

from __future__ import annotations

import difflib
import re

from bench.boards import estimates, machines
from bench.record import ROOT

PAGE = ROOT / "docs" / "arm64.md"


def rendered(text: str) -> str:
    """The page with both tables as they are today."""
    for mark, table in (("doctor", machines.table()), ("estimates", estimates.table())):
        place = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- /{mark} -->)", re.DOTALL)
        text, count = place.subn(lambda _, new=table: new, text)
        if count != 1:
            message = f"{PAGE.name} needs one pair of marks '{mark}' and '/{mark}'; it has {count}"
            raise ValueError(message)
    return text


def run(*, write: bool) -> int:
    """Write the page, or print how it differs; the exit status is 1 if it differs."""
    before = PAGE.read_text(encoding="utf-8")
    after = rendered(before)
    if write:
        PAGE.write_text(after, encoding="utf-8")
        return 0
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "kept", "now")
    print("".join(lines), end="")
    return int(before != after)
