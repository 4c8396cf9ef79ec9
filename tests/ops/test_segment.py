"""SEGMENT_SUM and UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

UNSORTED = {
    "UNSORTED_SEGMENT_SUM": (np.add, 0, 0),
    "UNSORTED_SEGMENT_PROD": (np.multiply, 1, 1),
    "UNSORTED_SEGMENT_MAX": (np.maximum, np.finfo(np.float32).min, np.iinfo(np.int32).min),
    "UNSORTED_SEGMENT_MIN": (np.minimum, np.finfo(np.float32).max, np.iinfo(np.int32).max),
}
# Shapes of the data and the ids, and the number of segments.
CASES = [((7,), (7,), 3), ((5, 3), (5,), 4), ((2, 3, 5), (2, 3), 7), ((1, 9), (1,), 1)]


def model(name, shape, ids, segments, dtype=np.float32, kind=np.int32):
    m = ModelMaker()
    operands = [m.input("x", shape, dtype)]
    operands.append(m.input("i", ids, kind) if isinstance(ids, tuple) else m.constant(ids))
    if name != "SEGMENT_SUM":
        fixed = isinstance(segments, int)
        operands.append(m.constant(np.int32(segments)) if fixed else m.input("n", (), np.int32))
    inner = shape[np.ndim(ids) if not isinstance(ids, tuple) else len(ids) :]
    m.output(m.op(name, operands, (segments if isinstance(segments, int) else 1, *inner)))
    return m.build()


def reference(x, ids, segments, ufunc, first):
    flat = x.reshape(ids.size, -1)
    result = np.full(
        (segments, flat.shape[1]), first, np.float64 if x.dtype == np.float32 else x.dtype
    )
    for row, i in zip(flat, ids.reshape(-1)):
        if i >= 0:
            result[i] = ufunc(result[i], row)
    return result.astype(x.dtype).reshape(segments, *x.shape[ids.ndim :])


@pytest.mark.parametrize("name", UNSORTED)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unsorted(device, rng, name, case, dtype):
    shape, ids, segments = case
    x = half_exact(rng.integers(-9, 9, shape).astype(dtype))
    i = rng.integers(-1, segments, ids).astype(np.int32)
    ufunc, *first = UNSORTED[name]
    want = reference(x, i, segments, ufunc, first[dtype == np.int32])
    check(model(name, *case, dtype), [x, i], [want], device=device, precision="fp32")


def test_halves(device, precision, rng):
    x = half_exact(rng.standard_normal((9, 5)).astype(np.float32))
    i = np.int32([0, 2, 1, 0, 0, 3, 2, 1, 3])
    want = reference(x, i, 4, np.add, 0)
    content = model("UNSORTED_SEGMENT_SUM", (9, 5), (9,), 4)
    check(content, [x, i], [want], device=device, precision=precision, accumulation=3)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sorted(device, rng, dtype):
    ids = np.int32([0, 0, 1, 2, 2, 2])
    x = rng.integers(-9, 9, (6, 3)).astype(dtype)
    want = reference(x, ids, 3, np.add, 0)
    content = model("SEGMENT_SUM", (6, 3), ids, 3, dtype)
    # The runtimes have no reference kernel for it.
    check(content, [x], [want], device=device, precision="fp32", reference=False)


def test_operands_are_refused():
    def refused(why, *arguments):
        check_refused(model(*arguments), why)

    name = "UNSORTED_SEGMENT_SUM"
    refused("input is int64; supported: float32, int32", name, (3,), (3,), 2, np.int64)
    refused(
        "the input of ids is int64; supported: int32", name, (3,), (3,), 2, np.float32, np.int64
    )
    refused("input has rank 0; supported: 1 to 6", name, (), (), 2)
    refused("the input of ids has rank 2; supported: 1", name, (3,), (3, 1), 2)
    refused("the number of segments is 0; supported: 1 to 2147483647", name, (3,), (3,), 0)
    refused("ids [4] do not fit the input [3]", name, (3,), (4,), 2)
    ids = np.int32([0, 2, 1])
    why = "the ids of segments do not ascend from 0 by steps of 0 or 1"
    refused(why, "SEGMENT_SUM", (3,), ids, 2)
