"""Pool: several devices, one queue."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import (
    ClgpuError,
    DeviceError,
    FileError,
    InputError,
    ModelError,
    OptionError,
    Pool,
    PoolError,
    Runner,
)
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.models import SHAPE, WAYS
from tests.python.subprocesses import assert_succeeds, run_python

FLAT = (2, 5)
SOON = 20.0  # seconds


def negation(shape: tuple[int, ...] = FLAT) -> bytes:
    """A model whose results are the same on all devices."""
    return models.chain(shape, ("NEG",))


def inputs(count: int, shape: tuple[int, ...] = FLAT) -> list[Any]:
    return [np.full(shape, number, np.float32) for number in range(count)]


def numbers(results: Any) -> list[int]:
    """Those of the inputs that `negation` got."""
    return [int(-y.flat[0]) for y in results]


class Held:
    """An engine that begins with no inference before `go`."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.go, self.begun = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def start(self, *arguments: Any) -> Any:
        self.begun.set()
        assert self.go.wait(SOON)
        return self._engine.start(*arguments)


def hold(pool: Pool, number: int) -> Held:
    """Let a device of a pool wait."""
    runner = pool._sharing.members[number].runner
    runner._engine = held = Held(runner._engine)
    return held


def wait_until(condition: Any) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("way", WAYS)
def test_results_are_those_of_a_runner_in_order(device, rng, way):
    given = [models.normal(rng, *SHAPE) for _ in range(15)]
    settings = WAYS[way]
    with Runner(models.image(), device=device, **settings) as runner:
        want = [runner.run(x) for x in given]
    with Pool(models.image(), [int(device)] * 2, **settings) as pool:
        np.testing.assert_array_equal(list(pool.map(given)), want)
        np.testing.assert_array_equal([pool.submit(x).result() for x in given], want)
        found = dict(pool.map(iter(given), ordered=False))
        np.testing.assert_array_equal([found[number] for number in range(15)], want)
        stats = pool.stats()
    assert sum(each.done for each in stats) == 45
    assert [(each.state, each.passed_on, each.error) for each in stats] == [("working", 0, "")] * 2
    assert {each.mode for each in stats} == {runner_mode(device, way)}
    assert all(each.per_second > 0 for each in stats if each.done)


def runner_mode(device: str, way: str) -> str:
    with Runner(models.image(), device=device, **WAYS[way]) as runner:
        return runner.mode


def test_all_devices_take_part():
    with Pool(negation(), "all") as pool:
        assert [e.device for e in pool.stats()] == clgpu_delegate.devices()
        held = [hold(pool, number) for number in range(len(pool.stats()))]
        results = pool.map(inputs(20))
        futures = [pool.submit(x) for x in inputs(len(held))]
        assert all(each.begun.wait(SOON) for each in held), "each has begun with one"
        for each in held:
            each.go.set()
        assert numbers(results) == list(range(20))
        assert numbers(f.result() for f in futures) == list(range(len(held)))
        assert all(each.done for each in pool.stats())


def test_results_have_the_form_of_the_inputs(device):
    m = ModelMaker()
    a, b = m.input("a", FLAT), m.input("b", FLAT)
    m.output(m.op("ADD", [a, b], FLAT), m.op("SUB", [a, b], FLAT))
    x, y = np.ones(FLAT, np.float32), np.full(FLAT, 2, np.float32)
    with Pool(m.build(), device) as pool:
        assert [t.name for t in pool.inputs] == ["a", "b"]
        total, difference = pool.submit([x, y]).result()
        assert (total[0, 0], difference[0, 0]) == (3, -1)
        (found,) = pool.map([{"b": x, "a": y}])
        assert list(found) == [t.name for t in pool.outputs]
        assert found[pool.outputs[1].name][0, 0] == 1


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("bound", [1, 3, None])
def test_an_iterable_is_not_read_further_ahead_than_the_bound(bound, ordered):
    taken = 0

    def source() -> Iterator[Any]:
        nonlocal taken
        for x in inputs(30):
            taken += 1
            yield x

    with Pool(negation(), [0, 0], bound=bound, zero_copy="off") as pool:
        assert pool.bound == (bound or 16)
        seen = 0
        for _ in pool.map(source(), ordered=ordered):
            assert taken <= seen + pool.bound
            seen += 1
        assert (seen, taken) == (30, 30)
        held = [hold(pool, 0), hold(pool, 1)]
        taken = 0
        results = pool.map(source(), ordered=ordered)
        thread = threading.Thread(target=next, args=(results,))
        thread.start()
        wait_until(lambda: taken == pool.bound)
        time.sleep(0.05)
        assert taken == pool.bound, "no more while no result was given"
        for each in held:
            each.go.set()
        thread.join()
        results.close()


