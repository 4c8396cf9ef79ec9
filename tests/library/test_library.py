"""libclgpu_delegate as programs in C, in C++ and as the runtimes themselves use it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from clgpu_delegate import _core
from tests.library.conftest import ROOT, run, skip_without_opencl, tool
from tests.python import models
from tests.runtimes import run_reference

HERE = Path(__file__).parent
MAP = ROOT / "src_cpp" / "cmake" / "exports.map"

# A user's program, which cannot find the package or its folder.
PROGRAM = """
import ctypes, json, sys
import numpy as np
runtime, library, model, x, y = sys.argv[1:]
interpreter_module = __import__(f"{runtime}.interpreter", fromlist=["interpreter"])
try:
    interpreter_module.load_delegate(library, {"precision": "half"})
except ValueError as error:
    print(error)
options = {"profile": "on", "cache": "off"}
try:
    delegate = interpreter_module.load_delegate(library, options)
except ValueError as error:
    print(error)
    sys.exit(77)
interpreter = interpreter_module.Interpreter(model, experimental_delegates=[delegate])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.load(x))
interpreter.invoke()
np.save(y, interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
assert "clgpu_delegate" not in sys.modules
c = ctypes.CDLL(library)
for name in ("explain", "profile"):
    function = c[f"clgpu_delegate_{name}_json"]
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p] * 2
    print(function(delegate._get_native_delegate_pointer(), None).decode())
"""


def test_c99_program(installed, library, tmp_path):
    program = tmp_path / "use"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [tool("cc", "gcc", "clang"), *strict, "-I", installed / "include", HERE / "use.c"]
    assert run(*command, library, f"-Wl,-rpath,{library.parent}", "-o", program).returncode == 0
    result = run(program, CLGPU_CACHE="off")
    skip_without_opencl(result.returncode)
    assert (result.returncode, result.stdout) == (0, f"{_core.__version__}\n")
    assert result.stderr.count("the delegate to destroy does not belong to this library") == 2
    assert result.stderr.count("the memory to deallocate is not of clgpu_delegate_allocate()") == 2


def test_only_the_plugin_and_the_header_are_exported(installed, library):
    pytest.importorskip("elftools")
    check = ROOT / "tools" / "check_library.py"
    assert run(sys.executable, check, library, "--exports", MAP).returncode == 0
    header = (installed / "include" / "clgpu_delegate.h").read_text()
    functions = [line.strip(" ;") for line in MAP.read_text().splitlines() if "clgpu_" in line]
    assert functions == sorted(functions)
    assert all(f"{name}(" in header for name in functions)
    assert header.count("\nCLGPU_DELEGATE_API ") == len(functions)


def test_runtime_loads_it_without_the_package(runtime, library, tmp_path, rng):
    model, x = models.chain((3, 9)), models.normal(rng, 3, 9)
    (tmp_path / "model.tflite").write_bytes(model)
    np.save(tmp_path / "x.npy", x)
    names = ("model.tflite", "x.npy", "y.npy")
    arguments = [runtime, library, *(tmp_path / name for name in names)]
    result = run(sys.executable, "-c", PROGRAM, *arguments, PYTHONPATH="")
    skip_without_opencl(result.returncode)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert "'precision' is 'half'; allowed: fp32, fp16, tf32, mixed, a plan" in result.stdout
    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), run_reference(model, [x], runtime)[0], rtol=1e-5
    )
    explanation, profile = (json.loads(line) for line in lines[-2:])
    assert [(n["op"], n["claimed"]) for n in explanation["nodes"]] == [
        ("TANH", True), ("SOFTMAX", True),
    ]  # fmt: skip
    assert {"TANH", "SOFTMAX"} <= {row["op"] for row in profile["launches"]}
