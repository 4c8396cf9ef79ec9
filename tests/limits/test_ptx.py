"""Addresses of buffers as on NVIDIA's devices: of programs that are made of changed PTX.

The layer writes such texts for a CPU, whose programs have no instructions of NVIDIA's.
"""

from __future__ import annotations

import json

import pytest

from tests.limits.test_crashes import die, layer, markers, start
from tests.limits.test_quirks import MODEL_OF_BRANCHES
from tests.python.subprocesses import assert_succeeds, run_python

__all__ = ["layer"]  # the fixture

KERNEL = "cumsum_serial"
TRIAL = 1  # of the addresses that are set

# With a budget that leaves no room for whole objects, the second time.
BRANCHES = (
    MODEL_OF_BRANCHES
    + """
# With a budget, what chains run side by side shares memory.
budget, found = 1 << 30, []
for _ in range(2):
    delegate = clgpu_delegate.load(cache="off", memory_budget=budget, engines="conv2d=naive")
    before = clgpu_delegate._core.addresses_set()
    interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
    for got in run_interpreter(interpreter, [np.full((1, 16, 16, 8), 3, np.float32)]):
        np.testing.assert_allclose(got, 3, rtol=1e-5)
    explanation = delegate.explain()
    (partition,) = explanation.partitions
    budget = explanation.peak_bytes - 1
    found.append([partition.layout, clgpu_delegate._core.addresses_set() - before])
print(json.dumps(found))
"""
)


@pytest.fixture
def nvidia(layer: dict[str, str]) -> dict[str, str]:
    return {
        **layer,
        "LIMITS_NAME": "NVIDIA emulated",
        "LIMITS_VENDOR": "NVIDIA Corporation",
        "LIMITS_PLATFORM": "NVIDIA CUDA",
        "LIMITS_UNIFIED_MEMORY": "0",
        "LIMITS_KERNEL_WORK_GROUPS": "1024",
        "LIMITS_WORK_GROUP": "1024",
        "LIMITS_WORK_ITEMS": "1024",
        "LIMITS_PTX": "1",
    }


def test_programs_with_addresses_are_made_of_ptx_and_stored(tmp_path, nvidia):
    cache = tmp_path / "cache.sqlite"
    first = start(cache, nvidia)
    assert first["addresses"] > TRIAL
    second = start(cache, nvidia)
    assert second["addresses"] == first["addresses"]
    assert second["candidates"] == first["candidates"]
    assert second["built"] == 0


def test_kernel_whose_ptx_the_driver_refuses_gets_buffers(tmp_path, nvidia):
    usual = start(tmp_path / "other.sqlite", nvidia)
    found = start(tmp_path / "cache.sqlite", nvidia, LIMITS_REFUSED_PTX=KERNEL)
    assert TRIAL < found["addresses"] < usual["addresses"]
    for key in ("candidates", "claimed", "faults", "notes"):
        assert found[key] == usual[key]
    none = start(tmp_path / "none.sqlite", nvidia, LIMITS_REFUSED_PTX="device_address_read")
    assert none["addresses"] == 0
    assert none["candidates"] == usual["candidates"]


def test_kernel_whose_ptx_ended_the_process_gets_buffers(tmp_path, nvidia):
    cache = tmp_path / "cache.sqlite"
    usual = start(tmp_path / "other.sqlite", nvidia)
    die(cache, nvidia, LIMITS_DEADLY_PTX=KERNEL)
    (marker,) = markers(cache)
    assert "the compilation of cumsum/" in marker.read_text()
    found = start(cache, nvidia, LIMITS_DEADLY_PTX=KERNEL)
    assert TRIAL < found["addresses"] < usual["addresses"]
    for key in ("candidates", "claimed", "faults"):
        assert found[key] == usual[key]
    (note,) = [note for note in found["notes"] if note not in usual["notes"]]
    assert "with addresses of buffers on NVIDIA emulated; it is left out from now on" in note


def test_sub_buffers_have_no_addresses(nvidia):
    """The driver keeps them in memory of their own, which agrees only when a kernel gets them."""
    result = run_python(BRANCHES, **nvidia)
    assert_succeeds(result)
    (whole, with_all), (divided, with_some) = json.loads(result.stdout)
    assert whole.startswith("whole objects")
    assert divided.startswith("offsets")
    assert TRIAL < with_some < with_all
