"""Interpreters, delegates and views may be deleted in any order and used from any thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import clgpu_delegate
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter, run_reference

SHAPE = (2, 5)


def test_any_order_of_deletion_is_safe(runtime):
    # In a separate process, because errors here crash.
    script = """
import gc, itertools, sys
import numpy as np
import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter, interpreter_module
runtime, model = sys.argv[1], models.chain()
for road in ("load", "load_delegate"):
    for order in itertools.permutations(["interpreter", "delegates", "view"]):
        if road == "load":
            delegates = [clgpu_delegate.load()]
        else:
            loader = interpreter_module(runtime).load_delegate
            delegates = [loader(clgpu_delegate.plugin_path())]
        interpreter = interpreter_module(runtime).Interpreter(
            model_content=model, experimental_delegates=delegates
        )
        interpreter.allocate_tensors()
        interpreter.invoke()
        view = interpreter.tensor(interpreter.get_output_details()[0]["index"])()
        things = {"interpreter": interpreter, "delegates": delegates, "view": view}
        del interpreter, view
        for name in order:
            if name == "delegates":
                things[name].clear()  # the runtime holds this very list
            del things[name]
            gc.collect()
        print(road, *order, "done")
"""
    result = run_python(script, runtime)
    assert_succeeds(result)
    assert result.stdout.count("done") == 12


def test_delegate_may_go_before_the_first_inference(runtime, rng):
    model, x = models.chain(), models.normal(rng, *SHAPE)
    delegates = [clgpu_delegate.load()]
    interpreter = make_interpreter(runtime, model, delegates)
    delegates.clear()
    (got,) = run_interpreter(interpreter, [x])
    np.testing.assert_allclose(got, run_reference(model, [x], runtime)[0], rtol=1e-5)


def test_delegate_is_still_explained_after_its_interpreter_is_gone(runtime):
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(runtime, models.chain(), [delegate])
    interpreter.allocate_tensors()
    del interpreter
    assert delegate.explain().claimed == 2


def test_process_may_end_with_everything_alive(runtime):
    script = """
import sys
import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter
delegate = clgpu_delegate.load()
interpreter = make_interpreter(sys.argv[1], models.chain(), [delegate])
interpreter.allocate_tensors()
interpreter.invoke()
view = interpreter.tensor(0)()
"""
    assert_succeeds(run_python(script, runtime))


def test_one_delegate_serves_two_interpreters(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device)
    first = make_interpreter(runtime, models.chain(ops=("TANH",)), [delegate])
    second = make_interpreter(runtime, models.chain(ops=("SOFTMAX",)), [delegate])
    x = models.normal(rng, *SHAPE)
    for _ in range(2):
        (tanh,), (softmax,) = run_interpreter(first, [x]), run_interpreter(second, [x])
        np.testing.assert_allclose(tanh, np.tanh(x), rtol=1e-5)
        np.testing.assert_allclose(softmax.sum(1), 1, rtol=1e-5)


def test_many_interpreters_come_and_go(device, runtime, rng):
    x = models.normal(rng, *SHAPE)
    kept = []
    for i in range(40):
        delegate = clgpu_delegate.load(device=device, precision=["fp32", "fp16"][i % 2])
        interpreter = make_interpreter(runtime, models.chain(ops=("TANH",)), [delegate])
        (got,) = run_interpreter(interpreter, [x])
        np.testing.assert_allclose(got, np.tanh(x), rtol=2e-3, atol=1e-4)
        kept.append(interpreter)
    # All of them still work, the early ones after many others were made.
    for interpreter in kept[::13]:
        np.testing.assert_allclose(run_interpreter(interpreter, [x])[0], np.tanh(x), atol=2e-3)


@pytest.mark.parametrize("shared", [True, False], ids=["one_delegate", "own_delegates"])
def test_threads_with_their_own_interpreters_do_not_disturb_each_other(device, runtime, shared):
    model, results = models.image(), {}
    rng = np.random.default_rng(3)
    inputs = [models.normal(rng, 1, 7, 6, 3) for _ in range(4)]
    wanted = [run_reference(model, [x], runtime)[0] for x in inputs]
    common = clgpu_delegate.load(device=device)

    def work(i: int) -> None:
        delegate = common if shared else clgpu_delegate.load(device=device)
        interpreter = make_interpreter(runtime, model, [delegate])
        results[i] = [run_interpreter(interpreter, [inputs[i]])[0] for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(len(inputs))), "every thread has finished"
    for i, want in enumerate(wanted):
        for got in results[i]:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
