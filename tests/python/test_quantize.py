"""quantize() writes integer models that both runtimes run, close to the float model."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests import runtimes
from tests.model_maker import ModelMaker
from tests.python.models import normal

CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
POOL = {**CONV, "filter_width": 2, "filter_height": 2}


def small_network() -> bytes:
    """Every kind of operation that a network for images is made of, once."""
    rng = np.random.default_rng(11)
    m = ModelMaker()
    x = m.input("image", (1, 9, 8, 3))
    padding = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    y = m.op("PAD", [x, padding], (1, 11, 10, 3))
    filters = m.constant(0.3 * normal(rng, 8, 3, 3, 3))
    y = m.op(
        "CONV_2D", [y, filters, m.constant(normal(rng, 8))], (1, 9, 8, 8),
        padding="VALID", stride_w=1, stride_h=1, fused_activation_function="RELU6",
    )  # fmt: skip
    deep = m.constant(0.4 * normal(rng, 1, 3, 3, 8))
    z = m.op(
        "DEPTHWISE_CONV_2D", [y, deep, m.constant(normal(rng, 8))], (1, 9, 8, 8),
        depth_multiplier=1, **CONV,
    )  # fmt: skip
    z = m.op("ADD", [z, y], (1, 9, 8, 8))
    z = m.op("RELU", [z], (1, 9, 8, 8))
    a = m.op("MAX_POOL_2D", [z], (1, 9, 8, 8), **POOL)
    b = m.op("AVERAGE_POOL_2D", [y], (1, 9, 8, 8), **POOL)
    y = m.op("CONCATENATION", [a, b], (1, 9, 8, 16), axis=3)
    y = m.op("MEAN", [y, m.constant(np.array([1, 2], np.int32))], (1, 16))
    y = m.op("RESHAPE", [y, m.constant(np.array([1, 16], np.int32))], (1, 16), new_shape=[1, 16])
    dense = m.constant(0.3 * normal(rng, 5, 16))
    y = m.op("FULLY_CONNECTED", [y, dense, m.constant(normal(rng, 5))], (1, 5))
    m.output(m.op("SOFTMAX", [y], (1, 5), beta=1.0))
    return m.build()


def samples(count: int = 6, shape: tuple[int, ...] = (1, 9, 8, 3)) -> list[np.ndarray]:
    rng = np.random.default_rng(12)
    return [normal(rng, *shape) for _ in range(count)]


@pytest.mark.parametrize("per_channel", [True, False])
def test_int8_network_is_close_to_the_float_network(per_channel, tmp_path, runtime):
    model, out = small_network(), tmp_path / "int8.tflite"
    report = clgpu_delegate.quantize(model, samples(), out, per_channel=per_channel)
    assert (report.quantized, len(report.layers)) == (12, 12)
    assert out.stat().st_size == report.bytes
    for resolver in ("builtin", "ref"):
        for x in samples(3):
            (expected,) = runtimes.run_reference(model, [x], runtime)
            (got,) = runtimes.run_reference(out.read_bytes(), [x], runtime, resolver)
            assert np.abs(got - expected).max() < 0.05
