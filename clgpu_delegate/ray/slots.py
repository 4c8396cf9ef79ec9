"""Which process of this machine has which device.

A process that has a device holds a lock on a file. The system releases it when the process ends,
however that comes about, so the device of a killed actor is free at once.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
import weakref
from collections.abc import Collection
from pathlib import Path

from clgpu_delegate.devices import Device
from clgpu_delegate.errors import DeviceError, FileError
from clgpu_delegate.runner.members import Names, chosen

_EVERY_S = 0.05


class Slot:
    """A device that this process has until `release`, or until it ends."""

    def __init__(self, name: str, device: Device, file: int) -> None:
        self.name, self.device = name, device
        self._close = weakref.finalize(self, os.close, file)

    def release(self) -> None:
        """Let others have the device; may be called again."""
        self._close()


def slots_of(names: Names) -> dict[str, Device]:
    """The devices that are meant, see `clgpu_delegate.Pool`, each as often as it was listed."""
    found: dict[str, Device] = {}
    for device in chosen(names):
        times = sum(device.index == each.index for each in found.values())
        found[f"{device.index}-{times}"] = device
    return found


def take(names: Names, without: Collection[str] = (), wait_s: float = 0.0) -> Slot:
    """A device that no other process of this machine has.

    Parameters
    ----------
    without
        Names of slots that are not wanted.
    wait_s
        Seconds to wait for one that is free.

    Raises
    ------
    DeviceError
        If there is none.
    FileError
        If the folder of locks cannot be used.
    """
    wanted = {name: device for name, device in slots_of(names).items() if name not in without}
    folder = _folder()
    end = time.monotonic() + wait_s
    while True:
        for name, device in wanted.items():
            file = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
            else:
                return Slot(name, device, file)
        if time.monotonic() >= end:
            listed = "; ".join(f"{d.index}: {d.name}" for d in wanted.values()) or "none"
            raise DeviceError(
                f"no OpenCL device is free: each of these is in use: {listed}. A Ray node may have "
                "as many units of the resource as devices, see clgpu_delegate.ray.resources"
            )
        time.sleep(_EVERY_S)


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"clgpu_delegate-{os.getuid()}" / "devices"
    try:
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)
            found = each.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                raise FileError(f"cannot lock devices in {each}: it is not a folder of this user")
    except OSError as error:
        raise FileError(f"cannot lock devices in {folder}: {error.strerror}") from None
    return folder
