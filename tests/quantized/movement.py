"""Operations that move stored numbers: one of each type, against the reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.quantized.parameters import check_exact, random_integers, random_quantization

# Adds the op to an input; outputs take the quantisation given.
Add = Callable[[ModelMaker, int, Any], Any]


def listed(outputs: Any) -> list[int]:
    """Ids of one or several outputs."""
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def check_moved(
    add: Add, shape: Sequence[int], dtype: Any, *, device: str, rng: np.random.Generator
) -> None:
    """Run one op on a quantised input of the full range: no element differs."""
    m = ModelMaker()
    quantization = random_quantization(rng, dtype)
    x = m.input("x", tuple(shape), dtype, quantization=quantization)
    m.output(*listed(add(m, x, quantization)))
    check_exact(m.build(), [random_integers(rng, shape, dtype)], device=device)


def check_other_scale_refused(add: Add, shape: Sequence[int], device: str) -> None:
    """An output of another scale than the input stays on the CPU, with both in the reason."""
    m = ModelMaker()
    x = m.input("x", tuple(shape), np.int8, quantization=Quantization(0.5, 3))
    m.output(*listed(add(m, x, Quantization(0.25, 3))))
    check_refused(m.build(), "elements are moved as they are", device=device)
