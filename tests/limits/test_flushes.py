"""Launches do not wait in their queue beyond what a driver keeps."""

from __future__ import annotations

import pytest

from tests.limits.build import LayerError, environment
from tests.limits.profiles import PROFILES
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

SCRIPT = """
import sys
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

m = ModelMaker()
x = m.input("x", (4, 8))
for _ in range(20):
    x = m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (8, 4))
    x = m.op("SOFTMAX", [x], (8, 4), beta=1.0)
    x = m.op("RESHAPE", [x, m.constant(np.array([4, 8], np.int32))], (4, 8))
m.output(x)
values = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
(expected,) = run_interpreter(make_interpreter(available_runtimes()[0], m.build(), []), [values])
delegate = clgpu_delegate.load()
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
for _ in range(3):
    (got,) = run_interpreter(interpreter, [values])
    np.testing.assert_allclose(got, expected, rtol=1e-5)
assert f"{sys.argv[1]}_flushes" in clgpu_delegate.devices()[0].quirks
partition, = delegate.explain().partitions
assert partition.launches == delegate.stats()["last_invoke"]["launches"] == 40
"""


@pytest.mark.parametrize("most", [1, None])
@pytest.mark.parametrize("name", PROFILES)
def test_queue_is_flushed_in_time(name, most):
    try:
        variables = environment(name, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    if most == 1 and name == "powervr_bxm":
        pytest.skip("it is flushed after each launch")
    if most is not None:  # the test sees what a driver refuses
        variables["LIMITS_UNFLUSHED"] = str(most)
    result = run_python(SCRIPT, name.partition("_")[0], **variables)
    if most is None:
        assert_succeeds(result)
    else:
        assert result.returncode != 0
