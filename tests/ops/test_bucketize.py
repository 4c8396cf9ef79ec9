"""BUCKETIZE: the interval between boundaries that a number lies in."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

BOUNDARIES = [-3.5, -1.0, 0.0, 0.0, 2.0, 100.0, 1e9]


def model(shape: tuple, boundaries: list[float], dtype=np.float32, result=np.int32) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype)
    boundaries = np.array(boundaries, np.float32)
    m.output(m.op("BUCKETIZE", [x], shape, dtype=result, boundaries=boundaries))
    return m.build()


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("boundaries", [BOUNDARIES, [1.5]], ids=len)
def test_numbers_find_their_interval(boundaries, dtype, device, precision, rng):
    x = rng.uniform(-6, 6, (3, 5, 7)).astype(dtype)
    x[0, 0] = [-4, -1, 0, 2, 100, 101, 120]  # on the boundaries
    x = half_exact(x) if dtype == np.float32 else x
    if dtype != np.float32:
        x[1, 0] = 10**9 - 40 + np.arange(7) * 20  # the boundary after rounding, from 10^9 - 32 on
    expected = np.searchsorted(np.float32(boundaries), x.astype(np.float32), "right")
    check(
        model(x.shape, boundaries, dtype), [x], [expected], device=device, precision=precision
    )  # fmt: skip


def test_nan_and_infinities(device):
    x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    check(model((4,), BOUNDARIES), [x], [[7, 7, 0, 4]], device=device, precision="fp32")


def test_a_scalar(device):
    check(model((), [0.5]), [np.float32(0.5)], [np.int32(1)], device=device, precision="fp32")


@pytest.mark.parametrize(
    ("boundaries", "types", "reason"),
    [
        ([2.0, 1.0], {}, "the boundaries do not ascend"),
        ([1.0], {"dtype": np.int16}, "input is int16; supported: float32, int32, int64"),
        ([1.0], {"result": np.int64}, "output is int64; supported: int32"),
    ],
)
def test_other_types_and_boundaries_are_refused(boundaries, types, reason):
    check_refused(model((3,), boundaries, **types), reason)
