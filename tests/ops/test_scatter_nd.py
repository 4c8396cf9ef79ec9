"""SCATTER_ND: slices are added to zeros, at places that indices name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, check, check_refused, half_exact

# Shapes of the indices and of the result.
CASES = [
    ((4, 1), (9,)),
    ((5, 1), (4, 3)),
    ((2, 3, 2), (3, 5, 7)),
    ((3, 4), (2, 3, 4, 5)),
    ((1,), (6, 2)),
]


def model(indices, shape, dtype=np.float32, kind=np.int32, updates=None, to=None):
    m = ModelMaker()
    wanted = (*indices[:-1], *shape[indices[-1] :])
    operands = [m.input("i", indices, kind), m.input("u", updates or wanted, dtype)]
    operands.append(
        m.constant(np.array(to or shape, np.int32)) if to != () else m.input("s", (MANY,), np.int32)
    )
    m.output(m.op("SCATTER_ND", operands, shape, dtype=dtype))
    return m.build()


def inputs_of(rng, indices, shape, dtype):
    depth = indices[-1]
    places = [rng.integers(0, size, indices[:-1]) for size in shape[:depth]]
    updates = rng.integers(-9, 99, (*indices[:-1], *shape[depth:])).astype(dtype)
    return [np.stack(places, -1).astype(np.int32), updates]


def reference(places, updates, shape):
    result = np.zeros(shape, np.int64 if updates.dtype != np.float32 else np.float64)
    np.add.at(result, tuple(np.moveaxis(places, -1, 0)), updates)
    return result.astype(updates.dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_floats(device, precision, rng, case):
    inputs = inputs_of(rng, *case, np.float32)
    want = reference(*inputs, case[1])
    check(model(*case), inputs, [half_exact(want)], device=device, precision=precision)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.uint8, np.bool_])
def test_other_types(device, rng, dtype):
    inputs = inputs_of(rng, (40, 1), (3, 2), dtype)
    want = reference(*inputs, (3, 2))
    content = model((40, 1), (3, 2), dtype)
    check(content, inputs, [want], device=device, precision="fp32")


def test_operands_are_refused():
    refused = check_refused
    refused(model((2, 1), (3,), kind=np.int64), "the input of indices is int64; supported: int32")
    refused(model((2, 1), (3,), np.int16), "the input of updates is int16; supported: float32")
    refused(model((2, 1), (3,), to=()), "the shape of the result is computed at run time")
    refused(model((2, 1), (3,), updates=(5,)), "do not fit the result [3]")
    refused(model((2, 1), (3,), to=(0,)), "a size of the result is 0; supported: 1 to 2147483647")
    many = model((2, 1), (3,), to=(1,) * 7)
    refused(many, "the shape of the result has more than 6 axes")
    m = ModelMaker()
    operands = [m.input("i", (), np.int32), m.input("u", (3,)), m.constant(np.int32([3]))]
    m.output(m.op("SCATTER_ND", operands, (3,), dtype=np.float32))
    refused(m.build(), "the input of indices has rank 0; supported: 1 to 6")
