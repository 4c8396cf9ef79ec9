"""Every network gives the same result in full, half, a quarter and the smallest memory."""

from __future__ import annotations

import functools
import gc
import re

import numpy as np
import pytest

import clgpu_delegate
from bench import networks
from tests.model_maker import ModelMaker
from tests.models.comparison import assert_close
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter

# A quarter of the filters has the same layers; the bench has the whole network.
SIZES = {"pynet": {"width": 0.25}}
LIMIT = 1e-5  # relative L2, fp32


@functools.lru_cache(maxsize=2)
def _model(name: str):
    model = networks.build(name, **SIZES.get(name, {}))
    return model, networks.sample_inputs(model, seed=1)


def run(name: str, device: str, **options):
    """Outputs, explanation and counted peak of device memory of two inferences."""
    model, inputs = _model(name)
    delegate = clgpu_delegate.load(device=device, **options)
    gc.collect()
    delegate._native.reset_peak()  # the counter belongs to the whole process
    before = delegate.stats()["device_bytes"]
    interpreter = make_interpreter("auto", model, [delegate])
    run_interpreter(interpreter, inputs)
    outputs = run_interpreter(interpreter, inputs)
    explanation = delegate.explain()
    assert explanation.claimed == explanation.total
    return outputs, explanation, delegate.stats()["peak_device_bytes"] - before


def smallest(name: str, device: str) -> int:
    """The budget that the error names."""
    with pytest.raises(RuntimeError, match="smallest feasible budget is") as error:
        run(name, device, memory_budget=1)
    (size,) = re.findall(r"smallest feasible budget is .*?(\d+) bytes", str(error.value))
    return int(size)


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
def test_result_within_a_budget_is_the_same(name, device):
    want, without, _ = run(name, device)
    peak = without.peak_bytes
    least = smallest(name, device)
    for budget in (peak, peak // 2, peak // 4, least):
        try:
            got, explanation, counted = run(name, device, memory_budget=budget)
        except RuntimeError as error:
            if budget < least and "smallest feasible budget is" in str(error):
                continue
            raise
        assert explanation.peak_bytes <= budget
        assert counted <= budget
        # An emulated device has little memory, and what is copied from must lie there, too: plans
        # that it had no memory for after all have taken some, which is counted as well.
        if not any("did not have the memory" in note for note in explanation.notes):
            assert counted == pytest.approx(explanation.peak_bytes, rel=0.05)
        assert_close(got, want, LIMIT)


@pytest.mark.parametrize("name", ["mobilenet_v1", "unet"])
def test_no_object_is_larger_than_allowed(name, device):
    want, _, _ = run(name, device)
    model, inputs = _model(name)
    delegate = clgpu_delegate.load(device=device, max_object="1 MiB")
    interpreter = make_interpreter("auto", model, [delegate])  # the map ends with it
    got = run_interpreter(interpreter, inputs)
    objects = [item for part in delegate.memory_map().partitions for item in part.objects]
    assert max(item.bytes for item in objects) <= 2**20
    assert_close(got, want, LIMIT)


def blocks(side: int = 64, parts: int = 3, channels: int = 8) -> bytes:
    """Residual blocks of joined branches that need all rows, and a large image behind them."""
    rng = np.random.default_rng(5)
    m = ModelMaker()
    wide = parts * channels

    def convolution(x: int, size: int, cin: int, cout: int, kernel: int) -> int:
        weights = models.normal(rng, cout, kernel, kernel, cin) / np.float32(kernel * cin**0.5)
        return m.op(
            "CONV_2D", [x, m.constant(weights), m.constant(models.normal(rng, cout))],
            (1, size, size, cout), padding="SAME", stride_w=1, stride_h=1,
            fused_activation_function="RELU",
        )  # fmt: skip

    def gated(x: int) -> int:
        axes = m.constant(np.array([1, 2], np.int32))
        mean = m.op("MEAN", [x, axes], (1, 1, 1, channels), keep_dims=True)
        return m.op("MUL", [x, mean], (1, side, side, channels), fused_activation_function="NONE")

    def block(x: int, cin: int) -> int:
        branches = []
        for kernel in (3, 5, 7)[:parts]:
            y = gated(convolution(x, side, cin, channels, kernel))
            branches.append(gated(convolution(y, side, channels, channels, kernel)))
        return m.op(
            "CONCATENATION", branches, (1, side, side, wide),
            axis=3, fused_activation_function="NONE",
        )  # fmt: skip

    x = block(m.input("x", (1, side, side, 4)), 4)
    for _ in range(2):
        y = block(x, wide)
        x = m.op("ADD", [y, x], (1, side, side, wide), fused_activation_function="NONE")
    size = 2 * side
    x = m.op(
        "RESIZE_BILINEAR", [x, m.constant(np.array([size, size], np.int32))],
        (1, size, size, wide), align_corners=False, half_pixel_centers=False,
    )  # fmt: skip
    m.output(convolution(convolution(x, size, wide, wide, 3), size, wide, 3, 3))
    return m.build()


def test_blocks_of_concatenations_need_no_moves_in_a_sixth_of_the_memory(device):
    model = blocks()
    x = np.random.default_rng(0).random((1, 64, 64, 4), dtype=np.float32)

    def loaded(**options):
        delegate = clgpu_delegate.load(device=device, zero_copy="off", **options)
        interpreter = make_interpreter("auto", model, [delegate])
        return run_interpreter(interpreter, [x]), delegate.explain()

    want, full = loaded()
    got, explanation = loaded(memory_budget=full.peak_bytes * 17 // 100)
    assert_close(got, want, LIMIT)
    # As wholes, 1.6 MB of its 9.9 would hold neither a sum of two concatenations nor their parts.
    assert explanation.partitions[0].moved_bytes == 0


@pytest.mark.slow
def test_smallest_budget_is_far_below_what_is_taken_without_one(device):
    _, without, _ = run("alexnet", device)
    assert smallest("alexnet", device) < without.peak_bytes / 4


def test_budget_below_the_smallest_is_an_error_and_the_next_interpreter_works(device):
    least = smallest("lenet5", device)
    with pytest.raises(RuntimeError, match=f"smallest feasible budget is .*{least} bytes"):
        run("lenet5", device, memory_budget=least - 1)
    got, _, _ = run("lenet5", device, memory_budget=least)
    assert np.isfinite(got[0]).all()
