"""Errors are one sentence: what is wrong, what was found, what to do."""

from __future__ import annotations

import ctypes.util

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, RuntimeNotFoundError, _core, runtimes
from tests.python import models
from tests.python.subprocesses import run_python
from tests.runtimes import interpreter_module, make_interpreter, run_interpreter, run_reference

LIST_DEVICES = """
import clgpu_delegate
try:
    clgpu_delegate.devices()
except clgpu_delegate.DeviceError as error:
    print(error)
"""


def message(**environment: str) -> str:
    result = run_python(LIST_DEVICES, **environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 1, "one line"
    return result.stdout.strip()


def test_library_that_cannot_be_loaded_is_named():
    text = message(CLGPU_OPENCL_LIBRARY="/nonexistent/libOpenCL.so")
    assert "CLGPU_OPENCL_LIBRARY" in text
    assert "/nonexistent/libOpenCL.so" in text
    assert "unset" in text


@pytest.mark.parametrize("path", ["./libOpenCL.so.1", "lib/libOpenCL.so.1", "../lib/x.so"])
def test_library_of_the_current_folder_is_refused(path):
    text = message(CLGPU_OPENCL_LIBRARY=path)
    assert f"{path} is a relative path; allowed: an absolute path, or a name without '/'" in text
    assert "correct or unset the variable" in text


def test_library_that_is_not_opencl_is_named():
    text = message(CLGPU_OPENCL_LIBRARY="libm.so.6")
    assert "libm.so.6 lacks the function cl" in text


@pytest.mark.skipif(not ctypes.util.find_library("OpenCL"), reason="no OpenCL loader")
def test_loader_without_a_platform_is_answered_with_what_to_install(tmp_path):
    text = message(CLGPU_OPENCL_LIBRARY="libOpenCL.so.1", OCL_ICD_VENDORS=str(tmp_path))
    assert "0 platforms" in text
    assert "clgpu_delegate[cpu]" in text
    assert ".icd" in text


def test_errors_are_classes_of_one_family():
    of_core = {n for n, v in vars(_core).items() if isinstance(v, type) and n.endswith("Error")}
    for name in of_core:
        error = getattr(clgpu_delegate, name)
        assert issubclass(error, ClgpuError)
        assert error is getattr(_core, name)
    assert issubclass(ClgpuError, RuntimeError)


def test_kernel_that_does_not_build_falls_back_to_the_cpu_with_its_log(device, runtime, rng):
    model = models.chain((2, 11), ("TANH", "SOFTMAX"))
    x = models.normal(rng, 2, 11)
    _core.override_kernel_source("softmax/softmax.cl", "#error this kernel is broken\n")
    try:
        delegate = clgpu_delegate.load(device=device)
        interpreter = make_interpreter(runtime, model, [delegate])
        (got,) = run_interpreter(interpreter, [x])
    finally:
        _core.override_kernel_source("softmax/softmax.cl", None)
    np.testing.assert_allclose(got, run_reference(model, [x], runtime)[0], rtol=1e-5)
    plan = delegate.explain()
    assert [node.claimed for node in plan.nodes] == [True, False]
    assert "softmax/softmax.cl" in plan.nodes[1].reason + " ".join(plan.notes)
    assert "this kernel is broken" in plan.nodes[1].reason + " ".join(plan.notes)


def test_bad_option_reaches_the_runtime_s_own_loader(runtime):
    load_delegate = interpreter_module(runtime).load_delegate
    with pytest.raises(ValueError, match="unknown option 'speed'; options are: device, "):
        load_delegate(clgpu_delegate.plugin_path(), {"speed": "high"})
    with pytest.raises(ValueError, match="'precision' is 'True'; allowed: fp32, fp16, tf32"):
        load_delegate(clgpu_delegate.plugin_path(), {"precision": True})


def test_unknown_runtime_is_answered_with_the_known_ones():
    with pytest.raises(RuntimeNotFoundError, match="'torch'; runtimes are: ai_edge_litert, "):
        runtimes.find_runtime("torch")


def test_missing_runtime_is_answered_with_what_to_install(monkeypatch):
    monkeypatch.setattr(runtimes.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(RuntimeNotFoundError, match=r"tflite_runtime is not installed.*install one"):
        runtimes.find_runtime()


def test_runtime_that_numpy_is_too_new_for_is_said_so(monkeypatch):
    monkeypatch.setattr(runtimes.importlib.util, "find_spec", lambda _name: True)
    monkeypatch.setattr(runtimes.np, "__version__", "2.1.0")
    with pytest.raises(RuntimeNotFoundError, match=r"needs numpy<2 and numpy is 2\.1\.0"):
        runtimes.find_runtime("tflite_runtime")


def test_preferred_runtime_is_the_newer_one(runtime):
    assert runtimes.find_runtime(runtime).name == runtime
    preferred = [name for name in runtimes._MODULES if runtimes._obstacle(name) is None]
    assert runtimes.find_runtime().name == preferred[0]