def test_submit_waits_for_room():
    with Pool(negation(), 0, bound=2) as pool:
        held = hold(pool, 0)
        futures = [pool.submit(x) for x in inputs(2)]
        entered = threading.Event()

        def third() -> None:
            futures.append(pool.submit(inputs(3)[2]))
            entered.set()

        thread = threading.Thread(target=third)
        thread.start()
        assert not entered.wait(0.1)
        held.go.set()
        assert entered.wait(SOON)
        thread.join()
        assert numbers(future.result() for future in futures) == [0, 1, 2]


def test_a_slow_device_holds_nobody_up():
    with Pool(negation(), [0, 0], bound=4) as pool:
        held = hold(pool, 0)
        results = pool.map(inputs(40), ordered=False)
        others = []
        while len(others) < 39 - (pool.bound if not held.begun.is_set() else 0):
            others.append(next(results)[0])
        assert held.begun.wait(SOON)
        assert pool.stats()[1].done >= len(others)
        held.go.set()
        assert sorted([*others, *(number for number, _ in results)]) == list(range(40))
        assert sum(each.done for each in pool.stats()) == 40


def test_a_second_input_is_left_to_a_device_that_is_free():
    with Pool(negation(), [0, 0], zero_copy="off") as pool:
        sharing, held, other = pool._sharing, hold(pool, 0), hold(pool, 1)
        other.go.set()
        first = sharing.members[0]
        assert first.ahead > 1
        take, settle = sharing._take, sharing._settle
        awake = threading.Event()
        under_way: list[int] = []

        def take_once_awake(member: Any) -> Any:
            assert member is first or awake.wait(SOON)
            return take(member)

        def settle_once_both_work(member: Any, *of_task: Any) -> None:
            under_way.append(member.under_way)
            awake.set()
            other.begun.wait(SOON)
            settle(member, *of_task)

        sharing._take, sharing._settle = take_once_awake, settle_once_both_work
        futures = [pool.submit(x) for x in inputs(2)]
        held.go.set()
        assert numbers(f.result() for f in futures) == [0, 1]
        assert under_way == [1, 1]
        assert [each.done for each in pool.stats()] == [1, 1]


def test_a_wrong_input_is_its_own_error_and_no_device_fails():
    good, wide = inputs(3), np.zeros(FLAT)
    with Pool(negation(), [0, 0]) as pool:
        with pytest.raises(InputError, match=r"^input 'x' is float32 .* given is float64"):
            pool.submit(wide)
        for ordered in (True, False):
            results = pool.map([*good, wide, *good], ordered=ordered)
            got = [next(results) for _ in good]
            assert sorted(numbers(y if ordered else y[1] for y in got)) == [0, 1, 2]
            with pytest.raises(InputError, match=r"^item 3: input 'x' is float32 of shape"):
                next(results)
        assert numbers(pool.map(good)) == [0, 1, 2]
        assert {each.state for each in pool.stats()} == {"working"}


def gather() -> bytes:
    """Fails on the CPU for an index that does not exist."""
    m = ModelMaker()
    table = m.constant(np.arange(4, dtype=np.float32))
    m.output(m.op("GATHER", [table, m.input("i", (2,), np.int32)], (2,), axis=0))
    return m.build()


def test_an_input_that_the_cpu_refuses_is_its_own_error_too():
    good, bad = np.array([3, 1], np.int32), np.array([3, 9], np.int32)
    with Pool(gather(), [0, 0], exclude="GATHER") as pool:
        futures = [pool.submit(x) for x in (good, bad, good)]
        with pytest.raises(ClgpuError, match=r"inference failed: .*index out of bounds"):
            futures[1].result()
        np.testing.assert_array_equal([futures[0].result(), futures[2].result()], [[3, 1]] * 2)
        assert {each.state for each in pool.stats()} == {"working"}


