"""SELECT of quantised integers equals the reference kernels: stored numbers are copied."""

from __future__ import annotations

import pytest

from tests.model_maker import ModelMaker
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("name", ["SELECT", "SELECT_V2"])
def test_stored_numbers_are_copied(name, dtype, device, rng):
    q = random_quantization(rng, dtype)
    shape = (3, 7)
    m = ModelMaker()
    which = m.input("c", shape, bool)
    x, y = (m.input(n, shape, dtype, quantization=q) for n in "xy")
    m.output(m.op(name, [which, x, y], shape, dtype=dtype, quantization=q))
    values = [random_integers(rng, shape, dtype) for _ in range(2)]
    check_exact(m.build(), [rng.random(shape) < 0.5, *values], device=device)
