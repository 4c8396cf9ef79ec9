"""Finding the fewest nodes of a model that still fail in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clgpu_delegate.capsule.cutting import Cut, Cutter, with_batch_of_one
from clgpu_delegate.capsule.outcome import Outcome, outcome_of_one
from clgpu_delegate.capsule.trials import Trial
from clgpu_delegate.tflite.graph import ABSENT

_MOST_EXPOSED = 1 << 28  # bytes of all intermediate tensors that may be compared
_SUSPECTS = 4  # nodes that are tried alone before the search begins


class Stopped(Exception):
    """The time for the search is over."""


class Shrinking:
    """A search; ``best`` is the smallest failing part found so far.

    Parameters
    ----------
    cutter
        Cuts the model.
    attempt
        Runs a part; raises `Stopped` when there is no time left.
    wanted
        How it must fail.
    tolerance
        As of `outcome.outcome_of_one`.
    progress
        Called before each trial with the number of nodes left and what is tried.
    """

    def __init__(
        self,
        cutter: Cutter,
        attempt: Callable[[Cut], Trial],
        wanted: Outcome,
        tolerance: float,
        progress: Callable[[int, str], None],
    ) -> None:
        self._cutter, self._attempt, self._wanted = cutter, attempt, wanted
        self._tolerance, self._progress = tolerance, progress
        self._known: dict[tuple[int, ...], bool] = {}
        self.best: Cut | None = None
        self.trial: Trial | None = None  # of the best

    def search(self) -> bool:
        """Run; False if it was stopped before the end. ``best`` is None if no part fails."""
        nodes = self._cutter.nodes
        try:
            if not self._fails(nodes):
                return True
            for suspect in self._suspects(nodes):
                if self._fails([suspect]):
                    break
            else:
                minimise(nodes, self._fails)
            self._reduce_batch()
        except Stopped:
            return False
        return True

    def _fails(self, nodes: Sequence[int]) -> bool:
        key = tuple(nodes)
        if key not in self._known:
            cut = self._cutter.cut(nodes)
            self._known[key] = cut is not None and self._try(cut)
        return self._known[key]

    def _try(self, cut: Cut) -> bool:
        trial = self._run(cut, f"{len(cut.nodes)} node{'s' * (len(cut.nodes) != 1)}")
        fails = self._wanted.is_like(trial.outcome)
        if fails and (self.best is None or len(cut.nodes) <= len(self.best.nodes)):
            self.best, self.trial = cut, trial
        return fails

    def _run(self, cut: Cut, what: str) -> Trial:
        left = len(self._cutter.nodes if self.best is None else self.best.nodes)
        self._progress(left, what)
        return self._attempt(cut)

    def _suspects(self, nodes: Sequence[int]) -> list[int]:
        """Nodes that may cause the error: their results are wrong, their inputs are not.

        One run with all tensors as outputs finds them. It prevents fusion, so it may find none.
        """
        if self._wanted.kind != "wrong" or self._cutter.bytes_between() > _MOST_EXPOSED:
            return []
        cut = self._cutter.cut(nodes, expose=True)
        if cut is None:
            return []
        trial = self._run(cut, "all tensors")
        results = zip(cut.outputs, trial.got, trial.expected)
        bad = {t for t, g, e in results if outcome_of_one(g, e, self._tolerance).failed}
        operators = self._cutter.model.main.operators
        return [
            i
            for i in nodes
            if bad & set(operators[i].outputs) and not bad & {*operators[i].inputs} - {ABSENT}
        ][:_SUSPECTS]

    def _reduce_batch(self) -> None:
        cut = self.best and with_batch_of_one(self.best)
        if cut:
            self._try(cut)


def minimise(items: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Delta debugging (Zeller's ddmin): a minimal failing subset of failing ``items``.

    It does not fail if any one of its items is removed.
    """
    items, parts = list(items), 2
    while len(items) > 1:
        edges = [round(len(items) * i / parts) for i in range(parts + 1)]
        chunks = [items[a:b] for a, b in zip(edges, edges[1:])]
        smaller = next((c for c in chunks if fails(c)), None)
        if smaller is not None:
            items, parts = smaller, 2
            continue
        rests = [[i for i in items if i not in set(c)] for c in chunks] if parts > 2 else []
        smaller = next((r for r in rests if fails(r)), None)
        if smaller is not None:
            items, parts = smaller, max(parts - 1, 2)
        elif parts < len(items):
            parts = min(parts * 2, len(items))
        else:
            break
    return items
