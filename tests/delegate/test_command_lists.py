"""Launches that a driver records once and then takes in one call.

tests/limits/test_command_lists.py has drivers that fail, and that of another extension.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from bench import networks
from clgpu_delegate import Runner
from tests.delegate.test_chains import check, infer, load, model, one_group, stock, x  # noqa: F401
from tests.delegate.test_stream import LARGE, assert_same, by_invoke, elementwise
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

EXTENSION = "cl_khr_command_buffer"
NONE = {"partition": 0, "extension": "", "launches": 0, "reason": ""}


def of(delegate: Any) -> dict[str, Any]:
    (entry,) = delegate.stats()["command_lists"]
    return dict(entry)


@pytest.fixture
def listing(device: str) -> str:
    """A device whose driver has command buffers."""
    delegate, _ = load(models.chain(), device, command_list="on", warm_up=False)
    if of(delegate)["reason"]:
        assert "neither of the extensions" in of(delegate)["reason"]
        pytest.skip(of(delegate)["reason"])
    return device


@pytest.mark.parametrize("options", [
    {}, {"zero_copy": "off"}, {"precision": "fp16"}, {"share_memory": False}, {"warm_up": False},
], ids=str)  # fmt: skip
def test_a_list_computes_the_same_in_one_call(model, x, listing, options):  # noqa: F811
    _, plain = load(model, listing, command_list="off", **options)
    delegate, interpreter = load(model, listing, command_list="on", **options)
    planned = delegate.explain().partitions[0].launches
    assert of(delegate) == {**NONE, "extension": EXTENSION, "launches": planned}
    for factor in (1, -2, 3):
        got = infer(interpreter, factor * x)
        assert_same(got, infer(plain, factor * x))
        if "precision" not in options:
            check(got, stock(model, factor * x))
    last = delegate.stats()["last_invoke"]
    assert (last["launches"], last["objects_created"]) == (1, 0)
    assert delegate.device_time(3) > 0
    assert len(delegate.launch_times(2)) == planned
    assert_same(infer(interpreter, x), infer(plain, x))


@pytest.mark.parametrize("options", [{}, {"command_list": "off"}, {"profile": True}], ids=str)
def test_without_lists_each_launch_is_enqueued(model, x, device, options):  # noqa: F811
    """The default measures, but not on CPUs."""
    delegate, interpreter = load(model, device, **{"chain": "off", **options})
    check(infer(interpreter, x), stock(model, x))
    if clgpu_delegate.devices()[int(device)].type == "cpu" or options:
        assert of(delegate) == NONE
        planned = delegate.explain().partitions[0].launches
        assert delegate.stats()["last_invoke"]["launches"] == planned


@pytest.mark.usefixtures("one_group")
def test_chains_come_first(model, x, listing):  # noqa: F811
    delegate, interpreter = load(model, listing, command_list="on", chain="on")
    check(infer(interpreter, x), stock(model, x))
    assert delegate.stats()["chains"][0]["kernels"] > 0
    assert of(delegate) == {**NONE, "reason": "launches run as stages of chains"}


def test_tensors_that_wait_on_the_host_exclude_lists(listing, rng):
    model, x = models.detour(), models.normal(rng, 1, 64, 64, 4)  # noqa: F811
    options: dict[str, Any] = {"device": listing, "zero_copy": "off", "command_list": "on"}
    with Runner(model, **options) as runner:
        (partition,) = runner.explain().to_dict()["partitions"]
    budget = (partition["arena_bytes"] + partition["weights_bytes"]) * 17 // 20
    delegate = clgpu_delegate.load(**options, memory_budget=budget)
    interpreter = make_interpreter("auto", model, [delegate])
    np.testing.assert_allclose(
        run_interpreter(interpreter, [x])[0], run_reference(model, [x])[0], rtol=1e-4, atol=1e-5
    )
    assert of(delegate) == {**NONE, "reason": "tensors move between device and host"}


def test_tensors_may_move(listing, runtime, rng):
    """Each time the runtime has moved its tensors, the list is made again."""
    model = models.image((2, 7, 6, 3))  # noqa: F811
    delegate = clgpu_delegate.load(device=listing, command_list="on")
    interpreter = make_interpreter(runtime, model, [delegate])
    for shape in [(1, 5, 5, 3), (3, 31, 17, 3), (1, 1, 1, 3), (2, 64, 64, 3), (1, 5, 5, 3)]:
        data = models.normal(rng, *shape)
        (want,) = run_reference(model, [data], runtime, resize={0: shape})
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        for _ in range(2):
            interpreter.allocate_tensors()
            for _ in range(4):
                (got,) = run_interpreter(interpreter, [data])
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            assert delegate.stats()["last_invoke"]["objects_created"] == 0
            planned = delegate.explain().partitions[0].launches
            if planned > 1:
                assert delegate.stats()["last_invoke"]["launches"] == 1
                assert of(delegate)["reason"] == ""


@pytest.mark.parametrize("zero_copy", ["off", "auto"])
def test_inferences_in_flight(listing, rng, zero_copy):
    inputs = [models.normal(rng, *LARGE) for _ in range(6)]
    options: dict[str, Any] = {"device": listing, "zero_copy": zero_copy}
    want = by_invoke(elementwise(), inputs, command_list="off", **options)
    with Runner(elementwise(), command_list="on", **options) as runner:
        for _ in range(2):
            assert_same(list(runner.run_many(inputs)), want)
        assert_same([runner.run(x) for x in inputs], want)


def test_arenas_that_grow_and_take_turns(listing, rng):
    """Another model of the pool needs more memory, while lists refer to what there was."""
    options: dict[str, Any] = {
        "device": listing, "zero_copy": "off", "memory_pool": "process", "command_list": "on"
    }  # fmt: skip
    shapes = [(1, 9, 9, 3), (1, 40, 40, 3), (1, 64, 80, 3)]
    inputs = [models.normal(rng, *shape) for shape in shapes]
    wanted = [run_reference(models.image(s), [i], "auto")[0] for s, i in zip(shapes, inputs)]
    made: list[Any] = []
    for shape in shapes:
        delegate = clgpu_delegate.load(**options)
        made.append((delegate, make_interpreter("auto", models.image(shape), [delegate])))
        for _ in range(3):
            for (_, interpreter), data, want in zip(made, inputs, wanted):
                (got,) = run_interpreter(interpreter, [data])
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert [delegate.stats()["last_invoke"]["launches"] for delegate, _ in made] == [1, 1, 1]


def test_several_threads_with_one_pool(listing, rng):
    options: dict[str, Any] = {"device": listing, "memory_pool": "process", "command_list": "on"}
    shapes = [(1, 40, 40, 3), (1, 24, 56, 3), (1, 9, 9, 3)]
    inputs = [models.normal(rng, *shape) for shape in shapes]
    wanted = [run_reference(models.image(s), [i], "auto")[0] for s, i in zip(shapes, inputs)]
    failures: list[BaseException] = []

    def work(shape: Any, data: np.ndarray, want: np.ndarray) -> None:
        try:
            for _ in range(4):
                delegate = clgpu_delegate.load(**options)
                interpreter = make_interpreter("auto", models.image(shape), [delegate])
                for _ in range(6):
                    (got,) = run_interpreter(interpreter, [data])
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=each) for each in zip(shapes, inputs, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("name", ["lenet5", "mobilenet_v2", "transformer"])
def test_networks_have_the_same_bits(listing, precision, name):
    content = networks.build(name)
    inputs = networks.sample_inputs(content, seed=1)
    got = []
    for command_list in ("off", "on"):
        delegate = clgpu_delegate.load(
            device=listing, precision=precision, command_list=command_list
        )
        interpreter = make_interpreter("auto", content, [delegate])
        got.append([run_interpreter(interpreter, inputs) for _ in range(3)])
    assert of(delegate)["launches"] == delegate.explain().partitions[0].launches
    for plain, listed in zip(*got):
        assert_same(listed, plain)


def test_one_launch_needs_no_list(listing):
    m = ModelMaker()
    m.output(m.op("TANH", [m.input("x", (4,))], (4,)))
    delegate, _ = load(m.build(), listing, command_list="on")
    assert of(delegate) == {**NONE, "reason": "there are fewer than two launches"}
