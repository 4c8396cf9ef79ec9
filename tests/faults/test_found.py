"""Minimal cases of the errors that the experiments have found, one test for each."""

from __future__ import annotations

import pytest

import clgpu_delegate
from tests.campaign.faults import BUILD
from tests.faults.configurations import GPU
from tests.faults.control import can_preload, environment
from tests.limits.build import LayerError
from tests.python.subprocesses import assert_succeeds, run_python

PRELUDE = """
import gc, os, sys
import numpy as np
import clgpu_delegate
from clgpu_delegate import _core
from tests.faults.configurations import narrow
from tests.faults.control import ALLOCATIONS, Allocations, Layer
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

OUT_OF_MEMORY, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY = -4, -5, -6
layer = Layer()
allocations = Allocations() if ALLOCATIONS in os.environ else None
model = narrow()
x = models.normal(np.random.default_rng(1), 1, 8, 8, 4)
(want,) = run_reference(model, [x])


def load(**options):
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter("auto", model, [delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return delegate, interpreter


def check(interpreter):
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def error_of(call):
    try:
        call()
    except (RuntimeError, MemoryError) as error:
        return str(error)
    raise AssertionError("no error")
"""


def run(script: str, *, fail_allocations: bool = False, **variables: str) -> str:
    """Run a script in a process whose calls of OpenCL fail on demand."""
    if fail_allocations and not can_preload(BUILD):
        pytest.skip("no library can be preloaded here")
    try:
        settings = environment(BUILD, fail_allocations=fail_allocations)
    except LayerError as error:
        pytest.skip(str(error))
    result = run_python(PRELUDE + script, **{"CLGPU_PROGRAMS": "", **settings, **variables})
    assert_succeeds(result)
    return result.stdout


@pytest.mark.parametrize("verify", ["off", "1"])
@pytest.mark.parametrize("skip", [0, 3, 7])
def test_no_kernel_keeps_arguments_that_are_gone(skip, verify):
    run(f"""
delegate, interpreter = load(verify="{verify}" if "{verify}" == "off" else int("{verify}"))
layer.fail("clSetKernelArg", OUT_OF_RESOURCES, {skip})
assert "clSetKernelArg: CL_OUT_OF_RESOURCES (-5)" in error_of(interpreter.invoke)
for _ in range(3):
    check(interpreter)
assert not layer.misuse, layer.misuse
""")


@pytest.mark.parametrize("call", ["clEnqueueNDRangeKernel", "clEnqueueReadBuffer"])
def test_no_command_of_an_inference_that_failed_uses_memory_of_the_host(call):
    run(f"""
delegate, interpreter = load(zero_copy="off")
check(interpreter)
layer.fail("{call}", OUT_OF_RESOURCES)
assert "{call}: CL_OUT_OF_RESOURCES (-5)" in error_of(interpreter.invoke)
assert layer.host_commands == 0
""")


@pytest.mark.parametrize("call", ["clEnqueueCopyBuffer", "clEnqueueReadBuffer"])
def test_no_command_of_a_lane_that_failed_uses_memory_of_the_host(call):
    run(
        f"""
model = models.chain((4000, 11), ("TANH", "SOFTMAX"))
x = models.normal(np.random.default_rng(1), 4000, 11)
runner = clgpu_delegate.Runner(model)
assert runner.mode == "stream", runner.reason
list(runner.run_many([x] * 3))
assert layer.calls()["{call}"] > 0
layer.fail("{call}", OUT_OF_RESOURCES)
assert "{call}: CL_OUT_OF_RESOURCES (-5)" in error_of(lambda: list(runner.run_many([x] * 3)))
assert layer.host_commands == 0
""",
        **GPU,
    )


