"""Compilers and launches that end the process are left out by the next start.

`test_isolated_builds` has those that end a child process.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import clgpu_delegate
from tests.limits.build import LayerError, environment
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

# Prints what a convolution and an activation are computed with, and what was said about it.
SCRIPT = """
import json, os, sys, time
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

m = ModelMaker()
x = m.input("x", (1, 16, 16, 8))
weights, bias = m.constant(np.full((16, 1, 1, 8), 0.125, np.float32)), np.zeros(16, np.float32)
x = m.op("CONV_2D", [x, weights, m.constant(bias)], (1, 16, 16, 16),
         padding=1, stride_w=1, stride_h=1)
m.output(m.op("CUMSUM", [x, m.constant(np.array(3, np.int32))], (1, 16, 16, 16)))
if "TRY_ADDRESSES" in os.environ:  # as on NVIDIA's devices
    clgpu_delegate._core.try_addresses(True)
begun = time.perf_counter()
delegate = clgpu_delegate.load(
    cache=sys.argv[1], warm_up="WITHOUT_WARM_UP" not in os.environ,
    isolate_builds=os.environ.get("ISOLATE_BUILDS", "off"),
)
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
interpreter.allocate_tensors()
loaded = time.perf_counter()
(got,) = run_interpreter(interpreter, [np.full((1, 16, 16, 8), 3, np.float32)])
np.testing.assert_allclose(got[0, 0, 0], 3 * np.arange(1, 17), rtol=1e-5)
explanation = delegate.explain()
print(json.dumps({
    "candidates": [node.candidate for node in explanation.nodes],
    "claimed": [node.claimed for node in explanation.nodes],
    "reasons": [node.reason for node in explanation.nodes],
    "faults": {fault.kernel: fault.why for fault in explanation.faults},
    "notes": explanation.notes,
    "built": delegate.stats()["load"]["programs_built"],
    "addresses": clgpu_delegate._core.addresses_set(),
    "seconds": loaded - begun,
}))
"""


@pytest.fixture
def layer() -> dict[str, str]:
    try:
        return environment("mali_g78", ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))


def start(cache: Path | str, layer: dict[str, str], **deadly: str) -> dict:
    """What the script prints in a process that lives."""
    result = run_python(SCRIPT, str(cache), **layer, **deadly)
    assert_succeeds(result)
    return {**json.loads(result.stdout), "log": result.stderr}


def die(cache: Path | str, layer: dict[str, str], **deadly: str) -> None:
    result = run_python(SCRIPT, str(cache), **layer, **deadly)
    assert result.returncode == -signal.SIGKILL, result.stderr


def markers(cache: Path) -> list[Path]:
    return sorted(Path(f"{cache}-attempts").glob("*"))


@pytest.mark.parametrize("more", [{}, {"LIMITS_TYPE": "2", "TRY_ADDRESSES": "1"}], ids=str)
def test_nothing_is_left_behind_and_a_start_from_the_cache_tries_nothing(tmp_path, layer, more):
    cache, layer = tmp_path / "cache.sqlite", {**layer, **more}
    first = start(cache, layer)
    assert first["built"] > 0
    assert markers(cache) == []
    folder = Path(f"{cache}-attempts")
    folder.rmdir()
    second = start(cache, layer)
    assert second["built"] == 0
    assert not folder.exists()
    assert second["candidates"] == first["candidates"]


def test_buffers_remain_where_the_trial_of_addresses_ended_the_process(tmp_path, layer):
    cache, cpu = tmp_path / "cache.sqlite", {**layer, "LIMITS_TYPE": "2"}
    usual, trying = start(tmp_path / "other.sqlite", cpu), {**cpu, "TRY_ADDRESSES": "1"}
    die(cache, trying, LIMITS_DEADLY_PROGRAM="void device_address(", LIMITS_DEADLY_OPTIONS="")
    (marker,) = markers(cache)
    assert "the compilation of device/address.cl" in marker.read_text()
    found = start(cache, trying)
    for key in ("candidates", "claimed", "reasons", "faults"):
        assert found[key] == usual[key]


def test_a_candidate_whose_compiler_ended_the_process_is_left_out(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    usual = start(tmp_path / "other.sqlite", layer)["candidates"][0]
    assert usual.startswith("quads")
    deadly = {"LIMITS_DEADLY_PROGRAM": "void conv2d_quads(", "LIMITS_DEADLY_OPTIONS": ""}
    die(cache, layer, **deadly)
    (marker,) = markers(cache)
    assert "the compilation of conv2d/quads.cl" in marker.read_text()

    # Another program of the same source is tried once more, and then none.
    die(cache, layer, **deadly)
    found = start(cache, layer, **deadly)
    assert found["claimed"] == [True, True]
    assert not found["candidates"][0].startswith("quads")
    assert (
        "an earlier process ended during the compilation of" in found["faults"][f"conv2d/{usual}"]
    )
    assert any(f"conv2d/{usual}" in note for note in found["notes"])
    assert markers(cache) == []
    # It is remembered, without a new death, and forgotten on demand.
    again = start(cache, layer, **deadly)
    assert again["candidates"] == found["candidates"]
    assert f"conv2d/{usual}" in again["faults"]
    assert again["log"].count("is left out from now on") == 0
    result = run_python(
        f"import clgpu_delegate; clgpu_delegate.cache.clear({str(cache)!r}, 'crash')"
    )
    assert_succeeds(result)
    assert start(cache, layer)["candidates"][0] == usual


def test_one_program_is_left_out_not_its_neighbours(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    usual = start(tmp_path / "other.sqlite", layer)["candidates"][0]
    die(cache, layer, LIMITS_DEADLY_PROGRAM="void cumsum", LIMITS_DEADLY_OPTIONS="SRC_T=float")
    found = start(cache, layer)
    assert found["candidates"][0] == usual
    assert found["claimed"][0]
    assert not found["claimed"][1]
    assert "an earlier process ended during the compilation of cumsum/" in found["reasons"][1]
    assert "is left out from now on" in found["log"]


def test_a_first_launch_that_ended_the_process_is_not_made_again(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    deadly = {"LIMITS_DEADLY_KERNEL": "conv2d_quads"}
    die(cache, layer, **deadly)
    (marker,) = markers(cache)
    assert "the first launch of conv2d/quads.cl:conv2d_quads" in marker.read_text()
    die(cache, layer, **deadly)  # the same kernel with other options
    found = start(cache, layer, **deadly)
    assert found["claimed"] == [True, True]
    assert not found["candidates"][0].startswith("quads")
    assert any("the first launch of" in why for why in found["faults"].values())


def test_a_kernel_that_the_cache_has_may_never_have_been_launched(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    deadly = {"LIMITS_DEADLY_KERNEL": "conv2d_quads"}
    die(cache, layer, **deadly, WITHOUT_WARM_UP="1")  # at the first inference, which has no marker
    assert markers(cache) == []
    for _ in range(2):  # the kernel with two kinds of options
        die(cache, layer, **deadly)
    found = start(cache, layer, **deadly)
    assert not found["candidates"][0].startswith("quads")
    assert any("the first launch of" in why for why in found["faults"].values())


def test_crashes_are_forgotten_where_the_cache_is_a_folder(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    without = {**layer, "CLGPU_SQLITE_LIBRARY": "/nowhere"}
    usual = start(tmp_path / "other.sqlite", layer)["candidates"][0]
    die(cache, without, LIMITS_DEADLY_PROGRAM="void cumsum", LIMITS_DEADLY_OPTIONS="SRC_T=float")
    assert len(list(tmp_path.rglob("*-attempts/*"))) == 1
    clgpu_delegate.cache.clear(cache, "crash")
    assert list(tmp_path.rglob("*-attempts/*")) == []
    for _ in range(2):
        die(cache, without, LIMITS_DEADLY_KERNEL="conv2d_quads")
    assert not start(cache, without)["candidates"][0].startswith("quads")
    assert clgpu_delegate.cache.clear(cache, "crash") > 0
    found = start(cache, without)
    assert found["candidates"][0] == usual
    assert found["claimed"] == [True, True]
    assert found["faults"] == {}


@pytest.mark.parametrize("same", [True, False])
def test_ends_of_two_calls_of_one_process_are_one(tmp_path, layer, same):
    """All programs of a source are left out after the ends of two processes."""
    cache = tmp_path / "cache.sqlite"
    deadly = {"LIMITS_DEADLY_KERNEL": "conv2d_quads"}
    die(cache, layer, **deadly)
    (marker,) = markers(cache)
    owner = marker.read_text().partition("\n")[0]
    die(cache, layer, **deadly)  # the same kernel with other options
    (marker,) = markers(cache)
    other, _, what = marker.read_text().partition("\n")
    if same:
        marker.write_text(f"{owner}\n{what}")
    start(cache, layer)  # the marker becomes a row
    assert _rows(cache) == ({owner} if same else {owner, other, "again"})


def _rows(cache: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(cache)) as database:
        found = database.execute("SELECT value FROM rows WHERE kind = 'crash'").fetchall()
    return {value.decode() for (value,) in found}


def test_without_a_cache_there_are_no_markers(tmp_path, layer):
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    deadly = {"LIMITS_DEADLY_KERNEL": "conv2d_quads"}
    die("off", layer, **deadly, **home)
    die("off", layer, **deadly, **home)
    assert list(tmp_path.rglob("*-attempts")) == []


HOLDER = """
import fcntl, os, sys, time
descriptor = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(300)
"""


def test_what_a_living_process_tries_is_no_crash(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    deadly = {"LIMITS_DEADLY_KERNEL": "conv2d_quads"}
    usual = start(tmp_path / "other.sqlite", layer)["candidates"][0]
    die(cache, layer, **deadly)
    (marker,) = markers(cache)
    # As while its owner lives and has not come back yet.
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(marker)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            assert start(cache, layer)["candidates"][0] == usual
            assert markers(cache) == [marker]
        finally:
            holder.kill()


def test_processes_that_start_at_once_take_nothing_for_a_crash(tmp_path, layer):
    cache = tmp_path / "cache.sqlite"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: start(cache, layer), range(4)))
    assert [one["faults"] for one in found] == [{}] * 4
    assert len({tuple(one["candidates"]) for one in found}) == 1
    assert markers(cache) == []
    assert "crash" not in {entry.kind for entry in clgpu_delegate.cache.entries(cache)}
