"""The profiles of mobile devices, made from those that tests emulate (`tests.limits.profiles`)."""

from __future__ import annotations

import re

from bench.plans.profile import Answer, KernelFacts, Profile
from clgpu_delegate import _core
from tests.limits import profiles

NAMES = tuple(sorted(profiles.PROFILES))
GPU = 4  # CL_DEVICE_TYPEGPU
_NAME = re.compile(r"__kernel\b[^;{]*?\bvoid\s+(\w+)\s*\(")


def profile(name: str) -> Profile:
    """The profile of one of `NAMES`."""
    return profile_of(name, profiles.PROFILES[name])


def profile_of(name: str, limits: profiles.Profile) -> Profile:
    """A profile with the limits of a device. The local memory of kernels is given as 0: unknown."""
    device: dict[str, Answer] = {
        "CL_DEVICE_TYPE": GPU,
        "CL_DEVICE_MAX_COMPUTE_UNITS": limits.compute_units,
        "CL_DEVICE_MAX_WORK_GROUP_SIZE": limits.work_group,
        "CL_DEVICE_MAX_WORK_ITEM_SIZES": [limits.work_items] * 3,
        "CL_DEVICE_MAX_MEM_ALLOC_SIZE": limits.object,
        "CL_DEVICE_IMAGE_SUPPORT": limits.images,
        "CL_DEVICE_MEM_BASE_ADDR_ALIGN": limits.base_align_bits,
        "CL_DEVICE_GLOBAL_MEM_SIZE": limits.global_,
        "CL_DEVICE_LOCAL_MEM_SIZE": limits.local,
        "CL_DEVICE_AVAILABLE": 1,
        "CL_DEVICE_COMPILER_AVAILABLE": 1,
        "CL_DEVICE_NAME": limits.name,
        "CL_DEVICE_VENDOR": limits.vendor,
        "CL_DRIVER_VERSION": limits.driver,
        "CL_DEVICE_VERSION": limits.version,
        "CL_DEVICE_EXTENSIONS": limits.extensions,
        "CL_DEVICE_HOST_UNIFIED_MEMORY": limits.unified_memory,
        "CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT": limits.vector_float,
        "CL_DEVICE_IMAGE_MAX_BUFFER_SIZE": limits.image_texels,
        "CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE": limits.lanes,
    }
    # The results of a probe: they compute in half if they list the extension.
    probe = {
        "half_arithmetic": "cl_khr_fp16" in limits.extensions.split(),
        "mma_f16": False, "mma_tf32": False, "mma_s8": False, "wgmma": False,
        "dot8": "none",
    }  # fmt: skip
    kernels = {
        (kernel, "*"): KernelFacts(limits.work_group_of(kernel), 0) for kernel in _kernel_names()
    }
    platform: dict[str, Answer] = {
        "CL_PLATFORM_VERSION": limits.version, "CL_PLATFORM_NAME": limits.platform,
    }  # fmt: skip
    return Profile(name, platform, device, probe, kernels)


def _kernel_names() -> list[str]:
    """Of all kernels of the project."""
    texts = _core.kernel_sources().values()
    return sorted({name for text in texts for name in _NAME.findall(text)})
