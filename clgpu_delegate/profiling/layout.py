"""Places for the nodes of a graph: layers from top to bottom, edges with few crossings.

The classical steps: layers by the longest path, points on edges that pass layers, an order within
each layer by the mean place of the neighbours, then the horizontal places. These are the exact
solution of each layer's least squares under its order, found by pooling adjacent violators.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

_SWEEPS = 12
_WIDTH, _GAP, _POINT = 1.0, 0.25, 0.25  # of a node, between neighbours, of an edge that passes
# How much the wishes of passing edges, and of nodes that start a path, count beside others.
_STRAIGHT, _START = 8.0, 0.002


@dataclasses.dataclass(frozen=True)
class Layout:
    """Places in units: a node is 1 wide, layers are 1 apart."""

    places: Mapping[int, tuple[float, int]]
    """Middle and layer of each node; the leftmost border of any is 0."""

    paths: Sequence[tuple[tuple[float, int], ...]]
    """For each edge where it passes each layer, its ends included."""

    width: float
    layers: int


def lay_out(nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place an acyclic graph whose nodes are in an order of execution."""
    layer = _layers(nodes, edges)
    rows: list[list[int]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in nodes:
        rows[layer[node]].append(node)
    graph = _Graph(rows, set(nodes))
    next_point = max(nodes, default=0) + 1
    chains = []
    for source, target in edges:
        chain = [source]
        for between in range(layer[source] + 1, layer[target]):
            rows[between].append(next_point)
            chain.append(next_point)
            next_point += 1
        chain.append(target)
        chains.append(chain)
        for above, below in zip(chain, chain[1:]):
            graph.join(above, below)
    graph.order()
    x = graph.place()
    left = min((x[node] for node in nodes), default=0.0) - _WIDTH / 2
    left = min([left, *(value for value in x.values())])
    at = {key: (value - left, row) for row, keys in enumerate(rows) for key, value in
          ((key, x[key]) for key in keys)}  # fmt: skip
    return Layout(
        places={node: at[node] for node in nodes},
        paths=[tuple(at[key] for key in chain) for chain in chains],
        width=max((place[0] for place in at.values()), default=0.0) + _WIDTH / 2,
        layers=len(rows),
    )


def _layers(nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    before, after = defaultdict(list), defaultdict(list)
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    layer: dict[int, int] = {}
    for node in nodes:
        layer[node] = max((layer[other] + 1 for other in before[node]), default=0)
    # The start of a path, such as the unpacking of a weight, belongs next to its reader.
    for node in reversed(nodes):
        if not before[node] and after[node]:
            layer[node] = min(layer[other] for other in after[node]) - 1
    return layer


class _Graph:
    """Nodes and points of edges in rows, and their neighbours in the adjacent rows."""

    def __init__(self, rows: list[list[int]], nodes: set[int]) -> None:
        self.rows, self.nodes = rows, nodes
        self.above: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)

    def join(self, above: int, below: int) -> None:
        self.above[below].append(above)
        self.below[above].append(below)

    def order(self) -> None:
        """Sort each row by the mean position of neighbours, downwards and upwards in turns."""
        position = {key: float(i) for row in self.rows for i, key in enumerate(row)}
        best, fewest = [list(row) for row in self.rows], self._crossings(position)
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                means = {key: _mean((position[n] for n in neighbours[key]), position[key])
                         for key in row}  # fmt: skip
                row.sort(key=means.__getitem__)
                position.update({key: float(i) for i, key in enumerate(row)})
            count = self._crossings(position)
            if count < fewest:
                best, fewest = [list(row) for row in self.rows], count
        for row, kept in zip(self.rows, best):
            row[:] = kept

    def _crossings(self, position: Mapping[int, float]) -> int:
        count = 0
        for row in self.rows[:-1]:
            ends = [p for key in row for p in sorted(position[n] for n in self.below[key])]
            # Inversions, counted by insertion: rows are short.
            for i, end in enumerate(ends):
                count += sum(other > end for other in ends[:i])
        return count

    def place(self) -> dict[int, float]:
        """Horizontal middles."""
        # Weights that are unpacked beside each layer must not push the layers below to one side.
        paths: dict[int, list[int]] = defaultdict(list)
        for key, above in list(self.above.items()):
            paths[key] = [n for n in above if self.above.get(n)] or above
        x: dict[int, float] = {}
        for row in self.rows:
            steps = self._steps(row)
            x.update({key: step - steps[-1] / 2 for key, step in zip(row, steps)})
        # One direction at a time keeps chains straight; downwards last, so forks are symmetric.
        for sweep in range(_SWEEPS + 1):
            down = sweep % 2 == 0
            one, other = (paths, self.below) if down else (self.below, self.above)
            for row in self.rows if down else reversed(self.rows):
                self._place_row(row, x, {key: one[key] or other[key] for key in row})
        return x

    def _weight(self, key: int) -> float:
        if key not in self.nodes:
            return _STRAIGHT
        return 1.0 if self.above.get(key) else _START

    def _steps(self, row: Sequence[int]) -> list[float]:
        steps = [0.0]
        for left, right in zip(row, row[1:]):
            half = sum(_WIDTH if key in self.nodes else _POINT for key in (left, right)) / 2
            steps.append(steps[-1] + half + _GAP)
        return steps

    def _place_row(
        self, row: Sequence[int], x: dict[int, float], near: Mapping[int, Sequence[int]]
    ) -> None:
        wanted = [_mean((x[n] for n in near[key]), x[key]) for key in row]
        weights = [self._weight(key) for key in row]
        steps = self._steps(row)
        pooled = isotonic([w - s for w, s in zip(wanted, steps)], weights)
        x.update({key: value + step for key, value, step in zip(row, pooled, steps)})


def isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest non-decreasing sequence, in weighted least squares."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for value, weight in zip(values, weights):
        mean, heavy, members = value, weight, 1
        while pools and pools[-1][0] > mean:
            other, its, count = pools.pop()
            mean = (mean * heavy + other * its) / (heavy + its)
            heavy, members = heavy + its, members + count
        pools.append((mean, heavy, members))
    return [mean for mean, _, members in pools for _ in range(members)]


def _mean(values: Iterable[float], otherwise: float) -> float:
    known = list(values)
    return sum(known) / len(known) if known else otherwise
