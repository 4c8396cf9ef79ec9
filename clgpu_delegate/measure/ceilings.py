"""What devices and the host can do at most: the rates that times of models are compared with."""

from __future__ import annotations

import dataclasses
from typing import Any

from clgpu_delegate import _core
from clgpu_delegate.base import embedded
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.errors import BuildError, OpenCLError, OptionError
from clgpu_delegate.options import Options

_ROWS = {
    "arithmetic, fp32": ("fma_flops", 1e-9, "GFLOP/s"),
    "tensor cores, tf32": ("mma_tf32_flops", 1e-9, "GFLOP/s"),
    "tensor cores, fp16": ("mma_f16_flops", 1e-9, "GFLOP/s"),
    "device memory": ("copy_bytes", 1e-9, "GB/s"),
    "caches": ("cache_bytes", 1e-9, "GB/s"),
    "upload": ("upload_bytes", 1e-9, "GB/s"),
    "download": ("download_bytes", 1e-9, "GB/s"),
    "smallest transfer": ("transfer_seconds", 1e6, "us"),
    "launch, many in flight": ("launch_seconds", 1e6, "us"),
    "launch and wait": ("round_trip_seconds", 1e6, "us"),
}


@dataclasses.dataclass(frozen=True)
class Ceiling:
    """The most that a device does. A rate of 0 is one it does not have.

    Examples
    --------
    >>> (ceiling,) = clgpu_delegate.ceilings(device=0, seconds=0.1).devices
    >>> ceiling.problem or ceiling.fma_flops > 0
    True
    """

    device: Device
    problem: str | None = None
    """Why it could not be measured; the numbers are 0 then."""

    fma_flops: float = 0.0
    """Float operations per second, two for each multiply-add; of tensor cores: the next two."""

    mma_tf32_flops: float = 0.0
    mma_f16_flops: float = 0.0
    copy_bytes: float = 0.0
    """Bytes per second, read and written, in device memory."""

    cache_bytes: float = 0.0
    """Bytes per second, read from a cache that all compute units share."""

    upload_bytes: float = 0.0
    """Bytes per second from pageable host memory."""

    download_bytes: float = 0.0
    """Bytes per second to pageable host memory."""

    transfer_seconds: float = 0.0
    """Of a copy of hardly any bytes that is waited for."""

    launch_seconds: float = 0.0
    """Of an empty kernel, with many in flight."""

    round_trip_seconds: float = 0.0
    """Of an empty kernel that is waited for."""


@dataclasses.dataclass(frozen=True)
class Ceilings(Shown):
    """What `ceilings` found.

    Examples
    --------
    >>> found = clgpu_delegate.ceilings(device=0, seconds=0.1)
    >>> "copy_bytes" in found.to_dict()["devices"][0]
    True
    """

    devices: tuple[Ceiling, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("at most")
        for ceiling in self.devices:
            name = f"{ceiling.device.index}: {ceiling.device.name}"
            table.add_column(name, right=True, fold=True)
        for title, (field, scale, unit) in _ROWS.items():
            values = [getattr(ceiling, field) * scale for ceiling in self.devices]
            if any(values):
                table.add_row(title, *(f"{v:.4g} {unit}" if v else "none" for v in values))
        problems = [f"{c.device.index}: {c.problem}" for c in self.devices if c.problem]
        return Group(table, *map(Text, problems))

    def __str__(self) -> str:
        return as_text(self)


def ceilings(
    device: str | int = "", *, seconds: float = 1.0, progress: bool | None = None
) -> Ceilings:
    """Measure what devices can do at most.

    Parameters
    ----------
    device
        As in `Options`; empty: all devices.
    seconds
        To spend on each.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals.

    Raises
    ------
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> print(clgpu_delegate.ceilings(device=0, seconds=0.1))  # doctest: +ELLIPSIS
     at most ...
    """
    if not seconds > 0:
        raise OptionError(f"seconds is {seconds}; allowed: a number above 0")
    named = str(device) != ""
    chosen = [Delegate(Options(device=device)).device] if named else devices()
    found: list[Ceiling] = []
    with Bar(progress) as bar, embedded.registered():
        bar.stage("measuring", len(chosen))
        for each in chosen:
            bar.show(each.name, len(found))
            try:
                rates: Any = _core.measure_peaks(str(each.index), seconds)
            except (OpenCLError, BuildError) as error:
                found.append(Ceiling(each, problem=str(error)))
            else:
                found.append(Ceiling(each, **rates))
    return Ceilings(tuple(found))
