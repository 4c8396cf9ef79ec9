"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of integers equal the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.harness import EXAMPLES
from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES

CASES = [((1, 3, 5, 3), (7, 8)), ((2, 7, 4, 8), (5, 11)), ((1, 1, 2, 4), (4, 1))]
ALIGNMENTS = [(False, False), (True, False), (False, True)]


def _resize(op, size, align_corners, half_pixel_centers):
    def add(m, x, quantization):
        n, _, _, channels = m.shape(x)
        return m.op(
            op,
            [x, m.constant(np.array(size, np.int32))],
            (n, *size, channels),
            align_corners=align_corners,
            half_pixel_centers=half_pixel_centers,
            quantization=quantization,
        )

    return add


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize(("shape", "size"), CASES)
def test_bilinear(shape, size, alignment, dtype, device, rng):
    add = _resize("RESIZE_BILINEAR", size, *alignment)
    check_moved(add, shape, dtype, device=device, rng=rng)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_nearest(dtype, device, rng):
    add = _resize("RESIZE_NEAREST_NEIGHBOR", (7, 8), False, True)
    check_moved(add, (1, 3, 5, 4), dtype, device=device, rng=rng)


_sizes = st.tuples(st.integers(1, 40), st.integers(1, 40))


@settings(max_examples=EXAMPLES)
@given(
    src=_sizes,
    dst=_sizes,
    channels=st.sampled_from([1, 3, 4]),
    alignment=st.sampled_from(ALIGNMENTS),
    dtype=st.sampled_from(ACTIVATION_TYPES),
)
def test_any_size(src, dst, channels, alignment, dtype, device):
    add = _resize("RESIZE_BILINEAR", dst, *alignment)
    rng = np.random.default_rng(0)
    check_moved(add, (1, *src, channels), dtype, device=device, rng=rng)
