"""Kernels whose work-groups a device allows few work-items compute the same."""

from __future__ import annotations

import pytest

from tests.limits.build import LayerError, environment
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

SCRIPT = """
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

rng = np.random.default_rng(1)
for rows in (2, 3, 7):
    weights = rng.standard_normal((5, 9)).astype(np.float32)
    m = ModelMaker()
    x = m.input("x", (rows, 9))
    m.output(m.op("FULLY_CONNECTED", [x, m.constant(weights)], (rows, 5)))
    delegate = clgpu_delegate.load(engines={"fully_connected": "gemv"})
    interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
    values = rng.standard_normal((rows, 9)).astype(np.float32)
    (got,) = run_interpreter(interpreter, [values])
    np.testing.assert_allclose(got, values @ weights.T, rtol=1e-5, atol=1e-5)
    assert [node.candidate for node in delegate.explain().nodes] == ["gemv"]
"""


@pytest.mark.parametrize("items", [1, 2])
def test_gemv_with_fewer_items_than_rows(items):
    try:
        variables = environment("videocore", ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    variables["LIMITS_KERNEL_WORK_GROUPS"] = str(items)
    assert_succeeds(run_python(SCRIPT, **variables))
