"""Device files: does the kernel know a GPU, does its file exist, may this user open it."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from pathlib import Path

from clgpu_delegate.doctor import advice, icd, libraries
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import GPU_DRIVERS, Gpu, Survey

_CHECK = "device files"
# Files of GPUs besides the render nodes, and the Linux drivers whose OpenCL needs them.
_OTHERS = {"/dev/kfd": ("amdgpu",), "/dev/mali0": (), "/dev/kgsl-3d0": (), "/dev/dxg": ()}


def check(survey: Survey) -> Iterator[Finding]:
    """Look at every file through which a GPU is reached."""
    env = survey.env
    nothing = not env.names("/dev", "nvidia[0-9]*")
    for gpu in survey.gpus:
        if gpu.driver.startswith("nvidia"):
            continue  # OpenCL reaches it by other files
        nothing = False
        yield from _render_node(survey, gpu)
    for path in _OTHERS:
        if env.at(path).exists():
            nothing = False
            yield from _permission(survey, path, f"{path} is there")
    if nothing:
        yield Finding(_CHECK, "ok", "no GPU was found in /dev and /sys")


def _render_node(survey: Survey, gpu: Gpu) -> Iterator[Finding]:
    env = survey.env
    what = f"{gpu.node} ({gpu.driver or 'driver unknown'})"
    if env.at(gpu.node).exists():
        yield from _permission(survey, gpu.node, what)
    elif env.container:
        flags = "--device /dev/dri"
        if gpu.driver == "amdgpu":
            flags = "--device /dev/kfd " + flags
        yield Finding(
            _CHECK, survey.severity, f"the host has a GPU, {what}, but this container does not",
            "the container was started without it", advice.container_flags(env, flags),
        )  # fmt: skip
    else:
        yield Finding(
            _CHECK, survey.severity, f"the kernel has found a GPU, but {gpu.node} is missing",
            "the device manager (udev) creates it", f"{advice.sudo(env)}udevadm trigger",
        )  # fmt: skip


def _permission(survey: Survey, node: str, what: str) -> Iterator[Finding]:
    env = survey.env
    if env.access(env.at(node), os.R_OK | os.W_OK):
        yield Finding(_CHECK, "ok", f"{what}, readable and writable")
        return
    why, fix = _mend(env, node)
    status = "warning" if survey.has_gpu_device else "problem"
    yield Finding(
        _CHECK, status, f"{what}: this user has no permission to read and write it", why, fix
    )


def _mend(env: Environment, node: str) -> tuple[str, str]:
    gid = env.at(node).stat().st_gid
    group = _group_name(env, gid)
    if env.container:
        return (
            f"the container's user is not in group {gid} of the host",
            advice.container_flags(env, f"--device {node} --group-add {gid}"),
        )
    if group in ("", "root"):
        return (
            "its group is not one that users can join",
            f"{advice.sudo(env)}chgrp render {node} && {advice.sudo(env)}chmod g+rw {node}",
        )
    members = [
        line.rpartition(":")[2].split(",")
        for line in env.read("/etc/group").splitlines()
        if line.startswith(f"{group}:")
    ]
    if env.user and any(env.user in names for names in members) and group not in env.groups:
        return f"this user joined the group {group} after logging in", "log out and in again"
    if group in env.groups:
        return f"the group {group} has no permission", f"{advice.sudo(env)}chmod g+rw {node}"
    return (
        f"only members of the group {group} may use it",
        f"sudo usermod -aG {group} $USER   # then log out and in again",
    )


def _group_name(env: Environment, gid: int) -> str:
    for line in env.read("/etc/group").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == str(gid):
            return fields[0]
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def drivers(survey: Survey) -> Iterator[Finding]:
    """Report GPUs for which no OpenCL driver offers a device."""
    env = survey.env
    for gpu in survey.gpus:
        if gpu.driver not in GPU_DRIVERS or not env.access(env.at(gpu.node), os.R_OK | os.W_OK):
            continue
        if survey.offers(gpu):
            yield Finding("GPU driver", "ok", f"OpenCL offers the GPU {gpu.node} ({gpu.label})")
            continue
        label, _, package, rusticl = GPU_DRIVERS[gpu.driver]
        what = f"there is a GPU of {label} ({gpu.node}), but OpenCL does not offer it"
        vendors = [vendor.library for vendor in icd.listed(env)]
        if any("Rusticl" in name for name in vendors) and rusticl not in _enabled(env):
            why, fix = (
                "Rusticl uses only the drivers that RUSTICL_ENABLE names",
                f"export RUSTICL_ENABLE={rusticl}",
            )
        elif blob := _mali_library(env, gpu.driver):
            why, fix = (
                "the vendor's library is not registered",
                (f"export CLGPU_OPENCL_LIBRARY={blob}"),
            )
        else:
            why, fix = "its OpenCL driver is not installed", advice.install(env, package)
        yield Finding("GPU driver", survey.severity, what, why, fix)
    if env.at("/dev/mali0").exists() and not survey.has_gpu_device:
        blob = _mali_library(env, "mali")
        if blob:
            yield Finding(
                "GPU driver", survey.severity, "there is a Mali GPU, but OpenCL does not offer it",
                "the vendor's library is not registered", f"export CLGPU_OPENCL_LIBRARY={blob}",
            )  # fmt: skip


def _enabled(env: Environment) -> list[str]:
    parts = env.environ.get("RUSTICL_ENABLE", "").split(",")
    return [part.split(":", maxsplit=1)[0].strip() for part in parts]


def _mali_library(env: Environment, driver: str) -> str:
    if driver not in ("mali", "panfrost", "panthor"):
        return ""
    found = [file for file in libraries.find(env, "libmali*.so*") if file.machine]
    return env.shown(Path(found[0].path)) if found else ""


def rusticl(survey: Survey) -> Iterator[Finding]:
    """Report a wrong RUSTICL_ENABLE where Rusticl is the driver and offers no device."""
    env = survey.env
    if not any("Rusticl" in vendor.library for vendor in icd.listed(env)):
        return
    known = sorted({row[3] for row in GPU_DRIVERS.values()} | {"llvmpipe", "zink", "virgl"})
    wrong = [name for name in _enabled(env) if name and name not in known]
    if wrong:
        yield Finding(
            "variables", "warning", f"RUSTICL_ENABLE names {', '.join(wrong)}",
            f"drivers are: {', '.join(known)}", "unset RUSTICL_ENABLE",
        )  # fmt: skip