@pytest.mark.parametrize("ordered", [True, False])
def test_an_iterable_that_fails_ends_after_the_results_before_it(ordered):
    def source(error: BaseException) -> Iterator[Any]:
        yield from inputs(5)
        raise error

    with Pool(negation(), [0, 0]) as pool:
        results = pool.map(source(ZeroDivisionError()), ordered=ordered)
        assert len([next(results) for _ in range(5)]) == 5
        with pytest.raises(ZeroDivisionError):
            next(results)
        with pytest.raises(KeyboardInterrupt):
            list(pool.map(source(KeyboardInterrupt()), ordered=ordered))
        assert numbers(pool.map(inputs(4))) == [0, 1, 2, 3]
        assert list(pool.map([])) == []


def test_arrays_may_change_once_they_were_given():
    buffer = np.empty(FLAT, np.float32)

    def source() -> Iterator[Any]:
        for number in range(20):
            buffer[...] = number
            yield buffer

    with Pool(negation(), [0, 0], bound=8) as pool:
        assert numbers(pool.map(source())) == list(range(20))
    with Pool(negation(), [0, 0], copy=False) as pool:
        assert numbers(pool.map(inputs(20))) == list(range(20))


def test_what_nobody_has_begun_with_may_be_cancelled():
    with Pool(negation(), 0, bound=4) as pool:
        held = hold(pool, 0)
        first, second, third, fourth = (pool.submit(x) for x in inputs(4))
        assert held.begun.wait(SOON)
        assert not first.cancel()
        assert second.cancel()
        closing = threading.Thread(target=pool.close, kwargs={"cancel": True})
        closing.start()
        wait_until(third.cancelled)
        assert fourth.cancelled()
        held.go.set()
        closing.join()
        assert numbers([first.result()]) == [0]
        assert pool.stats()[0].done == 1


def test_leaving_a_loop_drops_what_nobody_has_begun_with():
    with Pool(negation(), 0, bound=4) as pool:
        results = pool.map(inputs(100))
        next(results)
        results.close()
        assert numbers(pool.map(inputs(5))) == [0, 1, 2, 3, 4]
        assert pool.stats()[0].done <= 1 + 4 + 5


def test_close_waits_and_a_closed_pool_says_so():
    pool = Pool(negation(), [0, 0])
    futures = [pool.submit(x) for x in inputs(4)]
    left = pool.map(inputs(100))
    next(left)
    pool.close()
    pool.close()
    assert all(future.done() for future in futures)
    for use in (
        lambda: pool.submit(inputs(1)[0]),
        lambda: pool.map([]),
        lambda: list(left),
        pool.__enter__,
    ):
        with pytest.raises(ClgpuError, match="the pool is closed"):
            use()
    assert sum(each.done for each in pool.stats()) >= 5


def test_callbacks_may_submit_and_may_not_close():
    with Pool(negation(), 0, bound=1) as pool:
        told: list[Any] = []
        done = threading.Event()

        def again(future: Any) -> None:
            told.append(future.result())
            try:
                pool.close()
            except ClgpuError as error:
                told.append(str(error))
            pool.submit(told[0]).add_done_callback(lambda _: done.set())

        pool.submit(inputs(2)[1]).add_done_callback(again)
        assert done.wait(SOON)
        assert "a callback of a future cannot close the pool" in told[1]


def test_a_callback_that_ends_its_thread_does_not_hold_the_pool(caplog):
    def leave(_: Any) -> None:
        raise SystemExit(3)

    with Pool(negation(), 0, bound=4) as pool:
        held = hold(pool, 0)
        futures = [pool.submit(x) for x in inputs(4)]
        assert held.begun.wait(SOON)
        for future in futures:
            future.add_done_callback(leave)
        closing = threading.Thread(target=pool.close, kwargs={"cancel": True})
        closing.start()
        wait_until(futures[3].cancelled)
        held.go.set()
        closing.join(SOON)
        assert not closing.is_alive()
        assert numbers([futures[0].result()]) == [0]
    told = [r for r in caplog.records if r.message == "a callback of a future of a pool failed"]
    assert len(told) == 4


def test_a_callback_of_an_error_that_ends_its_thread_does_not_hold_the_pool():
    def leave(_: Any) -> None:
        raise SystemExit(3)

    with Pool(gather(), 0, exclude="GATHER", bound=1) as pool:
        held = hold(pool, 0)
        bad = pool.submit(np.array([3, 9], np.int32))
        bad.add_done_callback(leave)
        held.go.set()
        good = pool.submit(np.array([3, 1], np.int32))
        np.testing.assert_array_equal(good.result(SOON), [3, 1])
        assert "inference failed" in str(bad.exception())


