"""A failing device leads to another kernel, the CPU, or an error, but never to a crash."""

from __future__ import annotations

import pytest

import clgpu_delegate
from tests.campaign.faults import BUILD
from tests.faults.control import environment
from tests.limits.build import LayerError
from tests.python.subprocesses import assert_succeeds, run_python

PRELUDE = """
import sys
import numpy as np
import clgpu_delegate
from tests.faults.control import Layer
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

layer = Layer()
runtime = sys.argv[1]
model = models.chain((2, 11), ("TANH", "SOFTMAX"))
x = models.normal(np.random.default_rng(1), 2, 11)
(want,) = run_reference(model, [x], runtime)
OUT_OF_MEMORY, OUT_OF_RESOURCES = -4, -5


def fault(call, code, after=0, count=-1):
    layer.clear()
    layer.fail(call, code, after, count)


def load(**options):
    delegate = clgpu_delegate.load(**options)
    return delegate, make_interpreter(runtime, model, [delegate])


def check(interpreter):
    np.testing.assert_allclose(run_interpreter(interpreter, [x])[0], want, rtol=1e-5)


def kernels(delegate):
    return [node.candidate if node.claimed else None for node in delegate.explain().nodes]
"""


@pytest.fixture(scope="module")
def library() -> dict[str, str]:
    """Environment variables for an OpenCL library whose calls fail on demand."""
    try:
        return environment(BUILD)
    except LayerError as error:
        pytest.skip(str(error))


def run(library: dict[str, str], script: str, runtime: str) -> str:
    # Every program is compiled, because the calls that build it may be the failing ones.
    result = run_python(PRELUDE + script, runtime, **library, CLGPU_PROGRAMS="")
    assert_succeeds(result)
    return result.stdout


@pytest.mark.parametrize("call", ["clCreateBuffer", "clEnqueueNDRangeKernel"])
def test_partition_without_memory_stays_on_the_cpu_and_no_kernel_is_blamed(library, runtime, call):
    # Some drivers allocate only when a kernel first needs the memory.
    script = f"""
fault("{call}", OUT_OF_MEMORY)
delegate, interpreter = load()
layer.clear()
check(interpreter)
plan = delegate.explain()
assert kernels(delegate) == [None, None], plan
assert all("{call}: CL_MEM_OBJECT_ALLOCATION_FAILURE" in node.reason for node in plan.nodes), plan
assert not [note for note in plan.notes if "does not work" in note], plan  # a probe may fail
delegate = None
delegate, interpreter = load()
check(interpreter)
assert None not in kernels(delegate)
"""
    run(library, script, runtime)


def test_partition_of_constants_alone_stays_on_the_cpu_without_memory(library, runtime):
    # Nodes that only compute constants are released last; here there are no others.
    script = """
from tests.model_maker import ModelMaker
m = ModelMaker()
y = m.op("TANH", [m.input("x", (2, 11))], (2, 11))
m.output(y, m.op("EXP", [m.constant(x)], (2, 11)))
model = m.build()
fault("clCreateBuffer", OUT_OF_MEMORY)
delegate, interpreter = load(exclude="TANH")
layer.clear()
plan = delegate.explain()
assert kernels(delegate) == [None, None], plan
assert "clCreateBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE" in plan.nodes[1].reason, plan
np.testing.assert_allclose(run_interpreter(interpreter, [x])[1], np.exp(x), rtol=1e-5)
"""
    run(library, script, runtime)


def test_kernel_that_does_not_launch_twice_gives_way_to_the_next(library, runtime):
    script = """
delegate, interpreter = load()
node = delegate.explain().nodes[1]
assert len(node.candidates) > 1, node
fault("clEnqueueNDRangeKernel", OUT_OF_RESOURCES, after=1, count=2)
delegate, interpreter = load()
check(interpreter)
plan = delegate.explain()
assert kernels(delegate)[1] in node.candidates[1:], plan
(note,) = plan.notes
assert f"softmax/{node.candidates[0]} does not work on this device" in note
assert "CL_OUT_OF_RESOURCES (-5)" in note
(fault,) = plan.faults
assert (fault.kernel, fault.kind) == (f"softmax/{node.candidates[0]}", "fails"), fault
assert note == f"kernel {fault.kernel} does not work on this device: {fault.why}"
"""
    run(library, script, runtime)


