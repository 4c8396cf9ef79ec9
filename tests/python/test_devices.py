"""Devices are listed best first and chosen by index, by name or by the environment."""

from __future__ import annotations

import json

import pytest

import clgpu_delegate
from clgpu_delegate import _core
from clgpu_delegate.base import embedded
from tests.python.subprocesses import assert_succeeds, run_python

RANK = ["gpu", "accelerator", "cpu", "other"]


@pytest.fixture(scope="module")
def devices():
    return clgpu_delegate.devices()


def test_gpus_come_before_accelerators_before_cpus(devices):
    ranks = [RANK.index(device.type) for device in devices]
    assert ranks == sorted(ranks)
    assert [device.index for device in devices] == list(range(len(devices)))


def test_description_is_complete(devices):
    for device in devices:
        assert device.name
        assert device.platform
        assert device.opencl_version.startswith("OpenCL ")
        assert device.compute_units > 0
        assert 0 < device.max_object_bytes <= device.global_bytes or device.type == "other"
        assert device.local_bytes > 0


def test_no_device_is_listed_twice(devices):
    assert len({(d.platform, d.name, d.driver_version, d.index) for d in devices}) == len(devices)
    platforms = {}
    for device in devices:
        platforms.setdefault((device.platform, device.opencl_version), set()).add(device.library)
    assert all(len(libraries) == 1 for libraries in platforms.values())


def test_device_is_chosen_by_index(devices):
    for device in devices:
        assert clgpu_delegate.load(device=device.index).device == device


def test_device_is_chosen_by_part_of_its_platform_or_name_in_any_case(devices):
    for device in devices:
        chosen = clgpu_delegate.load(device=device.platform.upper()).device
        assert chosen.platform == device.platform
        assert device.name.lower() in clgpu_delegate.load(device=device.name).device.name.lower()


def test_environment_chooses_when_the_options_do_not(devices, monkeypatch):
    last = devices[-1]
    monkeypatch.setenv("CLGPU_DEVICE", str(last.index))
    assert clgpu_delegate.load().explain().to_dict()["platform"] == last.platform
    assert clgpu_delegate.load(device=0).device == devices[0]


@pytest.mark.parametrize("selector", ["99", "no such device"])
def test_absent_device_is_answered_with_those_there_are(devices, selector):
    with pytest.raises(clgpu_delegate.DeviceError, match=r"no OpenCL device.*found: 0 = ") as info:
        clgpu_delegate.load(device=selector)
    assert selector in str(info.value)
    assert devices[0].name in str(info.value)


@pytest.mark.skipif(not embedded.libraries(), reason="no OpenCL runtime was installed by pip")
def test_runtime_installed_by_pip_needs_no_loader_and_no_icd_file(tmp_path):
    # A folder without .icd files leaves the system's loader, if any, without platforms.
    script = """
import json, clgpu_delegate
print(json.dumps([d.to_dict() for d in clgpu_delegate.devices()]))
"""
    environment = {
        "OCL_ICD_VENDORS": str(tmp_path),
        "LD_LIBRARY_PATH": "",
        "CLGPU_OPENCL_LIBRARY": "",  # that of emulated limits
    }
    result = run_python(script, **environment)
    assert_succeeds(result)
    found = json.loads(result.stdout)
    assert {device["library"] for device in found} == set(map(str, embedded.libraries()))


@pytest.mark.parametrize(
    ("vendor", "name", "version", "family", "generation"),
    [
        ("QUALCOMM", "QUALCOMM Adreno(TM)", "OpenCL 2.0 Adreno(TM) 660", "adreno", 6),
        ("QUALCOMM", "QUALCOMM Adreno(TM) 740", "OpenCL 3.0 QUALCOMM build", "adreno", 7),
        ("QUALCOMM", "QUALCOMM Adreno(TM)", "OpenCL 2.0", "adreno", 0),
        ("ARM", "Mali-T880", "OpenCL 1.2 v1.r12p0", "mali", 1),
        ("ARM", "Mali-G52 r1p0", "OpenCL 2.1", "mali", 2),
        ("ARM", "Mali-G78 r0p1", "OpenCL 2.1", "mali", 3),
        ("ARM", "Mali-G610 r0p0", "OpenCL 3.0", "mali", 3),
        ("ARM", "Immortalis-G720", "OpenCL 3.0", "mali", 4),
        ("ARM", "Mali-LODX r0p0", "OpenCL 3.0", "mali", 0),
        ("Collabora", "Mali-G610 (Panfrost)", "OpenCL 3.0", "mali", 3),
        ("Imagination Technologies", "PowerVR Rogue GE8320", "OpenCL 1.2", "powervr", 0),
        ("Broadcom", "VideoCore IV GPU", "OpenCL 1.2 VC4CL", "videocore", 0),
        ("NVIDIA Corporation", "NVIDIA H200", "OpenCL 3.0 CUDA", "nvidia", 0),
        ("Advanced Micro Devices, Inc.", "gfx1030", "OpenCL 2.0", "amd", 0),
        ("Samsung Electronics", "Samsung Xclipse 920", "OpenCL 2.0", "amd", 0),
        ("Intel(R) Corporation", "Intel(R) UHD Graphics", "OpenCL 3.0", "intel", 0),
        ("Mesa/X.org", "llvmpipe", "OpenCL 3.0", "other", 0),
    ],
)
def test_family_of_gpus_is_told_by_their_drivers_words(vendor, name, version, family, generation):
    assert _core.classify_gpu(vendor, name, version) == (family, generation)
