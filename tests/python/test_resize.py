"""resize_tensor_input after loading gives right results, any number of times."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import assert_close

SHAPES = [(3, 7, 6, 3), (1, 12, 5, 3), (2, 1, 1, 3), (1, 7, 6, 3)]


def test_batch_and_image_size_can_change_after_loading(device, precision, runtime, rng):
    model = models.image((1, 7, 6, 3))
    delegate = clgpu_delegate.load(device=device, precision=precision)
    interpreter = make_interpreter(runtime, model, [delegate])
    for shape in SHAPES:
        x = models.normal(rng, *shape)
        (got,) = run_interpreter(interpreter, [x], resize={0: shape})
        (want,) = run_reference(model, [x], runtime, resize={0: shape})
        assert got.shape == (shape[0], 4)
        assert_close(got, want, precision, 27 * shape[1] * shape[2], f"at {shape}")
        plan = delegate.explain()
        assert plan.claimed == plan.total == 3


def test_resized_interpreter_is_in_its_steady_state_again(device, runtime, rng):
    shape = (2, 9, 9, 3)
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    run_interpreter(interpreter, [models.normal(rng, 1, 7, 6, 3)])
    x = models.normal(rng, *shape)
    run_interpreter(interpreter, [x], resize={0: shape})
    interpreter.invoke()
    last = delegate.stats()["last_invoke"]
    assert (last["objects_created"], last["bytes_up"]) == (0, x.nbytes)


def test_nodes_on_the_cpu_in_between_are_resized_too(device, runtime, rng):
    model = models.image()
    delegate = clgpu_delegate.load(device=device, exclude="MAX_POOL_2D")
    interpreter = make_interpreter(runtime, model, [delegate])
    x = models.normal(rng, 2, 8, 11, 3)
    (got,) = run_interpreter(interpreter, [x], resize={0: x.shape})
    (want,) = run_reference(model, [x], runtime, resize={0: x.shape})
    assert len(delegate.explain().partitions) == 2
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_impossible_size_is_an_error_and_the_interpreter_survives(runtime, rng):
    interpreter = make_interpreter(runtime, models.image(), [clgpu_delegate.load()])
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, [1, 7, 6, 5])  # the weights take 3 channels
    with pytest.raises((RuntimeError, ValueError)):
        interpreter.allocate_tensors()
    x = models.normal(rng, 1, 7, 6, 3)
    (got,) = run_interpreter(interpreter, [x], resize={0: x.shape})
    (want,) = run_reference(models.image(), [x], runtime)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
