"""Which process has which device."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import clgpu_delegate
from clgpu_delegate import DeviceError, FileError
from clgpu_delegate.ray import slots


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setattr(slots.tempfile, "gettempdir", lambda: str(tmp_path))


HOLDS = """
import sys, time
from clgpu_delegate.ray import slots
slots.tempfile.gettempdir = lambda: sys.argv[1]
slot = slots.take([0, 0])
print(slot.name, flush=True)
time.sleep(60)
"""


def test_processes_have_different_devices_and_a_killed_one_has_none(tmp_path):
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "0-0\n"
        mine = slots.take([0, 0])
        assert (mine.name, mine.device.index) == ("0-1", 0)
        start = time.monotonic()
        with pytest.raises(DeviceError, match="is free: each of these is in use: 0: "):
            slots.take([0, 0], wait_s=0.2)
        assert time.monotonic() - start >= 0.2
        os.kill(child.pid, signal.SIGKILL)
        assert slots.take([0, 0], wait_s=10).name == "0-0"


def test_a_device_that_was_released_is_free_and_unwanted_ones_are_left():
    first = slots.take([0, 0])
    first.release()
    first.release()
    assert slots.take([0, 0], without=["0-0"]).name == "0-1"
    with pytest.raises(DeviceError, match="is in use: none"):
        slots.take([0], without=["0-0"])


def test_folder_of_somebody_else_is_not_used(tmp_path):
    slots.take(0).release()
    folder = tmp_path / f"clgpu_delegate-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "devices" / "0-0").unlink()
    (folder / "devices").rmdir()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(FileError, match="not a folder of this user"):
        slots.take(0)


def test_resources_count_devices():
    assert clgpu_delegate.ray.resources("all") == {"opencl": float(len(clgpu_delegate.devices()))}
    assert clgpu_delegate.ray.resources([0, 0]) == {"opencl": 2.0}
