"""Addresses of buffers as on NVIDIA's devices: of programs that are made of changed PTX.

The layer writes such texts for a CPU, whose programs have no instructions of NVIDIA's.
"""

from __future__ import annotations

import pytest

from tests.limits.test_crashes import die, layer, markers, start

__all__ = ["layer"]  # the fixture

KERNEL = "cumsum_serial"
TRIAL = 1  # of the addresses that are set


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
    (note,) = found["notes"]
    assert "with addresses of buffers on NVIDIA emulated; it is left out from now on" in note
