"""placement="auto": a cost model decides, on figures that are known or measured."""

from __future__ import annotations

import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

GPU = {
    "units": 100,
    "flops": [1e13, 2e14, 4e14, 8e14, 0, 0, 2e13],
    "bytes": 1e12,
    "up_bytes": 1e10,
    "down_bytes": 1e10,
    "launch_seconds": 3e-6,
    "round_trip_seconds": 1e-5,
    "transfer_seconds": 1e-5,
}
CPU = {"threads": 1, "flops": 1e11, "cache_bytes": 1e11, "memory_bytes": 1e10}


def _cost(nodes, device=GPU, cpu=CPU, **load):
    return _core.placement_cost({"nodes": nodes, **load}, device, cpu)


def test_small_work_is_lost_on_a_gpu_and_large_work_on_the_cpu():
    device, cpu = _cost([{"flops": 1e5, "device_bytes": 1e4, "cpu_bytes": 1e4}], transfers=2)
    assert device > cpu
    device, cpu = _cost([{"flops": 1e10, "device_bytes": 1e7, "cpu_bytes": 1e7}], transfers=2)
    assert device < cpu


def test_each_part_of_the_devices_time_counts():
    node = {"flops": 1e6, "device_bytes": 1e6, "cpu_bytes": 1e6}
    base, cpu = _cost([node])
    assert base + 3e-6 <= _cost([{**node, "launches": 2}])[0] < base + 6e-6
    assert _cost([node], transfers=3)[0] == pytest.approx(base + 3e-5)
    assert _cost([node], up_bytes=1e6)[0] == pytest.approx(base + 1e-4)
    assert _cost([node], down_bytes=1e6)[0] == pytest.approx(base + 1e-4)
    assert _cost([node], moved_bytes=1e6)[0] == pytest.approx(base + 1e-4)
    assert _cost([{**node, "device_bytes": 1e9}])[0] > base + 9e-4
    assert _cost([{**node, "flops": 1e9, "items": 64}])[0] > _cost([{**node, "flops": 1e9}])[0]
    assert _cost([{**node, "cpu_bytes": 1e9}])[1] > cpu + 9e-3


def test_threads_and_caches_speed_the_cpu_up():
    node = {"flops": 1e9, "device_bytes": 1e6, "cpu_bytes": 1e6}
    assert _cost([node], cpu={**CPU, "threads": 4})[1] < _cost([node])[1] / 2
    stream = {"flops": 1e2, "device_bytes": 1e5, "cpu_bytes": 1e5}
    cached = _cost([stream], cpu_nodes=0)[1]
    assert _cost([stream], cpu_nodes=0, weight_bytes=1e8)[1] == pytest.approx(10 * cached)
    large = {**stream, "cpu_bytes": 1e7}
    assert _cost([large], cpu_nodes=0)[1] == pytest.approx(1000 * cached)


def test_tensor_cores_count_for_products_only():
    product = {"flops": 1e12, "kind": 0, "device_arithmetic": 2}
    assert _cost([product])[0] < _cost([{**product, "device_arithmetic": 0}])[0] / 10
    assert (
        _cost([{**product, "kind": 2}])[0]
        == _cost([{**product, "kind": 2, "device_arithmetic": 0}])[0]
    )


def test_half_sums_count_for_products_only():
    product = {"flops": 1e12, "kind": 0, "device_arithmetic": 6}
    floats = {**product, "device_arithmetic": 0}
    assert 1.7 < _cost([floats])[0] / _cost([product])[0] < 2
    assert _cost([{**product, "kind": 1}])[0] == _cost([{**floats, "kind": 1}])[0]
    assert _cost([product])[1] == _cost([floats])[1]


def test_the_cpu_is_fast_with_int8_and_slow_with_int16_and_groups():
    cost = {t: _cost([{"flops": 1e9, "cpu_arithmetic": t}])[1] for t in (0, 3, 4, 5)}
    assert cost[3] < cost[0] < cost[5] / 10 < cost[4] / 10


def test_a_tiny_model_stays_on_the_cpu_with_both_figures_in_the_reason(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, placement="auto")
    model, x = models.image(), models.normal(rng, 1, 7, 6, 3)
    (got,) = run_interpreter(make_interpreter(runtime, model, [delegate]), [x])
    explanation = delegate.explain()
    assert not explanation.claimed
    for node in explanation.nodes:
        assert node.reason.startswith("the CPU is expected to take ")
        assert " ms, the device " in node.reason
        assert node.refusal.code == "cost"
        assert node.refusal.has.endswith(" ms")
        assert node.refusal.supported[0].startswith("less than ")
    placement = explanation.to_dict()["placement"]
    assert placement["mode"] == "auto"
    assert placement["choice"] == "cpu"
    assert placement["source"] == "cost model"
    assert placement["threads"] == 1
    (expected,) = placement["expected"]
    assert expected["cpu_ms"] < expected["device_ms"]
    assert not expected["claimed"]
    assert explanation.placement.expected[0].cpu_ms == expected["cpu_ms"]
    assert "placement: cpu (cost model)" in str(explanation)
    assert delegate.stats()["load"]["programs_built"] == 0  # planned, never built
    (want,) = run_reference(model, [x], runtime, "builtin")
    assert (got == want).all()


def test_all_is_the_default_and_says_so(device, runtime):
    delegate = clgpu_delegate.load(device=device)
    make_interpreter(runtime, models.image(), [delegate])
    placement = delegate.explain().to_dict()["placement"]
    assert (placement["mode"], placement["choice"], placement["source"]) == ("all", "all", "")
