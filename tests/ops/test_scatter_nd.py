"""SCATTER_ND and SPARSE_TO_DENSE: numbers go to places that indices name."""

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


# Shapes of the indices and the values, and the result.
SPARSE = [
    ((), (), (7,)),
    ((5,), (5,), (9,)),
    ((5,), (), (9,)),
    ((6, 2), (6,), (3, 5)),
    ((7, 3), (), (2, 3, 4)),
    ((9, 4), (9,), (2, 3, 2, 5)),
]


def sparse(indices, values, shape, dtype=np.float32, kind=np.int32, *, to=None, rest=None):
    m = ModelMaker()
    x = m.input("i", indices, kind)
    size = m.constant(np.array(shape, kind)) if to is None else to(m)
    operands = [x, size, m.input("v", values, dtype), rest(m) if rest else m.input("d", (), dtype)]
    m.output(m.op("SPARSE_TO_DENSE", operands, shape, dtype=dtype))
    return m.build()


def sparse_inputs(rng, indices, values, shape, dtype, kind):
    if len(indices) < 2:
        places = rng.integers(0, shape[0], indices)
    else:
        places = np.stack([rng.integers(0, size, indices[:1]) for size in shape], -1)
    numbers = [np.array(rng.integers(0, 99, like), dtype) for like in (values, ())]
    return [np.array(places, kind), *numbers]


def dense(places, values, rest, shape):
    result = np.full(shape, rest)
    rows = places.reshape(-1, len(shape))
    for i, row in enumerate(rows):
        result[tuple(row)] = values.ravel()[i if values.ndim else 0]
    return result


@pytest.mark.parametrize("case", SPARSE, ids=str)
def test_sparse_floats(device, precision, rng, case):
    inputs = sparse_inputs(rng, *case, np.float32, np.int32)
    want = dense(*inputs, case[2])
    check(sparse(*case), inputs, [want], device=device, precision=precision)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.uint8])
def test_sparse_integers_of_which_the_last_one_counts(device, rng, dtype, kind):
    case = ((40, 2), (40,), (3, 5))
    inputs = sparse_inputs(rng, *case, dtype, kind)
    content = sparse(*case, dtype, kind)
    check(content, inputs, [dense(*inputs, case[2])], device=device, precision="fp32")


def test_sparse_operands_are_refused():
    case = ((2, 1), (2,), (3,))
    check_refused(sparse(*case, kind=np.int16), "the input of indices is int16; supported: int32")
    check_refused(sparse(*case, np.int16), "the input of values is int16; supported: float32")
    cube = sparse((2, 1, 1), (2,), (3,))
    check_refused(cube, "the input of indices has rank 3; supported: 0 to 2")
    matrix = sparse((2, 1), (2, 1), (3,))
    check_refused(matrix, "the input of values has rank 2; supported: 0 to 1")
    other = sparse(*case, rest=lambda m: m.input("d", (), np.int32))
    check_refused(other, "the default value is int32; supported: float32")
    several = sparse(*case, rest=lambda m: m.input("d", (1,)))
    check_refused(several, "the default value has rank 1; supported: 0")
    moving = sparse(*case, to=lambda m: m.input("s", (MANY,), np.int32))
    check_refused(moving, "the shape of the result is computed at run time")
    many = sparse((2, 5), (2,), (1,) * 5)
    check_refused(many, "the shape of the result has more than 4 axes")
    check_refused(sparse((2, 2), (2,), (3,)), "values [2] at indices [2, 2] do not fit the result")
    check_refused(sparse((2, 1), (3,), (3,)), "values [3] at indices [2, 1] do not fit the result")
