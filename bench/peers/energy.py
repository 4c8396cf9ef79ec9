"""Energy that the machine has used so far, where it tells."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

_RAPL = Path("/sys/class/powercap")
_NVML = "libnvidia-ml.so.1"


class Meter:
    """Joules since some moment: of processor packages (RAPL) and NVIDIA's GPUs (NVML).

    Parameters
    ----------
    rapl
        The folder with the counters of the packages.
    nvml
        Whether to ask the GPUs.
    """

    def __init__(self, rapl: Path = _RAPL, *, nvml: bool = True) -> None:
        self._packages = [
            folder
            for folder in sorted(rapl.glob("intel-rapl:*"))
            if folder.name.count(":") == 1 and os.access(folder / "energy_uj", os.R_OK)
        ]
        self._before: dict[Path, float] = {}
        self._nvml = _nvml() if nvml else None

    @property
    def sources(self) -> list[str]:
        """What is counted, in words; empty where nothing is."""
        found = ["processor packages (RAPL)"] if self._packages else []
        return found + (["NVIDIA GPUs (NVML)"] if self._nvml else [])

    def start(self) -> None:
        """Begin to count."""
        self._before = {path: _number(path / "energy_uj") for path in self._packages}
        self._gpus = self._gpu_joules()

    def joules(self) -> float | None:
        """Joules since `start`; None where nothing is counted."""
        if not self.sources:
            return None
        total = self._gpu_joules() - self._gpus
        for path, before in self._before.items():
            used = _number(path / "energy_uj") - before
            if used < 0:  # the counter has wrapped
                used += _number(path / "max_energy_range_uj")
            total += used * 1e-6
        return total

    def _gpu_joules(self) -> float:
        if self._nvml is None:
            return 0.0
        count, total = ctypes.c_uint(), 0.0
        self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            handle, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
            self._nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            if not self._nvml.nvmlDeviceGetTotalEnergyConsumption(
                handle, ctypes.byref(millijoules)
            ):
                total += millijoules.value * 1e-3
        return total


def _nvml() -> ctypes.CDLL | None:
    with contextlib.suppress(OSError):
        library = ctypes.CDLL(_NVML)
        if library.nvmlInit_v2() == 0:
            return library
    return None


def _number(path: Path) -> float:
    return float(path.read_text())
