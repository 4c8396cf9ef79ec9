"""OpenCL objects of an application that does not use this package."""

from __future__ import annotations

import ctypes
import ctypes.util
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from clgpu_delegate.base import embedded


def loader() -> Path | None:
    """The system's OpenCL loader."""
    name = ctypes.util.find_library("OpenCL")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    library.clGetPlatformIDs  # noqa: B018 - raises
    with Path("/proc/self/maps").open() as maps:
        found = [line.split()[-1] for line in maps if "libOpenCL" in line]
    return Path(found[0]) if found else None


def _library() -> Any:
    # Every library's functions take the objects of the others: the first field of an object is a
    # table of functions.
    path = loader() or embedded.libraries()[0]
    return ctypes.CDLL(str(path))


def _made(name: str, *arguments: Any) -> int:
    code = c_int()
    function = _library()[name]
    function.restype = c_void_p
    made = function(*arguments, byref(code))
    assert code.value == 0, (name, code.value)
    return int(made)


def _info(name: str, of: int, what: int, kind: Any) -> Any:
    answer = kind()
    code = _library()[name](c_void_p(of), c_uint(what), c_size_t(ctypes.sizeof(answer)),
                            byref(answer), None)  # fmt: skip
    assert code == 0, (name, code)
    return answer.value


def buffer(context: int, size: int) -> int:
    """A buffer that kernels read and write."""
    return _made("clCreateBuffer", c_void_p(context), c_uint64(1), c_size_t(size), None)


def part(of: int, origin: int, size: int) -> int:
    """A sub-buffer."""
    region = (c_size_t * 2)(origin, size)
    return _made("clCreateSubBuffer", c_void_p(of), c_uint64(1), c_uint(0x1220), region)


def release(memory: int) -> None:
    """Drop the application's reference."""
    assert _library().clReleaseMemObject(c_void_p(memory)) == 0


def context_of(device: int) -> int:
    """A new context of a device."""
    return _made("clCreateContext", None, 1, byref(c_void_p(device)), None, None)


def device_of(context: int) -> int:
    """The device of a context."""
    return _info("clGetContextInfo", context, 0x1081, c_void_p)


def context_beside(context: int) -> int:
    """Another context of the same device."""
    return context_of(device_of(context))


def embedded_device() -> int:
    """The first device of the driver that pip has installed."""
    return any_device(ctypes.CDLL(str(embedded.libraries()[0])))


def embedded_context(device: int) -> int:
    """A new context of that driver."""
    function = ctypes.CDLL(str(embedded.libraries()[0])).clCreateContext
    function.restype = c_void_p
    return int(function(None, 1, byref(c_void_p(device)), None, None, byref(c_int())))


def any_device(library: Any = None) -> int:
    """The first device of the library."""
    count, platforms, devices = c_uint(), (c_void_p * 8)(), (c_void_p * 8)()
    library = library or _library()
    assert library.clGetPlatformIDs(8, platforms, byref(count)) == 0
    for platform in platforms[: count.value]:
        if library.clGetDeviceIDs(c_void_p(platform), c_uint64(0xFFFFFFFF), 8, devices, None) == 0:
            return int(devices[0] or 0)
    raise AssertionError("no device")


def user_event(context: int) -> int:
    """An event that `open_gate` completes."""
    return _made("clCreateUserEvent", c_void_p(context))


def open_gate(event: int) -> None:
    """Complete a user event."""
    assert _library().clSetUserEventStatus(c_void_p(event), 0) == 0


def is_done(event: int) -> bool:
    """Whether an event is complete."""
    return bool(_info("clGetEventInfo", event, 0x11D3, c_int) == 0)


def release_event(event: int) -> None:
    """Drop the application's reference."""
    assert _library().clReleaseEvent(c_void_p(event)) == 0
