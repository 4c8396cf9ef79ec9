"""Runner: inputs, outputs, and errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, FileError, InputError, ModelError, OptionError, Runner
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.models import SHAPE, WAYS
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter


def images(rng: np.random.Generator, count: int, shape: tuple[int, ...] = SHAPE) -> list[Any]:
    return [models.normal(rng, *shape) for _ in range(count)]


def by_invoke(runtime: str, model: bytes, inputs: list[Any], **options: Any) -> list[np.ndarray]:
    """The first output for each array, one at a time by an interpreter with the delegate."""
    options.pop("depth", None)
    interpreter = make_interpreter(runtime, model, [clgpu_delegate.load(**options)])
    return [run_interpreter(interpreter, [x], {0: x.shape})[0] for x in inputs]


def two_in_two_out() -> bytes:
    m = ModelMaker()
    a, b = m.input("a", (2, 3)), m.input("b", (2, 3))
    m.output(m.op("ADD", [a, b], (2, 3)), m.op("SUB", [a, b], (2, 3)))
    return m.build()


def assert_same(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_what_invoke_gives_in_order(device, runtime, rng, way):
    unified = clgpu_delegate.devices()[int(device)].unified_memory
    inputs, options = images(rng, 7), {"device": device, **WAYS[way]}
    want = by_invoke(runtime, models.image(), inputs, **options)
    with Runner(models.image(), runtime=runtime, **options) as runner:
        assert runner.mode == (way if way != "direct" or unified else "stream")
        assert bool(runner.reason) == (way in ("interpreters", "invoke"))
        assert_same([runner.run(x) for x in inputs], want)
        assert_same(list(runner.run_many(inputs)), want)
        buffer = np.empty_like(inputs[0])
        futures = []
        for x in inputs:
            buffer[...] = x  # may change once run_async has returned
            futures.append(runner.run_async(buffer))
        assert_same([future.result() for future in futures], want)
        out = np.empty_like(want[0])
        assert runner.run(inputs[1], out=out) is out
        np.testing.assert_array_equal(out, want[1])


@pytest.mark.parametrize("way", WAYS)
def test_close_waits_for_what_is_under_way(device, rng, way):
    shape = (1, 300, 300, 3)  # long enough to be under way still
    with Runner(models.image(shape), device=device, **WAYS[way]) as runner:
        futures = [runner.run_async(x) for x in images(rng, 3, shape)]
        runner.close()
        assert all(future.done() for future in futures)
    assert all(np.isfinite(future.result()).all() for future in futures)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("zero_copy", ["off", "auto"])
@pytest.mark.parametrize("size", [7, 200])  # little and much to move
def test_any_number_in_flight_is_right(device, rng, depth, zero_copy, size):
    shape = (1, size, size, 3)
    inputs, model = images(rng, 9, shape), models.chain(shape, ("TANH", "EXP"))
    options = {"device": device, "zero_copy": zero_copy}
    want = by_invoke("auto", model, inputs, **options)
    with Runner(model, depth=depth, **options) as runner:
        assert runner.depth == (1 if runner.mode == "direct" else depth)
        assert_same(list(runner.run_many(inputs)), want)


def test_inputs_and_outputs_are_listed():
    with Runner(models.quantized()) as runner:
        (x,), (y,) = runner.inputs, runner.outputs
    assert (x.name, x.shape, x.dtype, x.scale, x.zero_point) == ("x", (1, 4), np.int8, 0.5, 0)
    assert (y.shape, y.dtype, y.scale, y.nbytes) == ((1, 4), np.int8, 1.0, 4)


def test_results_have_the_form_of_the_inputs(device):
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    with Runner(two_in_two_out(), device=device) as runner:
        names = [t.name for t in runner.outputs]
        total, difference = runner.run([a, b])
        assert (total[0, 0], difference[0, 0]) == (3, -1)
        found = runner.run({"b": a, "a": b})
        assert list(found) == names
        assert found[names[1]][0, 0] == 1
        out = runner.output_arrays()
        runner.run((a, b), out=out)
        assert (out[0][0, 0], out[1][0, 0]) == (3, -1)
        assert list(runner.run_async({"a": a, "b": b}).result()) == names
        assert [len(r) for r in runner.run_many([(a, b)])] == [2]


def test_mistakes_in_arrays_name_the_tensor_and_what_it_takes(rng):
    x = models.normal(rng, *SHAPE)
    wide = x.astype(np.float64)
    with Runner(models.image()) as runner, Runner(two_in_two_out()) as two:
        y = runner.run(x)
        frozen = y.copy()
        frozen.flags.writeable = False
        name = runner.outputs[0].name
        for call, words in [
            (lambda: runner.run(wide), r"input 'x' is float32 of shape \(1, 7, 6, 3\); given is "
             r"float64 of shape \(1, 7, 6, 3\); convert it, e.g. with .astype\(np.float32\)"),
            (lambda: runner.run(x[0]), r"\(7, 6, 3\); the first axis, the batch, is missing"),
            (lambda: runner.run(3.0), "input 'x' takes a NumPy array, not float"),
            (lambda: runner.run({"y": x}), "no input 'y'; inputs are: 'x'"),
            (lambda: runner.run([x, x]), "2 arrays; inputs are 1: 'x'"),
            (lambda: runner.run(x, out=wide), f"output '{name}' is float32 of shape"),
            (lambda: runner.run(x, out=frozen), "contiguous array that is writeable"),
            (lambda: runner.run_async(wide), "given is float64"),
            (lambda: list(runner.run_many([wide])), "given is float64"),
            (lambda: two.run({"a": y}), "nothing for 'b'; inputs are: 'a', 'b'"),
            (lambda: two.run(y), "one array; inputs are 2: 'a', 'b'"),
        ]:  # fmt: skip
            with pytest.raises(InputError, match=words):
                call()
        np.testing.assert_array_equal(runner.run(x[:, ::1]), y)
        strided = np.empty((1, 7, 6, 6), np.float32)[..., ::2]
        strided[...] = x
        np.testing.assert_array_equal(runner.run(strided), y)


@pytest.mark.parametrize("zero_copy", ["auto", "off"])
def test_views_of_input_arrays_are_inputs_like_any(device, rng, zero_copy):
    m = ModelMaker()
    m.output(m.op("NEG", [m.input("x", (5, 5))], (5, 5)))
    with Runner(m.build(), device=device, zero_copy=zero_copy) as runner:
        x = runner.input_arrays()
        x[...] = models.normal(rng, 5, 5)
        for view in (x.T, x[::-1]):  # the first begins where `x` does
            assert_same([runner.run(view), runner.run_async(view).result()], [-view, -view])


def test_a_profile_is_of_single_inferences(device, rng):
    with Runner(models.image(), device=device, profile=True) as runner:
        assert (runner.mode, "profile" in runner.reason) == ("invoke", True)
        list(runner.run_many(images(rng, 3)))
        assert runner.profile().to_dict()["inferences"] == 3


def test_mistakes_in_models_and_settings(tmp_path):
    (tmp_path / "none.tflite").write_bytes(b"nothing")
    whole = models.image()
    for arguments, settings, error in [
        ((tmp_path / "missing.tflite",), {}, FileError),
        ((tmp_path / "none.tflite",), {}, ModelError),
        ((whole[: len(whole) // 3],), {}, ModelError),
        ((whole,), {"depth": 0}, OptionError),
        ((whole,), {"threads": 0}, OptionError),
        ((whole,), {"precison": "fp16"}, OptionError),
        ((whole,), {"delegate": clgpu_delegate.load(), "precision": "fp16"}, OptionError),
        ((whole,), {"runtime": "torch"}, clgpu_delegate.RuntimeNotFoundError),
    ]:
        with pytest.raises(error):
            Runner(*arguments, **settings)


@pytest.mark.parametrize("way", ["stream", "interpreters"])
def test_an_iterable_that_fails_ends_after_the_results_before_it(rng, way):
    inputs = images(rng, 3)

    def source(error: BaseException) -> Any:
        yield from inputs
        raise error

    with Runner(models.image(), **WAYS[way]) as runner:
        want = [runner.run(x) for x in inputs]
        results = runner.run_many(source(ZeroDivisionError()))
        assert_same([next(results) for _ in inputs], want)
        with pytest.raises(ZeroDivisionError):
            next(results)
        with pytest.raises(KeyboardInterrupt):
            list(runner.run_many(source(KeyboardInterrupt())))
        assert_same(list(runner.run_many(inputs)), want)


@pytest.mark.parametrize("way", WAYS)
def test_items_are_taken_a_few_ahead_and_loops_may_be_left(rng, way):
    x = models.normal(rng, *SHAPE)
    taken = []

    def source() -> Any:
        for i in range(1000):
            taken.append(i)
            yield x

    with Runner(models.image(), **WAYS[way]) as runner:
        want = runner.run(x)
        results = runner.run_many(source())
        np.testing.assert_array_equal(next(results), want)
        assert len(taken) <= runner.depth + 1
        np.testing.assert_array_equal(runner.run(x), want)  # in the middle of a loop
        future = runner.run_async(x)
        np.testing.assert_array_equal(next(results), want)
        np.testing.assert_array_equal(future.result(), want)
        results.close()
        left = runner.run_many(source())
        next(left)
    with pytest.raises(ClgpuError, match="the runner is closed"):
        next(left)


def test_progress_is_told_to_a_function_and_not_to_a_file(rng, capsys):
    inputs, calls = images(rng, 3), []
    with Runner(models.image()) as runner:
        list(runner.run_many(inputs, progress=lambda *call: calls.append(call)))
        list(runner.run_many(iter(inputs), progress=True))
        list(runner.run_many((x for x in inputs), progress=lambda *call: calls.append(call)))
    assert calls == [(1, 3), (2, 3), (3, 3), (1, None), (2, None), (3, None)]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("way", WAYS)
def test_threads_may_share_a_runner(device, rng, way):
    inputs = images(rng, 4)
    options = {"device": device, **WAYS[way]}
    failures: list[BaseException] = []
    with Runner(models.image(), **options) as runner:
        want = [runner.run(x) for x in inputs]

        def work(i: int) -> None:
            try:
                for _ in range(5):
                    np.testing.assert_array_equal(runner.run(inputs[i]), want[i])
                    np.testing.assert_array_equal(runner.run_async(inputs[i]).result(), want[i])
                    assert_same(list(runner.run_many(inputs)), want)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("way", ["stream", "direct", "interpreters"])
def test_resize(device, runtime, rng, way):
    options = {"device": device, **WAYS[way]}
    with Runner(models.image(), runtime=runtime, **options) as runner:
        mode = runner.mode
        for shape in [(2, 9, 5, 3), SHAPE]:
            inputs = images(rng, 4, shape)
            runner.resize(shape)
            assert (runner.inputs[0].shape, runner.outputs[0].shape) == (shape, (shape[0], 4))
            want = by_invoke(runtime, models.image(), inputs, **options)
            assert_same(list(runner.run_many(inputs)), want)
        with pytest.raises(InputError, match="do not fit the model"):
            runner.resize({"x": (1, 7, 6, 5)})
        runner.resize(np.array(SHAPE))
        runner.resize(tuple(np.int64(n) for n in SHAPE))
        for bad in ("abc", 5, [(1, 2.5, 6, 3)], (1, -7, 6, 3), None):
            with pytest.raises(InputError, match="is not a shape for input 'x'"):
                runner.resize(bad)
        assert (runner.mode, runner.inputs[0].shape) == (mode, SHAPE)
        assert_same([runner.run(inputs[0])], want[:1])


def test_runners_that_share_a_delegate_run_their_own_models(device, rng):
    def add(value: float) -> bytes:
        m = ModelMaker()
        addend = m.constant(np.full((2, 3), value, np.float32))
        m.output(m.op("ADD", [m.input("x", (2, 3)), addend], (2, 3)))
        return m.build()

    x = models.normal(rng, 2, 3)
    delegate = clgpu_delegate.load(device=device, verify="first")  # streams come after that one
    with Runner(add(1), delegate=delegate) as one, Runner(add(2), delegate=delegate) as two:
        for _ in range(3):
            assert_same([one.run(x), two.run(x)], [x + np.float32(1), x + np.float32(2)])
        assert "another interpreter" in one.reason
        assert two.mode in ("direct", "stream")


def test_a_closed_runner_says_so():
    runner = Runner(models.image())
    runner.close()
    runner.close()
    x = np.zeros(SHAPE, np.float32)
    for use in (
        lambda: runner.run(x),
        lambda: runner.run_async(x),
        lambda: runner.run_many([x]),
        lambda: runner.resize(SHAPE),
        lambda: runner.inputs,
        runner.__enter__,
    ):
        with pytest.raises(ClgpuError, match="the runner is closed"):
            use()


@pytest.mark.parametrize("way", ["interpreters", "invoke"])
def test_who_comes_late_does_not_use_an_interpreter_that_is_resized(way):
    # A thread that held the engine when another one closed it.
    with Runner(models.image(), **WAYS[way]) as runner:
        late = runner._use()
        runner.resize((2, 9, 5, 3))
        late.close()
        x = np.zeros(SHAPE, np.float32)
        for use in (late.run, late.start, lambda *rest: late.start_future(*rest, list)):
            with pytest.raises(ClgpuError, match="closed or resized"):
                use([x], [None])


def test_any_order_of_deletion_is_safe(runtime):
    # In a separate process, because errors here crash.
    script = """
import gc, sys
import numpy as np
import clgpu_delegate
from tests.python import models
x = np.ones((1, 64, 64, 4), np.float32)
for way in ({"zero_copy": "off"}, {}, {"exclude": "EXP"}):
    names = ["runner", "future", "results", "array", "bound"]
    for order in [names, names[2:] + names[:2], names[::-1]]:
        model = models.chain((1, 64, 64, 4), ("TANH", "EXP", "NEG"))
        runner = clgpu_delegate.Runner(model, runtime=sys.argv[1], **way)
        results = runner.run_many([x] * 9)
        things = {"runner": runner, "future": runner.run_async(x), "results": results,
                  "array": next(results), "bound": runner.input_arrays()}
        del runner, results
        want = -np.exp(np.tanh(x))
        for name in order:
            if name == "array":
                np.testing.assert_allclose(things[name], want, rtol=1e-5)
            del things[name]
            gc.collect()
    print("done")
kept = clgpu_delegate.Runner(models.image(), zero_copy="off")
future = kept.run_async(np.zeros((1, 7, 6, 3), np.float32))  # the process ends with it alive
"""
    result = run_python(script, runtime)
    assert_succeeds(result)
    assert result.stdout.count("done") == 3
