"""REVERSE_SEQUENCE: each sequence of a batch is reversed up to its own length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

CASES = [((4, 7), 1, 0), ((7, 4), 0, 1), ((3, 2, 5, 3), 2, 0), ((2, 3, 5, 7), 1, 3)]


def model(shape, sequence, batch, dtype=np.float32, lengths=np.int32, count=None):
    m = ModelMaker()
    count = shape[batch] if count is None else count
    inputs = [m.input("x", shape, dtype), m.input("n", (count,), lengths)]
    m.output(m.op("REVERSE_SEQUENCE", inputs, shape, seq_dim=sequence, batch_dim=batch))
    return m.build()


def reference(x, lengths, sequence, batch):
    y = np.moveaxis(x.copy(), (batch, sequence), (0, 1))
    for row, length in zip(y, lengths):
        row[:length] = row[:length][::-1].copy()
    return np.ascontiguousarray(np.moveaxis(y, (0, 1), (batch, sequence)))


@pytest.mark.parametrize("lengths", [np.int32, np.int64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_floats(device, precision, rng, case, lengths):
    shape, sequence, batch = case
    x = half_exact(rng.standard_normal(shape).astype(np.float32))
    n = rng.integers(0, shape[sequence], shape[batch], lengths, endpoint=True)
    want = reference(x, n, sequence, batch)
    content = model(*case, lengths=lengths)
    check(content, [x, n], [want], device=device, precision=precision)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int16, np.uint8])
def test_integers(device, rng, dtype):
    case = (3, 5, 2), 1, 0
    x = rng.integers(0, 99, case[0]).astype(dtype)
    n = np.array([5, 0, 3], np.int32)
    want = reference(x, n, 1, 0)
    check(model(*case, dtype=dtype), [x, n], [want], device=device, precision="fp32")


def test_lengths_beyond_the_axis_are_cut(device, rng):
    x = rng.standard_normal((4, 6)).astype(np.float32)
    n = np.array([-(2**31) - 1, -(2**32) + 4, 2**40, -1], np.int64)
    want = reference(x, np.clip(n, 0, 6), 1, 0)
    content = model((4, 6), 1, 0, lengths=np.int64)
    check(content, [x, n], [want], device=device, precision="fp32", reference=False)


def refused(why, *case, **more):
    check_refused(model(*case, **more), why)


def test_operands_are_refused():
    refused("input is bool; supported: float32", (2, 3), 1, 0, dtype=np.bool_)
    refused("the input of lengths is float32; supported: int32", (2, 3), 1, 0, lengths=np.float32)
    refused("input has rank 1; supported: 2 to 6", (2,), 0, 0)
    refused("the axes of sequences and batches are not two axes of the input", (2, 3), 1, 1)
    refused("the axes of sequences and batches are not two axes of the input", (2, 3), 2, 0)
    refused("5 lengths do not fit 2 sequences", (2, 3), 1, 0, count=5)
    m = ModelMaker()
    inputs = [m.input("x", (2, 3)), m.input("n", (1, 2), np.int32)]
    m.output(m.op("REVERSE_SEQUENCE", inputs, (2, 3), seq_dim=1, batch_dim=0))
    check_refused(m.build(), "the input of lengths has rank 2; supported: 1")