def test_threads_may_share_a_pool():
    failures: list[BaseException] = []
    with Pool(negation(), "all", bound=3) as pool:

        def work() -> None:
            try:
                for ordered in (True, False):
                    got = pool.map(inputs(25), ordered=ordered)
                    found = numbers(got) if ordered else sorted(number for number, _ in got)
                    assert found == list(range(25))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert sum(each.done for each in pool.stats()) == 200


def test_shapes_may_be_others_than_those_of_the_model():
    with Pool(negation(), [0, 0], shape=(3, 4)) as pool:
        assert pool.inputs[0].shape == (3, 4)
        assert numbers(pool.map(inputs(9, (3, 4)))) == list(range(9))


def test_devices_are_named_as_options_name_them(monkeypatch):
    found = clgpu_delegate.devices()

    def of(names: Any) -> list[int]:
        with Pool(negation(), names) as pool:
            return [each.device.index for each in pool.stats()]

    first = found[0]
    alike = [d.index for d in found if first.platform.lower() in d.platform.lower()]
    assert of("ALL") == [d.index for d in found]
    assert of("0") == of(0) == of([0]) == [0]
    assert of(first.platform.upper()) == alike
    assert of([0, "0"]) == [0, 0]
    monkeypatch.setenv("CLGPU_DEVICE", str(found[-1].index))
    assert of(None) == [found[-1].index]
    monkeypatch.delenv("CLGPU_DEVICE")
    quick = [d.index for d in found if d.type in ("gpu", "accelerator")]
    assert of(None) == (quick or [d.index for d in found if d.platform == first.platform])


def test_mistakes_in_models_and_settings(tmp_path):
    whole = models.image()
    for arguments, settings, error, words in [
        ((tmp_path / "missing.tflite",), {}, FileError, "cannot read the model"),
        ((b"nothing",), {}, ModelError, "lacks the mark"),
        ((whole, "abacus"), {}, DeviceError, "no OpenCL device is 'abacus'; devices are: 0: "),
        ((whole, 99), {}, DeviceError, "no OpenCL device is 99"),
        ((whole, []), {}, OptionError, r"devices is \[\]; allowed: an index or"),
        ((whole, [None]), {}, OptionError, "devices is None; allowed"),
        ((whole, 1.5), {}, OptionError, "devices is 1.5; allowed"),
        ((whole,), {"bound": 0}, OptionError, "bound is 0; allowed: 1 and more, or None"),
        ((whole,), {"depth": 0}, OptionError, "depth is 0"),
        ((whole,), {"device": 0}, OptionError, "a Pool takes several"),
        ((whole,), {"precison": "fp16"}, OptionError, "did you mean 'precision'"),
        ((whole,), {"shape": (1, 7, 6, 5)}, InputError, "do not fit the model"),
    ]:
        with pytest.raises(error, match=words):
            Pool(*arguments, **settings)


def test_the_error_of_all_devices_can_be_sent_to_another_process():
    failures = [(0, "one", "OpenCLError: clFinish"), (1, "other", "DeviceError: gone")]
    error = pickle.loads(pickle.dumps(PoolError(failures)))
    assert error.failures == failures
    assert str(error) == (
        "all devices have failed: 0 (one): OpenCLError: clFinish; 1 (other): DeviceError: gone"
    )


def test_a_process_may_end_with_a_pool_and_fork():
    script = """
import os, sys
import numpy as np
import clgpu_delegate
from tests.python import models
x = np.ones((2, 5), np.float32)
pool = clgpu_delegate.Pool(models.chain((2, 5), ("NEG",)), [0, 0])
results = pool.map([x] * 50)
next(results)
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: pool.submit(x), pool.stats, pool.__enter__, lambda: pool.map([x])):
        try:
            use()
        except clgpu_delegate.DeviceError:
            refused += 1
    assert repr(pool) == "<clgpu_delegate.Pool on 0: working, 0: working>"
    pool.close()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
gone = clgpu_delegate.Pool(models.chain((2, 5), ("NEG",)), 0)
future = gone.submit(x)
del gone
assert future.result(20)[0, 0] == -1
futures = [pool.submit(x) for _ in range(10)]
print("done")
"""
    result = run_python(script)
    assert_succeeds(result)
    assert result.stdout == "done\n"
