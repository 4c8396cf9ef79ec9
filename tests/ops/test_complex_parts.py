"""REAL, IMAG and COMPLEX_ABS."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused

PARTS = {"REAL": np.real, "IMAG": np.imag, "COMPLEX_ABS": np.abs}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 1, 11)])
def test_parts(device, rng, name, shape):
    m = ModelMaker()
    m.output(m.op(name, [m.input("x", shape, np.complex64)], shape, dtype=np.float32))
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    want = PARTS[name](x.astype(np.complex128))
    check(m.build(), [x], [want], device=device, precision="fp32")


def test_large_and_small_absolute_values(device):
    m = ModelMaker()
    m.output(m.op("COMPLEX_ABS", [m.input("x", (5,), np.complex64)], (5,), dtype=np.float32))
    x = np.complex64([0, 3e30 + 4e30j, -3e-20 - 4e-20j, np.inf, 1e-3j])
    want = [np.array([0, 5e30, 5e-20, np.inf, 1e-3])]
    check(m.build(), [x], want, device=device, precision="fp32")


def test_types_are_refused():
    for dtype, out, why in (
        (np.float32, np.float32, "input is float32; supported: complex64"),
        (np.complex64, np.int32, "output is int32; supported: float32"),
    ):
        m = ModelMaker()
        m.output(m.op("REAL", [m.input("x", (3,), dtype)], (3,), dtype=out))
        check_refused(m.build(), why)
