"""UNIQUE: the different elements, in the order in which they first occur."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused

TYPES = [np.int32, np.int64, np.int16, np.int8, np.uint8]


def unique(count, dtype=np.int32, places=np.int32, said=None) -> bytes:
    m = ModelMaker()
    shape = (count,) if isinstance(count, int) else count
    found = m.op("UNIQUE", [m.input("x", shape, dtype)], [(-1,), shape], dtype=[dtype, places],
                 idx_out_type=said or places)  # fmt: skip
    m.output(*found)
    return m.build()


def reference(x):
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return x[np.sort(first)], places[inverse]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_types(device, rng, dtype, places):
    x = rng.integers(0, 12, 50).astype(dtype)
    values, indices = reference(x)
    check(unique(50, dtype, places), [x], [values, indices.astype(places)], device=device,
          precision="fp32")  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 777])
@pytest.mark.parametrize("different", [1, 10, 10_000])
def test_counts(device, rng, count, different):
    x = rng.integers(-different, different, count).astype(np.int32)
    values, indices = reference(x)
    wanted = [values, indices.astype(np.int32)]
    check(unique(count), [x], wanted, device=device, precision="fp32")


def test_operands_are_refused():
    check_refused(unique(5, np.float32), "input is float32; supported: int32, int64, int16, int8")
    check_refused(unique((2, 3)), "input has rank 2; supported: 1")
    check_refused(unique(5, places=np.int16), "the output of places is int16; supported: int32")
    check_refused(unique(5, np.int32, np.int32, np.int64), "the type of places is not that of the")
