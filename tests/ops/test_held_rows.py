"""Inputs that are held between inferences: which rows are renewed, for each type of elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import OptionError
from tests.held import Held
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter

INTEGERS: list[Any] = [np.int8, np.uint8, np.int16, np.int32, np.int64]


def same_as(shape: tuple[int, ...], dtype: Any = np.float32, inputs: int = 1) -> bytes:
    """A model whose outputs are its inputs."""
    m = ModelMaker()
    small = np.dtype(dtype).itemsize < 4
    quantization = Quantization(0.5, 0) if small else None
    for i in range(inputs):
        x = m.input(f"x{i}", shape, dtype, quantization=quantization)
        m.output(m.op("MAXIMUM", [x, x], shape, dtype=dtype, quantization=quantization))
    return m.build()


def sequence(model: bytes, inputs: list[list[Any]], **options: Any) -> list[list[Any]]:
    """Outputs of one inference after the other."""
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    results = [run_interpreter(interpreter, x) for x in inputs]
    assert [node.index for node in delegate.explain().nodes if not node.claimed] == []
    return results


def assert_held(inputs: list[Any], outputs: list[Any], tolerance: float) -> None:
    held = Held(tolerance)
    for number, (x, got) in enumerate(zip(inputs, outputs)):
        np.testing.assert_array_equal(got, held.take(x), err_msg=f"inference {number}")


@pytest.mark.parametrize("shape", [(1, 7, 5, 3), (2, 3, 4, 5), (1, 70, 67), (3, 130), (5,)])
@pytest.mark.parametrize("tolerance", [0, 0.25])
def test_rows_are_renewed(shape, tolerance, device, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    inputs = [x, x]
    for _ in range(4):
        x = x + rng.uniform(-0.2, 0.2, shape).astype(np.float32)
        x.reshape(-1)[rng.integers(x.size)] += rng.choice([0, 1])
        inputs.append(x)
    model = same_as(shape)
    outputs = sequence(model, [[x] for x in inputs], device=device, reuse=tolerance)
    assert_held(inputs, [y for (y,) in outputs], tolerance)
    several = math.prod(shape[:-2]) > 1 and tolerance > 0  # otherwise each may have changed
    differ = [not np.array_equal(y, x) for (y,), x in zip(outputs, inputs)]
    assert any(differ) or not several


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_compared_in_steps(dtype, device, rng):
    info, shape = np.iinfo(dtype), (1, 6, 4, 3)
    x = rng.integers(-40, 40, shape).astype(dtype)
    inputs = [x]
    for row, step in enumerate([1, 3, 4, 5, 2]):
        x = x.copy()
        x[0, row, 2, 1] += np.array(step).astype(dtype)
        inputs.append(x)
    # Differences beyond the range of the type.
    inputs += [np.full(shape, info.max, dtype), np.full(shape, info.min, dtype)]
    outputs = sequence(same_as(shape, dtype), [[x] for x in inputs], device=device, reuse=3.7)
    assert_held(inputs, [y for (y,) in outputs], 3)


def test_numbers_that_are_not_finite_are_changes(device):
    x = np.zeros((1, 4, 2, 1), np.float32)
    x[0, 1, 0], x[0, 2, 0], x[0, 3, 0] = np.nan, np.inf, -np.inf
    other = x.copy()
    other[0, 0, 1] = other[0, 1, 1] = other[0, 2, 1] = 0.5
    outputs = sequence(same_as(x.shape), [[x], [x], [other]], device=device, reuse=1)
    assert_held([x, x, other], [y for (y,) in outputs], 1)
    assert outputs[2][0][0, 0, 1] == 0
    assert outputs[2][0][0, 2, 1] == 0.5


def test_each_input_has_its_own_rows(device, rng):
    shape = (1, 5, 4, 2)
    first = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    inputs = [first]
    for i, row in [(0, 2), (1, 0), (1, 4), (0, 0)]:
        later = [x.copy() for x in inputs[-1]]
        later[i][0, row] += 1
        later[1 - i][0, row] += 0.25
        inputs.append(later)
    outputs = sequence(same_as(shape, inputs=2), inputs, device=device, reuse=0.5)
    for i in range(2):
        assert_held([x[i] for x in inputs], [y[i] for y in outputs], 0.5)


def test_halves_are_compared_as_they_are_stored(device, rng):
    shape = (1, 5, 3, 4)
    x = rng.standard_normal(shape).astype(np.float16).astype(np.float32)
    later = x.copy()
    later[0, 1] += 0.25
    later[0, 3, 0, 0] += 1
    options = {"device": device, "precision": "fp16", "half_io": True, "reuse": 0.5}
    outputs = sequence(same_as(shape), [[x], [later]], **options)
    later = later.astype(np.float16).astype(np.float32)
    assert_held([x, later], [y for (y,) in outputs], 0.5)


@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), "some", True])
def test_tolerances_that_are_none(value):
    with pytest.raises(OptionError, match=r"'reuse'.*off, or a number from 0 on"):
        clgpu_delegate.load(reuse=value)
