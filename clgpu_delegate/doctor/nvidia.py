"""NVIDIA's driver, which is often installed without its OpenCL part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clgpu_delegate.doctor import advice, icd, libraries
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "NVIDIA"
_CAPABILITIES = "--gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def check(survey: Survey) -> Iterator[Finding]:
    """Check in this order: kernel module, device files, library, vendor file, versions."""
    env = survey.env
    version = advice.nvidia_version(env)
    cards = env.names("/dev", "nvidia[0-9]*")
    if env.at("/etc/nv_tegra_release").exists():
        yield Finding(
            _CHECK, survey.severity, "this is a Jetson", "NVIDIA offers no OpenCL for its GPU",
            advice.install(env, "pocl"),
        )  # fmt: skip
        return
    if env.is_wsl and env.at("/dev/dxg").exists():
        if libraries.find(env, "libcuda.so*") and not _is_offered(survey):
            yield Finding(
                _CHECK, survey.severity, "this is WSL", "NVIDIA offers no OpenCL in WSL",
                advice.cpu_runtime(env),
            )  # fmt: skip
        return
    if not version and not cards:
        if any(gpu.driver.startswith("nvidia") for gpu in survey.gpus):
            cards = ["?"]
        else:
            return
    if _is_offered(survey):
        yield from _versions(survey, version)
    else:
        yield _obstacle(survey, version, cards)


def _is_offered(survey: Survey) -> bool:
    return any("nvidia" in device.facts["vendor"].lower() for device in survey.devices)


def _obstacle(survey: Survey, version: str, cards: list[str]) -> Finding:
    """The first of these that is missing."""
    env, status = survey.env, survey.severity
    name = f"NVIDIA's driver {version}".rstrip()
    if not cards:
        return _no_card(survey, name)
    if not any(file.machine for file in libraries.find(env, "libnvidia-opencl.so*")):
        return _no_library(survey, name)
    if not any("nvidia" in vendor.library for vendor in icd.listed(env)):
        folder = env.shown(icd.folder(env) or env.at(icd.FOLDER))
        sudo = advice.sudo(env)
        return Finding(
            _CHECK, status, f"{name} has its OpenCL part, but no vendor file names it",
            "containers often lack nvidia.icd",
            f"{sudo}mkdir -p {folder} && echo libnvidia-opencl.so.1 | "
            f"{sudo}tee {folder}/nvidia.icd",
        )  # fmt: skip
    (found,) = _versions(survey, version)
    if found.status != "ok":
        return found
    # A variable may hide it, too: `variables` checks that.
    return Finding(
        _CHECK, status, f"{name} is complete, but offers no OpenCL device",
        "nvidia-smi shows whether the GPU itself works", "nvidia-smi",
    )  # fmt: skip


def _no_card(survey: Survey, name: str) -> Finding:
    env, status = survey.env, survey.severity
    if env.container:
        return Finding(
            _CHECK, status, f"the host has {name}, but this container has none of its GPUs",
            "the container was started without them",
            advice.container_flags(env, _CAPABILITIES, nvidia=True),
        )  # fmt: skip
    return Finding(
        _CHECK, status, f"{name} is loaded, but there is no /dev/nvidia0", "",
        f"{advice.sudo(env)}nvidia-modprobe -c 0 -u",
    )  # fmt: skip


def _no_library(survey: Survey, name: str) -> Finding:
    env, status = survey.env, survey.severity
    why, fix = "it is a separate package", advice.install(env, "nvidia")
    if env.container:
        given = env.environ.get("NVIDIA_DRIVER_CAPABILITIES", "")
        left_out = given and not {"compute", "all"} & set(given.split(","))
        why = "it belongs to the capability compute"
        if left_out:
            why = f"NVIDIA_DRIVER_CAPABILITIES={given} leaves it out"
        fix = advice.container_flags(env, _CAPABILITIES, nvidia=True)
    what = f"{name} is installed without its OpenCL part, libnvidia-opencl.so.1"
    return Finding(_CHECK, status, what, why, fix)


def _versions(survey: Survey, module: str) -> Iterator[Finding]:
    env = survey.env
    names = [f.path.resolve().name for f in libraries.find(env, "libnvidia-opencl.so.[0-9]*")]
    numbers = {found[1] for name in names if (found := re.search(r"\.so\.(\d+\.[\d.]+)$", name))}
    if module and numbers and module not in numbers:
        yield Finding(
            _CHECK, survey.severity,
            f"the kernel's module is {module}, the libraries are {', '.join(sorted(numbers))}",
            "the driver was updated, and the old module is still loaded",
            "restart the container" if env.container else f"{advice.sudo(env)}reboot",
        )  # fmt: skip
    else:
        yield Finding(_CHECK, "ok", f"driver {module or 'unknown'} with its OpenCL part")
