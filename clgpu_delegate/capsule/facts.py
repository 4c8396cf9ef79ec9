"""The facts about model, package and machine in a bug report."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.capsule.outcome import TOLERANCES
from clgpu_delegate.capsule.privacy import scrub, scrub_all
from clgpu_delegate.doctor import doctor
from clgpu_delegate.errors import ClgpuError, DependencyError, ModelError
from clgpu_delegate.options import Options
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import Tensor
from clgpu_delegate.tflite.reader import parse

_VARIABLES = ("CLGPU_", "CL_", "OCL_", "POCL_", "NEO_", "RUSTICL_", "GALLIUM_")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_KERNEL_FILE = re.compile(r"\b\w+/\w+\.cl\b")
_INTEGERS = ("int8", "uint8", "int16")
LOCAL = ("device", "cache")  # options that mean nothing on another machine
_HYBRID_TOLERANCE = 0.05  # activations that TFLite rounds to int8 and the delegate does not


@dataclasses.dataclass(frozen=True)
class Nature:
    """The properties of a model that decide how its results are compared."""

    integer: bool
    """Activations are quantised: TFLite's reference kernels define the right results."""

    hybrid: bool
    """Weights are int8 and activations float."""

    @classmethod
    def of(cls, content: bytes, interpreter: Any) -> Nature:
        """Look at a model and at a stock interpreter of it."""
        try:
            model = parse(content)
        except DependencyError:
            return cls._guess(interpreter)
        except ClgpuError as error:
            raise ModelError(str(error)) from None
        integer = hybrid = False
        for graph in model.subgraphs:
            integer |= any(_is_quantised(t) and not model.is_constant(t) for t in graph.tensors)
            for op in graph.operators:
                data = [graph.tensors[t] for t in op.inputs[:2] if t >= 0]
                hybrid |= any(t.dtype == "float32" for t in data) and any(
                    t.dtype == "int8" and model.is_constant(t) for t in data
                )
        return cls(integer, hybrid)

    @classmethod
    def _guess(cls, interpreter: Any) -> Nature:
        details = interpreter.get_tensor_details()
        has_codes = any(np.dtype(d["dtype"]).name in _INTEGERS for d in details)
        # Without integer inputs, outputs and activations, only weights are int8.
        border = interpreter.get_input_details() + interpreter.get_output_details()
        names = {op["op_name"] for op in interpreter._get_ops_details()}
        integer = "QUANTIZE" in names or any(np.dtype(d["dtype"]).name in _INTEGERS for d in border)
        return cls(has_codes and integer, has_codes and not integer)

    def tolerance(self, options: Options) -> float:
        """The relative L2 error that counts as right unless the caller says so."""
        usual = TOLERANCES[options.precision_name]
        return max(usual, _HYBRID_TOLERANCE) if self.hybrid else usual


def _is_quantised(tensor: Tensor) -> bool:
    return tensor.dtype in _INTEGERS and tensor.affine is not None


def settings_of(options: Options, *, drop: Iterable[str] = ()) -> dict[str, Any]:
    """The fields that differ from their defaults, as `Options` takes them."""
    return {
        f.name: getattr(options, f.name)
        for f in dataclasses.fields(options)
        if getattr(options, f.name) != f.default and f.name not in drop
    }


def exclude_in_part(exclude: str, nodes: Sequence[int]) -> str:
    """The option ``exclude`` for a part of a model that has these of its nodes."""
    items = [item.strip() for item in exclude.split(",") if item.strip()]
    new = {str(old): str(position) for position, old in enumerate(nodes)}
    kept = [new.get(item, "") if item.isdigit() else item for item in items]
    return ",".join(item for item in kept if item)


def pinned_engines(explain: Mapping[str, Any]) -> str:
    """The option ``engines`` that repeats what tuning has chosen; empty where it has not."""
    chosen: dict[str, set[str]] = {}
    tuned = False
    for node in explain["nodes"]:
        if node["candidate"]:
            chosen.setdefault(node["family"], set()).add(node["candidate"])
            tuned |= node["chosen"] == "tuned"
    if not tuned:
        return ""
    return ",".join(f"{f}={min(c)}|auto" for f, c in sorted(chosen.items()) if len(c) == 1)


def kernel_members(programs: Sequence[Mapping[str, str]], log: str) -> dict[str, bytes]:
    """Assembled texts of all programs, of overrides, and of files that a log names.

    Files that others include are parts of those.
    """
    texts = _core.kernel_sources()
    parts = {part for text in texts.values() for part in _INCLUDE.findall(text)}
    files = set(_core.kernel_overrides()) | set(_KERNEL_FILE.findall(log))
    files = {use["file"] for use in programs} | (files - parts)
    return {
        f"kernels/{file}": _core.assembled_source(file).encode()
        for file in sorted(files & set(texts))
    }


def text_to_override(member: bytes, file: str) -> str:
    """The text that assembles to what `kernel_members` has kept."""
    return member.decode("utf-8", "replace").removeprefix(f'#line 1 "{file}"\n')


def packages() -> dict[str, str]:
    """Versions of the packages that matter."""
    installed = {}
    for name in ("clgpu_delegate", "ai-edge-litert", "tflite-runtime", "tensorflow", "numpy"):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    installed.setdefault("clgpu_delegate", _core.__version__)
    return installed


def versions(runtime: Runtime) -> dict[str, Any]:
    """Versions of the packages that took part."""
    return {
        "package": packages(),
        "runtime": {"name": runtime.name, "version": runtime.version},
        "python": platform.python_version(),
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
        },
        "environment": {
            k: scrub(v) for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)
        },
    }


def device_facts(told: Mapping[str, Any]) -> dict[str, Any]:
    """The device of a trial; its library without the folder."""
    cleaned: dict[str, Any] = scrub_all(
        {"device": told.get("device"), "abilities": told.get("abilities")}
    )
    return cleaned


def diagnosis(device: str) -> Any:
    """The findings of `clgpu_delegate.doctor`, if a driver or a set-up may be the cause."""
    return scrub_all(doctor(device=device).to_dict())
