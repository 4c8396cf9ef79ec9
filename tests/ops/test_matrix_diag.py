"""MATRIX_DIAG and MATRIX_SET_DIAG."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

TYPES = [np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8]


def numbers(rng, shape, dtype):
    return half_exact(rng.integers(1, 99, shape).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_diagonals_become_matrices(device, precision, rng, dtype):
    shapes = [(1,), (7,), (2, 3), (2, 1, 5)]
    m = ModelMaker()
    for i, s in enumerate(shapes):
        m.output(m.op("MATRIX_DIAG", [m.input(f"x{i}", s, dtype)], (*s, s[-1])))
    inputs = [numbers(rng, s, dtype) for s in shapes]
    want = [x[..., None] * np.eye(x.shape[-1], dtype=dtype) for x in inputs]
    check(m.build(), inputs, want, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_diagonals_are_replaced(device, precision, rng, dtype):
    shapes = [(1, 1), (3, 5), (5, 3), (2, 3, 4, 4)]
    m = ModelMaker()
    inputs, want = [], []
    for i, s in enumerate(shapes):
        least = min(s[-2:])
        x, d = numbers(rng, s, dtype), numbers(rng, (*s[:-2], least), dtype)
        operands = [m.input(f"x{i}", s, dtype), m.input(f"d{i}", d.shape, dtype)]
        m.output(m.op("MATRIX_SET_DIAG", operands, s))
        result = x.copy()
        result[..., range(least), range(least)] = d
        inputs += [x, d]
        want.append(result)
    check(m.build(), inputs, want, device=device, precision=precision)


def test_operands_are_refused():
    for shape, diagonal, types, why in (
        ((2, 2), (2,), (np.bool_, np.bool_), "input is bool; supported: float32"),
        ((2,), (2,), (np.float32, np.float32), "input has rank 1; supported: 2 to 6"),
        ((2, 2), (3,), (np.float32, np.float32), "diagonals [3] do not fit matrices [2, 2]"),
        (
            (2, 2),
            (2,),
            (np.float32, np.int32),
            "the matrices and the diagonals have different types",
        ),
    ):
        m = ModelMaker()
        operands = [m.input("x", shape, types[0]), m.input("d", diagonal, types[1])]
        m.output(m.op("MATRIX_SET_DIAG", operands, shape, dtype=types[0]))
        check_refused(m.build(), why)
