"""Nodes that depend only on constants are computed once, at load time."""

from __future__ import annotations

import numpy as np

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.models.comparison import run_delegated
from tests.ops.harness import check
from tests.runtimes import make_interpreter, run_interpreter


def _transposed_weights(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """FULLY_CONNECTED whose weights come half, transposed and reshaped."""
    stored = rng.standard_normal((6, 5)).astype(np.float16)
    m = ModelMaker()
    x = m.input("x", (3, 6), np.float32)
    w = m.op("DEQUANTIZE", [m.constant(stored)], (6, 5), dtype=np.float32)
    w = m.op("TRANSPOSE", [w, m.constant(np.array([1, 0], np.int32))], (5, 6))
    w = m.op("RESHAPE", [w, m.constant(np.array([5, 6], np.int32))], (5, 6), new_shape=[5, 6])
    m.output(m.op("FULLY_CONNECTED", [x, w, m.constant(np.ones(5, np.float32))], (3, 5)))
    return m.build(), stored.astype(np.float64)


def test_a_chain_of_constants_is_folded(device, precision, rng):
    model, weights = _transposed_weights(rng)
    x = rng.standard_normal((3, 6)).astype(np.float32)
    if precision == "fp16":
        x = x.astype(np.float16).astype(np.float32)
    want = x.astype(np.float64) @ weights + 1
    check(model, [x], [want], device=device, precision=precision, accumulation=6, reference=False)


def test_an_inference_launches_and_uploads_nothing_for_constants(device, rng):
    model, _ = _transposed_weights(rng)
    x = rng.standard_normal((3, 6)).astype(np.float32)
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter("auto", model, [delegate])
    run_interpreter(interpreter, [x])
    interpreter.invoke()
    last = delegate.stats()["last_invoke"]
    assert last["launches"] == 1
    assert last["bytes_up"] == x.nbytes
    assert last["objects_created"] == 0


def test_a_constant_that_the_cpu_reads_is_left_to_it(rng):
    """Both sides have their own copy: no weight crosses the border in an inference."""
    weights = rng.standard_normal((5, 6)).astype(np.float16)
    m = ModelMaker()
    x = m.input("x", (3, 6), np.float32)
    w = m.op("DEQUANTIZE", [m.constant(weights)], (5, 6), dtype=np.float32)
    bias = m.constant(np.zeros(5, np.float32))
    m.output(m.op("FULLY_CONNECTED", [x, w, bias], (3, 5)))
    m.output(m.op("FULLY_CONNECTED", [x, w, bias], (3, 5)))
    model = m.build()
    value = rng.standard_normal((3, 6)).astype(np.float32)
    got, report = run_delegated("auto", model, [value], exclude=[2], zero_copy="off")
    assert [node["claimed"] for node in report["nodes"]] == [False, True, False]
    assert "constant" in report["nodes"][0]["reason"]
    assert report["partitions"][0]["bytes_up"] == value.nbytes
    np.testing.assert_allclose(got[0], got[1], rtol=1e-5, atol=1e-5)
