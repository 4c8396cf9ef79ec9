"""Sums of the results of experts, each times its weight; the pass group_experts makes the nodes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.harness import check
from tests.passes.test_group_experts import Mixture


@pytest.mark.parametrize(
    ("leading", "experts", "chosen"), [((1,), 2, 1), ((5,), 9, 4), ((2, 1, 3), 6, 3)]
)
def test_sums(leading, experts, chosen, device, precision):
    mixture = Mixture(leading, experts, chosen, seed=chosen)
    inputs = mixture.inputs()
    # All different after rounding to half, so that the same ones are the largest.
    rows = [mixture.rng.permutation(experts) for _ in range(int(np.prod(leading)))]
    inputs[1] = np.float32(rows).reshape(inputs[1].shape)
    check(
        mixture.model(), inputs, None, device=device, precision=precision, accumulation=128,
    )  # fmt: skip
