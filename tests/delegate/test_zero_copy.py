"""Inputs and outputs stay in the interpreter's memory if the device can access it."""

from __future__ import annotations

import threading
from mmap import PAGESIZE
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

SHAPE = (2, 7, 6, 3)


def best_road(device: str) -> str:
    """The road of tensors of the interpreter's arena, whose alignment is 64 bytes only."""
    facts = clgpu_delegate.devices()[int(device)]
    if not facts.unified_memory:
        return "copy"
    return "host_pointer" if facts.type == "cpu" else "mapped"


def roads(delegate: clgpu_delegate.Delegate) -> list[str]:
    return [tensor["road"] for tensor in delegate.stats()["tensors"]]


def index_of_input(interpreter: Any) -> int:
    return interpreter.get_input_details()[0]["index"]


def check(interpreter: Any, x: np.ndarray, want: np.ndarray) -> None:
    (got,) = run_interpreter(interpreter, [x])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_nothing_is_copied_where_the_device_reaches_the_interpreter_s_memory(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, models.image(SHAPE), [delegate])
    x = models.normal(rng, *SHAPE)
    (want,) = run_reference(models.image(SHAPE), [x], runtime)
    check(interpreter, x, want)
    interpreter.invoke()
    stats = delegate.stats()
    rows = stats["tensors"]
    assert [row["direction"] for row in rows] == ["input", "output"]
    assert [row["bytes"] for row in rows] == [x.nbytes, want.nbytes]
    assert rows[0]["name"] == "x"
    road, last = best_road(device), stats["last_invoke"]
    if road == "host_pointer":
        assert roads(delegate) == [road, road]
        assert not any(row["reason"] for row in rows)
        assert (last["bytes_up"], last["bytes_down"]) == (0, 0)
    else:
        assert all(row["road"] in (road, "host_pointer") for row in rows)
        assert all(row["reason"] for row in rows if row["road"] == road)
    assert last["objects_created"] == 0


def test_without_zero_copy_everything_is_copied(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(runtime, models.image(SHAPE), [delegate])
    x = models.normal(rng, *SHAPE)
    (want,) = run_reference(models.image(SHAPE), [x], runtime)
    check(interpreter, x, want)
    last = delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"]) == (x.nbytes, want.nbytes)
    for row in delegate.stats()["tensors"]:
        assert (row["road"], row["reason"]) == ("copy", "the option 'zero_copy' is off")


def test_inputs_keep_their_values_and_follow_what_is_written(device, precision, runtime, rng):
    model = models.chain((3, 50), ("EXP", "NEG", "TANH"))
    delegate = clgpu_delegate.load(device=device, precision=precision)
    interpreter = make_interpreter(runtime, model, [delegate])
    interpreter.allocate_tensors()
    index = index_of_input(interpreter)
    output = interpreter.get_output_details()[0]["index"]
    for step in range(6):
        x = models.normal(rng, 3, 50)
        if step % 2:
            interpreter.set_tensor(index, x)
        else:
            interpreter.tensor(index)()[:] = x
        for _ in range(2):
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(index), x)
            got = interpreter.tensor(output)().copy()
            np.testing.assert_allclose(got, np.tanh(-np.exp(x)), rtol=2e-3, atol=2e-3)
            interpreter.tensor(output)()[:] = 7  # outputs may be written, too


def test_half_inputs_are_converted_in_the_device_s_memory(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=True)
    interpreter = make_interpreter(runtime, models.image(SHAPE), [delegate])
    x = models.normal(rng, *SHAPE)
    (want,) = run_reference(models.image(SHAPE), [x], runtime)
    for _ in range(2):
        (got,) = run_interpreter(interpreter, [x])
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2)
    expected = "copy" if best_road(device) == "copy" else "mapped"
    assert roads(delegate) == [expected, expected]


def test_views_and_tensors_that_are_input_and_output(device, runtime, rng):
    m = ModelMaker()
    x = m.input("x", (4, 6))
    flat = m.op("RESHAPE", [x, m.constant(np.array([24], np.int32))], (24,), new_shape=[24])
    y = m.op("TANH", [flat], (24,))
    again = m.op("RESHAPE", [y, m.constant(np.array([3, 8], np.int32))], (3, 8), new_shape=[3, 8])
    m.output(flat, y, again, m.op("EXP", [y], (24,)))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    for _ in range(3):
        value = models.normal(rng, 4, 6)
        got = run_interpreter(interpreter, [value])
        t = np.tanh(value.reshape(24))
        for result, want in zip(got, [value.reshape(24), t, t.reshape(3, 8), np.exp(t)]):
            np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)
    rows = delegate.stats()["tensors"]
    assert len(rows) == 5
    if best_road(device) == "host_pointer":
        shared = [row["reason"] for row in rows if row["road"] != "host_pointer"]
        assert shared == ["it shares the memory of another input or output"] * 4


def test_tensors_between_the_cpu_and_several_partitions(device, runtime, rng):
    m = ModelMaker()
    x = m.input("x", (2, 40))
    a = m.op("TANH", [x], (2, 40))
    b = m.op("SOFTMAX", [a], (2, 40), beta=1.0)  # on the CPU, as is LOG_SOFTMAX
    c = m.op("ADD", [a, b], (2, 40))
    d = m.op("SOFTMAX", [c], (2, 40), beta=1.0)
    m.output(m.op("MUL", [m.op("SUB", [d, a], (2, 40)), x], (2, 40)))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, exclude="SOFTMAX")
    interpreter = make_interpreter(runtime, model, [delegate])
    for _ in range(4):
        value = models.normal(rng, 2, 40)
        (want,) = run_reference(model, [value], runtime)
        check(interpreter, value, want)
        np.testing.assert_array_equal(interpreter.get_tensor(index_of_input(interpreter)), value)
    assert {row["partition"] for row in delegate.stats()["tensors"]} == {0, 1, 2}


