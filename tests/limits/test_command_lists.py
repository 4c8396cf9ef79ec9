"""Command lists of drivers that the layer emulates: Adreno's extension, and calls that fail."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest

from tests.limits.build import LayerError, environment
from tests.limits.profiles import PROFILES
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

QCOM, KHR = "cl_qcom_recordable_queues", "cl_khr_command_buffer"
# 80 launches; prints what became of the list, and the kernels that each inference has started.
SCRIPT = """
import json, sys
import numpy as np
import clgpu_delegate
from clgpu_delegate import Runner
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

options, sizes, in_flight = json.loads(sys.argv[1])
m = ModelMaker()
x = m.input("x", (2, 2))
for _ in range(40):
    x = m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (2, 2))
    x = m.op("TANH", [x], (2, 2))
m.output(x)
plain, delegate = clgpu_delegate.load(command_list="off"), clgpu_delegate.load(**options)
interpreters = [make_interpreter(available_runtimes()[0], m.build(), [each])
                for each in (plain, delegate)]
launches, created = [], []
for size in sizes:
    values = np.linspace(-1, 1, 2 * size, dtype=np.float32).reshape(2, size)
    for interpreter in interpreters:
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], values.shape)
        interpreter.allocate_tensors()
    for factor in (1, 2, 3):
        (want,), (got,) = (run_interpreter(each, [factor * values]) for each in interpreters)
        np.testing.assert_array_equal(got, want)
        launches.append(delegate.stats()["last_invoke"]["launches"])
        created.append(delegate.stats()["last_invoke"]["objects_created"])
lists = delegate.stats()["command_lists"]
seconds = delegate.device_time(3)
assert seconds > 0
(got,) = run_interpreter(interpreters[1], [3 * values])
np.testing.assert_array_equal(got, want)
if in_flight:
    with Runner(m.build(), zero_copy="off", **options) as runner:
        small = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
        results = list(runner.run_many([small] * 5))
        for each in results[1:]:
            np.testing.assert_array_equal(each[0], results[0][0])
print(json.dumps({
    "list": lists[0], "launches": launches, "created": created, "notes": delegate.explain().notes
}))
"""


# A convolution that reads its input as an image, so that no argument can replace it.
IMAGES = """
import json, sys
import numpy as np
import clgpu_delegate
from tests.python import models
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

shape = (1, 9, 9, 8)
m = models.ModelMaker()
x = m.input("x", shape)
for _ in range(3):
    weights = m.constant(np.full((8, 1, 1, 8), 0.125, np.float32))
    x = m.op("CONV_2D", [x, weights, m.constant(np.zeros(8, np.float32))], shape,
             padding=1, stride_w=1, stride_h=1)
m.output(x)
options = {"engines": {"conv2d": "quads_image"}, "command_list": "on"}
delegate = clgpu_delegate.load(**options)
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
launches = []
for _ in range(2):
    interpreter.allocate_tensors()
    for factor in (1, 2, 3):
        (got,) = run_interpreter(interpreter, [np.full(shape, factor, np.float32)])
        np.testing.assert_allclose(got, factor, rtol=1e-5)
        launches.append(delegate.stats()["last_invoke"]["launches"])
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (2, 9, 9, 8))
    shape = (2, 9, 9, 8)
print(json.dumps([delegate.stats()["command_lists"][0], launches]))
"""


def attempt(
    name: str,
    extension: str,
    options: Any = (),
    sizes: Any = (2,),
    flies: bool = False,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    try:
        variables = environment(name, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    extensions = f"{PROFILES[name].extensions} {extension}"
    variables = {**variables, "LIMITS_EXTENSIONS": extensions, **more}
    if extension == QCOM:
        variables.setdefault("LIMITS_RECORDABLE_MAX", "128")
    settings = {"command_list": "on", **dict(options)}
    return run_python(SCRIPT, json.dumps([settings, sizes, flies]), **variables)


def run(name: str, extension: str, *arguments: Any, **more: Any) -> dict[str, Any]:
    result = attempt(name, extension, *arguments, **more)
    assert_succeeds(result)
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    if extension == KHR and "neither of the extensions" in found["list"]["reason"]:
        pytest.skip("no OpenCL device of type CPU with cl_khr_command_buffer")
    return found


@pytest.mark.parametrize("keeps", ["0", "1"])
@pytest.mark.parametrize("most", [80, 16, 3])
def test_launches_are_divided_into_recordings(most, keeps):
    found = run(
        "adreno_660", QCOM, sizes=(2, 3, 2), flies=True,
        LIMITS_RECORDABLE_MAX=str(most), LIMITS_RECORDING_KEEPS=keeps,
    )  # fmt: skip
    assert found["list"] == {"partition": 0, "extension": QCOM, "launches": 80, "reason": ""}
    assert set(found["launches"]) == {-(-80 // most)}
    assert found["created"][2::3] == [0, 0, 0]


@pytest.mark.parametrize("keeps", ["0", "1"])
def test_arguments_are_replaced_where_tensors_move(keeps):
    """On a device that works in the interpreter's tensors, as CPUs do."""
    found = run(
        "adreno_660", QCOM, sizes=(2, 3, 2, 64), LIMITS_TYPE="2", LIMITS_BASE_ALIGN_BITS="1024",
        LIMITS_RECORDING_KEEPS=keeps, LIMITS_UNFLUSHED="1000",
    )  # fmt: skip
    assert found["list"]["reason"] == ""
    assert set(found["launches"]) == {1}


