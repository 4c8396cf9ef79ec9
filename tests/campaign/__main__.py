"""``python -m tests.campaign [PART ...]``: run parts of the campaign and print their table."""

from __future__ import annotations

import argparse
import datetime
import importlib
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.campaign import table

# By module of this package. Each has ``run(share, seed)``: one attempt in `share` of all, drawn by
# the seed; it returns rows.
PARTS = ("faults", "graphs", "files", "load", "mutants")
# Parts with independent attempts: `--jobs` divides them.
DIVISIBLE = ("graphs", "files")


def main() -> int:
    """Run the named parts, by default all; returns 1 if a row is not clean."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--share", type=_share, default=1, metavar="1/N", help="one attempt in N of all"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=datetime.date.today().toordinal(),
        help="what draws them; that of the day by default",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help=f"attempts of {' and '.join(DIVISIBLE)} that run at once; 1 by default",
    )
    parser.add_argument("--keep", action="store_true", help="keep the rows for docs/reliability.md")
    parser.add_argument("--kept", action="store_true", help="run nothing, print what is kept")
    parser.add_argument(
        "--write", action="store_true", help="run nothing, write what is kept to that page"
    )
    asked = parser.parse_args()
    unknown = sorted(set(asked.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if asked.write:
        rows = [row for part in PARTS for row in table.kept(part)]
        table.PAGE.write_text(table.page_with(rows), encoding="utf-8")
        return 0
    if asked.jobs < 1:
        parser.error(f"--jobs {asked.jobs} is not a whole number from 1 on")
    parts = asked.parts or PARTS
    rows = []
    print(f"seed {asked.seed}", file=sys.stderr)
    for part in parts:
        if asked.kept:
            rows += table.kept(part)
            continue
        start = time.monotonic()
        found = _run(part, asked.share, asked.seed, asked.jobs if part in DIVISIBLE else 1)
        seconds = round(time.monotonic() - start)
        if asked.keep:
            date = datetime.date.today().isoformat()
            facts = {
                "date": date,
                "seed": asked.seed,
                "share": asked.share,
                "jobs": asked.jobs,
                "seconds": seconds,
            }
            table.keep(part, found, facts)
        rows += found
    print(table.markdown(rows), end="")
    return 0 if all(row.is_clean() for row in rows) else 1


def _run(part: str, share: int, seed: int, jobs: int) -> list[table.Row]:
    """Run a part, divided into this many jobs, each with its own seed."""
    run = importlib.import_module(f"tests.campaign.{part}").run
    if jobs == 1:
        return run(share, seed)
    # Threads are sufficient: the attempts run in child processes.
    with ThreadPoolExecutor(jobs) as pool:
        divided = pool.map(lambda job: run(share * jobs, seed * 1000 + job), range(jobs))
        return table.added(divided)


def _share(text: str) -> int:
    match = re.fullmatch(r"1(?:/([1-9]\d*))?", text)
    if match is None:
        message = f"{text!r} is not a fraction like 1/8"
        raise argparse.ArgumentTypeError(message)
    return int(match[1] or 1)


if __name__ == "__main__":
    sys.exit(main())
