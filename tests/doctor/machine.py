"""Simulated machines: a folder tree, an environment and a user that only the doctor sees."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clgpu_delegate.doctor.child import Outcome, call
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Check, Survey

NO_LOADER = ("libNoSuchOpenCL.so.1",)
DEBIAN = "ID=debian\nPRETTY_NAME=Debian\n"


def device(name: str = "Some CPU", kind: str = "cpu", vendor: str = "Somebody") -> dict[str, Any]:
    """A device as `opencl_probe.list_platforms` describes it."""
    return {
        "name": name, "vendor": vendor, "type": kind, "driver_version": "1.0", "units": 2,
        "version": "OpenCL 3.0", "bytes": 2**30, "half": True, "usable": True,
    }  # fmt: skip


class Machine:
    """A simulated machine: an Environment whose processes are simulated, too, or really run."""

    def __init__(self, root: Path, **fields: Any) -> None:
        self.root = root
        self.devices: list[dict[str, Any]] = []
        self.platform = "P"
        self.real: tuple[str, ...] = ()
        self.answers: dict[str, Outcome] = {}
        defaults: dict[str, Any] = {
            "environ": {"PATH": os.environ["PATH"], "HOME": str(root / "home")},
            "uid": 1000,
            "user": "somebody",
            "groups": frozenset({"somebody"}),
            "version": {"numpy": "1.26.4", "pip": "24.0"}.get,
            "externally_managed": False,
            "requirements": (),
            "installed": dict,
            "machine": "x86_64",
            "pip_libraries": list,
            "litert_switch": lambda: None,
            "timeout": 20.0,
            "call_process": self._call,
        }
        self.write("etc/os-release", DEBIAN)
        self.env = Environment(root=root, **{**defaults, **fields})

    def write(self, path: str, text: str = "") -> Path:
        """Make a file of the simulated machine."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def set(self, **environ: str) -> None:
        """Set environment variables."""
        self.env.environ = {**self.env.environ, **environ}

    def find(self, check: Check, status: str | None = None) -> list[Finding]:
        """Run one check; returns its findings (of a status), and asserts that all have a fix."""
        found = list(check(Survey(dataclasses.replace(self.env))))
        for finding in found:
            assert bool(finding.fix) == (finding.status in ("problem", "warning")), finding
            assert "\n" not in finding.fix
        return [finding for finding in found if status in (None, finding.status)]

    def gpu(self, driver: str, *, node: bool = True) -> None:
        """Add a GPU to the kernel, with or without its file in /dev."""
        self.write("/sys/class/drm/renderD128/device/uevent", f"DRIVER={driver}\n")
        if node:
            self.write("/dev/dri/renderD128")

    def _call(self, file: str, function: str, *arguments: Any, **how: Any) -> Outcome:
        if function in self.real:
            return call(file, function, *arguments, **how)
        if function in self.answers:
            return self.answers[function]
        if function == "list_platforms":
            platforms = [
                {"name": self.platform, "version": "1", "vendor": "V", "devices": self.devices}
            ]
            given = platforms if self.devices else []
            return Outcome({"error": "", "platforms": given, "file": "/usr/lib/libOpenCL.so.1"})
        if function == "load_vendor":
            return Outcome({"platforms": 1, "code": 0})
        return Outcome({})


def library(folder: Path, code: str, name: str = "libstaged.so", *link: str) -> Path:
    """Compile a C file into a shared library; skips without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    source, target = folder / "staged.c", folder / name
    source.write_text(code)
    command = [compiler, "-shared", "-fPIC", "-o", str(target), str(source), *link]
    subprocess.run(command, check=True, timeout=60)
    return target
