"""Normalisations and gates in products of matrices, where a device cannot compute them together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker, Quantization
from tests.runtimes import make_interpreter

DEPTH, HIDDEN = 128, 48
EPSILON = 1e-3


@pytest.fixture
def tensor_cores(device) -> Iterator[str]:
    """A device that is said to have NVIDIA's tensor cores: their kernels do not build on others."""
    had = clgpu_delegate.devices()[int(device)].abilities()
    codes = {"none": 0, "khronos": 1, "arm": 2, "nvidia": 3}
    facts = {"half_arithmetic": had.half_arithmetic, "mma_tf32": had.mma_tf32}
    _core.pretend_probe(device, mma_f16=True, mma_s8=had.mma_s8, dot8=codes[had.dot8], **facts)
    yield device
    _core.stop_pretending(device)


def integers(
    m: ModelMaker, rng: np.random.Generator, rows: int, cols: int
) -> tuple[int, np.ndarray]:
    stored = rng.integers(-7, 8, (rows, cols), np.int8)
    scales = rng.uniform(0.01, 0.02, rows).astype(np.float32)
    quantization = Quantization(scales)
    return m.constant(stored, quantization=quantization), stored * scales[:, None].astype(float)


def test_parts_run_one_after_the_other_where_the_kernel_does_not_build(tensor_cores, rng):
    m = ModelMaker()
    x = m.input("x", (1, 1, DEPTH))
    mean = m.op("MEAN", [m.op("MUL", [x, x], (1, 1, DEPTH)), m.constant(np.array([-1], np.int32))],
                (1, 1, 1), keep_dims=True)  # fmt: skip
    mean = m.op("ADD", [mean, m.constant(np.array([EPSILON], np.float32))], (1, 1, 1))
    unit = m.op("MUL", [x, m.op("RSQRT", [mean], (1, 1, 1))], (1, 1, DEPTH))
    factors = rng.uniform(0.5, 1.5, DEPTH).astype(np.float32)
    normal = m.op("MUL", [unit, m.constant(factors)], (1, 1, DEPTH))
    gate_weights, gate_real = integers(m, rng, HIDDEN, DEPTH)
    up_weights, up_real = integers(m, rng, HIDDEN, DEPTH)
    shape = (1, 1, HIDDEN)
    gate, up = (
        m.op("FULLY_CONNECTED", [normal, weights], shape, keep_num_dims=True)
        for weights in (gate_weights, up_weights)
    )
    gate = m.op("MUL", [gate, m.op("LOGISTIC", [gate], shape)], shape)
    m.output(m.op("MUL", [gate, up], shape))
    delegate = clgpu_delegate.load(device=tensor_cores, precision="fp16", cache="off")
    interpreter = make_interpreter("auto", m.build(), [delegate], resolver="no_delegate")
    interpreter.allocate_tensors()
    steps = [step for step in delegate.explain().steps if step.pass_name == "fuse_products"]
    assert len(steps) == 3
    value = rng.standard_normal((1, 1, DEPTH)).astype(np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0, 0]
    row = value[0, 0].astype(np.float64)
    row = row / np.sqrt((row**2).mean() + EPSILON) * factors
    a, b = gate_real @ row, up_real @ row
    np.testing.assert_allclose(got, a / (1 + np.exp(-a)) * b, rtol=0, atol=5e-3)
