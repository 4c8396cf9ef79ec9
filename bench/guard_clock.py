"""The calibration kernel of ``python -m bench guard``: a fixed amount of float arithmetic.

It calls OpenCL through ctypes, and its source is here. So no change of ``src_cpp`` or ``kernels``
affects its time, and it can be measured together with any commit of the package.
"""

from __future__ import annotations

import ctypes
import dataclasses
import statistics
import time
from typing import Any

SOURCE = """
__kernel void calibrate(__global float* out, const int steps, const float m, const float c) {
  const float x = (float)(get_global_id(0) & 1023);
  float a0 = x, a1 = x + 1, a2 = x + 2, a3 = x + 3, a4 = x + 4, a5 = x + 5, a6 = x + 6, a7 = x + 7;
  for (int i = 0; i < steps; ++i) {
    a0 = mad(a0, m, c); a1 = mad(a1, m, c); a2 = mad(a2, m, c); a3 = mad(a3, m, c);
    a4 = mad(a4, m, c); a5 = mad(a5, m, c); a6 = mad(a6, m, c); a7 = mad(a7, m, c);
  }
  out[get_global_id(0)] = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
}
"""
_FACTOR, _TERM = 0.999, 0.001  # numbers stay near 1
_GROUP = 64
_ITEMS_PER_UNIT = 2048  # fills a compute unit of any GPU so far
_WANTED_S = 2e-3  # of one launch, for choosing the work
_EMPTY = 256  # nearly empty launches that are timed as one

_PROFILE_TYPE_ALL = 0xFFFFFFFF
_WRITE_ONLY = 1 << 1
_PLATFORM_NAME, _DEVICE_NAME, _UNITS, _BUILD_LOG = 0x0902, 0x102B, 0x1002, 0x1183


@dataclasses.dataclass(frozen=True)
class Work:
    """The work of a launch of the calibration kernel: work-items, and steps of each."""

    items: int
    steps: int


class Clock:
    """Times the calibration kernel on a device.

    Parameters
    ----------
    library, platform, device
        The file of the OpenCL library, and the names of the platform and the device.
    position
        Of the device among those of the same name.
    work
        The work of a launch; None: chosen so that it takes about two milliseconds.

    Raises
    ------
    RuntimeError
        If an OpenCL call fails.
    """

    def __init__(
        self, library: str, platform: str, device: str, position: int = 0, work: Work | None = None
    ) -> None:
        self._api = ctypes.CDLL(library)
        self._device = self._find(platform, device, position)
        devices = (ctypes.c_void_p * 1)(self._device)
        self._context = self._object("clCreateContext", None, 1, devices, None, None)
        self._queue = self._object(
            "clCreateCommandQueue", self._context, self._device, ctypes.c_ulong(0)
        )
        text = (ctypes.c_char_p * 1)(SOURCE.encode())
        program = self._object("clCreateProgramWithSource", self._context, 1, text, None)
        self._build(program)
        self._kernel = self._object("clCreateKernel", program, b"calibrate")
        units = ctypes.c_uint()
        self._call("clGetDeviceInfo", self._device, _UNITS, _size(4), ctypes.byref(units), None)
        items = work.items if work else _ITEMS_PER_UNIT * units.value
        self._out = self._object(
            "clCreateBuffer", self._context, ctypes.c_ulong(_WRITE_ONLY), _size(4 * items), None,
        )  # fmt: skip
        self._set(0, self._out)
        self._set(2, ctypes.c_float(_FACTOR))
        self._set(3, ctypes.c_float(_TERM))
        self.work = work or self._choose(items)
        """The work of a launch that takes `seconds`."""

    def seconds(self, runs: int = 2) -> float:
        """Return the seconds of one launch: the mean of several that are waited for once."""
        return self._time(self.work, runs)

    def launch_seconds(self, rounds: int = 5) -> float:
        """Return the median seconds of a nearly empty launch, with many in flight."""
        nothing = Work(_GROUP, 1)
        self._time(nothing, _EMPTY)
        return statistics.median(self._time(nothing, _EMPTY) for _ in range(rounds))

    def _choose(self, items: int) -> Work:
        def least(steps: int) -> float:
            return min(self._time(Work(items, steps), 1) for _ in range(4))

        steps = 64
        while (seconds := least(steps)) < _WANTED_S / 2 and steps < 1 << 20:
            steps *= 2
        seconds = min(seconds, least(steps))  # clock rates are high now
        return Work(items, max(16, round(steps * _WANTED_S / seconds)))

    def _time(self, work: Work, runs: int) -> float:
        self._set(1, ctypes.c_int(work.steps))
        total, group = (ctypes.c_size_t * 1)(work.items), (ctypes.c_size_t * 1)(_GROUP)
        enqueue, queue, kernel = self._api.clEnqueueNDRangeKernel, self._queue, self._kernel
        arguments = [
            queue, kernel, ctypes.c_uint(1), None, total, group,
            ctypes.c_uint(0), None, None,
        ]  # fmt: skip
        start = time.perf_counter()
        for _ in range(runs):
            if code := enqueue(*arguments):
                raise RuntimeError(f"clEnqueueNDRangeKernel failed with {code}")
        self._call("clFinish", queue)
        return (time.perf_counter() - start) / runs

    def _find(self, platform: str, device: str, position: int) -> ctypes.c_void_p:
        found: list[ctypes.c_void_p] = []
        for each in self._list("clGetPlatformIDs"):
            if self._text("clGetPlatformInfo", each, _PLATFORM_NAME) != platform.strip():
                continue
            kind = ctypes.c_ulong(_PROFILE_TYPE_ALL)
            for one in self._list("clGetDeviceIDs", each, kind):
                if self._text("clGetDeviceInfo", one, _DEVICE_NAME) == device.strip():
                    found.append(one)
        if position >= len(found):
            raise RuntimeError(f"no device {device!r} ({platform}) was found a second time")
        return found[position]

    def _list(self, name: str, *arguments: Any) -> list[ctypes.c_void_p]:
        count = ctypes.c_uint()
        self._call(name, *arguments, ctypes.c_uint(0), None, ctypes.byref(count))
        handles = (ctypes.c_void_p * count.value)()
        self._call(name, *arguments, count, handles, None)
        return [ctypes.c_void_p(handle) for handle in handles if handle]

    def _text(self, name: str, handle: ctypes.c_void_p, what: int, *before: Any) -> str:
        size = ctypes.c_size_t()
        question = (handle, *before, ctypes.c_uint(what))
        self._call(name, *question, _size(0), None, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value + 1)
        self._call(name, *question, size, text, None)
        return text.value.decode(errors="replace").strip()

    def _build(self, program: ctypes.c_void_p) -> None:
        code = self._api.clBuildProgram(program, ctypes.c_uint(0), None, None, None, None)
        if code:
            log = self._text("clGetProgramBuildInfo", program, _BUILD_LOG, self._device)
            raise RuntimeError(f"the calibration kernel does not build ({code}): {log}")

    def _set(self, index: int, value: Any) -> None:
        self._call(
            "clSetKernelArg", self._kernel, ctypes.c_uint(index), _size(ctypes.sizeof(value)),
            ctypes.byref(value),
        )  # fmt: skip

    def _object(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        error = ctypes.c_int()
        function = getattr(self._api, name)
        function.restype = ctypes.c_void_p
        handle = function(*arguments, ctypes.byref(error))
        if error.value or not handle:
            raise RuntimeError(f"{name} failed with {error.value}")
        return ctypes.c_void_p(handle)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._api, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with {code}")


def _size(value: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(value)
