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
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

m = ModelMaker()
x = m.input("x", (2, 2))
for _ in range(40):
    x = m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (2, 2))
    x = m.op("TANH", [x], (2, 2))
    x = m.op("RESHAPE", [x, m.constant(np.array([2, 2], np.int32))], (2, 2))
m.output(x)
values = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
(expected,) = run_interpreter(make_interpreter(available_runtimes()[0], m.build(), []), [values])
if sys.argv[2] == "on":
    _core.pretend_chain_groups(1)
delegate = clgpu_delegate.load(chain=sys.argv[2])
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
for _ in range(3):
    (got,) = run_interpreter(interpreter, [values])
    np.testing.assert_allclose(got, expected, rtol=1e-5)
assert f"{sys.argv[1]}_flushes" in clgpu_delegate.devices()[0].quirks
partition, = delegate.explain().partitions
launches = delegate.stats()["last_invoke"]["launches"]
print(launches, delegate.stats()["chains"])
assert partition.launches == 80
assert launches == 80 if sys.argv[2] == "off" else 16 < launches < 80
"""


def run(name, chain, **changes):
    try:
        variables = environment(name, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    return run_python(SCRIPT, name.partition("_")[0], chain, **{**variables, **changes})


@pytest.mark.parametrize("chain", ["off", "on"])
@pytest.mark.parametrize("name", PROFILES)
def test_queue_is_flushed_in_time(name, chain):
    every = str(PROFILES[name].work_group)  # kernels of chains need large work-groups
    assert_succeeds(run(name, chain, LIMITS_KERNEL_WORK_GROUPS=every))


@pytest.mark.parametrize("name", sorted(PROFILES.keys() - {"powervr_bxm"}))
def test_test_sees_a_queue_that_is_not(name):
    result = run(name, "off", LIMITS_UNFLUSHED="1")
    assert result.returncode != 0
    assert "CL_OUT_OF_RESOURCES" in result.stderr
