"""Inferences in flight: memory, copies, turns with others, and devices that fail."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import Runner, _core
from tests.delegate.test_faults import (
    PRELUDE,
    library,  # noqa: F401  # a fixture
)
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, resolve_runtime, run_interpreter

LARGE = (1, 96, 96, 4)  # results above the size up to which they are copied


def elementwise() -> bytes:
    return models.chain(LARGE, ("TANH", "EXP", "NEG"))


def in_flight(runner: Runner, inputs: list[Any]) -> list[Any]:
    assert runner.mode == "stream"
    return list(runner.run_many(inputs))


def by_invoke(model: bytes, inputs: list[Any], **options: Any) -> list[np.ndarray]:
    interpreter = make_interpreter("auto", model, [clgpu_delegate.load(**options)])
    return [run_interpreter(interpreter, [x])[0] for x in inputs]


def held(runner: Runner) -> int:
    """Bytes that the model takes on the device between inferences."""
    (partition,) = runner.explain().to_dict()["partitions"]
    return int(partition["arena_bytes"] + partition["weights_bytes"])


def assert_same(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_array_equal(one, other)


def test_each_lane_takes_device_memory_and_gives_it_back(device, rng):
    x = models.normal(rng, *LARGE)
    with Runner(elementwise(), device=device, zero_copy="off", depth=1) as one:
        before = one.stats()["device_bytes"]
        with Runner(elementwise(), device=device, zero_copy="off", depth=1) as two:
            alone = two.stats()["device_bytes"] - before
            two.run(x)
        assert one.stats()["device_bytes"] == before
        with Runner(elementwise(), device=device, zero_copy="off", depth=4) as four:
            lanes = four.stats()["device_bytes"] - before - alone
        assert lanes == 3 * 2 * x.nbytes
        assert one.stats()["device_bytes"] == before


def test_a_budget_of_memory_takes_lanes_away(device, rng):
    options = {"device": device, "zero_copy": "off"}
    x = models.normal(rng, *LARGE)
    with Runner(elementwise(), **options) as runner:
        model = held(runner)
    for room, depth in [(3, 3), (2, 2), (1.5, 1)]:
        budget = model + int(room * 2 * x.nbytes)
        with Runner(elementwise(), memory_budget=budget, **options) as runner:
            assert (runner.mode, runner.depth) == ("stream", depth)
            assert_same(in_flight(runner, [x] * 4), [runner.run(x)] * 4)
    with Runner(elementwise(), memory_budget=model + 1, **options) as runner:
        assert runner.mode == "invoke"
        assert "memory budget" in runner.reason
        runner.run(x)


def test_inferences_with_copies_in_their_middle(device, rng):
    model, inputs = models.detour(), [models.normal(rng, 1, 64, 64, 4) for _ in range(5)]
    options: dict[str, Any] = {"device": device, "zero_copy": "off"}
    with Runner(model, **options) as runner:
        options["memory_budget"] = held(runner) * 17 // 20
    want = by_invoke(model, inputs, **options)
    with Runner(model, depth=1, **options) as runner:
        (partition,) = runner.explain().to_dict()["partitions"]
        assert {move["kind"] for move in partition["moves"]} == {"out", "in"}
        assert_same(list(runner.run_many(inputs)), want)


def test_what_crosses_the_bus_and_what_is_copied_on_the_host(device, rng):
    x = models.normal(rng, *LARGE)
    for zero_copy in ("auto", "off"):
        with Runner(elementwise(), device=device, zero_copy=zero_copy) as runner:
            bound, out = runner.input_arrays(), runner.output_arrays()
            bound[...] = x
            want = runner.run(x)
            assert runner.run(bound, out=out) is out
            np.testing.assert_array_equal(out, want)
            del want
            for _ in range(3):
                runner.run(bound, out=out)
            cost = runner.stats()["last_invoke"]
            assert cost["objects_created"] == 0
            moved = {0} if runner.mode == "direct" else {x.nbytes}
            if clgpu_delegate.devices()[int(device)].type != "cpu":
                moved.add(x.nbytes)  # such devices take only memory of whole pages
            assert {cost["bytes_up"], cost["bytes_down"]} <= moved
            # The arrays are the memory that the device reads and writes.
            result = runner.run(bound)
            owner = result
            while isinstance(owner, np.ndarray):
                owner = owner.base
            owner = owner.obj if isinstance(owner, memoryview) else owner
            assert isinstance(owner, _core.HostBlock)
            address = result.ctypes.data
            del result, owner
            assert runner.run(bound).ctypes.data == address, "memory is used again"


@pytest.mark.parametrize("zero_copy", ["off", "auto"])
def test_results_that_are_kept_stay_as_they_are(device, rng, zero_copy):
    inputs = [models.normal(rng, *LARGE) for _ in range(30)]
    options = {"device": device, "zero_copy": zero_copy}
    want = by_invoke(elementwise(), inputs, **options)
    with Runner(elementwise(), **options) as runner:
        kept = list(runner.run_many(inputs))
        list(runner.run_many(inputs[::-1]))
    assert_same(kept, want)


@pytest.mark.parametrize("zero_copy", ["off", "auto"])
def test_half_inputs_and_outputs(device, rng, zero_copy):
    inputs = [models.normal(rng, *LARGE) for _ in range(4)]
    options: dict[str, Any] = {"device": device, "zero_copy": zero_copy}
    options.update(precision="fp16", half_io=True)
    want = by_invoke(elementwise(), inputs, **options)
    with Runner(elementwise(), **options) as runner:
        assert_same(list(runner.run_many(inputs)), want)
        out = np.empty_like(want[0])
        runner.run(inputs[2], out=out)
        np.testing.assert_array_equal(out, want[2])


def test_integers(device, rng):
    inputs = [rng.integers(-128, 128, (1, 4), np.int8) for _ in range(6)]
    options = {"device": device, "zero_copy": "off"}
    want = by_invoke(models.quantized(), inputs, **options)
    with Runner(models.quantized(), **options) as runner:
        assert_same(in_flight(runner, inputs), want)


def test_arenas_that_several_runners_share(device, rng):
    # One arena for all, in turns: each waits for the inferences in flight.
    options: dict[str, Any] = {"device": device, "zero_copy": "off", "memory_pool": "process"}
    makers = [elementwise, functools.partial(models.image, LARGE)]
    inputs = [models.normal(rng, *LARGE) for _ in range(4)]
    wanted = [by_invoke(make(), inputs, **options) for make in makers]
    failures: list[BaseException] = []

    def work(make: Any, want: list[np.ndarray]) -> None:
        try:
            for _ in range(4):
                with Runner(make(), **options) as runner:
                    for _ in range(4):
                        assert_same(in_flight(runner, inputs), want)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(makers, wanted)]
    for thread in threads:
        thread.start()
    interpreter = make_interpreter("auto", elementwise(), [clgpu_delegate.load(**options)])
    for _ in range(5):
        assert_same([run_interpreter(interpreter, [x])[0] for x in inputs], wanted[0])
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_verification_of_the_first_inference_comes_before_the_stream(device, rng):
    x = models.normal(rng, *LARGE)
    with Runner(elementwise(), device=device, zero_copy="off", verify="first") as runner:
        assert (runner.mode, runner.depth) == ("invoke", 1)
        want = runner.run(x)
        assert_same(in_flight(runner, [x] * 3), [want] * 3)
        (partition,) = runner.explain().to_dict()["verification"]["partitions"]
        assert partition["level"] == "as asked"
    with Runner(elementwise(), device=device, zero_copy="off", verify=2) as runner:
        runner.run(x)
        assert (runner.mode, "verify" in runner.reason) == ("invoke", True)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("rows", [2, 4000])  # little and much to move
@pytest.mark.parametrize("call", ["clEnqueueReadBuffer", "clEnqueueNDRangeKernel"])
def test_a_call_that_fails_in_flight_is_an_error_and_no_end(library, call, rows):  # noqa: F811
    script = f"""{PRELUDE}
