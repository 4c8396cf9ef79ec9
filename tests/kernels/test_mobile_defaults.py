"""Kernels that mobile GPUs get by default keep nothing in private arrays.

Compilers for some of them put such arrays into memory, even where all subscripts are constants.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.kernels.mobile_layers import other_layers
from tests.kernels.test_kernel_files import CODE, ENTRIES, included
from tests.limits.build import LayerError, environment
from tests.model_maker import ModelMaker, Quantization
from tests.ops.test_conv2d import Case
from tests.python.subprocesses import ROOT, assert_succeeds, run_python
from tests.runtimes import available_runtimes

CASES = {
    "first layer": Case((1, 33, 33, 3), (8, 3, 3, 3), stride=(2, 2)),
    "points": Case((1, 16, 16, 16), (32, 1, 1, 16)),
    "points, one": Case((1, 1, 1, 256), (40, 1, 1, 256)),
    "5x5": Case((1, 16, 16, 16), (12, 5, 5, 16)),
}

# Files whose arrays are harmless, and why.
EXEMPT = {"conv2d/winograd_filter.cl": "it runs once, when a model is loaded"}

# Two names and a subscript: a type and a declared name; or a further declared name after it.
DECLARATION = re.compile(
    r"(?:\b(?!(?:if|for|while|else|return|case)\b)[A-Za-z_]\w*\s+|\],\s*)(\w+)\s*\["
)
NOT_PRIVATE = re.compile(r"__local|__constant|#define")

KERNELS_OF_MODELS = """
import sys
sys.path.append(sys.argv[1])
import clgpu_delegate
from clgpu_delegate import _core
from pathlib import Path
from tests.runtimes import make_interpreter
for path in sys.argv[3:]:
    for precision in ("fp32", "fp16"):
        delegate = clgpu_delegate.load(precision=precision, warm_up=False)
        interpreter = make_interpreter(sys.argv[2], Path(path).read_bytes(), [delegate])
        interpreter.allocate_tensors()
        plan = delegate.explain()
        assert plan.claimed == plan.total, plan
print("made:", *sorted(_core.kernel_names()))
"""


def private_arrays(code: str) -> list[str]:
    """The lines of OpenCL C that declare an array in private memory."""
    lines = code.replace("\\\n", " ").splitlines()
    return [
        line.strip()
        for line in lines
        if not NOT_PRIVATE.search(line) and DECLARATION.search(outside_of_parentheses(line))
    ]


def outside_of_parentheses(line: str) -> str:
    """A line without the arguments of calls, which may contain several subscripts."""
    while (shorter := re.sub(r"\([^()]*\)", "", line)) != line:
        line = shorter
    return line


def layers(*, quantized: bool) -> bytes:
    """A model of each case, and of FULLY_CONNECTED for one row and for several."""
    m = ModelMaker()
    dtype = np.int8 if quantized else np.float32
    scale, product = (Quantization(0.1, 0), Quantization(0.01, 0)) if quantized else (None, None)

    def add(op: str, shape: tuple, weights: tuple, result: tuple, **options: object) -> None:
        operands = [m.input(f"{op}{shape}", shape, dtype, quantization=scale)]
        operands.append(m.constant(np.ones(weights, dtype), quantization=scale))
        zeros = np.zeros(weights[0], np.int32 if quantized else np.float32)
        operands.append(m.constant(zeros, quantization=product))
        m.output(m.op(op, operands, result, dtype=dtype, quantization=scale, **options))

    for case in CASES.values():
        add("CONV_2D", case.image, case.weights, case.output, **case.options)
    for rows in (1, 33):
        add("FULLY_CONNECTED", (rows, 256), (40, 256), (rows, 40))
    return m.build()


def test_arrays_are_found():
    assert private_arrays("  float sum[4];\n  int x[PX], y[PX];\n  VEC a, b[2][3] = {0};\n") != []
    assert len(private_arrays("#define F(p) \\\n  float s[4]\n  const uchar4 k[4] = {0};")) == 1
    assert private_arrays("  __local float tile[64];\n  x = p[i] + q[0];\n  return p[3];\n") == []
    assert private_arrays("  if (i < n) a[i] = fmax(a[i], a[i + n]);\n") == []
    assert private_arrays(CODE["conv2d/direct.cl"]) != []


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["adreno_660", "mali_g78", "videocore"])
def test_default_kernels_have_no_private_arrays(profile, tmp_path):
    runtimes = available_runtimes()
    if not runtimes:
        pytest.skip("no TensorFlow Lite runtime is installed")
    try:
        device = environment(profile, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    paths = []
    for quantized in (False, True):
        paths.append(tmp_path / f"{quantized}.tflite")
        paths[-1].write_bytes(layers(quantized=quantized))
    paths.append(tmp_path / "others.tflite")
    paths[-1].write_bytes(other_layers())
    result = run_python(
        KERNELS_OF_MODELS, str(ROOT), runtimes[0], *map(str, paths), timeout=300, **device
    )
    assert_succeeds(result)
    made = set(result.stdout.partition("made:")[2].split())
    assert {"conv2d_quads", "conv2d_quads_s8"} <= made
    assert {"depthwise_conv2d_quads", "transpose_conv_quads", "batch_matmul_quads"} <= made
    found = {}
    for name, entries in ENTRIES.items():
        if made & set(entries) and not name.startswith("device/"):
            for part in included(name):
                for line in private_arrays(CODE[part]) if part not in EXEMPT else ():
                    found.setdefault(f"{name} ({part})", line)
    assert not found
