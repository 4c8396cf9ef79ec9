"""Priority and performance are passed to drivers that know them, and have no effect on others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.limits.build import LayerError, environment
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

KHR, QCOM, PERF = "cl_khr_priority_hints", "cl_qcom_priority_hint", "cl_qcom_perf_hint"

# Runs a small model with each set of options, checks its result, and prints the notes.
SCRIPT = """
import json, sys
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

m = ModelMaker()
x = m.input("x", (2, 2))
m.output(m.op("TANH", [x], (2, 2)))
values = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
told = []
for options in json.loads(sys.argv[1]):
    delegate = clgpu_delegate.load(cache="off", isolate_builds="off", **options)
    interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
    (got,) = run_interpreter(interpreter, [values])
    np.testing.assert_allclose(got, np.tanh(values), rtol=1e-5)
    assert delegate.explain().nodes[0].claimed
    told.append([note for note in delegate.explain().notes if "has no effect" in note])
print(json.dumps(told))
"""


def run(tmp_path: Path, *options: dict[str, str], **changes: str) -> tuple[list, list[str]]:
    """Notes by set of options, and what the driver was told."""
    try:
        variables = environment("adreno_660", ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    hints = tmp_path / "hints"
    changes = {"LIMITS_HINTS": str(hints), **changes}
    result = run_python(SCRIPT, json.dumps(options), **{**variables, **changes})
    assert_succeeds(result)
    told = hints.read_text().splitlines() if hints.exists() else []
    return json.loads(result.stdout), told


@pytest.mark.parametrize(("level", "value"), [("high", 1), ("normal", 2), ("low", 4)])
def test_queues_have_the_priority(tmp_path, level, value):
    notes, told = run(tmp_path, {"priority": level}, LIMITS_EMULATED=KHR)
    assert notes == [[]]
    assert len(told) > 1  # all queues, and the first one that tries it
    assert set(told) == {f"queue 1096={value}"}


@pytest.mark.parametrize(
    ("level", "values"),
    [("high", "40c9=40ca 40c2=40c3"), ("normal", "40c9=40cb 40c2=40c4"),
     ("low", "40c9=40cc 40c2=40c5")],
)  # fmt: skip
def test_contexts_have_both_hints(tmp_path, level, values):
    options = {"priority": level, "performance": level}
    notes, told = run(tmp_path, options, LIMITS_EMULATED=f"{QCOM} {PERF}")
    assert (notes, told) == ([[]], [f"context {values}"])


def test_a_context_is_made_once_for_the_same_hints(tmp_path):
    high, low = {"performance": "high"}, {"performance": "low"}
    notes, told = run(tmp_path, high, low, high, {}, LIMITS_EMULATED=PERF)
    assert notes == [[]] * 4
    assert told == ["context 40c2=40c3", "context 40c2=40c5"]


def test_the_driver_is_told_nothing_by_default(tmp_path):
    notes, told = run(tmp_path, {}, LIMITS_EMULATED=f"{KHR} {QCOM} {PERF}")
    assert (notes, told) == ([[]], [])


def test_devices_without_the_extensions_tell_it(tmp_path):
    (notes,), told = run(tmp_path, {"priority": "high", "performance": "low"})
    assert told == []
    assert notes == [
        "the option performance=low has no effect: QUALCOMM Adreno(TM) 660 does not list "
        "cl_qcom_perf_hint",
        "the option priority=high has no effect: QUALCOMM Adreno(TM) 660 lists neither "
        "cl_khr_priority_hints nor cl_qcom_priority_hint",
    ]


@pytest.mark.parametrize(
    ("extensions", "call"),
    [(KHR, "clCreateCommandQueueWithProperties: CL_INVALID_QUEUE_PROPERTIES (-35)"),
     (QCOM, "clCreateContext: CL_INVALID_PROPERTY (-64)")],
)  # fmt: skip
def test_a_driver_that_refuses_is_asked_once(tmp_path, extensions, call):
    high = {"priority": "high"}
    notes, told = run(tmp_path, high, high, LIMITS_EMULATED=extensions, LIMITS_REFUSE_HINTS="1")
    assert told == []
    for (note,) in notes:
        assert note.startswith("the option priority=high has no effect: the driver refuses it for")
        assert call in note


def test_drivers_of_opencl_1_have_no_such_queues(tmp_path):
    (notes,), told = run(
        tmp_path, {"priority": "high"}, LIMITS_EMULATED=KHR, LIMITS_VERSION="OpenCL 1.2 A"
    )
    assert told == []
    assert notes == [
        "the option priority=high has no effect: queues have priorities with OpenCL 2.0 or newer, "
        "and this device has OpenCL 1.2 A"
    ]