@pytest.mark.parametrize("device_type", ["2", "4"], ids=["cpu", "gpu"])
def test_images_over_tensors_that_move(device_type):
    try:
        variables = environment("adreno_660", ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    changes = {
        "LIMITS_EXTENSIONS": QCOM, "LIMITS_RECORDABLE_MAX": "9", "LIMITS_TYPE": device_type,
        "LIMITS_UNFLUSHED": "1000",
    }  # fmt: skip
    result = run_python(IMAGES, **{**variables, **changes})
    assert_succeeds(result)
    found, launches = json.loads(result.stdout.splitlines()[-1])
    assert found == {"partition": 0, "extension": QCOM, "launches": 3, "reason": ""}
    assert set(launches) <= {1, 3}
    assert launches[2::3] == [1, 1]


def test_khronos_extension_without_simultaneous_use():
    """A list that must not be enqueued before it has ended; in flight there is none."""
    found = run("mali_g78", KHR, flies=True, LIMITS_COMMAND_BUFFERS="1")
    assert found["list"] == {"partition": 0, "extension": KHR, "launches": 80, "reason": ""}
    assert found["launches"][2] == 1


@pytest.mark.parametrize("warm_up", [True, False])
@pytest.mark.parametrize("after", ["0", "2"])
@pytest.mark.parametrize(("extension", "call"), [
    (QCOM, "clCreateCommandQueue"), (QCOM, "clNewRecordingQCOM"), (QCOM, "record"),
    (QCOM, "clEndRecordingQCOM"), (QCOM, "clEnqueueRecordingQCOM"),
    (KHR, "clCreateCommandBufferKHR"), (KHR, "clCommandNDRangeKernelKHR"),
    (KHR, "clFinalizeCommandBufferKHR"), (KHR, "clEnqueueCommandBufferKHR"),
])  # fmt: skip
def test_a_call_that_fails_leaves_the_launches(extension, call, after, warm_up):
    """With the right results in the same inference; each size has a list of its own."""
    found = run(
        "adreno_660", extension, {"warm_up": warm_up}, sizes=(2, 3, 4, 5),
        LIMITS_RECORDABLE_MAX="32", LIMITS_FAILING=call, LIMITS_FAILING_AFTER=after,
    )  # fmt: skip
    name = "clEnqueueNDRangeKernel" if call == "record" else call
    assert found["list"]["extension"] == ""
    assert name in found["list"]["reason"]
    assert "CL_" in found["list"]["reason"]
    assert found["launches"][-1] == 80


def test_a_function_that_is_missing_is_told():
    function = "clEnqueueCommandBufferKHR"
    found = run("mali_g78", KHR, LIMITS_MISSING=function)
    reason = f"the driver lists the extension and lacks its function {function}"
    assert found["list"]["reason"] == reason
    assert set(found["launches"]) == {80}


def test_devices_without_an_extension_are_told():
    found = run("powervr_bxm", "")
    assert found["list"]["reason"] == (
        "the device has neither of the extensions cl_khr_command_buffer and "
        "cl_qcom_recordable_queues"
    )
    assert set(found["launches"]) == {80}


@pytest.mark.parametrize("warm_up", [True, False])
@pytest.mark.parametrize(("extension", "call"), [
    (QCOM, "clNewRecordingQCOM"), (QCOM, "clEnqueueRecordingQCOM"),
    (KHR, "clFinalizeCommandBufferKHR"), (KHR, "clEnqueueCommandBufferKHR"),
])  # fmt: skip
def test_a_list_that_ends_the_process_is_not_made_again(tmp_path, extension, call, warm_up):
    tmp_path.chmod(0o700)
    options = {"cache": str(tmp_path / "cache.sqlite"), "warm_up": warm_up}
    run("adreno_660", extension, {**options, "cache": "off"})  # or is skipped
    result = attempt("adreno_660", extension, options, LIMITS_DEADLY_CALL=call)
    assert result.returncode == -signal.SIGKILL
    found = run("adreno_660", extension, options)
    assert f"the first command list by {extension} on QUALCOMM" in found["list"]["reason"]
    assert set(found["launches"]) == {80}


def test_default_measures_on_gpus(tmp_path):
    """The verdict is kept, and final after the second time where the launches are faster."""
    tmp_path.chmod(0o700)
    options = {"command_list": "auto", "cache": str(tmp_path / "cache.sqlite")}
    slow = "the launches are faster one by one"
    reasons = [run("adreno_660", QCOM, options)["list"]["reason"] for _ in range(3)]
    assert set(reasons) <= {"", slow}
    if "" in reasons:
        assert reasons[-1] == ""
    without = run("adreno_660", QCOM, {**options, "cache": "off", "warm_up": False})
    assert without["list"]["reason"] == "nothing is measured with the option 'warm_up' off"
