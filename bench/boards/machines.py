"""Boards as the doctor sees them: a folder tree, an environment, and answers of OpenCL."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clgpu_delegate.doctor import devices, loader, nodes, nvidia, variables, vendors
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Check, Survey
from tests.doctor.machine import Machine, device

# Those of the doctor's checks that tell whether a GPU can be used.
_CHECKS: tuple[Check, ...] = (
    nodes.check, vendors.check, loader.check, nvidia.check, nodes.drivers, variables.check,
    nodes.rusticl, devices.check,
)  # fmt: skip
_ELF = b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\0" + bytes(40)  # a library for ARM64
_RUSTICL = "/etc/OpenCL/vendors/rusticl.icd"


@dataclasses.dataclass(frozen=True)
class Stage:
    """A state of a board.

    Attributes
    ----------
    board
        Its name.
    state
        What is installed or set.
    make
        Brings a machine into the state.
    """

    board: str
    state: str
    make: Callable[[Machine], None]


def _gpu(driver: str, *files: tuple[str, str], **environ: str) -> Callable[[Machine], None]:
    """A GPU with a driver of Linux, vendor files with the libraries they name, and variables."""

    def make(machine: Machine) -> None:
        machine.gpu(driver)
        for file, library in files:
            machine.write(file, f"{library}\n")
        machine.set(**environ)

    return make


def _offered(
    make: Callable[[Machine], None], name: str, vendor: str, version: str, **facts: Any
) -> Callable[[Machine], None]:
    """The same, with an OpenCL device."""

    def both(machine: Machine) -> None:
        make(machine)
        machine.platform = version
        machine.devices = [{**device(name, "gpu", vendor), **facts}]

    return both


def _mali(machine: Machine) -> None:
    machine.write("/dev/mali0")
    machine.write("/usr/lib/aarch64-linux-gnu/libmali.so.1").write_bytes(_ELF)


def _mali_named(machine: Machine) -> None:
    _mali(machine)
    machine.set(CLGPU_OPENCL_LIBRARY="/usr/lib/aarch64-linux-gnu/libmali.so.1")


def _nothing(machine: Machine) -> None:
    del machine


_POCL = ("/etc/OpenCL/vendors/pocl.icd", "libpocl.so.2")
_MESA = (_RUSTICL, "libRusticlOpenCL.so.1")
_V3D, _PANTHOR = _gpu("v3d", _MESA), _gpu("panthor", _MESA)
_GIB = 2**30

STAGES = (
    Stage("Raspberry Pi 5", "a new system", _gpu("v3d")),
    Stage("Raspberry Pi 5", "`mesa-opencl-icd`", _V3D),
    Stage(
        "Raspberry Pi 5", "... and `RUSTICL_ENABLE=v3d`",
        _offered(_gpu("v3d", _MESA, RUSTICL_ENABLE="v3d"), "V3D 7.1.7.0", "Broadcom",
                 "rusticl", units=1, bytes=4 * _GIB, half=False, driver_version="25.2.4"),
    ),
    Stage(
        "Raspberry Pi 5", "clvk, with a vendor file",
        _offered(_gpu("v3d", ("/etc/OpenCL/vendors/clvk.icd", "/opt/clvk/libOpenCL.so")),
                 "V3D 7.1.7.0", "Broadcom", "clvk", units=1, bytes=4 * _GIB, half=False,
                 driver_version="CLVK on Vulkan v1.3"),
    ),
    Stage("RK3588, vendor's kernel", "`libmali`, which no vendor file names", _mali),
    Stage(
        "RK3588, vendor's kernel", "... and `CLGPU_OPENCL_LIBRARY`",
        _offered(_mali_named, "Mali-G610 r0p0", "ARM", "ARM Platform", units=4, bytes=8 * _GIB,
                 driver_version="3.0"),
    ),
    Stage("RK3588, Linux 6.10 or newer", "`mesa-opencl-icd`", _PANTHOR),
    Stage(
        "RK3588, Linux 6.10 or newer", "... and `RUSTICL_ENABLE=panfrost`",
        _offered(_gpu("panthor", _MESA, RUSTICL_ENABLE="panfrost"), "Mali-G610 (Panfrost)", "Arm",
                 "rusticl", units=4, bytes=8 * _GIB, driver_version="25.2.4"),
    ),
    Stage("Jetson Orin", "JetPack", _nothing),
    Stage(
        "Jetson Orin", "PoCL, built with CUDA",
        _offered(lambda machine: machine.write(_POCL[0], f"{_POCL[1]}\n") and None, "Orin",
                 "NVIDIA Corporation", "Portable Computing Language", units=8, bytes=8 * _GIB,
                 driver_version="6.0"),
    ),
    Stage("Intel GPU", "a new system", _gpu("i915")),
    Stage(
        "Intel GPU", "`intel-opencl-icd`",
        _offered(_gpu("i915", ("/etc/OpenCL/vendors/intel.icd", "libigdrcl.so")),
                 "Intel(R) Iris(R) Xe Graphics", "Intel(R) Corporation",
                 "Intel(R) OpenCL Graphics", units=96, bytes=12 * _GIB,
                 driver_version="24.35.30872"),
    ),
    Stage("Intel GPU", "`mesa-opencl-icd` instead", _gpu("xe", _MESA)),
    Stage("AMD GPU", "`mesa-opencl-icd`", _gpu("amdgpu", _MESA)),
    Stage(
        "AMD GPU", "... and `RUSTICL_ENABLE=radeonsi`",
        _offered(_gpu("amdgpu", _MESA, RUSTICL_ENABLE="radeonsi"),
                 "AMD Radeon 780M (radeonsi, gfx1103_r1)", "AMD", "rusticl", units=12,
                 bytes=8 * _GIB, driver_version="25.2.4"),
    ),
)  # fmt: skip


def findings(stage: Stage) -> list[Finding]:
    """What the doctor finds on a board in a state."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), machine="aarch64")
        if "Intel" in stage.board or "AMD" in stage.board:
            machine.env = dataclasses.replace(machine.env, machine="x86_64")
        stage.make(machine)
        survey = Survey(machine.env)
        found: list[Finding] = []
        for check in _CHECKS:
            new = list(check(survey))
            survey.problems += [finding for finding in new if finding.status == "problem"]
            found += new
    return found


def table() -> str:
    """Problems, warnings and devices of each board in each state, as Markdown."""
    lines = [
        "| board | state | `clgpu doctor` says | fix |",
        "| --- | --- | --- | --- |",
    ]
    for stage in STAGES:
        told = [
            finding for finding in findings(stage)
            if finding.status in ("problem", "warning")
            or (finding.check == "devices" and finding.status == "ok")
        ]  # fmt: skip
        for finding in told:
            mark = "PROBLEM" if finding.status == "problem" else finding.status
            fix = f"`{finding.fix}`" if finding.fix else ""
            says = f"{mark} {finding.check}: {finding.what}"
            lines.append(f"| {stage.board} | {stage.state} | {says} | {fix} |")
    return "\n".join(lines) + "\n"
