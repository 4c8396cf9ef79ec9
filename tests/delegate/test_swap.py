"""Inferences that copy tensors between device and host in the middle."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import clgpu_delegate
from bench import networks
from tests.delegate.test_memory import Loaded
from tests.models.comparison import LIMITS, assert_close, run_delegated
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

# PyNET's full width would take minutes on a CPU; a quarter has the same layers.
SIZES = {"pynet": {"width": 0.25}}


@functools.lru_cache(maxsize=1)
def _network(name: str):
    model = networks.build(name, **SIZES.get(name, {}))
    return model, networks.sample_inputs(model, seed=1)


def _bytes(report: dict) -> tuple[int, int]:
    (partition,) = report["partitions"]
    return partition["arena_bytes"], partition["weights_bytes"]


@pytest.mark.parametrize("name", ["alexnet", "lenet5", "mobilenet_v2", "unet"])
def test_network_is_the_same_within_less_memory(name, device):
    model, inputs = _network(name)
    want, full = run_delegated("auto", model, inputs, device=device)
    arena, weights = _bytes(full)
    # Of some networks, one layer has most of the weights.
    share = {"alexnet": 0.3, "lenet5": 0.1}.get(name, 0.5)
    budget = arena + weights - int(share * weights)
    got, report = run_delegated("auto", model, inputs, device=device, memory_budget=budget)
    assert sum(_bytes(report)) <= budget
    assert_close(got, want, LIMITS["fp32"])


@pytest.fixture
def detour(device, runtime, rng):
    """A model that must move a tensor and weights; prepared and run once."""
    model = models.detour()
    x = models.normal(rng, 1, 64, 64, 4)
    _, full = run_delegated(runtime, model, [x], device=device)
    delegate = clgpu_delegate.load(device=device, memory_budget=sum(_bytes(full)) * 17 // 20)
    interpreter = make_interpreter(runtime, model, [delegate])
    run_interpreter(interpreter, [x])
    (partition,) = delegate.explain().to_dict()["partitions"]
    assert {move["kind"] for move in partition["moves"]} == {"out", "in"}
    return delegate, interpreter, x, run_reference(model, [x], runtime), partition["moves"]


def test_predicted_peak_is_the_counted_one(device, runtime):
    model = models.detour()
    full = Loaded(runtime, model, device=device)
    budget = full.peak * 17 // 20
    loaded = Loaded(runtime, model, device=device, memory_budget=budget)
    plan = loaded.delegate.explain()
    assert loaded.peak == plan.peak_bytes
    assert loaded.peak <= budget


def test_moves_change_nothing_but_where_things_are(detour):
    _delegate, interpreter, x, want, _moves = detour
    for factor in (1, -1, 1):
        got = run_interpreter(interpreter, [x])
        assert_close(got, want, LIMITS["fp32"])
        run_interpreter(interpreter, [factor * 2 * x])


def test_inferences_with_moves_create_no_objects_and_count_the_bytes(detour):
    delegate, interpreter, x, _want, moves = detour
    run_interpreter(interpreter, [x])
    cost = delegate.stats()["last_invoke"]
    assert cost["objects_created"] == 0
    borders = [row for row in delegate.stats()["tensors"] if row["road"] != "host_pointer"]
    for kind, direction, border in (("in", "bytes_up", "input"), ("out", "bytes_down", "output")):
        moved = sum(move["bytes"] for move in moves if move["kind"] == kind)
        crossed = sum(row["bytes"] for row in borders if row["direction"] == border)
        assert cost[direction] == crossed + moved


def test_launch_times_list_the_moves_among_the_launches(detour):
    delegate, interpreter, x, want, moves = detour
    rows = delegate.launch_times(rounds=2)
    copies = [row for row in rows if row.op.startswith("SWAP_")]
    assert [(row.op[5:].lower(), row.kernel, row.bytes) for row in copies] == [
        (move["kind"], move["tensor"], move["bytes"]) for move in moves
    ]
    assert all(row.microseconds >= 0 for row in copies)
    (partition,) = delegate.explain().partitions
    assert len(rows) == partition.launches + len(moves)
    assert all(row.bytes == 0 for row in rows if row not in copies)
    assert delegate.device_time(3) > 0
    assert_close(run_interpreter(interpreter, [x]), want, LIMITS["fp32"])


def test_interpreters_with_moves_do_not_disturb_each_other(detour, runtime):
    delegate, first, x, want, _moves = detour
    second = make_interpreter(runtime, models.detour(), [delegate])
    run_interpreter(second, [np.zeros_like(x)])
    assert_close(run_interpreter(first, [x]), want, LIMITS["fp32"])
