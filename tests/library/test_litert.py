"""The accelerator of the installed library, as a program on LiteRT's C interface uses it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from clgpu_delegate.base import embedded
from tests.library.conftest import ROOT, run
from tests.litert.compiled import chain

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install '.[litert]'")

# A host in another language: LiteRT's library alone, and the folder of the accelerator.
PROGRAM = """
import ctypes, sys
from ctypes import byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p
litert, folder, model_path, size = sys.argv[1:]
library = ctypes.CDLL(litert)

class Any(ctypes.Structure):
    _fields_ = [("type", c_int), ("text", c_char_p)]

class Option(ctypes.Structure):
    _fields_ = [("tag", c_int), ("value", Any)]

class TensorType(ctypes.Structure):
    _fields_ = [("element", c_int), ("rank", c_int), ("dims", c_int * 8), ("strides", c_int * 8)]

def call(name, *arguments):
    status = library["LiteRt" + name](*arguments)
    assert status == 0, (name, status)

def buffer(memory, values):
    start = (ctypes.addressof(memory) + 63) // 64 * 64  # LiteRT's alignment of host memory
    floats = (ctypes.c_float * values).from_address(start)
    tensor, kind = c_void_p(), TensorType(1, 2, (c_int * 8)(1, values))
    call("CreateTensorBufferFromHostMemory", byref(kind), c_void_p(start), c_size_t(4 * values),
         None, byref(tensor))
    return tensor, floats

handles = environment, model, options, compiled = [c_void_p() for _ in range(4)]
folder_option = Option(22, Any(8, folder.encode()))
call("CreateEnvironment", 1, byref(folder_option), byref(environment))
call("CreateModelFromFile", environment, model_path.encode(), byref(model))
call("CreateOptions", byref(options))
call("SetOptionsHardwareAccelerators", options, 2)
call("CreateCompiledModel", environment, model, options, byref(compiled))
whole = c_bool()
call("CompiledModelIsFullyAccelerated", compiled, byref(whole))
size = int(size)
memories = [ctypes.create_string_buffer(4 * size + 64) for _ in range(2)]
(x, given), (y, found) = [buffer(memory, size) for memory in memories]
given[:] = [i - size / 2 for i in range(size)]
call("RunCompiledModel", compiled, c_size_t(0), c_size_t(1), byref(x), c_size_t(1), byref(y))
print("whole" if whole else "part", *found)
assert "clgpu_delegate" not in sys.modules
for name, handle in [("TensorBuffer", x), ("TensorBuffer", y), ("CompiledModel", compiled),
                     ("Options", options), ("Model", model), ("Environment", environment)]:
    library["LiteRtDestroy" + name](handle)
"""


@pytest.fixture
def opencl() -> dict[str, str]:
    """An OpenCL runtime that pip installed is not found without the package."""
    found = embedded.libraries()
    return {"CLGPU_OPENCL_LIBRARY": str(found[0])} if found else {}


def litert() -> Path:
    spec = importlib.util.find_spec("ai_edge_litert")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("libLiteRt.so")


def test_program_in_c_compiles_a_model_for_the_device(library, opencl, tmp_path):
    if not litert().exists():
        pytest.skip("this LiteRT has no library of its own")
    (tmp_path / "m.tflite").write_bytes(chain(6))
    arguments = [litert(), library.parent, tmp_path / "m.tflite", "6"]
    result = run(sys.executable, "-c", PROGRAM, *arguments, **opencl, CLGPU_CACHE="off")
    if "no OpenCL" in result.stderr:
        pytest.skip("only the Python package finds the OpenCL runtime that pip installed")
    assert result.returncode == 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith(("whole", "part"))]
    word, *numbers = line.split()
    assert word == "whole"
    wanted = np.tanh(np.abs(np.arange(6) - 3.0))
    np.testing.assert_allclose([float(number) for number in numbers], wanted, atol=1e-6)


def test_accelerator_exports_its_definition_alone(library):
    pytest.importorskip("elftools")
    accelerator = library.with_name("libLiteRtGpuAccelerator.so")
    symbols = ROOT / "src_cpp" / "cmake" / "exports_litert.map"
    check = ROOT / "tools" / "check_library.py"
    assert run(sys.executable, check, accelerator, "--exports", symbols).returncode == 0


def test_accelerator_without_its_core_is_told(library, tmp_path):
    alone = tmp_path / "libLiteRtGpuAccelerator.so"
    alone.write_bytes(library.with_name(alone.name).read_bytes())
    (tmp_path / "m.tflite").write_bytes(chain(6))
    result = run(
        sys.executable, "-c", PROGRAM, litert(), tmp_path, tmp_path / "m.tflite", "6",
        CLGPU_CACHE="off",
    )  # fmt: skip
    assert result.returncode == 1, "a model for the GPU alone"
    assert "the accelerator does not find its library libclgpu_delegate.so in" in result.stderr
