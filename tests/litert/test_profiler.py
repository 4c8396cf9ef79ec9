"""What LiteRT's profiler sees of the delegate, through LiteRT's C interface."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clgpu_delegate.litert import package
from tests.litert.compiled import chain, needs_litert
from tests.python.subprocesses import assert_succeeds, run_python

pytestmark = needs_litert

RUNS = 3
ROW = 8  # numbers of the model's input and output
_RUNTIME_FOLDER, _TEXT, _FLOAT32 = 22, 8, 1  # of LiteRT's environment options, values and types


class _Option(ctypes.Structure):  # its two numbers have 32 bits, and padding behind them
    _fields_ = [("tag", ctypes.c_int64), ("kind", ctypes.c_int64), ("text", c_char_p)]


class _TensorType(ctypes.Structure):
    _fields_ = [
        ("element", c_int), ("rank", ctypes.c_uint), ("extents", c_int * 8),
        ("strides", ctypes.c_uint * 8),
    ]  # fmt: skip


def summary(folder: Path) -> str:
    """Run a model with LiteRT's profiler; returns what it prints."""
    (folder / package.LIBRARY).symlink_to(package.accelerator())
    library = ctypes.CDLL(str(package.folder() / "libLiteRt.so"))

    def call(name: str, *arguments: Any) -> None:
        status = library["LiteRt" + name](*arguments)
        assert status == 0, f"LiteRt{name}: status {status}"

    environment, model, options, profiling = (c_void_p() for _ in range(4))
    option = _Option(_RUNTIME_FOLDER, _TEXT, str(folder).encode())
    call("CreateEnvironment", 1, byref(option), byref(environment))
    path = folder / "m.tflite"
    path.write_bytes(chain(ROW))
    call("CreateModelFromFile", environment, str(path).encode(), byref(model))
    call("CreateOptions", byref(options))
    call("SetOptionsHardwareAccelerators", options, 2)
    toml = ctypes.create_string_buffer(b"enable_profiling = true\n")
    keep = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
    call("CreateOpaqueOptions", b"runtime_options_string", toml, keep, byref(profiling))
    call("AddOpaqueOptions", options, profiling)
    compiled, profiler = c_void_p(), c_void_p()
    call("CreateCompiledModel", environment, model, options, byref(compiled))
    call("CompiledModelGetProfiler", compiled, byref(profiler))

    shape = _TensorType(_FLOAT32, 2, (c_int * 8)(1, ROW))
    memory = [np.zeros(ROW + 16, np.float32) for _ in range(2)]  # LiteRT wants aligned addresses
    arrays = [m[-m.ctypes.data % 64 // 4 :][:ROW] for m in memory]
    arrays[0][:] = np.linspace(-2, 2, ROW)
    buffers = [c_void_p(), c_void_p()]
    for array, buffer in zip(arrays, buffers):
        address = c_void_p(array.ctypes.data)
        call("CreateTensorBufferFromHostMemory", byref(shape), address, c_size_t(array.nbytes),
             None, byref(buffer))  # fmt: skip
    call("StartProfiler", profiler)
    inputs, outputs = ((c_void_p * 1)(buffer) for buffer in buffers)
    for _ in range(RUNS):
        call("RunCompiledModel", compiled, c_size_t(0), c_size_t(1), inputs, c_size_t(1), outputs)
    call("StopProfiler", profiler)
    np.testing.assert_allclose(arrays[1], np.tanh(np.abs(arrays[0])), atol=1e-6)
    found = c_char_p()
    call("GetProfileSummary", profiler, compiled, byref(found))
    return (found.value or b"").decode()


def test_profiler_tells_what_a_partition_contains(tmp_path):
    """In a process of its own: it never releases LiteRT's objects."""
    if not (package.folder() / "libLiteRt.so").exists():
        pytest.skip("this package of LiteRT does not have libLiteRt.so")
    result = run_python(
        f"""
import os, pathlib
from tests.litert.test_profiler import summary
print(summary(pathlib.Path({str(tmp_path)!r})), flush=True)
os._exit(0)
"""
    )
    assert_succeeds(result)
    lines = [line for line in result.stdout.splitlines() if "clgpu_delegate" in line]
    assert lines
    assert all("clgpu_delegate/2 nodes: ABS, TANH" in line for line in lines)
    assert any(f" {RUNS} " in line for line in lines), "how often it has run"
