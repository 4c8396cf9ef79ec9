"""The library that emulates limits answers and enforces each of them."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limits import raw
from tests.limits.build import LayerError, environment
from tests.limits.profiles import MIB, PROFILES
from tests.python.subprocesses import ROOT

OUT_OF_RESOURCES, ALLOCATION_FAILURE, BUILD_FAILURE, MISALIGNED = -5, -4, -11, -13
INVALID_IMAGE_SIZE, INVALID_OPERATION, INVALID_BUFFER_SIZE = -40, -59, -61
INVALID_MEM_OBJECT = -38
INVALID_WORK_GROUP_SIZE, INVALID_WORK_ITEM_SIZE = -54, -55

ITEMS = "kernel void {name}(global int* dst) {{ dst[0] = 1; }}"
LOCAL = """kernel void shared(global int* dst, local int* some) {
  local int own[64];
  own[get_local_id(0)] = some[get_local_id(0)] = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  dst[0] = own[0] + some[0];
}"""

Open = Callable[..., raw.Device]


@pytest.fixture
def device_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open a device with the limits of a profile, some of them changed.

    The library is a separate copy, because it sums the memory that a process uses.
    """

    def opened(name: str, **changes: object) -> raw.Device:
        try:
            variables = environment(name, ROOT / "build" / "limits")
        except LayerError as error:
            pytest.skip(str(error))
        path = Path(shutil.copy(variables.pop("CLGPU_OPENCL_LIBRARY"), tmp_path))
        variables.update(dataclasses.replace(PROFILES[name], **changes).environment())
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        try:
            return raw.Device(path)
        except raw.ClError:
            pytest.skip("no OpenCL device of type CPU")

    return opened


