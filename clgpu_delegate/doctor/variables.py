"""Environment variables that hide devices or name paths that do not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from clgpu_delegate.doctor import icd, paths
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "variables"
# Bug reports should show these where they are set.
_SHOWN = (
    "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "OPENCL_LAYERS",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "POCL_DEVICES", "POCL_CACHE_DIR", "POCL_DEBUG",
    "RUSTICL_ENABLE", "RUSTICL_FEATURES", "LIBGL_ALWAYS_SOFTWARE", "LP_NUM_THREADS",
    "MESA_LOADER_DRIVER_OVERRIDE", "CL_CONFIG_CPU_TARGET_ARCH",
)  # fmt: skip
# Lists of GPUs: an empty list (or an index that does not exist) hides all GPUs of the vendor.
_LISTS = {
    "CUDA_VISIBLE_DEVICES": "NVIDIA", "NVIDIA_VISIBLE_DEVICES": "NVIDIA",
    "ROCR_VISIBLE_DEVICES": "AMD", "HIP_VISIBLE_DEVICES": "AMD", "GPU_DEVICE_ORDINAL": "AMD",
    "ZE_AFFINITY_MASK": "Intel",
}  # fmt: skip
_NOTHING = ("", "-1", "none", "void")


def check(survey: Survey) -> Iterator[Finding]:
    """Look at each variable that OpenCL, its drivers or this package read."""
    environ = survey.env.environ
    found = [
        *_places(survey), *_library(survey), *_device(survey), *_lists(survey), *_pocl(survey),
    ]  # fmt: skip
    yield from found
    names = [n for n in environ if n.startswith("CLGPU_")] + [n for n in _SHOWN if n in environ]
    if not found:
        what = "none hides a device" if names else "no relevant one is set"
        yield Finding(_CHECK, "ok", what, details=tuple(f"{n}={environ[n]}" for n in names))


def _places(survey: Survey) -> Iterator[Finding]:
    env = survey.env
    for name in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"):
        value = env.environ.get(name)
        if not value or env.environ.get("CLGPU_OPENCL_LIBRARY"):
            continue
        path = Path(value)
        if not paths.exists(path) and not (
            "/" not in value and (env.at(icd.FOLDER) / value).exists()
        ):  # a name alone may be a file of the usual folder
            yield Finding(
                _CHECK, survey.severity, f"{name} names {value}, which does not exist",
                "so the loader finds no driver", f"unset {name}",
            )  # fmt: skip
        elif paths.is_folder(path) and not paths.matching(path, "*.icd"):
            yield Finding(
                _CHECK, survey.severity, f"{name} names {value}, which has no .icd file",
                "so the loader finds no driver", f"unset {name}",
            )  # fmt: skip


def _library(survey: Survey) -> Iterator[Finding]:
    named = survey.env.environ.get("CLGPU_OPENCL_LIBRARY")
    if not named:
        return
    outcome = survey.listing(named)
    error = outcome.failure or outcome.answer["error"]
    fix = "unset CLGPU_OPENCL_LIBRARY"
    if error:
        what = f"CLGPU_OPENCL_LIBRARY names {named}, which cannot be used"
        yield Finding(_CHECK, "problem", what, error, fix)
    elif not survey.devices:
        what = f"CLGPU_OPENCL_LIBRARY names {named}, which offers no device"
        yield Finding(_CHECK, "problem", what, "", fix)


def _device(survey: Survey) -> Iterator[Finding]:
    named = survey.env.environ.get("CLGPU_DEVICE")
    if named and survey.devices and survey.chosen(named) is None:
        yield Finding(
            _CHECK, "problem", f"CLGPU_DEVICE is {named!r}, and there is no such device",
            "devices are: " + "; ".join(map(str, survey.devices)), "unset CLGPU_DEVICE",
        )  # fmt: skip


def _lists(survey: Survey) -> Iterator[Finding]:
    env = survey.env
    for name, vendor in _LISTS.items():
        value = env.environ.get(name)
        if value is None or value.strip() not in _NOTHING or not _has(survey, vendor):
            continue
        yield Finding(
            _CHECK, survey.severity, f"{name} is {value!r}",
            f"it hides all GPUs of {vendor} from OpenCL too", f"unset {name}",
        )  # fmt: skip
    enabled = env.environ.get("LIBGL_ALWAYS_SOFTWARE", "").lower() in ("1", "true", "yes")
    if enabled and any("Mesa" in v.library or "Rusticl" in v.library for v in icd.listed(env)):
        yield Finding(
            _CHECK, "warning", "LIBGL_ALWAYS_SOFTWARE is set",
            "Mesa's OpenCL then runs on the CPU", "unset LIBGL_ALWAYS_SOFTWARE",
        )  # fmt: skip


def _has(survey: Survey, vendor: str) -> bool:
    """Whether a vendor's GPU is in this machine."""
    if vendor == "NVIDIA":
        return survey.env.at("/proc/driver/nvidia/version").exists()
    return any(gpu.label == vendor for gpu in survey.gpus)


def _pocl(survey: Survey) -> Iterator[Finding]:
    env = survey.env
    if not any("pocl" in vendor.library for vendor in icd.listed(env)):
        return
    value = env.environ.get("POCL_CACHE_DIR")
    if value and not (paths.is_folder(Path(value)) and env.access(Path(value), os.W_OK)):
        yield Finding(
            _CHECK, "warning", f"POCL_CACHE_DIR names {value}, which is not a writable folder",
            "PoCL compiles every kernel again in every process", "unset POCL_CACHE_DIR",
        )  # fmt: skip
    kinds = env.environ.get("POCL_DEVICES", "").split()
    offered = any("Portable" in device.platform_name for device in survey.devices)
    if kinds and not offered:
        yield Finding(
            _CHECK, survey.severity, f"POCL_DEVICES is {' '.join(kinds)!r}, and PoCL offers none",
            "it names drivers that this PoCL lacks", "unset POCL_DEVICES",
        )  # fmt: skip
