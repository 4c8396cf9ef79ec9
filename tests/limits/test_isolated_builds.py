"""Compilers that end the process end a child process at the first start, and the start goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.limits.test_crashes import die, layer, markers, start
from tests.python.subprocesses import assert_succeeds, run_python

__all__ = ["layer"]  # the fixture

DEADLY = {"LIMITS_DEADLY_PROGRAM": "void conv2d_quads(", "LIMITS_DEADLY_OPTIONS": ""}
AUTO, ON = {"ISOLATE_BUILDS": "auto"}, {"ISOLATE_BUILDS": "on"}


def test_a_compiler_that_ends_the_process_ends_a_child_at_the_first_start(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    usual = start(tmp_path / "other.sqlite", layer)["candidates"][0]
    assert usual.startswith("quads")
    found = start(cache, layer, **DEADLY, **AUTO)  # its result is right, too
    assert found["claimed"] == [True, True]
    assert not found["candidates"][0].startswith("quads")
    why = found["faults"][f"conv2d/{usual}"]
    assert re.search(
        r"a child process ended twice, the last time by signal 9, during the compilation of "
        r"conv2d/quads\.cl with .*; to try it again, run `clgpu cache clear --kind crash`",
        why,
    )
    assert any(f"conv2d/{usual}" in note for note in found["notes"])
    assert "a child process ended twice during the compilation of conv2d/quads" in found["log"]
    assert markers(cache) == []
    # Nothing is tried again, and nothing is built.
    again = start(cache, layer, **DEADLY, **AUTO)
    assert again["candidates"] == found["candidates"]
    assert f"conv2d/{usual}" in again["faults"]
    assert again["built"] == 0
    assert "child process ended" not in again["log"]
    clgpu_delegate.cache.clear(cache, "crash")
    assert start(cache, layer, **AUTO)["candidates"][0] == usual


def test_a_start_without_a_cache_goes_on_too(layer):
    found = start("off", layer, **DEADLY, **AUTO, CLGPU_PROGRAMS="")
    assert found["claimed"] == [True, True]
    assert not found["candidates"][0].startswith("quads")
    assert any("a child process ended twice" in why for why in found["faults"].values())


def test_what_a_child_has_built_is_not_compiled_again(tmp_path, layer):
    cache, other = tmp_path / "cache.sqlite", tmp_path / "other.sqlite"
    alone, apart = start(other, layer), start(cache, layer, **AUTO)
    for key in ("candidates", "faults", "notes", "built"):
        assert apart[key] == alone[key]
    assert start(cache, layer, **AUTO)["built"] == 0
    # A process that compiled these programs itself would end.
    deadly = {"LIMITS_DEADLY_PROGRAM": "void cumsum", "LIMITS_DEADLY_OPTIONS": ""}
    assert start(cache, layer, **deadly)["candidates"] == apart["candidates"]


def test_a_program_that_ends_the_process_when_it_is_off(tmp_path, layer):
    die(tmp_path / "cache.sqlite", layer, **DEADLY, ISOLATE_BUILDS="off")


@pytest.mark.parametrize(
    ("platform", "is_isolated"),
    [("rusticl", True), ("Some Platform", True), ("Portable Computing Language", False),
     ("NVIDIA CUDA", False)],
)  # fmt: skip
def test_auto_isolates_untested_compilers(tmp_path, layer, platform, is_isolated):
    cache, layer = tmp_path / "cache.sqlite", {**layer, "LIMITS_PLATFORM": platform}
    if is_isolated:
        assert start(cache, layer, **DEADLY, **AUTO)["claimed"] == [True, True]
    else:
        die(cache, layer, **DEADLY, **AUTO)
        assert start(tmp_path / "on.sqlite", layer, **DEADLY, **ON)["claimed"] == [True, True]


LIVES = """
import os, signal, sys, threading, time
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

def children():
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, rest = file.read().rsplit(")", 1)
        except OSError:
            continue
        if "clgpu_compile" in name and int(rest.split()[1]) == os.getpid():
            pids.append(int(pid))
    return pids

m = ModelMaker()
m.output(m.op("TANH", [m.input("x", (2, 2))], (2, 2)))
values = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
delegate = clgpu_delegate.load(cache="off", isolate_builds="on")
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
interpreter.allocate_tensors()
(child,) = children()
# A terminal sends Ctrl-C to the group of this process, and the child has its own.
assert os.getpgid(child) == child
assert not [name for name in os.listdir(f"/proc/{child}/fd") if "pipe" in os.readlink(
    f"/proc/{child}/fd/{name}") and int(name) > 2]
