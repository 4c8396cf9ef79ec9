"""Tensors and weights that wait on the host, as plans describe it."""

from __future__ import annotations

import pytest

import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter

SIZE = 64
SMALL, LARGE, WEIGHTS = 16 * SIZE**2, 64 * SIZE**2, 4 * SIZE**2


def _partition(device: str | None = None, budget: int | None = None) -> dict:
    delegate = clgpu_delegate.load(device=device or "", memory_budget=budget)
    make_interpreter("auto", models.detour(SIZE), [delegate])
    (partition,) = delegate.explain().to_dict()["partitions"]
    return partition


def _peak(partition: dict) -> int:
    return partition["arena_bytes"] + partition["weights_bytes"]


@pytest.fixture(scope="module")
def full() -> int:
    """Bytes that the model needs without a budget."""
    return _peak(_partition())


def test_nothing_moves_where_all_fits(full):
    partition = _partition(budget=full)
    assert partition["moves"] == []
    assert _peak(partition) == full


def test_a_tensor_that_waits_leaves_and_comes_back_before_it_is_read(full):
    # The large tensors and the weights are in use, or less than what is missing.
    partition = _partition(budget=full - 3 * WEIGHTS - 1)
    moves = [move for move in partition["moves"] if move["bytes"] == SMALL]
    assert [move["kind"] for move in moves] == ["out", "in"]
    out, back = moves
    assert out["tensor"] == back["tensor"]
    assert out["finish"] <= back["start"]


def test_weights_come_for_each_use(full):
    partition = _partition(budget=full - WEIGHTS)
    (move,) = partition["moves"]
    assert move["kind"] == "in"
    assert move["bytes"] == WEIGHTS
    assert partition["weights_bytes"] <= 2 * WEIGHTS + SIZE


@pytest.mark.parametrize("missing", [1, WEIGHTS, 3 * WEIGHTS, SMALL, SMALL + 2 * WEIGHTS])
def test_plans_stay_below_their_budget_and_moves_are_in_order(full, missing):
    budget = full - missing
    partition = _partition(budget=budget)
    assert _peak(partition) <= budget
    moves = partition["moves"]
    assert moves or partition["launches"] > _partition()["launches"]  # of bands
    assert moves == sorted(moves, key=lambda move: move["start"])
    for move in moves:
        assert 0 <= move["start"] <= move["finish"] <= partition["launches"]