def test_images_over_memory_that_has_grown_are_made_again():
    run(
        """
options = {"memory_pool": "process", "zero_copy": "off"}
delegate, interpreter = load(engines={"conv2d": "quads_image|auto"}, **options)
check(interpreter)
before = layer.calls()["clCreateImage"]
assert before > 0, delegate.explain()
large = models.image((1, 64, 64, 3))
second = make_interpreter("auto", large, [clgpu_delegate.load(**options)])
run_interpreter(second, [np.zeros((1, 64, 64, 3), np.float32)])
layer.fail("clCreateImage", OUT_OF_RESOURCES)
assert "clCreateImage: CL_OUT_OF_RESOURCES (-5)" in error_of(interpreter.invoke)
for _ in range(3):
    check(interpreter)
assert not layer.misuse, layer.misuse
""",
        **GPU,
    )


def test_images_over_memory_of_the_interpreter_go_with_it():
    if not clgpu_delegate.devices()[0].unified_memory:
        pytest.skip("the first device has memory of its own: it works on no other")
    run(
        """
delegate, interpreter = load(engines={"conv2d": "quads_image|auto"})
check(interpreter)
assert delegate.stats()["tensors"][0]["road"] == "host_pointer", delegate.stats()
images, live = layer.calls()["clCreateImage"], layer.live()["memory"]
assert images > 0, delegate.explain()
for n in range(1, 4):
    delegate.device_time(1)  # on memory of its own: afterwards the interpreter's is taken anew
    check(interpreter)
    assert layer.calls()["clCreateImage"] == images + n
    assert layer.live()["memory"] == live
""",
        FAULTS_DEVICE_TYPE="2",  # a CPU
    )


def test_inference_without_memory_is_an_error_with_a_reason_and_the_next_one_is_right():
    run("""
delegate, interpreter = load()
check(interpreter)
layer.fail("clEnqueueNDRangeKernel", OUT_OF_MEMORY, count=-1)
for _ in range(3):
    assert "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)" in error_of(interpreter.invoke)
layer.clear()
check(interpreter)
assert all(node.claimed for node in delegate.explain().nodes)
""")


def test_device_without_memory_at_all_is_an_error_and_no_endless_search():
    # Partitions with all their memory on the host have no plan that needs less.
    run("""
model = models.chain((2, 11), ("TANH", "SOFTMAX", "LOGISTIC"))
x = models.normal(np.random.default_rng(1), 2, 11)
(want,) = run_reference(model, [x])
layer.fail("clEnqueueNDRangeKernel", OUT_OF_MEMORY, count=-1)
delegate, interpreter = load(exclude=("1",))
check(interpreter)
assert not any(node.claimed for node in delegate.explain().nodes)
""")


def test_nobody_allocates_for_an_arena_that_was_refused():
    run("""
def chain(rows):
    model = models.chain((rows, 32))
    delegate = clgpu_delegate.load(memory_pool="process", zero_copy="off")
    interpreter = make_interpreter("auto", model, [delegate])
    interpreter.allocate_tensors()
    return interpreter, delegate.explain().claimed
small, claimed = chain(8)
assert claimed
layer.fail("clCreateBuffer", OUT_OF_MEMORY, count=-1)
large, claimed = chain(1000)
assert not claimed
layer.clear()
layer.reset()
middle, claimed = chain(100)
assert claimed
assert layer.peak_bytes < 1000 * 32 * 4, layer.peak_bytes
""")


def test_resize_of_a_runner_does_not_need_old_and_new_memory_at_once():
    run(
        """
model = models.image((1, 64, 64, 3))
runner = clgpu_delegate.Runner(model)
assert runner.mode == "stream", runner.reason
runner.run(np.zeros((1, 64, 64, 3), np.float32))
layer.reset()
runner.resize((2, 64, 64, 3))
after = layer.peak_bytes
runner.close()
del runner
gc.collect()
layer.reset()
alone = clgpu_delegate.Runner(models.image((2, 64, 64, 3)))
assert after <= layer.peak_bytes, (after, layer.peak_bytes)
""",
        **GPU,
    )


