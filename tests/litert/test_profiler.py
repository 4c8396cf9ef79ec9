"""What LiteRT's profiler sees of the delegate, through LiteRT's C interface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.litert.compiled import chain, needs_litert
from tests.litert.host import HOST, Buffer, Environment, Model, litert
from tests.python.subprocesses import assert_succeeds, run_python

pytestmark = needs_litert

RUNS = 3
ROW = 8  # numbers of the model's input and output


def summary(folder: Path) -> str:
    """Run a model with LiteRT's profiler; returns what it prints."""
    environment = Environment(folder)
    model = Model(environment, chain(ROW), profiled=True)
    x, y = (Buffer(environment, (1, ROW), HOST) for _ in range(2))
    row = np.linspace(-2, 2, ROW, dtype=np.float32)[None]
    x.write(row)
    text = model.profile(lambda: model.run([x], [y]), RUNS)
    np.testing.assert_allclose(y.read(), np.tanh(np.abs(row)), atol=1e-6)
    return text


def test_profiler_tells_what_a_partition_contains(tmp_path):
    """In a process of its own: it never releases LiteRT's objects."""
    if litert() is None:
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
