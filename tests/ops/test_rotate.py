"""Rotations of pairs of numbers: one node, made of the operations that converters write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check, half_exact, op_runtime
from tests.runtimes import make_interpreter


class Case(NamedTuple):
    """Shapes of x and of the tables, and how the operations are written."""

    shape: tuple[int, ...]
    table: tuple[int, ...]
    form: str = "halves"


CASES = {
    "heads": Case((1, 5, 3, 8), (1, 5, 1, 4)),
    "odd_half": Case((2, 3, 2, 14), (1, 3, 1, 7)),
    "every_element": Case((2, 3, 5, 6), (2, 3, 5, 3)),
    "pair": Case((3, 2), (1, 1)),
    "lower_rank": Case((2, 4, 3, 10), (3, 5)),
    "rank_6": Case((2, 1, 3, 2, 5, 4), (1, 3, 1, 5, 2)),
    "long": Case((1, 70, 9, 64), (1, 70, 1, 32)),
    "split": Case((1, 5, 3, 8), (1, 5, 1, 4), "split"),
    "full": Case((1, 5, 3, 8), (1, 5, 1, 8), "full"),
    "full_by_minus_one": Case((2, 3, 14), (3, 14), "minus_one"),
}


def make_model(case: Case) -> bytes:
    m = ModelMaker()
    x = m.input("x", case.shape)
    cosine, sine = m.input("cosine", case.table), m.input("sine", case.table)
    rank, half = len(case.shape), (*case.shape[:-1], case.shape[-1] // 2)
    if case.form == "split":
        axis = m.constant(np.int32(rank - 1))
        a, b = m.op("SPLIT", [axis, x], [half, half], dtype=np.float32, num_splits=2)
    else:
        size = m.constant(np.array(half, np.int32))
        begins = [m.constant(np.array([0] * (rank - 1) + [at], np.int32)) for at in (0, half[-1])]
        a, b = (m.op("SLICE", [x, begin, size], half) for begin in begins)
    if case.form in ("halves", "split"):
        low = m.op("SUB", [m.op("MUL", [a, cosine], half), m.op("MUL", [b, sine], half)], half)
        # Either order of factors and of summands.
        high = m.op("ADD", [m.op("MUL", [sine, a], half), m.op("MUL", [b, cosine], half)], half)
        y = m.op("CONCATENATION", [low, high], case.shape, axis=rank - 1)
    else:
        if case.form == "full":
            b = m.op("NEG", [b], half)
        else:
            b = m.op("MUL", [b, m.constant(np.float32(-1))], half)
        turned = m.op("CONCATENATION", [b, a], case.shape, axis=-1)
        y = m.op(
            "ADD",
            [m.op("MUL", [x, cosine], case.shape), m.op("MUL", [turned, sine], case.shape)],
            case.shape,
        )
    m.output(y)
    return m.build()


@pytest.mark.parametrize("name", list(CASES))
def test_rotations_match_numpy(name, device, precision, rng):
    case = CASES[name]
    inputs = [
        half_exact(rng.standard_normal(shape).astype(np.float32))
        for shape in (case.shape, case.table, case.table)
    ]
    x, cosine, sine = (i.astype(np.float64) for i in inputs)
    half = case.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], -1)
    if case.table[-1] == half:
        cosine, sine = (np.concatenate([table, table], -1) for table in (cosine, sine))
    check(
        make_model(case), inputs, [x * cosine + turned * sine], device=device,
        precision=precision, accumulation=2,
    )  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_a_rotation_is_one_launch(name):
    delegate = clgpu_delegate.load()
    make_interpreter(op_runtime(), make_model(CASES[name]), [delegate]).allocate_tensors()
    (partition,) = delegate.explain().partitions
    assert partition.launches == 1
