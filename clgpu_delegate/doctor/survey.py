"""Facts that several checks need; each is determined once."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from clgpu_delegate.doctor import icd
from clgpu_delegate.doctor.child import Outcome
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding

_ORDER = ("gpu", "accelerator", "cpu", "other")

# Linux driver -> (whose GPU it drives, pattern of an OpenCL device of it, what offers OpenCL for
# it, its name for Rusticl).
GPU_DRIVERS: Mapping[str, tuple[str, str, str, str]] = {
    "i915": ("Intel", r"intel", "intel", "iris"),
    "xe": ("Intel", r"intel", "intel", "iris"),
    "amdgpu": ("AMD", r"amd|advanced micro|radeon|gfx\d", "mesa", "radeonsi"),
    "radeon": ("AMD", r"amd|advanced micro|radeon", "mesa", "r600"),
    "nouveau": ("NVIDIA", r"nvidia|nouveau|\bnv", "mesa", "nouveau"),
    "panfrost": ("Arm Mali", r"mali|panfrost|\barm\b", "mesa", "panfrost"),
    "panthor": ("Arm Mali", r"mali|panfrost|panthor|\barm\b", "mesa", "panfrost"),
    "v3d": ("VideoCore", r"v3d|videocore|broadcom", "mesa", "v3d"),
    "msm": ("Qualcomm Adreno", r"adreno|qualcomm|freedreno|\bfd\d", "mesa", "freedreno"),
    "asahi": ("Apple", r"apple|asahi", "mesa", "asahi"),
}


@dataclasses.dataclass(frozen=True, eq=False)  # hashed by identity
class FoundDevice:
    """A device, with the indices by which a probe finds it."""

    index: int
    """The value for the option ``device``."""

    library: str
    platform: int
    device: int
    platform_name: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.index} = {self.facts['name']} ({self.platform_name})"


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU that the kernel knows."""

    node: str
    """Its file, as ``/dev/dri/renderD128``."""

    driver: str

    @property
    def label(self) -> str:
        """Name of the vendor, for people."""
        return GPU_DRIVERS[self.driver][0] if self.driver in GPU_DRIVERS else self.driver


class Survey:
    """Facts of an environment."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self._working: dict[str, bool] = {}
        self.problems: list[Finding] = []
        """What the earlier checks have found."""

    @functools.cached_property
    def extension(self) -> Outcome:
        """Import the compiled extension (`runtime_probe.import_extension`)."""
        return self.env.call("runtime_probe.py", "import_extension")

    @functools.cached_property
    def libraries(self) -> list[str]:
        """The OpenCL libraries to ask for platforms, as the delegate would."""
        only = self.env.environ.get("CLGPU_OPENCL_LIBRARY")
        if only:
            return [only]
        return [*self.env.loader_names[:1], *map(str, self.env.pip_libraries())]

    @functools.cache  # noqa: B019  # lives as long as the doctor runs
    def vendor(self, library: str) -> Outcome:
        """Open a driver's library as the loader does (`opencl_probe.load_vendor`)."""
        return self.env.call("opencl_probe.py", "load_vendor", library)

    @functools.cached_property
    def fatal_vendors(self) -> list[str]:
        """Drivers that end every process that asks the loader for its platforms."""
        if self.env.environ.get("CLGPU_OPENCL_LIBRARY"):
            return []
        names = [vendor.library for vendor in icd.listed(self.env) if vendor.library]
        return [name for name in names if self.vendor(name).died]

    @functools.cache  # noqa: B019
    def listing(self, library: str) -> Outcome:
        """Platforms of a library (`opencl_probe.list_platforms`)."""
        if library in self.env.loader_names and self.fatal_vendors:
            return Outcome(
                None, f"was not asked: {self.fatal_vendors[0]} crashes every process that asks"
            )
        outcome = self.env.call("opencl_probe.py", "list_platforms", library)
        if outcome.ok and outcome.answer["error"] and library in self.env.loader_names[:1]:
            for other in self.env.loader_names[1:]:
                second = self.env.call("opencl_probe.py", "list_platforms", other)
                if second.ok and not second.answer["error"]:
                    return second
        return outcome

    @functools.cached_property
    def devices(self) -> list[FoundDevice]:
        """All usable devices, numbered as the delegate numbers them."""
        found: list[FoundDevice] = []
        seen: set[tuple[str, str]] = set()
        for library in self.libraries:
            outcome = self.listing(library)
            platforms = outcome.answer["platforms"] if outcome.ok else []
            earlier = set(seen)
            for number, platform in enumerate(platforms):
                identity = (platform["name"], platform["version"])
                seen.add(identity)
                if identity in earlier:
                    continue
                found += [
                    FoundDevice(0, library, number, position, platform["name"], facts)
                    for position, facts in enumerate(platform["devices"])
                    if facts["usable"]
                ]
        found.sort(key=lambda device: _ORDER.index(device.facts["type"]))
        return [dataclasses.replace(device, index=i) for i, device in enumerate(found)]

    def chosen(self, selector: str) -> FoundDevice | None:
        """The device that an index or a part of a name stands for."""
        if selector.isdigit():
            return next((d for d in self.devices if d.index == int(selector)), None)
        word = selector.lower()
        names = ((d, f"{d.facts['name']}\n{d.platform_name}".lower()) for d in self.devices)
        return next((device for device, name in names if word in name), None)

    @functools.cached_property
    def has_gpu_device(self) -> bool:
        """Whether OpenCL offers any GPU."""
        return any(device.facts["type"] == "gpu" for device in self.devices)

    def offers(self, gpu: Gpu) -> bool:
        """Whether OpenCL offers a GPU that the kernel knows."""
        pattern = GPU_DRIVERS[gpu.driver][1]
        return any(
            device.facts["type"] == "gpu"
            and re.search(pattern, " ".join((device.facts["name"], device.facts["vendor"])), re.I)
            for device in self.devices
        )

    @functools.cached_property
    def gpus(self) -> list[Gpu]:
        """Render nodes of the kernel, whether /dev has their files or not."""
        env = self.env
        names = {*env.names("/sys/class/drm", "renderD*"), *env.names("/dev/dri", "renderD*")}
        found = []
        for name in sorted(names):
            event = env.read(f"/sys/class/drm/{name}/device/uevent")
            driver = re.search(r"^DRIVER=(\S+)", event, re.MULTILINE)
            found.append(Gpu(f"/dev/dri/{name}", driver[1] if driver else ""))
        return found

    @functools.cache  # noqa: B019
    def kernel(self, device: FoundDevice) -> Outcome:
        """Run the test kernel on a device (`opencl_probe.run_kernel`)."""
        where = (device.library, device.platform, device.device)
        return self.env.call("opencl_probe.py", "run_kernel", *where)

    @functools.cache  # noqa: B019
    def runtime(self, name: str, module: str) -> Outcome:
        """Import a TensorFlow Lite runtime (`runtime_probe.import_runtime`)."""
        outcome = self.env.call("runtime_probe.py", "import_runtime", module)
        self._working[name] = outcome.ok
        return outcome

    def works(self, name: str) -> bool:
        """Whether `runtime` has imported it."""
        return self._working.get(name, False)

    @property
    def severity(self) -> str:
        """Status of what hides a device: a problem if no other device works, else a warning."""
        return "warning" if self.devices else "problem"


Check = Callable[[Survey], Iterator[Finding]]