def test_family_without_a_kernel_that_launches_goes_to_the_cpu(library, runtime):
    script = """
fault("clEnqueueNDRangeKernel", OUT_OF_RESOURCES)
delegate, interpreter = load()
layer.clear()
check(interpreter)
plan = delegate.explain()
assert kernels(delegate) == [None, None], plan
assert "no kernel of softmax works on" in plan.nodes[1].reason
"""
    run(library, script, runtime)


@pytest.mark.parametrize("call", ["clEnqueueNDRangeKernel", "clEnqueueReadBuffer"])
def test_failure_in_an_inference_is_an_error_and_the_next_inference_is_right(
    library, runtime, call
):
    script = f"""
delegate, interpreter = load(zero_copy="off" if "Read" in "{call}" else "auto")
check(interpreter)
fault("{call}", OUT_OF_RESOURCES, count=1)
try:
    interpreter.invoke()
except RuntimeError as error:
    assert "clgpu_delegate: {call}: CL_OUT_OF_RESOURCES (-5) in " in str(error), error
else:
    raise AssertionError("no error")
failure = delegate.explain().failure
assert (failure.kind, failure.call) == ("OpenCLError", "{call}"), failure
assert failure.code == "CL_OUT_OF_RESOURCES (-5)", failure
check(interpreter)
delegate, interpreter = load()
assert delegate.explain().failure is None
"""
    run(library, script, runtime)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("clEnqueueMarkerWithWaitList", 0),
        ("clEnqueueMarkerWithWaitList", 1),
        ("clEnqueueReadBuffer", 0),
        ("clEnqueueWriteBuffer", 1),
        ("clEnqueueWriteBuffer", 2),
        ("clEnqueueNDRangeKernel", 2),
    ],
)
def test_failing_move_is_an_error_and_the_next_inference_is_right(library, runtime, call, after):
    script = f"""
model = models.detour()
x = models.normal(np.random.default_rng(1), 1, 64, 64, 4)
(want,) = run_reference(model, [x], runtime)
full = load(zero_copy="off")[0].explain().to_dict()["partitions"][0]
budget = (full["arena_bytes"] + full["weights_bytes"]) * 17 // 20
delegate, interpreter = load(memory_budget=budget, zero_copy="off")
moves = delegate.explain().to_dict()["partitions"][0]["moves"]
assert {{move["kind"] for move in moves}} == {{"out", "in"}}, moves
np.testing.assert_allclose(run_interpreter(interpreter, [x])[0], want, rtol=1e-4, atol=1e-5)
for _ in range(3):
    fault("{call}", OUT_OF_RESOURCES, after={after}, count=1)
    try:
        interpreter.invoke()
    except RuntimeError as error:
        assert "clgpu_delegate: {call}: CL_OUT_OF_RESOURCES (-5)" in str(error), error
    else:
        raise AssertionError("no error")
    np.testing.assert_allclose(run_interpreter(interpreter, [x])[0], want, rtol=1e-4, atol=1e-5)
"""
    run(library, script, runtime)


def _skip_without_unified_memory() -> None:
    if not clgpu_delegate.devices()[0].unified_memory:
        pytest.skip("the first device has memory of its own: nothing is mapped")


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_buffer_that_cannot_be_mapped_is_copied(library, runtime, kind, after):
    _skip_without_unified_memory()
    script = f"""
for index in range(8):
    layer.tell_type(index, 4 if "{kind}" == "gpu" else 2)
delegate, interpreter = load()
fault("clEnqueueMapBuffer", OUT_OF_RESOURCES, after={after}, count=1)
created = []
for _ in range(4):
    check(interpreter)
    created.append(delegate.stats()["last_invoke"]["objects_created"])
# The first one's are over the interpreter's memory; where that is not mapped, another takes over.
assert sum(created[1:]) == ("{kind}" == "cpu"), created
rows = delegate.stats()["tensors"]
(refused,) = [row for row in rows if "clEnqueueMapBuffer: CL_OUT_OF_RES" in row["reason"]]
assert refused["road"] == "copy", rows
(other,) = [row for row in rows if row is not refused]
assert other["road"] == ("mapped" if "{kind}" == "gpu" else "host_pointer") or (
    "{kind}" == "gpu" and other["road"] == "host_pointer"), rows
interpreter.invoke()
assert delegate.stats()["last_invoke"]["objects_created"] == 0
"""
    run(library, script, runtime)