model = models.chain(({rows}, 11), ("TANH", "SOFTMAX"))
x = np.resize(x, ({rows}, 11))
want = np.resize(want, ({rows}, 11))
runner = clgpu_delegate.Runner(model, runtime=runtime, zero_copy="off")
for after in range(5):
    fault("{call}", OUT_OF_RESOURCES, after, 1)
    try:
        results = list(runner.run_many([x] * 9))
    except clgpu_delegate.OpenCLError as error:
        assert "{call}" in str(error), error
    else:
        raise SystemExit("no error")
    for got in runner.run_many([x] * 9):
        np.testing.assert_allclose(got, want, rtol=1e-5)
"""
    assert_succeeds(run_python(script, resolve_runtime(), **library))


def test_a_device_without_memory_for_lanes_is_used_without(library):  # noqa: F811
    script = f"""{PRELUDE}
model = models.chain((4000, 11), ("TANH", "SOFTMAX"))
x, want = np.resize(x, (4000, 11)), np.resize(want, (4000, 11))
delegate = clgpu_delegate.load(zero_copy="off")
interpreter = make_interpreter(runtime, model, [delegate])
interpreter.allocate_tensors()
fault("clCreateBuffer", OUT_OF_MEMORY, 3, 1)
try:
    clgpu_delegate._core.make_stream(delegate._native, 3, False)
except clgpu_delegate.OpenCLError as error:
    assert "in flight" in str(error), error
else:
    raise SystemExit("no error")
check(interpreter)
"""
    assert_succeeds(run_python(script, resolve_runtime(), **library))
