"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_PROD of quantised integers equal the reference."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused, op_runtime
from tests.ops.test_reduce import CASES
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter, run_reference

# The reference kernel of SUM takes every type for uint8 (signed ones have a test of their own),
# that of REDUCE_PROD knows no uint8.
TYPES = {
    "MEAN": ACTIVATION_TYPES,
    "SUM": [np.uint8],
    "REDUCE_MAX": ACTIVATION_TYPES,
    "REDUCE_MIN": ACTIVATION_TYPES,
    "REDUCE_PROD": [np.int8, np.int16],
}


class Case(NamedTuple):
    """One reduction and its scales."""

    shape: tuple
    axes: tuple
    keep: bool
    src: Quantization
    dst: Quantization


def build(name: str, dtype: type, cases: list[Case]) -> bytes:
    """Reductions of an input each."""
    m = ModelMaker()
    for i, case in enumerate(cases):
        reduced = tuple({a % len(case.shape) for a in case.axes})
        out = np.empty(case.shape, np.int8).max(reduced, keepdims=case.keep).shape
        x = m.input(f"x{i}", case.shape, dtype, quantization=case.src)
        axes = m.constant(np.array(case.axes, np.int32))
        m.output(m.op(name, [x, axes], out, keep_dims=case.keep, quantization=case.dst))
    return m.build()


def output_scales(rng, name, dtype, src, count) -> Quantization:
    """Parameters with which results use the range of their type and exceed it."""
    if name in ("REDUCE_MAX", "REDUCE_MIN"):
        return src
    spread = {"MEAN": count**-0.5, "SUM": count**0.5}.get(name)
    if spread is None:
        root = min(count - 1, 4)  # products of many factors are 0 or exceed the range
        spread = float(0.5 * np.iinfo(dtype).max * src.scales) ** root
    scale = np.float32(src.scales * spread * rng.uniform(0.3, 2.0))
    return Quantization(float(scale), random_quantization(rng, dtype).zero_points)


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in TYPES for dtype in TYPES[name]]
)
def test_reduction_equals_the_reference(name, dtype, device, rng):
    cases = []
    for shape, axes, keep in [CASES[i] for i in (1, 4, 6, 7, 9, 11)]:
        count = int(np.prod([shape[a] for a in {a % len(shape) for a in axes}]))
        src = random_quantization(rng, dtype)
        cases.append(Case(shape, axes, keep, src, output_scales(rng, name, dtype, src, count)))
    inputs = [random_integers(rng, case.shape, dtype) for case in cases]
    check_exact(build(name, dtype, cases), inputs, device=device)


def test_sum_of_int8_equals_that_of_uint8(device, rng):
    """The reference kernel takes int8 for uint8; numbers and zero points move by 128."""
    cases, moved, inputs = [], [], []
    for shape, axes, keep in [CASES[i] for i in (1, 4, 6, 7, 9, 11)]:
        count = int(np.prod([shape[a] for a in {a % len(shape) for a in axes}]))
        src = random_quantization(rng, np.int8)
        cases.append(Case(shape, axes, keep, src, output_scales(rng, "SUM", np.int8, src, count)))
        scales = [Quantization(q.scales, q.zero_points + 128) for q in cases[-1][3:]]
        moved.append(Case(shape, axes, keep, *scales))
        inputs.append(random_integers(rng, shape, np.int8))
    wanted = run_reference(
        build("SUM", np.uint8, moved),
        [(x.astype(np.int16) + 128).astype(np.uint8) for x in inputs],
        op_runtime(),
    )
    wanted = [(y.astype(np.int16) - 128).astype(np.int8) for y in wanted]
    model = build("SUM", np.int8, cases)
    check(model, inputs, wanted, device=device, precision="fp32", reference=False)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_sum_of_signed_integers_is_a_step_from_the_default_kernels(dtype, device, rng):
    """They rescale in floats; a wrong type would be off by far more."""
    src, dst = Quantization(0.05, 0), Quantization(0.43, 0)  # sums use the range
    case = Case((3, 70, 5), (1,), False, src, dst)
    model, x = build("SUM", dtype, [case]), random_integers(rng, (3, 70, 5), dtype)
    (want,) = run_reference(model, [x], op_runtime(), "no_delegate")
    delegate = clgpu_delegate.load(device=device)
    (got,) = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), [x])
    assert delegate.explain().claimed == 1
    assert np.abs(got.astype(np.int64) - want).max() <= 1
    assert np.unique(want).size > 10


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_mean_of_any_scales(draw, device, rng):
    """Factors above and below 1, counts that are and are not powers of two."""
    dtype = draw.draw(st.sampled_from(ACTIVATION_TYPES))
    shape = tuple(draw.draw(st.tuples(st.integers(1, 3), *[st.integers(1, 40)] * 2)))
    axes = draw.draw(st.sampled_from([(1,), (2,), (1, 2), (0, 2)]))
    scale = st.floats(1e-4, 1e4).map(np.float32).map(float)
    zero = random_quantization(rng, dtype).zero_points
    src = Quantization(draw.draw(scale), zero)
    dst = Quantization(draw.draw(scale), zero)
    case = Case(shape, axes, draw.draw(st.booleans()), src, dst)
    check_exact(build("MEAN", dtype, [case]), [random_integers(rng, shape, dtype)], device=device)


def test_what_the_reference_cannot_do_is_refused():
    one, other = Quantization(0.05, 3), Quantization(0.06, 3)
    same, rescaled = (Case((2, 3, 4), (1,), False, one, dst) for dst in (one, other))
    check_refused(build("REDUCE_MAX", np.int8, [rescaled]), "differ in scale or zero point")
    check_refused(build("REDUCE_PROD", np.uint8, [same]), "input is uint8; supported: int8")
    check_refused(build("REDUCE_ANY", np.int8, [same]), "input is int8; supported: bool")
