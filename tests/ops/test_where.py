"""WHERE: the places of the elements that are not 0."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused

SHAPES = [(1,), (31,), (5, 13), (3, 4, 7), (2, 3, 2, 5), (2, 1, 3, 2, 3), (1, 2, 1, 3, 2, 2)]


def where(shape, dtype=bool, result=np.int64, condition=None) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype) if condition is None else m.constant(condition)
    m.output(m.op("WHERE", [x], (-1, max(len(shape), 1)), dtype=result))
    return m.build()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places(device, rng, shape):
    x = rng.random(shape) < 0.4
    x.flat[0] = True
    check(where(shape), [x], [np.argwhere(x)], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.int8, np.uint8])
def test_types(device, precision, rng, dtype):
    x = (rng.integers(0, 3, (7, 9)) * rng.integers(0, 2, (7, 9))).astype(dtype)
    x.flat[-1] = 1
    if dtype == np.float32:
        x.flat[:4] = [np.nan, -0.0, -0.5, np.inf]
    check(where((7, 9), dtype), [x], [np.argwhere(x)], device=device, precision=precision)


def test_many_chunks(device, rng):
    """More than the work-group that adds their numbers has work-items."""
    x = rng.random((70, 333)) < 0.1
    check(where((70, 333)), [x], [np.argwhere(x)], device=device, precision="fp32")


@pytest.mark.parametrize("share", [0, 1])
def test_none_and_all(device, share):
    """Without any, the CPU's kernels give the result, which has no elements."""
    x = np.full((5, 9), bool(share))
    if share:
        check(where((5, 9)), [x], [np.argwhere(x)], device=device, precision="fp32")
    else:
        check(where((5, 9)), [x], [np.argwhere(x)], device=device, precision="fp32",
              reference=False)  # fmt: skip


def test_operands_are_refused():
    check_refused(where((2, 3), np.int16), "input is int16; supported: bool, float32, int64")
    check_refused(where((2, 3), result=np.int32), "output is int32; supported: int64")
    check_refused(where(()), "input has rank 0; supported: 1 to 6")
