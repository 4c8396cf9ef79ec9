"""Conversion between float and half on the host equals numpy's, bit for bit."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from clgpu_delegate import _core


@given(st.floats(width=32, allow_nan=False))
@example(65519.99)
@example(65520.0)
@example(5.9604645e-08)
@example(2.9802322e-08)
@example(-0.0)
def test_float_to_half_rounds_as_numpy(value):
    with np.errstate(over="ignore", under="ignore"):
        want = np.float32(value).astype(np.float16)
    assert _core.float_to_half(value) == int(want.view(np.uint16))


def test_every_half_has_its_value():
    for bits in range(1 << 16):
        want = np.uint16(bits).view(np.float16)
        got = _core.half_to_float(bits)
        assert np.isnan(got) if np.isnan(want) else got == float(want)


def test_nan_stays_nan():
    assert np.isnan(np.uint16(_core.float_to_half(float("nan"))).view(np.float16))