@pytest.mark.parametrize("after", [0, 2, 3])
def test_memory_that_the_driver_does_not_take_is_copied(library, runtime, after):
    _skip_without_unified_memory()
    script = f"""
for index in range(8):
    layer.tell_type(index, 2)  # a CPU
layer.refuse_host_pointers(-37, {after}, -1)  # CL_INVALID_HOST_PTR
delegate, interpreter = load()
for _ in range(3):
    check(interpreter)
rows = delegate.stats()["tensors"]
reason = "clCreateBuffer: CL_INVALID_HOST_PTR (-37) in "
assert all(row["road"] == "copy" for row in rows if reason in row["reason"]), rows
assert sum(reason in row["reason"] for row in rows) == (1 if {after} == 3 else 2), rows
assert delegate.device_time(2) > 0
check(interpreter)
interpreter.invoke()
assert delegate.stats()["last_invoke"]["objects_created"] == 0
"""
    run(library, script, runtime)


def test_failure_in_a_resize_is_an_error_until_there_is_memory_again(library, runtime):
    script = """
delegate, interpreter = load()
check(interpreter)
index = interpreter.get_input_details()[0]["index"]
fault("clCreateBuffer", OUT_OF_MEMORY)
interpreter.resize_tensor_input(index, [3, 11])
for _ in range(2):
    try:
        interpreter.allocate_tensors()
    except RuntimeError as error:
        assert "CL_MEM_OBJECT_ALLOCATION_FAILURE" in str(error), error
    else:
        raise AssertionError("no error")
layer.clear()
y = np.concatenate([x, x[:1]])
(got,) = run_interpreter(interpreter, [y], {0: y.shape})
np.testing.assert_allclose(got, np.concatenate([want, want[:1]]), rtol=1e-5)
"""
    run(library, script, runtime)


@pytest.mark.parametrize("after", [0, 1, 2, 5, 20, 300])
def test_launch_that_fails_while_tuning_costs_its_candidate_at_most(library, runtime, after):
    script = f"""
delegate, interpreter = load(cache="off")
fault("clEnqueueNDRangeKernel", OUT_OF_RESOURCES, after={after}, count=1)
layers = delegate._tune(60.0, True, lambda *step: None)
layer.clear()
problems = [why for layer in layers for why in layer["problems"].values()]
assert len(problems) <= 1, problems
assert all("CL_OUT_OF_RESOURCES" in why for why in problems), problems
assert not problems or any("does not work on this device" in n for n in delegate.explain().notes)
again = make_interpreter(runtime, model, [delegate])
check(again)
check(interpreter)
"""
    run(library, script, runtime)


def test_gpu_comes_before_accelerator_before_cpu(library):
    # One device is enough: the test checks the order of the existing ones.
    script = """
from tests.faults.control import Layer
layer = Layer()
for index, kind in enumerate([2, 8, 4]):  # CPU, accelerator, GPU
    layer.tell_type(index, kind)
import clgpu_delegate
types = [device.type for device in clgpu_delegate.devices()]
assert types == sorted(types, key=["gpu", "accelerator", "cpu"].index), types
assert clgpu_delegate.load().device.type == types[0]
print(*types)
"""
    result = run_python(script, **library)
    assert_succeeds(result)
    assert set(result.stdout.split()) <= {"gpu", "accelerator", "cpu"}


def test_text_of_a_driver_need_not_be_utf_8(library):
    script = """
from tests.faults.control import Layer
Layer().tell_name(b"Fast\\xb2 GPU")
import clgpu_delegate
delegate = clgpu_delegate.load()
assert delegate.explain().device == delegate.device.name == "Fast\\ufffd GPU"
"""
    assert_succeeds(run_python(script, **library))


def test_recording_asks_for_events_and_nothing_else_does(library, runtime):
    script = """
for profile in (False, True):
    delegate, interpreter = load(profile=profile, zero_copy="off")
    check(interpreter)
    before = layer.events
    run_interpreter(interpreter, [x])
    assert layer.events - before == (4 if profile else 0)
"""
    run(library, script, runtime)


def test_driver_without_times_of_commands_is_noted(library, runtime):
    script = """
delegate, interpreter = load(profile=True)
check(interpreter)
fault("clGetEventProfilingInfo", -7)
data = delegate._native.profile(peaks=False)
assert [row["kind"] for row in data["launches"]].count("launch") == 2, data
assert all(row["host_end"] for row in data["launches"]), data
launches = [row for row in data["launches"] if row["kind"] == "launch"]
assert all(row["start"] is None for row in launches), data  # the host copies of a GPU have times
assert "CL_PROFILING_INFO_NOT_AVAILABLE" in data["notes"][0], data
check(interpreter)
"""
    run(library, script, runtime)


