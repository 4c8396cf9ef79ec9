"""The counters prove the steady state: nothing is created, only inputs go up."""

from __future__ import annotations

import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter


def test_steady_state_creates_nothing_and_uploads_only_the_inputs(device, precision, runtime, rng):
    shape = (2, 7, 6, 3)
    delegate = clgpu_delegate.load(device=device, precision=precision, zero_copy="off")
    interpreter = make_interpreter(runtime, models.image(shape), [delegate])
    x = models.normal(rng, *shape)
    (y,) = run_interpreter(interpreter, [x])
    assert delegate.explain().claimed == 3
    for _ in range(3):
        interpreter.invoke()
        last = delegate.stats()["last_invoke"]
        assert last["objects_created"] == 0
        assert last["programs_built"] == 0
        assert last["bytes_up"] == x.nbytes
        assert last["bytes_down"] == y.nbytes
        assert last["launches"] == sum(p.launches for p in delegate.explain().partitions) > 0


def test_first_inference_creates_nothing_either(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    run_interpreter(interpreter, [models.normal(rng, 1, 7, 6, 3)])
    stats = delegate.stats()
    assert stats["invokes"] == 1
    assert stats["last_invoke"]["objects_created"] == 0
    assert stats["load"]["objects_created"] > 0


def test_half_inputs_and_outputs_halve_the_copies(device, runtime, rng):
    shape = (1, 7, 6, 3)
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=True)
    interpreter = make_interpreter(runtime, models.image(shape), [delegate])
    x = models.normal(rng, *shape)
    (y,) = run_interpreter(interpreter, [x])
    last = delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"]) == (x.nbytes // 2, y.nbytes // 2)


def test_totals_add_up(device, runtime, rng):
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(runtime, models.chain(), [delegate])
    run_interpreter(interpreter, [models.normal(rng, 2, 5)])
    before = delegate.stats()
    for _ in range(4):
        interpreter.invoke()
    after = delegate.stats()
    assert after["invokes"] - before["invokes"] == 4
    for key in ("launches", "bytes_up", "bytes_down"):
        assert after[key] - before[key] == 4 * after["last_invoke"][key]
