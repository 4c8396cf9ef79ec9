"""Small launches side by side in one launch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

DEPTH, WIDTHS = 19, (5, 33, 12)

# Their kernels have forms with local memory, of which drivers report none where it is not used.
pytestmark = pytest.mark.skipif(
    "CLGPU_LIMITS" in os.environ, reason="products of mobile GPUs are no members of bundles"
)


@pytest.fixture(scope="module")
def model() -> bytes:
    """Three products of the same rows, each behind the use of the one before it.

    They have different sizes; one has an activation, and one no bias. Their sums are added up.
    """
    m = ModelMaker()
    rng = np.random.default_rng(3)
    x = m.input("x", (2, DEPTH))
    total = None
    for i, width in enumerate(WIDTHS):
        operands = [x, m.constant(rng.standard_normal((width, DEPTH)).astype(np.float32))]
        operands.append(m.constant(rng.standard_normal(width).astype(np.float32)) if i else -1)
        y = m.op(
            "FULLY_CONNECTED",
            operands,
            (2, width),
            fused_activation_function="RELU" if i == 1 else "NONE",
        )
        # Not an activation that moves into the product.
        y = m.op("SIN", [y], (2, width))
        y = m.op("SUM", [y, m.constant(np.array([1], np.int32))], (2, 1), keep_dims=True)
        total = y if total is None else m.op("ADD", [total, y], (2, 1))
    m.output(total)
    return m.build()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(7).standard_normal((2, DEPTH)).astype(np.float32)


def load(model: bytes, **options: Any) -> tuple[Any, Any]:
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter("auto", model, [delegate], resolver="no_delegate")
    interpreter.allocate_tensors()
    return delegate, interpreter


def infer(interpreter: Any, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def of(delegate: Any) -> dict[str, int]:
    (bundles,) = delegate.stats()["bundles"]
    return bundles


def launches(delegate: Any) -> int:
    return delegate.stats()["last_invoke"]["launches"]


def test_products_of_one_input_take_one_launch(model, x, device):
    delegate, interpreter = load(model, device=device, cache="off")
    alone, single = load(model, device=device, cache="off", chain="off")
    got, expected = infer(interpreter, x), infer(single, x)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    reference = make_interpreter("auto", model, [], resolver="ref")
    reference.allocate_tensors()
    np.testing.assert_allclose(got, infer(reference, x), rtol=1e-5, atol=1e-5)
    assert of(alone) == {"partition": 0, "kernels": 0, "launches": 0, "reason": ""}
    assert of(delegate) == {"partition": 0, "kernels": 1, "launches": len(WIDTHS), "reason": ""}
    if not delegate.stats()["chains"][0]["kernels"]:
        assert launches(delegate) == launches(alone) - len(WIDTHS) + 1


def test_different_kernels_take_one_launch(device):
    m = ModelMaker()
    x, table = m.input("x", (1, 2, 8)), m.input("table", (1, 1, 4))
    cache, row = m.input("cache", (1, 6, 8)), m.input("row", (1, 1, 8))
    start = m.constant(np.array([0, 2, 0], np.int32))
    half = (1, 2, 4)
    a, b = m.op("SPLIT", [m.constant(np.int32(2)), x], [half, half], dtype=np.float32, num_splits=2)
    low = m.op("SUB", [m.op("MUL", [a, table], half), m.op("MUL", [b, table], half)], half)
    high = m.op("ADD", [m.op("MUL", [b, table], half), m.op("MUL", [a, table], half)], half)
    turned = m.op("CONCATENATION", [low, high], (1, 2, 8), axis=2)
    updated = m.op("DYNAMIC_UPDATE_SLICE", [cache, row, start], (1, 6, 8))
    # Results of a partition are no members.
    m.output(m.op("SIN", [turned], (1, 2, 8)), m.op("SIN", [updated], (1, 6, 8)))
    content = m.build()
    delegate, interpreter = load(content, device=device, cache="off")
    alone, single = load(content, device=device, cache="off", chain="off")
    rng = np.random.default_rng(5)
    values = [rng.standard_normal(d["shape"]).astype(np.float32)
              for d in interpreter.get_input_details()]  # fmt: skip
    for one in (interpreter, single):
        for detail, value in zip(one.get_input_details(), values):
            one.set_tensor(detail["index"], value)
        one.invoke()
    for got, expected in zip(interpreter.get_output_details(), single.get_output_details()):
        np.testing.assert_array_equal(
            interpreter.get_tensor(got["index"]), single.get_tensor(expected["index"])
        )
    assert of(delegate) == {"partition": 0, "kernels": 1, "launches": 2, "reason": ""}
    assert of(alone)["kernels"] == 0


def test_many_inferences_and_moved_tensors_give_the_same(model, device):
    delegate, interpreter = load(model, device=device)
    _, single = load(model, device=device, chain="off")
    rng = np.random.default_rng(0)
    for i in range(20):
        if i % 5 == 4:
            interpreter.allocate_tensors()
        x = rng.standard_normal((2, DEPTH)).astype(np.float32)
        np.testing.assert_allclose(infer(interpreter, x), infer(single, x), rtol=1e-5, atol=1e-5)
    assert of(delegate)["kernels"] == 1


def test_recorded_inferences_show_each_launch(model, x, device):
    delegate, interpreter = load(model, device=device, profile=True)
    infer(interpreter, x)
    assert of(delegate)["kernels"] == 0
    launched = [launch.op for launch in delegate.profile().launches]
    assert launched.count("FULLY_CONNECTED") == len(WIDTHS)


def test_kernel_that_does_not_build_leaves_the_launches(model, x, device):
    _, single = load(model, device=device, cache="off", chain="off")
    expected = infer(single, x)
    _core.override_kernel_source("common/chain_stage.cl", "#error of a test\n")
    try:
        delegate, interpreter = load(model, device=device, cache="off")
        np.testing.assert_array_equal(infer(interpreter, x), expected)
        assert of(delegate)["kernels"] == 0
    finally:
        _core.override_kernel_source("common/chain_stage.cl", None)


def test_results_of_the_partition_are_no_members(device):
    """The application may give them the memory of an input."""
    m = ModelMaker()
    rng = np.random.default_rng(3)
    x = m.input("x", (1, DEPTH))
    for width in WIDTHS:
        weights = m.constant(rng.standard_normal((width, DEPTH)).astype(np.float32))
        m.output(m.op("FULLY_CONNECTED", [x, weights], (1, width)))
    delegate, _ = load(m.build(), device=device)
    assert of(delegate)["kernels"] == 0
