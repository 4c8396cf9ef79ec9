"""Checks of the OpenCL devices: names, known problems of drivers, and a kernel on each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clgpu_delegate.doctor import advice
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import FoundDevice, Survey

# (pattern of "platform | name | driver version", what is known, whether it is a warning).
_KNOWN = (
    (r"^NVIDIA.*\| 580\.", "sub-buffers of this driver are slow and fragile; worked around", False),
    (r"^NVIDIA", "no cl_khr_fp16: fp16 is computed with inline PTX where that works", False),
    (r"^Clover \|", "Clover is incomplete and was removed from Mesa; Rusticl replaces it", True),
    (r"^Intel Gen OCL Driver \|", "Beignet is abandoned; Intel's own driver replaces it", True),
    (r"FPGA Emulation", "a slow emulator of FPGAs; choose another device", True),
    (r"^Oclgrind", "an interpreter that detects errors; about 1000 times slower", True),
    (r"^rusticl \| .*llvmpipe", "this is the CPU", False),
)  # fmt: skip
_INSTEAD = {"Clover": "mesa", "Intel Gen OCL Driver": "intel"}
_SLOW_COMPILER = 10.0  # seconds for the smallest kernel


def check(survey: Survey) -> Iterator[Finding]:
    """Describe each device."""
    env = survey.env
    if env.device and survey.devices and survey.chosen(env.device) is None:
        yield Finding(
            "devices", "problem", f"there is no device {env.device!r}",
            "devices are: " + "; ".join(map(str, survey.devices)), "clgpu devices",
        )  # fmt: skip
    if not survey.devices:
        yield _none(survey)
    for device in _wanted(survey):
        yield _describe(survey, device)


_CAUSES = (
    "device files",
    "vendor files",
    "loader",
    "NVIDIA",
    "GPU driver",
    "variables",
    "platforms",
)


def _none(survey: Survey) -> Finding:
    found = [p["name"] for library in survey.libraries for p in _platforms(survey, library)]
    why = f"platforms without a usable device: {', '.join(found)}" if found else ""
    what = "there is no OpenCL device"
    causes = [problem.check for problem in survey.problems if problem.check in _CAUSES]
    if causes:
        return Finding("devices", "skipped", f"{what}: fix {' and '.join(causes)} first", why)
    return Finding("devices", "problem", what, why, advice.cpu_runtime(survey.env))


def _platforms(survey: Survey, library: str) -> list[dict[str, Any]]:
    outcome = survey.listing(library)
    return list(outcome.answer["platforms"]) if outcome.ok else []


def platforms(survey: Survey) -> Iterator[Finding]:
    """Look for platforms that offer no device: PoCL has to write files, for example."""
    for platform in [p for library in survey.libraries for p in _platforms(survey, library)]:
        name, devices = platform["name"], platform["devices"]
        unusable = [device["name"] for device in devices if not device["usable"]]
        if unusable:
            yield Finding(
                "platforms", "warning", f"{name}: {', '.join(unusable)} cannot be used",
                "the driver reports that it is not available or has no compiler",
                "install a driver with a compiler",
            )  # fmt: skip
        elif not devices and "Portable Computing" in name:
            yield Finding(
                "platforms", survey.severity, f"{name} (PoCL) offers no device",
                "it needs a folder to write to, by default ~/.cache/pocl",
                'export POCL_CACHE_DIR="$(mktemp -d)"',
            )  # fmt: skip
        elif not devices:
            yield Finding("platforms", "ok", f"{name} offers no device (code {platform['code']})")


def _wanted(survey: Survey) -> list[FoundDevice]:
    """The devices to look at: all, or the one that was asked for."""
    if not survey.env.device:
        return survey.devices
    chosen = survey.chosen(survey.env.device)
    return [chosen] if chosen else []


def _describe(survey: Survey, device: FoundDevice) -> Finding:
    facts = device.facts
    identity = f"{device.platform_name} | {facts['name']} | {facts['driver_version']}"
    known = [(text, bad) for pattern, text, bad in _KNOWN if re.search(pattern, identity)]
    notes = [text for text, _ in known]
    memory = f"{facts['bytes'] / 2**30:.1f} GiB"
    half = "fp16 arithmetic" if facts["half"] else "fp16 for storage only"
    what = f"{device}: {facts['type']}, {facts['units']} units, {memory}, {half}"
    details = (f"{facts['version']}, driver {facts['driver_version']}, by {device.library}",)
    if not any(bad for _, bad in known):
        return Finding("devices", "ok", what, "; ".join(notes), details=details)
    package = next((key for name, key in _INSTEAD.items() if name == device.platform_name), "")
    others = [other for other in survey.devices if other.platform_name != device.platform_name]
    if package or not others:
        fix = advice.install(survey.env, package) if package else advice.cpu_runtime(survey.env)
    else:
        fix = f"export CLGPU_DEVICE={others[0].index}"
    return Finding("devices", "warning", what, "; ".join(notes), fix, details)


def kernels(survey: Survey) -> Iterator[Finding]:
    """Compile and run a small kernel on each device."""
    for device in _wanted(survey):
        outcome = survey.kernel(device)
        error = outcome.failure or outcome.answer["error"]
        log = outcome.answer.get("log", "") if outcome.ok else outcome.output
        others = [other for other in survey.devices if other.index != device.index]
        if error:
            yield Finding(
                "test kernel", "problem", f"{device}: {error}", "its driver or compiler is broken",
                f"export CLGPU_DEVICE={others[0].index}" if others
                else advice.cpu_runtime(survey.env),
                tuple(log.splitlines()[-5:]),
            )  # fmt: skip
            continue
        seconds, run = outcome.answer["compile_seconds"], outcome.answer["run_seconds"]
        what = f"{device}: correct result, compiled in {seconds:.2f} s, run in {run * 1e3:.1f} ms"
        if seconds > _SLOW_COMPILER:
            yield Finding(
                "test kernel", "warning", what, "the first load of each model will take long",
                "clgpu cache list   # shows whether compiled programs are kept",
            )  # fmt: skip
        else:
            yield Finding("test kernel", "ok", what)
