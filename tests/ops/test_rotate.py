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
    "several_pairs_a_work_item": Case((1, 64, 33, 64), (1, 64, 1, 32)),
    "several_pairs_full": Case((1, 64, 33, 64), (1, 64, 1, 64), "full"),
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


class Update(NamedTuple):
    """Shapes of a cache, of the turned part of it and of the tables, and where the part begins."""

    cache: tuple[int, ...]
    part: tuple[int, ...]
    table: tuple[int, ...]
    start: tuple[int, ...]


UPDATES = {
    "row_of_heads": Update((1, 9, 3, 8), (1, 1, 3, 8), (1, 1, 1, 4), (0, 4, 0, 0)),
    "several_rows": Update((2, 9, 2, 6), (2, 4, 2, 6), (1, 4, 1, 3), (0, 2, 0, 0)),
    "moved_to_the_end": Update((1, 5, 2, 4), (1, 2, 1, 4), (1, 2, 1, 4), (0, 9, 7, 3)),
    "moved_to_the_start": Update((5, 14), (2, 14), (1, 7), (-4, -1)),
    "rank_6": Update((2, 3, 1, 2, 3, 4), (1, 2, 1, 2, 2, 4), (2, 1, 1, 2, 2), (1, 1, 0, 0, 1, 0)),
    "several_pairs_a_work_item": Update(
        (1, 70, 33, 64), (1, 64, 33, 64), (1, 64, 1, 32), (0, 3, 0, 0)
    ),
    "whole": Update((3, 70, 8), (3, 70, 8), (70, 4), (0, 0, 0)),
}


def add_rotation(m: ModelMaker, x: int, cosine: int, sine: int) -> int:
    """The operations of `turned_of`."""
    shape = m.shape(x)
    half = (*shape[:-1], shape[-1] // 2)
    axis = m.constant(np.int32(len(shape) - 1))
    a, b = m.op("SPLIT", [axis, x], [half, half], dtype=np.float32, num_splits=2)
    crossed = m.op("CONCATENATION", [m.op("NEG", [b], half), a], shape, axis=-1)
    if m.shape(cosine)[-1] == half[-1]:
        low = m.op("SUB", [m.op("MUL", [a, cosine], half), m.op("MUL", [b, sine], half)], half)
        high = m.op("ADD", [m.op("MUL", [b, cosine], half), m.op("MUL", [a, sine], half)], half)
        return m.op("CONCATENATION", [low, high], shape, axis=len(shape) - 1)
    return m.op(
        "ADD", [m.op("MUL", [x, cosine], shape), m.op("MUL", [crossed, sine], shape)], shape
    )


def turned_of(x: np.ndarray, cosine: np.ndarray, sine: np.ndarray) -> np.ndarray:
    """In float64."""
    x, cosine, sine = (i.astype(np.float64) for i in (x, cosine, sine))
    half = x.shape[-1] // 2
    if cosine.shape[-1] == half:
        cosine, sine = (np.concatenate([table, table], -1) for table in (cosine, sine))
    return x * cosine + np.concatenate([-x[..., half:], x[..., :half]], -1) * sine


@pytest.mark.parametrize("name", list(UPDATES))
def test_turned_rows_are_written_to_a_cache(name, device, precision, rng):
    case = UPDATES[name]
    m = ModelMaker()
    cache, part = m.input("cache", case.cache), m.input("part", case.part)
    cosine, sine = m.input("cosine", case.table), m.input("sine", case.table)
    start = m.input("start", (len(case.cache),), np.int32)
    turned = add_rotation(m, part, cosine, sine)
    m.output(m.op("DYNAMIC_UPDATE_SLICE", [cache, turned, start], case.cache))
    old, *rest = (
        half_exact(rng.standard_normal(shape).astype(np.float32))
        for shape in (case.cache, case.part, case.table, case.table)
    )
    expected = old.astype(np.float64)
    first = np.clip(case.start, 0, np.array(case.cache) - case.part)
    expected[tuple(slice(f, f + n) for f, n in zip(first, case.part))] = turned_of(*rest)
    inputs = [old, *rest, np.array(case.start, np.int32)]
    check(m.build(), inputs, [expected], device=device, precision=precision, accumulation=2)


@pytest.mark.parametrize("half_cache", [False, True])
def test_turned_rows_change_a_carried_cache_in_place(half_cache, device, rng):
    rows, heads, depth = 40, 2, 128 if half_cache else 8  # large carried tensors are half with fp16
    m = ModelMaker()
    cache, part = m.input("cache", (1, rows, heads, depth)), m.input("part", (1, 1, heads, depth))
    cosine, sine = (m.input(name, (1, 1, 1, depth // 2)) for name in ("cosine", "sine"))
    start = m.input("start", (4,), np.int32)
    turned = add_rotation(m, part, cosine, sine)
    after = m.op("DYNAMIC_UPDATE_SLICE", [cache, turned, start], (1, rows, heads, depth))
    m.output(after, m.op("SUM", [after, m.constant(np.array([2, 3], np.int32))], (1, rows)))
    precision = "fp16" if half_cache else "fp32"
    delegate = clgpu_delegate.load(
        device=device, carry={"cache": {0: (cache, after)}}, precision=precision
    )
    interpreter = make_interpreter("auto", m.build(), [delegate])
    interpreter.allocate_tensors()
    details = {d["name"]: d["index"] for d in interpreter.get_input_details()}
    expected = np.zeros((rows, heads, depth))
    for at in (3, 39, 3):
        values = {
            "part": rng.standard_normal((1, 1, heads, depth)).astype(np.float32),
            "cosine": rng.standard_normal((1, 1, 1, depth // 2)).astype(np.float32),
            "sine": rng.standard_normal((1, 1, 1, depth // 2)).astype(np.float32),
        }
        for key, value in values.items():
            interpreter.set_tensor(details[key], value)
        interpreter.set_tensor(details["start"], np.array([0, at, 0, 0], np.int32))
        interpreter.invoke()
        expected[at] = turned_of(*values.values())[0, 0]
        got = interpreter.get_tensor(interpreter.get_output_details()[1]["index"])
        tolerance = 5e-3 * depth**0.5 if half_cache else 1e-5
        np.testing.assert_allclose(got[0], expected.sum((1, 2)), rtol=0, atol=tolerance)
    assert delegate.stats()["last_invoke"]["launches"] == 2
