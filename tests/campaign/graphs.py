"""Random graphs with random options, against the stock runtime's reference kernels.

``python -m tests.campaign.graphs SEED`` repeats one graph, in this process, and prints it.
"""

from __future__ import annotations

import os
import sys
from random import Random

import clgpu_delegate
from tests.campaign import children
from tests.campaign.table import Row
from tests.models.random_graphs import compare, random_graph

GRAPHS = 20_000  # of a whole campaign
WHAT = "random graphs with random options"


def run(share: int, seed: int) -> list[Row]:
    """One in ``share`` of all graphs; failures are printed as they are found."""
    row, _ = attempt(GRAPHS // share, seed)
    return [row]


def attempt(count: int, seed: int) -> tuple[Row, list[str]]:
    """Try this many graphs; returns the row, and how to repeat each failure with its message."""
    row, failures = Row(WHAT), []
    items = [str(seed * 1_000_000 + i) for i in range(count)]
    for item, outcome, text in children.answers(__name__, items):
        row.count(outcome)
        if outcome not in {"right", "told"}:
            failures.append(f"{outcome}: python -m {__name__} {item}: {text}")
            print(failures[-1], file=sys.stderr, flush=True)
    return row, failures


def one(item: str) -> tuple[str, str]:
    """Try the graph of a seed."""
    graph = random_graph(Random(int(item)))
    try:
        return compare(graph, device()), ""
    except AssertionError as error:
        return "wrong", str(error)
    except Exception as error:  # an error that stock does not report
        return "stuck", f"{type(error).__name__}: {error}"


def device() -> str:
    """The device to test: the named one, or the first."""
    return os.environ.get("CLGPU_TEST_DEVICE") or clgpu_delegate.devices()[0].name


def main() -> int:
    """Serve seeds, or repeat one."""
    if sys.argv[1:] == ["serve"]:
        children.serve(one)
        return 0
    (seed,) = sys.argv[1:]
    graph = random_graph(Random(int(seed)))
    print(*graph.nodes, graph, sep="\n", flush=True)
    print(*one(seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