@pytest.mark.parametrize("options", ["", "verify='first'"])
def test_runner_lives_when_allocations_fail(options):
    run(
        f"""
with clgpu_delegate.Runner(model, {options}) as first:
    first.run(x)  # what a process makes once is there
for after in range(0, 700, 9 if "{options}" else 3):
    runner = clgpu_delegate.Runner(model, {options})
    allocations.watch(after)
    try:
        runner.run(x)
    except (MemoryError, RuntimeError) as error:
        assert "out of host memory" in str(error), error
    allocations.rest()
    np.testing.assert_allclose(runner.run(x), want, rtol=1e-4, atol=1e-5)
    if not allocations.thrown:
        break
else:
    assert "{options}", "an inference of a stream takes hundreds of allocations"
assert not layer.misuse, layer.misuse
""",
        fail_allocations=True,
        **GPU,
    )


@pytest.mark.parametrize("call", ["clEnqueueNDRangeKernel", "clCreateKernel", "clBuildProgram"])
def test_call_that_fails_once_costs_no_kernel(call):
    run(f"""
best = [node.candidate for node in load()[0].explain().nodes]
_core.forget_programs("0")
layer.reset()
layer.fail("{call}", OUT_OF_RESOURCES)
delegate, interpreter = load()
assert layer.failed == 1
plan = delegate.explain()
assert [node.candidate for node in plan.nodes] == best, plan
assert not [note for note in plan.notes if "does not work" in note], plan
check(interpreter)
""")


def test_resources_that_lack_during_a_resize_blame_no_kernel_for_good():
    run("""
model = models.image()
x = models.normal(np.random.default_rng(1), 1, 7, 6, 3)
(want,) = run_reference(model, [x])
delegate, interpreter = load()
best = [node.candidate for node in delegate.explain().nodes]
index = interpreter.get_input_details()[0]["index"]
interpreter.resize_tensor_input(index, [2, 7, 6, 3])
layer.fail("clEnqueueNDRangeKernel", OUT_OF_RESOURCES, count=-1)
interpreter.allocate_tensors()
assert "CL_OUT_OF_RESOURCES" in delegate.explain().partitions[0].on_cpu
layer.clear()
interpreter.invoke()  # by the CPU's kernels, until there are other shapes
interpreter.resize_tensor_input(index, [1, 7, 6, 3])
interpreter.allocate_tensors()
interpreter.set_tensor(index, x)
check(interpreter)
assert [node.candidate for node in delegate.explain().nodes] == best
""")


@pytest.mark.parametrize("call", ["clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel"])
def test_driver_short_of_memory_loses_no_program_of_the_cache(call, tmp_path):
    run(f"""
cache = r"{tmp_path / "cache.sqlite"}"
check(load(cache=cache)[1])
_core.forget_programs("0")
layer.reset()
check(load(cache=cache)[1])
programs = layer.calls()["clCreateProgramWithBinary"]
assert programs > 0 and not layer.calls()["clCreateProgramWithSource"]
_core.forget_programs("0")
layer.fail("{call}", OUT_OF_HOST_MEMORY)
check(load(cache=cache)[1])
_core.forget_programs("0")
layer.reset()
check(load(cache=cache)[1])
calls = layer.calls()
assert calls["clCreateProgramWithBinary"] == programs, calls
assert not calls["clCreateProgramWithSource"], calls
""")


def test_transient_failure_of_a_probe_is_kept_nowhere(tmp_path):
    run(
        f"""
cache = r"{tmp_path / "cache.sqlite"}"
layer.fail("clBuildProgram", OUT_OF_HOST_MEMORY, count=-1)
refused = clgpu_delegate.load(cache=cache)
layer.clear()
again = clgpu_delegate.load(cache=cache)
assert not [note for note in again.explain().notes if "probe" in note], again.explain().notes
""",
        **GPU,
    )
