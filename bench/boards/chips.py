"""GPUs of boards and phones: public facts, and the profiles that plans are made with."""

from __future__ import annotations

import dataclasses

from bench.plans import emulated
from bench.plans.profile import Profile
from tests.limits.profiles import GIB, KIB, PROFILES

# Nobody has measured these with this project; the cost model adds its own part of a launch.
LAUNCH_SECONDS = 10e-6
ROUND_TRIP_SECONDS = 200e-6


@dataclasses.dataclass(frozen=True)
class Chip:
    """A GPU.

    Attributes
    ----------
    name
        Of GPU and system.
    ghz
        Clock rate.
    per_clock
        Multiply-adds of floats in one cycle, of all units.
    gigabytes
        Peak rate of the memory, per second.
    like
        The emulated device (`tests.limits.profiles`) whose limits its plans have.
    facts
        Fields in which it differs from that one.
    published
        Milliseconds of ncnn (Vulkan, fp16) by network, from its table.
    """

    name: str
    ghz: float
    per_clock: int
    gigabytes: float
    like: str
    facts: dict[str, object]
    published: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def flops(self) -> float:
        """Float operations per second; a multiply-add has two."""
        return 2e9 * self.ghz * self.per_clock

    def profile(self) -> Profile:
        """The device as plans see it."""
        return emulated.profile_of(
            self.name, dataclasses.replace(PROFILES[self.like], **self.facts)
        )


CHIPS = (
    Chip(
        "Mali-G610 MP4, RK3588", 1.0, 4 * 64, 34.1, "mali_g78",
        {"name": "Mali-G610 r0p0", "compute_units": 4},
        {"mobilenet_v1": 9.2, "resnet50": 38},
    ),
    Chip(
        "Adreno 740, Snapdragon 8 Gen 2", 0.68, 1536, 67.2, "adreno_660",
        {"name": "QUALCOMM Adreno(TM) 740", "version": "OpenCL 3.0 Adreno(TM) 740",
         "compute_units": 6},
        {"mobilenet_v1": 12.0, "resnet50": 44},
    ),
    Chip(
        "Adreno 640, Snapdragon 855", 0.585, 768, 34.1, "adreno_660",
        {"name": "QUALCOMM Adreno(TM) 640", "version": "OpenCL 2.0 Adreno(TM) 640",
         "compute_units": 2},
        {"mobilenet_v1": 13.2, "resnet50": 56},
    ),
    Chip(
        "VideoCore VII, Raspberry Pi 5", 0.8, 48, 17.1, "videocore",
        {"name": "V3D 7.1.7.0", "vendor": "Broadcom", "platform": "rusticl", "lanes": 16,
         "work_group": 256, "work_items": 256, "kernel_work_groups": "256", "object": GIB,
         "global_": 4 * GIB},
    ),
    Chip(
        "Jetson Orin Nano 8 GB", 0.625, 1024, 68.3, "adreno_660",
        {"name": "Orin", "vendor": "NVIDIA Corporation", "platform": "Portable Computing Language",
         "version": "OpenCL 3.0 PoCL", "compute_units": 8, "lanes": 32, "local": 48 * KIB,
         "kernel_work_groups": "1024"},
    ),
    Chip(
        "Intel Iris Xe, 96 units", 1.4, 96 * 8, 51.2, "adreno_660",
        {"name": "Intel(R) Iris(R) Xe Graphics", "vendor": "Intel(R) Corporation",
         "platform": "Intel(R) OpenCL Graphics", "version": "OpenCL 3.0 NEO", "compute_units": 96,
         "work_group": 512, "work_items": 512, "lanes": 16, "local": 64 * KIB,
         "kernel_work_groups": "512"},
    ),
    Chip(
        "AMD Radeon 780M", 2.7, 12 * 64, 89.6, "adreno_660",
        {"name": "AMD Radeon 780M (radeonsi, gfx1103_r1)", "vendor": "AMD", "platform": "rusticl",
         "version": "OpenCL 3.0", "compute_units": 12, "lanes": 32, "local": 64 * KIB,
         "kernel_work_groups": "1024"},
    ),
)  # fmt: skip
