"""The OpenCL devices of this machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from clgpu_delegate import _core
from clgpu_delegate.base import embedded


@dataclasses.dataclass(frozen=True)
class Abilities:
    """What a device can do that its driver does not tell: found by running small kernels.

    Examples
    --------
    >>> abilities = clgpu_delegate.devices()[0].abilities()
    >>> abilities.dot8 in ("khronos", "arm", "nvidia", "none")
    True
    """

    half_arithmetic: bool
    """Kernels compute in half."""

    mma_f16: bool
    """Tensor cores multiply halves."""

    mma_tf32: bool
    """Tensor cores multiply TF32 numbers."""

    mma_s8: bool
    """Tensor cores multiply int8."""

    wgmma: bool
    """Four warps together multiply halves and int8 on tensor cores (NVIDIA Hopper)."""

    dot8: str
    """The instruction for a sum of four products of int8: ``"khronos"``, ``"arm"`` (extensions of
    OpenCL C), ``"nvidia"`` (dp4a) or ``"none"``."""

    notes: list[str]
    """Abilities that gave wrong numbers or failed, and are not used."""


@dataclasses.dataclass(frozen=True)
class Device:
    """An OpenCL device, as its driver describes it.

    Examples
    --------
    >>> device = clgpu_delegate.devices()[0]
    >>> device.index
    0
    >>> device.type in ("gpu", "accelerator", "cpu", "other")
    True
    """

    index: int
    """Its number, as the option ``device`` takes it."""

    name: str
    vendor: str
    platform: str
    type: str
    """``"gpu"``, ``"accelerator"``, ``"cpu"`` or ``"other"``."""

    driver_version: str
    opencl_version: str
    gpu: str
    """The family of GPUs, which defaults depend on: ``"nvidia"``, ``"amd"``, ``"intel"``,
    ``"adreno"``, ``"mali"``, ``"powervr"``, ``"videocore"`` or ``"other"``."""

    gpu_generation: int
    """6 of an Adreno 660; Mali: 1 Midgard, 2 Bifrost, 3 Valhall, 4 the fifth; else 0."""

    compute_units: int
    lanes: int
    """Work-items that run in lockstep (a warp, a wavefront), or the multiple that the driver
    prefers for work-groups; 1 if both are unknown."""

    vector_width: int
    """Floats of the vectors it computes with; 1 where each work-item is scalar."""

    global_bytes: int
    max_object_bytes: int
    """Size of the largest single buffer."""

    local_bytes: int
    """Size of the memory that one work-group shares."""

    image_buffer_texels: int
    """Size of the largest image over a buffer, in texels of four elements; 0 without images."""

    has_half: bool
    """Whether it computes in half (the extension cl_khr_fp16); fp16 works without, too."""

    unified_memory: bool
    """Whether it shares the host's memory."""

    library: str
    """File of the OpenCL library that offers it."""

    quirks: tuple[str, ...]
    """What the delegate does differently because of its driver: names from the table of the page on
    devices."""

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {**dataclasses.asdict(self), "quirks": list(self.quirks)}

    def abilities(self) -> Abilities:
        """Probe the device: small kernels are compiled and run on it.

        Raises
        ------
        OpenCLError
            If the device cannot be used at all.
        """
        return Abilities(**_core.probe_device(str(self.index)))


def devices() -> list[Device]:
    """List the OpenCL devices: GPUs first, then accelerators, then CPUs.

    The system's OpenCL loader is asked, then the runtimes that pip installed
    (``pip install 'clgpu_delegate[cpu]'``). The environment variable ``CLGPU_OPENCL_LIBRARY`` names
    the only library to ask instead.

    Raises
    ------
    DeviceError
        If there is none; the message says what was looked for and what to install. Also in a
        process that was forked after OpenCL was used.

    Examples
    --------
    >>> gpus = [device for device in clgpu_delegate.devices() if device.type == "gpu"]
    """
    with embedded.registered():
        found = _core.devices()
    names = [field.name for field in dataclasses.fields(Device)]
    return [Device(**{name: entry[name] for name in names}) for entry in found]