def test_tensors_may_move(device, runtime, rng):
    model = models.image(SHAPE)
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, model, [delegate])
    for shape in [(1, 5, 5, 3), (3, 31, 17, 3), (1, 1, 1, 3), (2, 64, 64, 3), (1, 5, 5, 3)]:
        x = models.normal(rng, *shape)
        (want,) = run_reference(model, [x], runtime, resize={0: shape})
        interpreter.resize_tensor_input(index_of_input(interpreter), shape)
        check(interpreter, x, want)
        interpreter.allocate_tensors()
        check(interpreter, x, want)
        interpreter.invoke()
        assert delegate.stats()["last_invoke"]["objects_created"] == 0


def test_timing_leaves_the_interpreter_s_tensors_alone(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, models.image(SHAPE), [delegate])
    x = models.normal(rng, *SHAPE)
    (want,) = run_reference(models.image(SHAPE), [x], runtime)
    assert delegate.device_time(2) > 0, "before the tensors are allocated"
    check(interpreter, x, want)
    output = interpreter.get_output_details()[0]["index"]
    interpreter.tensor(output)()[:] = 7
    assert delegate.device_time(2) > 0
    assert delegate.launch_times(2)
    np.testing.assert_array_equal(interpreter.get_tensor(output), np.float32(7))
    np.testing.assert_array_equal(interpreter.get_tensor(index_of_input(interpreter)), x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(output), want, rtol=1e-4, atol=1e-5)
    shape = (1, 100, 90, 3)
    interpreter.resize_tensor_input(index_of_input(interpreter), shape)
    interpreter.allocate_tensors()  # the old memory is released, and the new one is not yet known
    assert delegate.device_time(2) > 0
    larger = models.normal(rng, *shape)
    check(
        interpreter,
        larger,
        run_reference(models.image(SHAPE), [larger], runtime, resize={0: shape})[0],
    )


def test_interpreters_of_one_delegate_run_at_once(device, runtime, rng):
    model = models.image((1, 40, 40, 3))
    delegate = clgpu_delegate.load(device=device)
    inputs = [models.normal(rng, 1, 40, 40, 3) for _ in range(2)]
    wanted = [run_reference(model, [x], runtime)[0] for x in inputs]
    failures = []

    def work(x: np.ndarray, want: np.ndarray) -> None:
        try:
            interpreter = make_interpreter(runtime, model, [delegate])
            for _ in range(20):
                check(interpreter, x, want)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_rows_end_with_the_interpreter(device, runtime):
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, models.chain(), [delegate])
    assert len(delegate.stats()["tensors"]) == 2, "the plan, before the first inference"
    del interpreter
    assert delegate.stats()["tensors"] == []


@pytest.mark.parametrize(
    ("is_cpu", "base_align", "address", "size", "problem"),
    [
        (True, 128, 64, 7, ""),
        (True, 128, 4096, 12, ""),
        (True, 128, 32, 64, "not aligned to 64 bytes"),
        (True, 1, 4097, 64, "not aligned to 64 bytes"),
        (False, 128, 2 * PAGESIZE, 128, ""),
        (False, 128, PAGESIZE // 2, 128, f"not aligned to {PAGESIZE} bytes"),
        (False, 4 * PAGESIZE, 2 * PAGESIZE, 128, f"not aligned to {4 * PAGESIZE} bytes"),
        (False, 4 * PAGESIZE, 4 * PAGESIZE, 128, ""),
        (False, 128, PAGESIZE, 100, "its 100 bytes are not a multiple of the cache line size, 64"),
    ],
)
def test_alignment_that_a_host_pointer_needs(is_cpu, base_align, address, size, problem):
    found = _core.host_pointer_problem(is_cpu, base_align, address, size)
    assert (problem in found) if problem else (found == "")


def pinned(delegate: clgpu_delegate.Delegate) -> list[bool]:
    return [tensor["pinned"] for tensor in delegate.stats()["tensors"]]


def test_copied_tensors_are_locked_in_place_from_the_second_inference_on(device, rng):
    """For devices that share the host's memory only without zero_copy."""
    shape = (1, 96, 97, 2)  # more than 64 KiB
    model = models.chain(shape, ("ABS", "NEG"))
    delegate = clgpu_delegate.load(device=device, zero_copy="off", pin_tensors=True)
    interpreter = make_interpreter("auto", model, [delegate])
    for i in range(4):
        x = models.normal(rng, *shape)
        check(interpreter, x, -np.abs(x))
        assert pinned(delegate) == [i > 0, i > 0]
        assert delegate.stats()["last_invoke"]["objects_created"] == (2 if i == 1 else 0)
    interpreter.resize_tensor_input(index_of_input(interpreter), (1, 100, 97, 2))
    interpreter.allocate_tensors()
    for i in range(3):
        x = models.normal(rng, 1, 100, 97, 2)
        check(interpreter, x, -np.abs(x))
        assert pinned(delegate) == [i > 0, i > 0]


def test_small_tensors_and_those_of_the_default_are_not_locked(device, rng):
    for shape, options in (((1, 10), {"pin_tensors": True}), ((1, 96, 97, 2), {})):
        delegate = clgpu_delegate.load(device=device, zero_copy="off", **options)
        interpreter = make_interpreter("auto", models.chain(shape, ("ABS", "NEG")), [delegate])
        for _ in range(3):
            x = models.normal(rng, *shape)
            check(interpreter, x, -np.abs(x))
        assert pinned(delegate) == [False, False]
