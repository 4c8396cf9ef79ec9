"""Kernels that get the addresses of buffers instead of buffers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

HEAD = ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n"
PTX = (
    HEAD
    + """
.entry sum_of(
\t.param .u64 .ptr .global .align 4 sum_of_param_0,
\t.param .u32 sum_of_param_1,
\t.param .u64 .ptr .shared .align 16 sum_of_param_2,
\t.param .u64 .ptr .global .align 2 sum_of_param_3
)
.reqntid 128, 1, 1
{
\tld.param.u64 \t%rd1, [sum_of_param_0];
}
.entry sum(
\t.param .u64 .ptr .global .align 16 sum_param_0
)
"""
)


@pytest.fixture(autouse=True)
def addresses() -> Iterator[None]:
    """Other devices than NVIDIA's use them, too."""
    _core.try_addresses(True)
    yield
    _core.try_addresses(False)


def model_of(size: int) -> bytes:
    """Convolutions, a product, and operations that are no part of them."""
    rng = np.random.default_rng(size)
    m = ModelMaker()
    x = m.input("x", (1, size, size, 3))
    for depth, width in ((3, 5), (5, 7)):
        weights = m.constant(rng.standard_normal((width, 3, 3, depth)).astype(np.float32))
        bias = m.constant(rng.standard_normal(width).astype(np.float32))
        same = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
        x = m.op("CONV_2D", [x, weights, bias], (1, size, size, width), **same)
        x = m.op("SIN", [x], (1, size, size, width))
    x = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 7))
    weights = m.constant(rng.standard_normal((4, 7)).astype(np.float32))
    x = m.op("FULLY_CONNECTED", [x, weights, -1], (1, 4))
    m.output(m.op("SOFTMAX", [x], (1, 4), beta=1.0))
    return m.build()


def load(content: bytes, **options: Any) -> Any:
    delegate = clgpu_delegate.load(cache="off", **options)
    interpreter = make_interpreter("auto", content, [delegate])
    interpreter.allocate_tensors()
    return interpreter


def infer(interpreter: Any, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def image(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, size, size, 3)).astype(np.float32)


def has_addresses(device: str) -> bool:
    """Whether a delegate on the device uses them, not only in its trial, which sets one."""
    before = _core.addresses_set()
    load(model_of(5), device=device)
    return _core.addresses_set() > before + 1


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_results_are_the_same(device, precision):
    if not has_addresses(device):
        pytest.skip("the device's kernels do not read at the addresses of buffers")
    content = model_of(9)
    before = _core.addresses_set()
    alone = load(content, device=device, precision=precision, chain="off")
    assert _core.addresses_set() == before, "without bundles and chains all are buffers"
    interpreter = load(content, device=device, precision=precision)
    used = _core.addresses_set() - before
    assert used > 1, "more than that of the trial"
    for i in range(3):
        if i == 2:
            interpreter.allocate_tensors()
        x = image(9, i)
        np.testing.assert_array_equal(infer(interpreter, x), infer(alone, x))


def test_each_program_is_launched_at_load(device):
    """Kernels that differ in what is an address are programs of their own on NVIDIA's devices."""
    if not has_addresses(device):
        pytest.skip("the device's kernels do not read at the addresses of buffers")
    m = ModelMaker()
    x = m.input("x", (1, 8))
    for _ in range(4):  # of the input, of two buffers that stay, and of the output
        weights = m.constant(np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32))
        x = m.op("FULLY_CONNECTED", [x, weights, -1], (1, 8))
    m.output(x)
    content, launches = m.build(), []
    for chain in ("off", "auto"):
        delegate = clgpu_delegate.load(cache="off", device=device, chain=chain)
        interpreter = make_interpreter("auto", content, [delegate])  # whose chains are told
        interpreter.allocate_tensors()
        launches.append(delegate.stats()["load"]["launches"])
        if any(chains["reason"] or chains["kernels"] for chains in delegate.stats()["chains"]):
            pytest.skip("the device's chains are measured at load, by more launches")
    assert launches[1] == launches[0] + 2


