"""Rows of the table of docs/reliability.md, and how they are kept."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
# The table of the page stands between these lines.
BEGIN = "<!-- campaign: made by python -m tests.campaign --write -->"
END = "<!-- /campaign -->"


@dataclasses.dataclass
class Row:
    """The outcomes of the attempts of one kind. All columns after `told` should be zero."""

    what: str
    tried: int = 0
    right: int = 0  #: the result was right, or the same as without the delegate
    told: int = 0  #: one sentence, and the next inference was right
    wrong: int = 0  #: a wrong result, at once or later
    stuck: int = 0  #: an error without a reason, or one that lasted when its cause was gone
    died: int = 0  #: the process ended by a signal, where it does not without the delegate
    hung: int = 0  #: no end within a minute
    leaked: int = 0  #: OpenCL objects or host memory that stayed
    dead: int = 0  #: uses of OpenCL objects that had been released

    def count(self, outcome: str) -> None:
        """Count one attempt by the name of its column."""
        self.tried += 1
        setattr(self, outcome, getattr(self, outcome) + 1)

    def is_clean(self) -> bool:
        """Whether each attempt ended well."""
        return self.tried == self.right + self.told and not (self.leaked or self.dead)


COLUMNS = tuple(field.name for field in dataclasses.fields(Row) if field.name != "what")


def markdown(rows: Iterable[Row]) -> str:
    """Return the table."""
    lines = [
        "| what | " + " | ".join(COLUMNS) + " |",
        "| --- |" + " ---: |" * len(COLUMNS),
    ]
    for row in rows:
        cells = [f"{getattr(row, name):,}" for name in COLUMNS]
        lines.append(f"| {row.what} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def added(runs: Iterable[Sequence[Row]]) -> list[Row]:
    """Add up the rows of several runs of one part, each with the same kinds of attempts."""
    sums: dict[str, Row] = {}
    for row in itertools.chain.from_iterable(runs):
        total = sums.setdefault(row.what, Row(row.what))
        for name in COLUMNS:
            setattr(total, name, getattr(total, name) + getattr(row, name))
    return list(sums.values())


def keep(part: str, rows: Sequence[Row], facts: dict[str, object]) -> Path:
    """Write the rows of a part of the campaign to the file that docs/reliability.md is made of."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{part}.json"
    kept = {**facts, "rows": [dataclasses.asdict(row) for row in rows]}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return path


def page_with(rows: Iterable[Row]) -> str:
    """Return the text of docs/reliability.md with a table of these rows."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown(rows)}{END}{after}"


def kept(part: str) -> list[Row]:
    """Return the rows that `keep` wrote; empty if there are none."""
    path = RESULTS / f"{part}.json"
    if not path.exists():
        return []
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
