"""One binary, both roads (`load`, and a runtime's own ``load_delegate``), every runtime."""

from __future__ import annotations

import ctypes
import importlib.util

import numpy as np
import pytest

import clgpu_delegate
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import (
    available_runtimes,
    interpreter_module,
    make_interpreter,
    run_interpreter,
    run_reference,
)

OPTIONS = {"precision": "fp16", "exclude": "SOFTMAX"}


def load_by_plugin(runtime: str):
    return interpreter_module(runtime).load_delegate(clgpu_delegate.plugin_path(), OPTIONS)


@pytest.mark.parametrize("road", ["load", "load_delegate"])
def test_both_roads_give_the_same_result(runtime, road, rng):
    model, x = models.chain((3, 9)), models.normal(rng, 3, 9)
    delegate = clgpu_delegate.load(**OPTIONS) if road == "load" else load_by_plugin(runtime)
    (got,) = run_interpreter(make_interpreter(runtime, model, [delegate]), [x])
    (want,) = run_reference(model, [x], runtime)
    np.testing.assert_allclose(got, want, rtol=5e-3)
    assert np.abs(got - want).max() > 0, "fp16: the options have arrived"


@pytest.mark.parametrize("loader", available_runtimes())
def test_delegate_of_one_runtime_serves_another(runtime, loader, rng):
    model, x = models.chain(), models.normal(rng, 2, 5)
    (got,) = run_interpreter(make_interpreter(runtime, model, [load_by_plugin(loader)]), [x])
    np.testing.assert_allclose(got, run_reference(model, [x], runtime)[0], rtol=5e-3)


def test_options_may_come_from_the_options_class(runtime):
    options = clgpu_delegate.Options(exclude=[0], min_nodes=2).as_delegate_dict()
    assert interpreter_module(runtime).load_delegate(clgpu_delegate.plugin_path(), options)


def test_plugin_loads_before_the_package_is_imported(runtime):
    script = f"""
import sys
from {runtime}.interpreter import load_delegate
load_delegate(sys.argv[1], {{}})
import clgpu_delegate
assert clgpu_delegate.plugin_path() == sys.argv[1]
print(clgpu_delegate.load())
"""
    result = run_python(script, clgpu_delegate.plugin_path())
    if "no OpenCL" in result.stderr:
        pytest.skip("only the package finds the OpenCL runtime that pip installed")
    assert_succeeds(result)


def test_c_callers_may_pass_nothing_at_all():
    library = ctypes.PyDLL(clgpu_delegate.plugin_path())
    create = library.tflite_plugin_create_delegate
    destroy = library.tflite_plugin_destroy_delegate
    create.restype, create.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p] * 2
        + [
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    )
    destroy.restype, destroy.argtypes = None, [ctypes.c_void_p]
    delegate = create(None, None, 0, None)
    assert delegate
    destroy(delegate)
    destroy(None)


class OnlyPointer:
    """An object that an interpreter accepts as a delegate."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def _get_native_delegate_pointer(self) -> int:
        return self._pointer


def test_c_callers_without_a_reporter_are_told_of_a_bad_option_by_the_runtime(runtime, capfd):
    library = ctypes.PyDLL(clgpu_delegate.plugin_path())
    create = library.tflite_plugin_create_delegate
    create.restype = ctypes.c_void_p
    create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library.tflite_plugin_destroy_delegate.argtypes = [ctypes.c_void_p]
    keys, values = (ctypes.c_char_p * 1)(b"speed"), (ctypes.c_char_p * 1)(b"high")
    # TfLiteExternalDelegateCreate() has no reporter and uses whatever it gets, null included.
    useless = create(keys, values, 1, None)
    with pytest.raises(RuntimeError, match="unknown option 'speed'; options are: device"):
        make_interpreter(runtime, models.chain(), [OnlyPointer(useless)])
    library.tflite_plugin_destroy_delegate(useless)
    assert "clgpu_delegate: unknown option 'speed'" in capfd.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="no TensorFlow")
def test_delegate_works_in_tensorflow(rng):
    import tensorflow as tf  # noqa: PLC0415

    model, x = models.chain(), models.normal(rng, 2, 5)
    delegates = [clgpu_delegate.load()]
    interpreter = tf.lite.Interpreter(model_content=model, experimental_delegates=delegates)
    (got,) = run_interpreter(interpreter, [x])
    exponents = np.exp(np.tanh(x))
    np.testing.assert_allclose(got, exponents / exponents.sum(1, keepdims=True), rtol=1e-5)
