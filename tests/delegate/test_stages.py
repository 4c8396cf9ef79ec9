"""Sizes that follow from what the device computes: partitions run in stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from tests.delegate.test_awaited import answers
from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, op_runtime
from tests.runtimes import make_interpreter

Array = np.ndarray
SHAPE = (3, 8)
# How many elements are positive.
COUNTS = (5, 0, 24, 5, 1, 0, 7)


def positive(rng, count: int, shape: tuple[int, ...] = SHAPE) -> Array:
    """Numbers of which this many are positive, anywhere."""
    x = -1 - np.abs(rng.standard_normal(shape)).astype(np.float32)
    places = rng.permutation(x.size)[:count]
    x.flat[places] = 1 + np.abs(rng.standard_normal(count)).astype(np.float32)
    return x


def greater(m: ModelMaker, x: int, than: float = 0, shape: tuple[int, ...] = SHAPE) -> int:
    return m.op("GREATER", [x, m.constant(np.float32(than))], shape, dtype=bool)


def places(m: ModelMaker, condition: int, rank: int = 2) -> int:
    return m.op("WHERE", [condition], (-1, rank), dtype=np.int64)


def alone() -> bytes:
    m = ModelMaker()
    x = m.op("ABS", [m.op("NEG", [m.input("x", SHAPE)], SHAPE)], SHAPE)
    y = m.op("SUB", [m.op("NEG", [x], SHAPE), m.constant(np.float32(0))], SHAPE)
    m.output(places(m, greater(m, m.op("ADD", [m.input("z", SHAPE), y], SHAPE), -1e9)))
    return m.build()


def last() -> bytes:
    m = ModelMaker()
    m.output(places(m, greater(m, m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE))))
    return m.build()


def read() -> bytes:
    """The elements that are found, and what follows from them."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE)
    found = m.op("GATHER_ND", [x, places(m, greater(m, x))], (-1,), dtype=np.float32)
    m.output(m.op("MUL", [found, m.op("SQRT", [found], (-1,))], (-1,)), x)
    return m.build()


def twice() -> bytes:
    """Of the elements that are found, those above 1.5."""
    m = ModelMaker()
    x = m.op("MUL", [m.input("x", SHAPE), m.constant(np.float32(1))], SHAPE)
    first = m.op("GATHER_ND", [x, places(m, greater(m, x))], (-1,), dtype=np.float32)
    second = places(m, greater(m, first, 1.5, (-1,)), 1)
    m.output(m.op("GATHER_ND", [m.op("NEG", [first], (-1,)), second], (-1,), dtype=np.float32))
    return m.build()


def filled() -> bytes:
    """As many numbers as are found, whose shape planning computes."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE)
    found = places(m, greater(m, x))
    shape = m.op("SHAPE", [found], (2,), dtype=np.int32, out_type=np.int32)
    full = m.op("FILL", [shape, m.constant(np.float32(3))], (-1, 2), dtype=np.float32)
    m.output(m.op("ADD", [full, full], (-1, 2)))
    return m.build()


def wanted(stock, given: dict[str, Array]) -> list[Array]:
    """The stock interpreter has no array for a dynamic tensor without elements."""
    for detail in stock.get_input_details():
        stock.set_tensor(detail["index"], given[detail["name"]])
    stock.invoke()
    results = []
    for detail in stock.get_output_details():
        empty = np.zeros(detail["shape"], detail["dtype"])
        results.append(stock.get_tensor(detail["index"]) if empty.size else empty)
    return results


def compare(model: bytes, steps: list[dict[str, Array]], delegate, runtime: str | None = None):
    """With the stock kernels; returns the interpreter."""
    runtime = runtime or op_runtime()
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for interpreter in (ours, stock):
        interpreter.allocate_tensors()
    for given in steps:
        for mine, its in zip(answers(ours, given), wanted(stock, given)):
            assert mine.shape == its.shape
            assert mine.dtype == its.dtype
            np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)
    return ours


def assert_all_claimed(delegate) -> None:
    left = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert not left


MODELS: dict[str, Callable[[], bytes]] = {
    "last": last, "read": read, "twice": twice, "filled": filled,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sizes_follow_from_what_the_device_computes(runtime, device, rng, name):
    delegate = clgpu_delegate.load(device=device)
    compare(MODELS[name](), [{"x": positive(rng, n)} for n in COUNTS], delegate, runtime)
    assert_all_claimed(delegate)


@pytest.mark.parametrize("options", [{"verify": 1}, {"verify": "first"}, {"profile": True},
                                     {"memory_budget": 1 << 24}, {"warm_up": False}], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", ["read", "twice"])
def test_stages_with_every_option(device, rng, name, options):
    delegate = clgpu_delegate.load(device=device, **options)
    compare(MODELS[name](), [{"x": positive(rng, n)} for n in COUNTS], delegate)
    assert_all_claimed(delegate)


@pytest.mark.parametrize("half_io", [False, True])
def test_stages_with_halves(device, rng, half_io):
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=half_io)
    steps = [{"x": np.round(positive(rng, n) * 4) / 4} for n in COUNTS]
    compare(last(), steps, delegate)
    assert_all_claimed(delegate)