(got,) = run_interpreter(interpreter, [values])
np.testing.assert_allclose(got, np.tanh(values), rtol=1e-5)
assert children() == []  # the first inference ends it
# One that was ended while nobody needed it is no failure of the next program.
m = ModelMaker()
m.output(m.op("EXP", [m.input("x", (2, 2))], (2, 2)))
second = clgpu_delegate.load(cache="off", isolate_builds="on")
interpreter = make_interpreter(available_runtimes()[0], m.build(), [second])
interpreter.allocate_tensors()
(child,) = children()
os.kill(child, signal.SIGKILL)
m = ModelMaker()
m.output(m.op("SIN", [m.input("x", (2, 2))], (2, 2)))
third = make_interpreter(available_runtimes()[0], m.build(), [second])
(got,) = run_interpreter(third, [values])
np.testing.assert_allclose(got, np.sin(values), rtol=1e-5)
assert third is not None and not second.explain().faults, second.explain().faults
assert children() == []
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it needs /proc")
def test_the_child_ends_with_the_first_inference(layer):
    assert_succeeds(run_python(LIVES, **layer, CLGPU_PROGRAMS=""))


def test_a_fork_does_not_keep_the_child(layer):
    script = """
import os, time
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter
m = ModelMaker()
m.output(m.op("TANH", [m.input("x", (2, 2))], (2, 2)))
delegate = clgpu_delegate.load(cache="off", isolate_builds="on")
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
interpreter.allocate_tensors()
pid = os.fork()  # has a copy of the socket
if pid == 0:
    time.sleep(20)
    os._exit(0)
begun = time.monotonic()
del interpreter, delegate
assert time.monotonic() - begun < 15
os.kill(pid, 9)
os.waitpid(pid, 0)
"""
    assert_succeeds(run_python(script, **layer, CLGPU_PROGRAMS=""))


def test_a_library_without_the_program_builds_itself(tmp_path, layer):
    copy = tmp_path / Path(_core.__file__).name
    shutil.copyfile(_core.__file__, copy)
    script = """
import sys
import numpy as np
from tests.model_maker import ModelMaker
from tests.runtimes import (
    available_runtimes, interpreter_module, make_interpreter, run_interpreter,
)
m = ModelMaker()
m.output(m.op("TANH", [m.input("x", (2, 2))], (2, 2)))
values = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
runtime = available_runtimes()[0]
options = {"cache": "off", "isolate_builds": "on"}
delegate = interpreter_module(runtime).load_delegate(sys.argv[1], options)
interpreter = make_interpreter(runtime, m.build(), [delegate])
(got,) = run_interpreter(interpreter, [values])
np.testing.assert_allclose(got, np.tanh(values), rtol=1e-5)
"""
    assert_succeeds(run_python(script, str(copy), **layer, CLGPU_PROGRAMS=""))


def test_on_says_why_it_has_no_effect(layer):
    """Here the child sees a device with another name."""
    script = """
import json, os
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter
clgpu_delegate.devices()
os.environ["LIMITS_NAME"] = "another"
told = []
for value, operation in (("auto", "TANH"), ("on", "EXP")):
    m = ModelMaker()
    m.output(m.op(operation, [m.input("x", (2, 2))], (2, 2)))
    delegate = clgpu_delegate.load(cache="off", isolate_builds=value)
    interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
    interpreter.allocate_tensors()
    assert delegate.explain().nodes[0].claimed
    told.append([note for note in delegate.explain().notes if "isolate" in note])
print(json.dumps(told))
"""
    result = run_python(script, **layer, CLGPU_PROGRAMS="")
    assert_succeeds(result)
    auto, (note,) = json.loads(result.stdout)
    assert auto == []
    assert re.fullmatch(
        r"the option isolate_builds=on has no effect: \S*/clgpu_compile does not find the device, "
        r"and ended with exit code 5",
        note,
    )


def test_the_program_leaves_with_its_starter(layer):
    """It ends when its input ends, and when nobody asks."""
    program = Path(_core.__file__).with_name("clgpu_compile")
    arguments = [program, layer["CLGPU_OPENCL_LIBRARY"], "0", "0", layer["LIMITS_NAME"]]
    environment = {**os.environ, **layer}
    done = subprocess.run(arguments, input=b"", capture_output=False, env=environment, check=False)
    assert done.returncode == 0
    wrong = [*arguments[:-1], "another device"]
    assert subprocess.run(wrong, input=b"", env=environment, check=False).returncode == 5
