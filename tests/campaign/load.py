"""Load: many at once, long runs, forks, interrupts and ends in any order; see `tests.load`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.campaign.table import Row
from tests.limits.build import LayerError
from tests.load import cases

BUILD = Path(__file__).resolve().parents[2] / "build" / "load"
PATIENCE_S = 1800


def run(share: int, seed: int) -> list[Row]:
    """Run one attempt in `share` of each case; the seed has no effect: all attempts are equal."""
    del seed
    rows = []
    for name, case in cases.CASES.items():
        variables = {}
        if case.counts_objects:
            try:
                variables = cases.counting(BUILD)
            except LayerError as error:
                print(f"{case.what}: OpenCL objects are not counted: {error}", file=sys.stderr)
        count = max(case.few, case.many // share)
        row, said = cases.attempt(name, count, patience=PATIENCE_S, **variables)
        if not row.is_clean():
            print(f"{case.what}:\n{said}", file=sys.stderr)
        rows.append(row)
    return rows