def fails(code: int, call: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(raw.ClError) as error:
        call(*arguments)
    assert error.value.args[0] == code


def test_layer_has_every_function_that_the_delegate_calls(device_with):
    table = (ROOT / "src_cpp" / "cl" / "api.hpp").read_text(encoding="utf-8")
    names = re.findall(r"X\([\w*]+, (cl\w+),", table)
    assert len(names) > 30
    device = device_with("adreno_660")
    by_address = {"clImportMemoryARM"}  # clGetExtensionFunctionAddressForPlatform finds it
    assert {name for name in names if not hasattr(device._cl, name)} == by_address


@pytest.mark.parametrize("name", PROFILES)
def test_device_answers_as_its_profile(device_with, name):
    profile = PROFILES[name]
    device = device_with(name)
    assert device.info(0x102B, bytes) == profile.name.encode()
    assert device.info(0x102C, bytes) == profile.vendor.encode()
    assert device.info(0x1000, ctypes.c_uint64) == 4  # a GPU
    assert device.info(0x1004, ctypes.c_size_t) == profile.work_group
    assert device.info(0x1005, ctypes.c_size_t * 3) == [profile.work_items] * 3
    assert device.info(0x1010, ctypes.c_uint64) == profile.object
    assert device.info(0x101F, ctypes.c_uint64) == profile.global_
    assert device.info(0x1023, ctypes.c_uint64) == profile.local
    assert device.info(0x1019) == profile.base_align_bits
    assert device.info(0x1016) == profile.images
    assert device.info(0x1040, ctypes.c_size_t) == profile.image_texels
    assert device.info(0x1035) == 1
    extensions = device.info(0x1030, bytes).decode().split()
    assert set(extensions) <= {*profile.extensions.split(), *profile.emulated.split()}
    assert set(profile.emulated.split()) <= set(extensions)
    assert "cl_khr_fp64" not in extensions


def test_buffers_are_limited_one_by_one_and_together(device_with):
    device = device_with("videocore")
    fails(INVALID_BUFFER_SIZE, device.buffer, 64 * MIB + 1)
    made = [device.buffer(64 * MIB) for _ in range(4)]
    fails(ALLOCATION_FAILURE, device.buffer, 1)
    host = ctypes.create_string_buffer(4096)
    device.buffer(4096, host)  # existing memory
    parts = [device.part(made[0], 0, MIB), device.part(made[0], MIB, MIB)]
    device.release(made[0])
    fails(ALLOCATION_FAILURE, device.buffer, 1)  # its parts keep it
    for part in parts:
        device.release(part)
    device.buffer(64 * MIB)
    fails(ALLOCATION_FAILURE, device.buffer, 1)


@pytest.mark.parametrize("name", PROFILES)
def test_parts_of_buffers_are_aligned(device_with, name):
    device = device_with(name)
    align = PROFILES[name].base_align_bits // 8
    whole = device.buffer(4 * align)
    device.part(whole, align, align)
    fails(MISALIGNED, device.part, whole, align // 2, align)


@pytest.mark.parametrize("name", PROFILES)
def test_work_groups_are_limited(device_with, name):
    profile = PROFILES[name]
    device = device_with(name, kernel_work_groups=str(profile.work_group))
    kernel = device.kernel(ITEMS.format(name="any"), "any")
    device.set(kernel, 0, 8, device.buffer(4))
    most = profile.work_group
    assert device.kernel_work_group(kernel) == most
    device.launch(kernel, [2 * most], [most])
    fails(INVALID_WORK_ITEM_SIZE, device.launch, kernel, [most + 1], [most + 1])
    fails(INVALID_WORK_GROUP_SIZE, device.launch, kernel, [most, 2], [most, 2])
    fails(INVALID_WORK_GROUP_SIZE, device.launch, kernel, [most + 1], [most])  # not whole groups


@pytest.mark.parametrize("name", PROFILES)
def test_some_kernels_have_smaller_limits_of_their_own(device_with, name):
    device = device_with(name)
    limits = set()
    for i in range(40):
        kernel = device.kernel(ITEMS.format(name=f"kernel_{i}"), f"kernel_{i}")
        device.set(kernel, 0, 8, device.buffer(4))
        most = device.kernel_work_group(kernel)
        limits.add(most)
        assert most == PROFILES[name].work_group_of(f"kernel_{i}")
        device.launch(kernel, [most], [most])
        if most < PROFILES[name].work_group:
            fails(INVALID_WORK_GROUP_SIZE, device.launch, kernel, [most + 1], [most + 1])
    assert limits == {int(size) for size in PROFILES[name].kernel_work_groups.split()}


@pytest.mark.parametrize("name", PROFILES)
def test_local_memory_is_limited(device_with, name):
    device = device_with(name)
    kernel = device.kernel(LOCAL, "shared")
    device.set(kernel, 0, 8, device.buffer(4))
    room = PROFILES[name].local - 64 * 4
    device.set(kernel, 1, room // 2, None)
    device.launch(kernel, [1], [1])
    device.set(kernel, 1, room + 4, None)
    fails(OUT_OF_RESOURCES, device.launch, kernel, [1], [1])


@pytest.mark.parametrize("name", PROFILES)
def test_there_is_no_double(device_with, name):
    device = device_with(name)
    guarded = """
#ifdef cl_khr_fp64
#error listed
#endif
"""
    device.kernel(guarded + ITEMS.format(name="guarded"), "guarded")
    for kind in ("double", "double4"):
        source = f"kernel void real(global {kind}* dst) {{ dst[0] = dst[1] * 2; }}"
        fails(BUILD_FAILURE, device.kernel, source, "real")


HALF = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void real(global half* dst) { half x = dst[1]; dst[0] = x * x; }"""


@pytest.mark.parametrize("name", PROFILES)
def test_half_arithmetic_is_there_where_it_is_listed(device_with, name):
    device = device_with(name)
    if b"cl_khr_fp16" in device.info(0x1030, bytes):
        device.kernel(HALF, "real")
    else:
        fails(BUILD_FAILURE, device.kernel, HALF, "real")
    # Storage needs no extension.
    stored = "kernel void real(global half* dst) { vstore_half(vload_half(1, dst), 0, dst); }"
    device.kernel(stored, "real")


READS = """kernel void reads(read_only image1d_buffer_t src, global float* dst) {
  dst[0] = read_imagef(src, 0).x;
}"""


def test_images_are_limited(device_with):
    device = device_with("adreno_660", object=MIB)
    device.image(raw.IMAGE_2D, 16384)
    fails(INVALID_IMAGE_SIZE, device.image, raw.IMAGE_2D, 16385)
    fails(INVALID_IMAGE_SIZE, device.image, raw.IMAGE_2D, 1, 16385)
    fails(INVALID_IMAGE_SIZE, device.image, raw.IMAGE_2D, 1024, 1024)  # of more bytes than objects


def test_images_over_buffers_are_limited(device_with):
    device = device_with("mali_g78")
    buffer = device.buffer(16 * 65537)
    image = device.image(raw.IMAGE_BUFFER, 65536, buffer=buffer)
    fails(INVALID_IMAGE_SIZE, lambda: device.image(raw.IMAGE_BUFFER, 65537, buffer=buffer))
    kernel = device.kernel(READS, "reads")
    device.set(kernel, 0, 8, image)
    device.set(kernel, 1, 8, device.buffer(4))
    device.launch(kernel, [1], [1])


@pytest.mark.parametrize("name", ["adreno_660", "powervr_bxm"])
def test_images_over_sub_buffers_are_refused_where_they_crash(device_with, name):
    device = device_with(name)
    buffer = device.buffer(4096)
    device.image(raw.IMAGE_BUFFER, 16, buffer=buffer)
    for origin in (0, 1024):
        part = device.part(buffer, origin, 1024)
        if PROFILES[name].sub_buffer_images:
            device.image(raw.IMAGE_BUFFER, 16, buffer=part)
        else:
            with pytest.raises(raw.ClError) as error:
                device.image(raw.IMAGE_BUFFER, 16, buffer=part)
            assert error.value.args == (INVALID_MEM_OBJECT,)


def test_device_without_images_has_no_word_for_them(device_with):
    device = device_with("videocore")
    fails(INVALID_OPERATION, device.image, raw.IMAGE_2D, 16)
    fails(BUILD_FAILURE, device.kernel, READS, "reads")


def test_queue_keeps_few_launches_without_a_flush(device_with):
    device = device_with("mali_g78", unflushed=3)
    kernel = device.kernel(ITEMS.format(name="some"), "some")
    device.set(kernel, 0, 8, device.buffer(4))
    for _ in range(2):
        for _ in range(3):
            device.enqueue(kernel, [1], [1])
        fails(OUT_OF_RESOURCES, device.enqueue, kernel, [1], [1])
        device.flush()
    device.launch(kernel, [1], [1])


def test_without_a_compiler_the_reason_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LayerError, match="there is no compiler"):
        environment("videocore", tmp_path / "empty")


def test_suite_runs_with_the_limits_it_is_asked_for(request):
    name = request.config.getoption("--limits")
    assert os.environ.get("CLGPU_LIMITS") == name
    if name is not None:
        import clgpu_delegate  # noqa: PLC0415

        assert [device.name for device in clgpu_delegate.devices()] == [PROFILES[name].name]