def test_predicted_peak_of_memory_is_the_counted_one(device, tmp_path):
    """What addresses are noted in is no memory of the device."""
    if not has_addresses(device):
        pytest.skip("the device's kernels do not read at the addresses of buffers")
    # The first load also probes the device, and without warm-up no chain is measured.
    options = {"cache": str(tmp_path / "cache.sqlite"), "zero_copy": "off", "warm_up": False}
    delegate = clgpu_delegate.load(device=device, **options)
    make_interpreter("auto", model_of(9), [delegate]).allocate_tensors()
    delegate = clgpu_delegate.load(device=device, **options)
    gc.collect()
    delegate._native.reset_peak()
    before = delegate.stats()["device_bytes"]
    interpreter = make_interpreter("auto", model_of(9), [delegate])
    interpreter.allocate_tensors()
    infer(interpreter, image(9, 1))
    assert delegate.stats()["peak_device_bytes"] - before == delegate.explain().peak_bytes


def test_objects_that_another_model_replaces_are_asked_for_again(device):
    """Executors share an arena, which grows."""
    if not has_addresses(device):
        pytest.skip("the device's kernels do not read at the addresses of buffers")
    delegate = clgpu_delegate.load(device=device, cache="off")
    small, large = (make_interpreter("auto", model_of(n), [delegate]) for n in (6, 40))
    small.allocate_tensors()
    wants = [infer(load(model_of(n), device=device, chain="off"), image(n, 1)) for n in (6, 40)]
    np.testing.assert_array_equal(infer(small, image(6, 1)), wants[0])
    large.allocate_tensors()
    for one, n, want in [(large, 40, wants[1]), (small, 6, wants[0]), (large, 40, wants[1])]:
        before = _core.addresses_set()
        np.testing.assert_array_equal(infer(one, image(n, 1)), want)
        after = _core.addresses_set()
        np.testing.assert_array_equal(infer(one, image(n, 1)), want)
        assert _core.addresses_set() == after >= before, "nothing is set where nothing changed"


@pytest.mark.parametrize("old", ["addresses[at] =", "device_address_read"])
def test_buffers_remain_where_the_trial_does_not_build(device, old):
    content, x = model_of(7), image(7, 3)
    want = infer(load(content, device=device, chain="off"), x)
    file = "device/address.cl"
    _core.override_kernel_source(file, _core.kernel_sources()[file].replace(old, "no name"))
    try:
        before = _core.addresses_set()
        np.testing.assert_array_equal(infer(load(content, device=device), x), want)
        assert _core.addresses_set() == before
    finally:
        _core.override_kernel_source(file, None)


def test_kernel_that_reads_something_else_leaves_buffers(device):
    content, x = model_of(7), image(7, 4)
    want = infer(load(content, device=device, chain="off"), x)
    file = "device/address.cl"
    text = _core.kernel_sources()[file].replace("dst[0] = src[0]", "dst[0] = src[0] + 1")
    _core.override_kernel_source(file, text)
    try:
        np.testing.assert_array_equal(infer(load(content, device=device), x), want)
        before = _core.addresses_set()
        infer(load(content, device=device), x)
        assert _core.addresses_set() <= before + 2, "only those of the trial"
    finally:
        _core.override_kernel_source(file, None)


def test_marks_of_pointers_go_from_ptx():
    made = _core.with_addresses(PTX, "sum_of", [0, 3])
    assert made.split("{")[0].splitlines()[-6:] == [
        "\t.param .u64 sum_of_param_0,",
        "\t.param .u32 sum_of_param_1,",
        "\t.param .u64 .ptr .shared .align 16 sum_of_param_2,",
        "\t.param .u64 sum_of_param_3",
        ")",
        ".reqntid 128, 1, 1",
    ]
    assert made.split("{")[1] == PTX.split("{")[1], "the rest is as it was"
    other = _core.with_addresses(PTX, "sum", [0])
    assert other.endswith("\t.param .u64 sum_param_0\n)\n")
    assert other.startswith(PTX.split(".entry sum(")[0])


@pytest.mark.parametrize(
    ("ptx", "entry", "arguments"),
    [
        (PTX, "sum_of", [1]),
        (PTX, "sum_of", [2]),
        (PTX, "sum_of", [0, 4]),
        (PTX, "sum", [1]),
        (PTX, "other", [0]),
        (HEAD, "sum", [0]),
        ("\x7fELF", "sum", [0]),
        ("", "sum", [0]),
        (".entry sum(", "sum", [0]),
    ],
    ids=["integer", "local", "behind", "second", "kernel", "none", "elf", "empty", "cut"],
)
def test_ptx_without_such_pointers_is_not_changed(ptx, entry, arguments):
    assert _core.with_addresses(ptx, entry, arguments) == ""