def test_failed_inference_is_not_recorded(library, runtime):
    script = """
delegate, interpreter = load(profile=True)
check(interpreter)
fault("clEnqueueNDRangeKernel", OUT_OF_RESOURCES, after=1, count=1)
try:
    run_interpreter(interpreter, [x])
except RuntimeError:
    pass
check(interpreter)
numbers = [span["inference"] for span in delegate._native.profile(peaks=False)["host"]]
assert numbers == [1, 3], numbers
"""
    run(library, script, runtime)


NUMBERS = {
    "MAX_COMPUTE_UNITS": 0x1002,
    "MAX_WORK_GROUP_SIZE": 0x1004,
    "MAX_WORK_ITEM_SIZES": 0x1005,
    "MAX_MEM_ALLOC_SIZE": 0x1010,
    "IMAGE_SUPPORT": 0x1016,
    "MEM_BASE_ADDR_ALIGN": 0x1019,
    "GLOBAL_MEM_SIZE": 0x101F,
    "LOCAL_MEM_SIZE": 0x1023,
    "NATIVE_VECTOR_WIDTH_FLOAT": 0x103A,
    "IMAGE_MAX_BUFFER_SIZE": 0x1040,
    "PREFERRED_WORK_GROUP_SIZE_MULTIPLE": 0x1067,
}


@pytest.mark.parametrize("bits", [0, 1, 2**64 - 1], ids=["zero", "one", "all"])
def test_nonsense_about_a_device_is_not_believed(library, runtime, bits):
    # Each use of one as a divisor or factor once crashed the process.
    script = f"""
for what in {list(NUMBERS.values())}:
    layer.tell_number(what, {bits})
delegate, interpreter = load()
check(interpreter)
device = clgpu_delegate.devices()[0]
assert device.compute_units == 1, device
assert 0 < device.max_object_bytes <= device.global_bytes < 2**50, device
"""
    run(library, script, runtime)


def test_alignment_that_is_no_power_of_two_is_not_believed(library, runtime):
    # Drivers refuse tensors at its multiples.
    script = f"""
from tests.delegate.test_memory import SIDE, ladder
model = ladder()
x = models.normal(np.random.default_rng(1), 1, SIDE, SIDE, 3)
(want,) = run_reference(model, [x], runtime)
layer.tell_number({NUMBERS["MEM_BASE_ADDR_ALIGN"]}, 8 * 96)
delegate, interpreter = load(zero_copy="off")
got = run_interpreter(interpreter, [x])[0]
np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
assert None not in kernels(delegate), delegate.explain()
assert layer.calls()["clCreateSubBuffer"] > 0
"""
    run(library, script, runtime)


def test_object_is_no_larger_than_the_device(library):
    script = f"""
from tests.faults.control import Layer
layer = Layer()
layer.tell_number({NUMBERS["MAX_MEM_ALLOC_SIZE"]}, 2**40)
layer.tell_number({NUMBERS["GLOBAL_MEM_SIZE"]}, 2**31)
import clgpu_delegate
device = clgpu_delegate.devices()[0]
assert device.max_object_bytes == device.global_bytes == 2**31, device
"""
    assert_succeeds(run_python(script, **library))


def test_device_whose_driver_tells_nothing_is_left_out_with_a_reason(library, runtime):
    script = """
fault("clGetDeviceInfo", OUT_OF_RESOURCES)
try:
    load()
except clgpu_delegate.DeviceError as error:
    assert "no usable device (" in str(error), error
    assert "does not report whether it can be used" in str(error), error
    assert "CL_OUT_OF_RESOURCES (-5)" in str(error), error
else:
    raise AssertionError("a delegate was made")
layer.clear()
check(load()[1])
"""
    run(library, script, runtime)


def test_device_without_a_compiler_is_left_out_with_a_reason(library, runtime):
    script = """
layer.tell_number(0x1028, 0)
try:
    load()
except clgpu_delegate.DeviceError as error:
    assert "its driver says that it has no compiler" in str(error), error
else:
    raise AssertionError("a delegate was made")
"""
    run(library, script, runtime)


@pytest.mark.parametrize("after", range(2, 26, 3))
@pytest.mark.slow
def test_question_that_fails_once_leads_to_a_right_result(library, runtime, after):
    script = f"""
fault("clGetDeviceInfo", OUT_OF_RESOURCES, after={after}, count=1)
check(load()[1])
"""
    run(library, script, runtime)
