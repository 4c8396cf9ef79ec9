"""BITCAST: the same bits as elements of another type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

# Types, and the shapes of input and output.
CASES = [
    (np.float32, np.int32, (3, 5), (3, 5)),
    (np.int32, np.float32, (7,), (7,)),
    (np.int32, np.int8, (2, 3), (2, 3, 4)),
    (np.uint8, np.int32, (2, 3, 4), (2, 3)),
    (np.int64, np.float32, (5,), (5, 2)),
    (np.int16, np.int64, (3, 4), (3,)),
    (np.float32, np.uint8, (9,), (9, 4)),
    (np.uint8, np.float32, (33, 4), (33,)),
    (np.float32, np.float32, (2, 9), (2, 9)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1].__name__}")
def test_bits_stay(device, precision, rng, case):
    source, target, shape, out = case
    m = ModelMaker()
    m.output(m.op("BITCAST", [m.input("x", shape, source)], out, dtype=target))
    count = int(np.prod(out)) if target == np.float32 else int(np.prod(shape))
    reals = half_exact(rng.standard_normal(count).astype(np.float32))
    if np.float32 in (source, target):  # of halves, which fp16 may store
        x = reals.view(source).reshape(shape)
    else:
        x = rng.integers(-99, 99, shape).astype(source)
    want = np.ascontiguousarray(x).reshape(-1).view(target).reshape(out)
    check(m.build(), [x], [want], device=device, precision=precision)


def test_shapes_are_refused():
    m = ModelMaker()
    m.output(m.op("BITCAST", [m.input("x", (3, 2), np.int8)], (3,), dtype=np.int32))
    why = "the last axis of [3, 2] does not have 4 elements, of which a int32 is made"
    check_refused(m.build(), why)
