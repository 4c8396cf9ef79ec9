"""CONV_3D and CONV_3D_TRANSPOSE."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, check, check_refused, half_exact

Array = Any


class Case(NamedTuple):
    """Sizes along depth, height and width."""

    size: tuple = (4, 5, 6)
    filter: tuple = (2, 3, 3)
    stride: tuple = (1, 1, 1)
    dilation: tuple = (1, 1, 1)
    padding: str = "SAME"
    channels: tuple = (3, 5)
    bias: bool = True
    activation: str = "NONE"
    batches: int = 1


CASES = [
    Case(),
    Case(stride=(2, 1, 3), padding="VALID", bias=False, batches=2),
    Case(size=(5, 7, 7), dilation=(1, 2, 2), activation="RELU6"),
    Case(size=(1, 1, 1), filter=(1, 1, 1), channels=(1, 1), activation="RELU"),
    Case(size=(6, 5, 7), filter=(3, 1, 2), stride=(2, 2, 2), channels=(4, 2)),
]


def windows(case: Case) -> list[tuple[int, int]]:
    """Size of the result, and the zeros in front, along each axis."""
    found = []
    for n, k, s, d in zip(case.size, case.filter, case.stride, case.dilation):
        reach = (k - 1) * d + 1
        out = -(-n // s) if case.padding == "SAME" else -(-(n - reach + 1) // s)
        found.append((out, max(0, ((out - 1) * s + reach - n) // 2)))
    return found


def options(case: Case) -> dict[str, Any]:
    names = ("d", "h", "w")
    return {
        **{f"stride_{n}": s for n, s in zip(names, case.stride)},
        **{f"dilation_{n}_factor": d for n, d in zip(names, case.dilation)},
        "padding": case.padding,
        "fused_activation_function": case.activation,
    }


def shapes(case: Case) -> tuple[tuple, tuple]:
    """Of the volume that the filter slides over, and of what it makes."""
    made = tuple(out for out, _ in windows(case))
    return (case.batches, *case.size, case.channels[0]), (case.batches, *made, case.channels[1])


def taps(case: Case):
    """Places in the result and in the volume that a tap of the filter joins."""
    for tap in itertools.product(*map(range, case.filter)):
        axes = []
        for (out, pad), n, k, s, d in zip(
            windows(case), case.size, tap, case.stride, case.dilation
        ):
            pairs = [(o, o * s - pad + k * d) for o in range(out)]
            axes.append([(o, i) for o, i in pairs if 0 <= i < n])
        yield tap, axes


def active(x: Array, case: Case) -> Array:
    if case.activation == "NONE":
        return x
    return np.clip(x, 0, 6 if case.activation == "RELU6" else np.inf)


def convolved(x: Array, w: Array, b: Array, case: Case) -> Array:
    y = np.zeros(shapes(case)[1])
    for tap, axes in taps(case):
        for (z, sz), (i, si), (j, sj) in itertools.product(*axes):
            y[:, z, i, j] += x[:, sz, si, sj] @ w[tap]
    return active(y + b, case)


def spread(x: Array, w: Array, b: Array, case: Case) -> Array:
    """Transposed: from what the filter makes to the volume; weights have the channels swapped."""
    y = np.zeros((case.batches, *case.size, case.channels[0]))
    for tap, axes in taps(case):
        for (z, sz), (i, si), (j, sj) in itertools.product(*axes):
            y[:, sz, si, sj] += x[:, z, i, j] @ w[tap].T
    return active(y + b, case)


def model(case: Case, transposed: bool, w: Array, b: Array) -> bytes:
    volume, made = shapes(case)
    m = ModelMaker()
    operands = [m.constant(w)] + ([m.constant(b)] if case.bias else [])
    if transposed:
        x = m.input("x", made)
        inputs = [m.constant(np.array(volume, np.int32)), operands[0], x, *operands[1:]]
        m.output(m.op("CONV_3D_TRANSPOSE", inputs, volume, dtype=np.float32, **options(case)))
    else:
        inputs = [m.input("x", volume), *operands]
        m.output(m.op("CONV_3D", inputs, made, dtype=np.float32, **options(case)))
    return m.build()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.size}{c.filter}{c.padding}")
def test_floats(device, precision, rng, case, transposed):
    volume, made = shapes(case)
    x = half_exact(rng.standard_normal(made if transposed else volume).astype(np.float32))
    w = half_exact(rng.standard_normal((*case.filter, *case.channels)).astype(np.float32))
    b = half_exact(rng.standard_normal(case.channels[0 if transposed else 1]).astype(np.float32))
    reference = spread if transposed else convolved
    want = reference(*(a.astype(np.float64) for a in (x, w, b * case.bias)), case)
    terms = int(np.prod(case.filter)) * case.channels[1 if transposed else 0]
    check(
        model(case, transposed, w, b), [x], [want], device=device, precision=precision,
        accumulation=terms,
    )  # fmt: skip


OPERANDS = {
    "x": ((1, 4, 4, 4, 2), np.float32),
    "w": ((2, 2, 2, 2, 3), np.float32),
    "b": ((3,), np.float32),
    "y": ((1, 4, 4, 4, 3), np.float32),
}


def refused(why: str, transposed: bool = False, shape: Any = None, **changes: Any) -> None:
    settings = options(Case())
    settings.update({k: changes.pop(k) for k in list(changes) if k in settings})
    kinds = {**OPERANDS, **changes}
    m = ModelMaker()
    x, w, b = (m.input(name, *kinds[name]) for name in "xwb")
    if transposed:
        fixed = isinstance(shape, list)
        to = m.constant(np.int32(shape)) if fixed else m.input("s", (MANY,), np.int32)
        result = m.op("CONV_3D_TRANSPOSE", [to, w, x], kinds["y"][0], dtype=np.float32, **settings)
    else:
        result = m.op("CONV_3D", [x, w, b], kinds["y"][0], dtype=kinds["y"][1], **settings)
    m.output(result)
    check_refused(m.build(), why)


def test_operands_are_refused():
    f = np.float32
    integers = {"x": (OPERANDS["x"][0], np.int32), "y": (OPERANDS["y"][0], np.int32)}
    refused("input is int32; supported: float32", **integers)
    refused("weights is int8; supported: float32", w=(OPERANDS["w"][0], np.int8))
    refused("bias is int32; supported: float32", b=((3,), np.int32))
    refused("input has rank 4; supported: 5", x=((4, 4, 4, 2), f))
    refused("weights has rank 4; supported: 5", w=((2, 2, 2, 3), f))
    refused("bias has rank 2; supported: 1", b=((1, 3), f))
    refused("and bias or output do not fit together", b=((4,), f))
    refused("are larger than the input", w=((5, 2, 2, 2, 3), f), padding="VALID")


def test_parameters_are_refused():
    refused("a stride or dilation is below 1", stride_d=0)
    refused("the padding is 0; supported: 1 (SAME), 2 (VALID)", padding=7)
    refused("the output shape is computed at run time", transposed=True)
    w = ((2, 2, 2, 3, 2), np.float32)
    refused("the output shape does not have 5 elements", True, [1, 4, 4, 4], w=w)
    refused("a size of the output is 0; supported: 1 to", True, [1, 4, 0, 4, 3], w=w)
    refused("is not made from the input", True, [1, 4, 4, 9, 3], w=w)
