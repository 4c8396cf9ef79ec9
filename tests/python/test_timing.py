"""Times on the device: of an inference with many in flight, and of each launch."""

from __future__ import annotations

import pytest

import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter


@pytest.fixture
def prepared(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, exclude="MAX_POOL_2D")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    x = models.normal(rng, 1, 7, 6, 3)
    return delegate, interpreter, x, run_interpreter(interpreter, [x])[0]


def test_device_time_covers_all_partitions_and_copies_nothing(prepared):
    delegate, _interpreter, _x, _y = prepared
    assert len(delegate.explain().partitions) == 2
    before = delegate.stats()
    assert 0 < delegate.device_time(3) < 10
    assert delegate.device_time() > 0
    assert delegate.stats() == before, "only inferences are counted"


def test_device_time_of_a_node_leaves_the_others_out(prepared):
    delegate, _interpreter, _x, _y = prepared
    assert delegate.device_time(2, node=0) > 0
    assert delegate.device_time(2, node=1) == 0, "on the CPU"
    assert delegate.device_time(2, node=2) > 0


def test_launch_times_name_every_launch_in_order(prepared):
    delegate, _interpreter, _x, _y = prepared
    plan = delegate.explain()
    times = delegate.launch_times(rounds=2)
    assert len(times) == sum(p.launches for p in plan.partitions)
    assert {time.node for time in times} == {0, 2}
    assert times == sorted(times, key=lambda time: time.node)
    for time in times:
        node = plan.nodes[time.node]
        assert (time.op, time.candidate) == (node.op, node.candidate)
        assert time.kernel
        assert time.microseconds >= 0


def test_results_stay_right_after_timing(prepared):
    delegate, interpreter, x, y = prepared
    delegate.device_time(2)
    delegate.launch_times(1)
    (again,) = run_interpreter(interpreter, [x])
    assert (again == y).all()


def test_nothing_to_time_is_a_sentence(device, runtime):
    delegate = clgpu_delegate.load(device=device)
    with pytest.raises(clgpu_delegate.ClgpuError, match="no node is on the device"):
        delegate.device_time()
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    interpreter.allocate_tensors()
    assert delegate.launch_times()
    del interpreter
    with pytest.raises(clgpu_delegate.ClgpuError, match="interpreter"):
        delegate.launch_times()


@pytest.mark.parametrize("count", [0, -1])
def test_counts_below_one_are_refused(prepared, count):
    delegate, *_ = prepared
    with pytest.raises(clgpu_delegate.OptionError, match="1 and more"):
        delegate.device_time(count)
    with pytest.raises(clgpu_delegate.OptionError, match="1 and more"):
        delegate.launch_times(count)
