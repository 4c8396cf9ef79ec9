"""Models of float16 tensors: arithmetic in float, each result rounded to half once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference

Array = Any


def check_halves(
    build: Callable[[ModelMaker, list[int]], Sequence[int]],
    inputs: Sequence[Array],
    expected: Sequence[Array],
    device: str,
) -> None:
    """Compare results with those in float64, and with the reference kernels.

    Parameters
    ----------
    build
        Adds the nodes that read the tensors of the inputs, and returns the results.
    inputs
        Arrays of float16 or bool.
    expected
        Arrays of float64 or bool, one for each result.
    device
        The fixture.
    """
    m = ModelMaker()
    m.output(*build(m, [m.input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(inputs)]))
    model = m.build()
    stock = run_reference(model, inputs, op_runtime())
    for precision in ("fp32", "fp16"):
        delegate = clgpu_delegate.load(device=device, precision=precision, warm_up=False)
        got = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), inputs)
        left = [f"{n.op}: {n.reason}" for n in delegate.explain().nodes if not n.claimed]
        assert not left
        for mine, want, its in zip(got, expected, stock):
            assert mine.dtype == its.dtype
            if mine.dtype == np.float16:
                np.testing.assert_array_max_ulp(mine, want.astype(np.float16), 1)
                np.testing.assert_array_max_ulp(mine, its, 2)
            else:
                np.testing.assert_array_equal(mine, want)
                np.testing.assert_array_equal(mine, its)
