"""GATHER_ND."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused
from tests.ops.movement import TYPES, check_converts, random_array

# shape, shape of the indices: the last axis goes through the first axes of the input
CASES = [
    ((7,), (3, 1)),
    ((5, 8), (3, 1)),  # rows of eight: wide units
    ((5, 7), (3, 2)),
    ((3, 5, 7), (2, 3, 2)),
    ((2, 3, 5, 3), (2,)),
    ((2, 3, 2, 3, 2), (3, 5)),
]


def _indices(rng, shape, chosen, dtype=np.int32):
    columns = [rng.integers(0, n, chosen[:-1], dtype) for n in shape[: chosen[-1]]]
    return np.stack(columns, -1)


def _gather_nd(x, indices):
    return x[tuple(np.moveaxis(indices, -1, 0))]


def _model(shape, indices, dtype=np.float32):
    m = ModelMaker()
    x, i = m.input("x", shape, dtype), m.input("indices", indices.shape, indices.dtype)
    result = _gather_nd(np.empty(shape), np.zeros_like(indices)).shape
    m.output(m.op("GATHER_ND", [x, i], result, dtype=dtype))
    return m.build()


@pytest.mark.parametrize(("shape", "chosen"), CASES)
def test_slices_are_chosen_by_rows_of_indices(shape, chosen, rng, device, precision):
    x, indices = random_array(rng, shape), _indices(rng, shape, chosen)
    check(
        _model(shape, indices),
        [x, indices],
        [_gather_nd(x, indices)],
        device=device,
        precision=precision,
        half_io=precision == "fp16",
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (5, 3), dtype)
    indices = _indices(rng, x.shape, (4, 1), np.int64)
    model = _model(x.shape, indices, dtype)
    wanted = [_gather_nd(x, indices)]
    known = dtype is not np.bool_  # to the stock kernel
    check(model, [x, indices], wanted, device=device, precision="fp32", reference=known)


def test_float_becomes_half_and_back(rng, device):
    indices = _indices(rng, (5, 7), (3, 1))

    def add(m, x):
        return m.op("GATHER_ND", [x, m.constant(indices)], (3, 7))

    x = random_array(rng, (5, 7))
    check_converts(add, lambda x: _gather_nd(x, indices), x, device=device)


def test_indices_outside_of_the_input_yield_zeros(rng, device):
    x = random_array(rng, (3, 5))
    indices = np.array([[1, 4], [-1, 2], [1, 5], [2**31 - 1, 0]], np.int32)
    # The stock kernel stops with an error.
    options = {"device": device, "precision": "fp32", "reference": False}
    check(_model(x.shape, indices), [x, indices], [np.array([x[1, 4], 0, 0, 0])], **options)


def test_output_follows_resized_indices(rng, device):
    x = random_array(rng, (3, 5))
    indices = _indices(rng, x.shape, (4, 2))
    check(
        _model(x.shape, indices[:1]),
        [x, indices],
        [_gather_nd(x, indices)],
        device=device,
        precision="fp32",
        resize={1: (4, 2)},
    )


def _refused(shape, indices, result, reason):
    m = ModelMaker()
    m.output(m.op("GATHER_ND", [m.input("x", shape), m.constant(indices)], result))
    check_refused(m.build(), reason)


def test_indices_of_another_type_are_refused():
    _refused((3,), np.zeros((2, 1), np.uint8), (2,), "the tensor of indices is uint8")


def test_a_single_index_is_refused():
    _refused((3,), np.int32(0), (3,), "the tensor of indices has rank 0; supported: 1 to 6")


def test_rows_longer_than_the_input_has_axes_are_refused():
    reason = "rows of 2 indices for an input of shape [3]"
    _refused((3,), np.zeros((1, 2), np.int32), (1,), reason)
