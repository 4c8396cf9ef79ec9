"""Device profiles: the answers of drivers, as files.

A profile is a JSON file of facts: the answers to clGetDeviceInfo and clGetPlatformInfo, the results
of probes, and for each kernel by name and build options the largest work-group and the bytes of
local memory. ``python -m bench facts`` writes one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple, Union

import clgpu_delegate
from clgpu_delegate import _core
from clgpu_delegate.base.files import write_atomically
from clgpu_delegate.errors import ClgpuError

FOLDER = Path(__file__).parent / "profiles"

Answer = Union[str, int, "list[int]"]

# Name, number and kind of all queries of src_cpp/cl/device.cpp.
# Kinds: text; u: cl_uint; l: cl_ulong; z: size_t, or an array of these.
PLATFORM_QUESTIONS = {
    "CL_PLATFORM_VERSION": (0x0901, "text"),
    "CL_PLATFORM_NAME": (0x0902, "text"),
}
DEVICE_QUESTIONS = {
    "CL_DEVICE_TYPE": (0x1000, "l"),
    "CL_DEVICE_MAX_COMPUTE_UNITS": (0x1002, "u"),
    "CL_DEVICE_MAX_WORK_GROUP_SIZE": (0x1004, "z"),
    "CL_DEVICE_MAX_WORK_ITEM_SIZES": (0x1005, "z"),
    "CL_DEVICE_MAX_MEM_ALLOC_SIZE": (0x1010, "l"),
    "CL_DEVICE_IMAGE_SUPPORT": (0x1016, "u"),
    "CL_DEVICE_MEM_BASE_ADDR_ALIGN": (0x1019, "u"),
    "CL_DEVICE_GLOBAL_MEM_SIZE": (0x101F, "l"),
    "CL_DEVICE_LOCAL_MEM_SIZE": (0x1023, "l"),
    "CL_DEVICE_AVAILABLE": (0x1027, "u"),
    "CL_DEVICE_COMPILER_AVAILABLE": (0x1028, "u"),
    "CL_DEVICE_NAME": (0x102B, "text"),
    "CL_DEVICE_VENDOR": (0x102C, "text"),
    "CL_DRIVER_VERSION": (0x102D, "text"),
    "CL_DEVICE_VERSION": (0x102F, "text"),
    "CL_DEVICE_EXTENSIONS": (0x1030, "text"),
    "CL_DEVICE_HOST_UNIFIED_MEMORY": (0x1035, "u"),
    "CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT": (0x103A, "u"),
    "CL_DEVICE_IMAGE_MAX_BUFFER_SIZE": (0x1040, "z"),
    "CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE": (0x1067, "z"),
    "CL_DEVICE_WARP_SIZE_NV": (0x4003, "u"),
    "CL_DEVICE_WAVEFRONT_WIDTH_AMD": (0x4043, "u"),
}
_OPTIONAL = (  # some drivers do not answer these
    "CL_DEVICE_IMAGE_MAX_BUFFER_SIZE", "CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE",
    "CL_DEVICE_WARP_SIZE_NV", "CL_DEVICE_WAVEFRONT_WIDTH_AMD",
)  # fmt: skip
_PROBED = ("half_arithmetic", "mma_f16", "mma_tf32", "mma_s8", "wgmma", "dot8")
DOT8 = ("none", "khronos", "arm", "nvidia")  # by the number of src_cpp/base/device_info.hpp
_STANDARD = "-cl-std=CL1.2"


class ProfileError(ClgpuError):
    """There is no such profile, or a file is not a profile."""


class KernelFacts(NamedTuple):
    """A driver's answers about a kernel."""

    work_group: int
    """The largest that it can be launched with; 0 where it does not build."""

    local_bytes: int
    """Of local memory, as answered; some drivers include their own."""

    is_refused: bool = False
    """Whether its launch fails because of its local memory."""


Kernels = dict[tuple[str, str], KernelFacts]  # by name and build options


@dataclasses.dataclass
class Profile:
    """A device as plain data.

    Attributes
    ----------
    name
        Of the profile.
    platform, device
        Answers by the questions' names; questions that the driver refuses are missing.
    probe
        ``half_arithmetic``, ``mma_f16``, ``mma_tf32``, ``mma_s8``,
        ``wgmma`` and ``dot8``.
    kernels
        Facts by name and build options.
    sources
        Digests of the kernels' texts when the facts were recorded, by file.
    """

    name: str
    platform: dict[str, Answer]
    device: dict[str, Answer]
    probe: dict[str, Any]
    kernels: Kernels = dataclasses.field(default_factory=dict)
    sources: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def title(self) -> str:
        """Device and driver in words."""
        return (
            f"{self.device['CL_DEVICE_NAME']}, {self.platform['CL_PLATFORM_VERSION']}, "
            f"driver {self.device['CL_DRIVER_VERSION']}"
        )


def source_digests() -> dict[str, str]:
    """A digest of the text of each kernel file and its includes, without comments."""
    digests = {}
    for path, text in _core.kernel_sources().items():
        if "__kernel" in text:
            code = re.sub(r"//[^\n]*|/\*.*?\*/", "", _core.assembled_source(path), flags=re.DOTALL)
            digests[path] = hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:12]
    return dict(sorted(digests.items()))


def ask(device: str) -> tuple[dict[str, Answer], dict[str, Answer]]:
    """Answers of a real device: those of its platform, and its own."""
    clgpu_delegate.devices()  # also finds runtimes that pip installed
    told = []
    for questions, of_platform in ((PLATFORM_QUESTIONS, True), (DEVICE_QUESTIONS, False)):
        codes = [code for code, _ in questions.values()]
        answers = _core.device_answers(device, codes, of_platform=of_platform)
        told.append(
            {
                name: _decoded(value, kind)
                for (name, (_, kind)), value in zip(questions.items(), answers)
                if value is not None
            }
        )
    return told[0], told[1]


def _decoded(value: bytes, kind: str) -> Answer:
    if kind == "text":
        return value.split(b"\0")[0].decode("utf-8", "replace")
    size = struct.calcsize(f"={_FORMATS[kind]}")
    numbers = struct.unpack(f"={len(value) // size}{_FORMATS[kind]}", value)
    return numbers[0] if len(numbers) == 1 else list(numbers)


_FORMATS = {"u": "I", "l": "Q", "z": "Q"}


def encoded(value: Answer, kind: str) -> bytes:
    """An answer as a driver gives it."""
    if isinstance(value, str):
        return value.encode() + b"\0"
    numbers = value if isinstance(value, list) else [value]
    return struct.pack(f"={len(numbers)}{_FORMATS[kind]}", *numbers)


def differences(profile: Profile, device: str) -> list[str]:
    """Facts that plans depend on and that differ on a real device; empty: it matches.

    Versions of drivers may differ; so may the memory of CPUs, because some report free memory, and
    the memory of other devices by a little, because drivers reserve some.
    """
    platform, answers = ask(device)
    probe = _core.probe_device(device)
    left_out = ["CL_DRIVER_VERSION", "CL_DEVICE_VERSION"]
    if profile.device["CL_DEVICE_TYPE"] == answers.get("CL_DEVICE_TYPE") == _CPU:
        left_out += _MEMORY
    names = [name for name in DEVICE_QUESTIONS if name not in left_out]
    pairs = [(name, profile.device.get(name), answers.get(name)) for name in names]
    pairs += [(name, expected, probe[name]) for name, expected in profile.probe.items()]
    name = "CL_PLATFORM_NAME"
    pairs.append((name, profile.platform.get(name), platform.get(name)))
    return [
        f"{name} is {told}, and {expected} in the profile"
        for name, expected, told in pairs
        if not _alike(name, expected, told)
    ]


def _alike(name: str, expected: Any, told: Any) -> bool:
    if name == "CL_DEVICE_EXTENSIONS":
        expected, told = ([e for e in _ABILITIES if e in (text or "")] for text in (expected, told))
    if name in _MEMORY:
        return told is not None and bool(abs(expected - told) <= expected / 50)
    return bool(expected == told)


_CPU = 2  # CL_DEVICE_TYPE_CPU
_MEMORY = ("CL_DEVICE_GLOBAL_MEM_SIZE", "CL_DEVICE_MAX_MEM_ALLOC_SIZE")
# The extensions that src_cpp looks for.
_ABILITIES = (
    "cl_khr_fp16",
    "cl_khr_integer_dot_product",
    "cl_arm_integer_dot_product_accumulate_int8",
)


def load(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    ProfileError
        If there is none, or it is damaged.
    """
    try:
        data = json.loads(path.read_text())
        kernels = {
            (name, _options(short)): _facts(answer)
            for name, answers in data["kernels"].items()
            for answer, options in answers.items()
            for short in options
        }
        for answers, questions in (
            (data["platform"], PLATFORM_QUESTIONS),
            (data["device"], DEVICE_QUESTIONS),
            (data["probe"], _PROBED),
        ):
            if lacking := [n for n in questions if n not in answers and n not in _OPTIONAL]:
                raise ValueError(f"it lacks {lacking[0]}")
            if strange := [name for name in answers if name not in questions]:
                raise ValueError(f"nothing asks for {strange[0]}")
        return Profile(
            path.stem, data["platform"], data["device"], data["probe"], kernels, data["sources"]
        )
    except OSError as error:
        message = f"cannot read the device profile {path.name}: {error.strerror}"
        raise ProfileError(message) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path.name} is no device profile: {error or type(error).__name__}"
        raise ProfileError(message) from None


def save(profile: Profile, path: Path) -> None:
    """Write a profile, sorted, a line per set of build options."""
    kernels: dict[str, dict[str, list[str]]] = {}
    for (name, options), facts in sorted(profile.kernels.items()):
        kernels.setdefault(name, {}).setdefault(_answer(facts), []).append(_short(options))
    data = {
        "platform": profile.platform,
        "device": profile.device,
        "probe": profile.probe,
        "sources": profile.sources,
        "kernels": kernels,
    }
    text = json.dumps(data, indent=0, ensure_ascii=False)
    write_atomically(path, (text + "\n").encode())


def _answer(facts: KernelFacts) -> str:
    if facts.work_group == 0:
        return "does not build"
    refused = ", refused" if facts.is_refused else ""
    return f"work-group {facts.work_group}, local {facts.local_bytes}{refused}"


def _facts(answer: str) -> KernelFacts:
    if answer == "does not build":
        return KernelFacts(0, 0)
    group, local, *refused = answer.split(", ")
    return KernelFacts(
        int(group.removeprefix("work-group ")),
        int(local.removeprefix("local ")),
        refused == ["refused"],
    )


def _short(options: str) -> str:
    """Build options without the common ones."""
    standard, *macros = options.split(" ")
    if standard != _STANDARD or not all(m.startswith("-D") for m in macros):
        return options
    return " ".join(macro.removeprefix("-D") for macro in macros)


def _options(short: str) -> str:
    if short.startswith("-"):
        return short
    return " ".join([_STANDARD, *(f"-D{macro}" for macro in short.split())])
