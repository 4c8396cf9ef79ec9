"""A device through plain OpenCL calls, without the delegate: for tests of the layer itself."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

READ_WRITE, USE_HOST_PTR = 1, 8
REGION = 0x1220
RGBA_FLOAT = (0x10B5, 0x10DE)
IMAGE_2D, IMAGE_BUFFER = 0x10F1, 0x10F6


class ImageDesc(ctypes.Structure):
    """The struct cl_image_desc."""

    _fields_ = (
        [("type", c_uint)]
        + [(n, c_size_t) for n in ("width", "height", "depth", "array", "row", "slice")]
        + [("levels", c_uint), ("samples", c_uint), ("object", c_void_p)]
    )


class Device:
    """The first device of a library, with a context and a queue."""

    def __init__(self, library: Path) -> None:
        self._cl = ctypes.CDLL(str(library))
        self._made: dict[int, Any] = {}
        for name in ("Context", "CommandQueue", "Buffer", "SubBuffer", "Image", "Kernel"):
            getattr(self._cl, f"clCreate{name}").restype = c_void_p
        self._cl.clCreateProgramWithSource.restype = c_void_p
        self.platform, self.id = c_void_p(), c_void_p()
        self.check(self._cl.clGetPlatformIDs(1, byref(self.platform), None))
        self.check(
            self._cl.clGetDeviceIDs(self.platform, c_uint64(4), 1, byref(self.id), None)
        )  # a GPU
        self.context = self._make("Context", None, 1, byref(self.id), None, None)
        self.queue = self._make("CommandQueue", self.context, self.id, c_uint64(0))

    @staticmethod
    def check(code: int) -> None:
        """Raise the error code of a call, if it is one."""
        if code != 0:
            raise ClError(code)

    def _make(self, what: str, *arguments: Any) -> c_void_p:
        code = c_int()
        result = getattr(self._cl, f"clCreate{what}")(*arguments, byref(code))
        self.check(code.value)
        assert result
        return c_void_p(result)

    def info(self, what: int, kind: Any = c_uint) -> Any:
        """Return a fact: bytes of a text with ``kind=bytes``, else a number."""
        size = c_size_t()
        self.check(self._cl.clGetDeviceInfo(self.id, what, c_size_t(0), None, byref(size)))
        value = (ctypes.c_char * size.value)() if kind is bytes else kind()
        self.check(self._cl.clGetDeviceInfo(self.id, what, size, byref(value), None))
        return value.value if hasattr(value, "value") else list(value)

    def buffer(self, size: int, host: Any = None) -> c_void_p:
        """Create a buffer, over memory of the host if that is given."""
        flags = READ_WRITE | (USE_HOST_PTR if host is not None else 0)
        return self._make("Buffer", self.context, c_uint64(flags), c_size_t(size), host)

    def part(self, buffer: c_void_p, origin: int, size: int) -> c_void_p:
        """Create a sub-buffer."""
        region = (c_size_t * 2)(origin, size)
        return self._make("SubBuffer", buffer, c_uint64(READ_WRITE), REGION, region)

    def image(
        self, kind: int, width: int, height: int = 1, buffer: c_void_p | None = None
    ) -> c_void_p:
        """Create an image of four floats a texel."""
        desc = ImageDesc(type=kind, width=width, height=height, object=buffer)
        form = (c_uint * 2)(*RGBA_FLOAT)
        return self._make(
            "Image", self.context, c_uint64(READ_WRITE), form, byref(desc), c_void_p()
        )

    def release(self, memory: c_void_p) -> None:
        """Release a buffer or an image."""
        self.check(self._cl.clReleaseMemObject(memory))

    def kernel(self, source: str, name: str) -> c_void_p:
        """Build a program and return its kernel."""
        texts = (c_char_p * 1)(source.encode())
        program = self._make("ProgramWithSource", self.context, 1, texts, None)
        self.check(
            self._cl.clBuildProgram(program, 1, byref(self.id), b"-cl-std=CL1.2", None, None)
        )
        return self._make("Kernel", program, name.encode())

    def set(self, kernel: c_void_p, index: int, size: int, value: c_void_p | None) -> None:
        """Set an argument: an object, or None for local memory of ``size`` bytes."""
        pointer = None if value is None else byref(value)
        self.check(self._cl.clSetKernelArg(kernel, index, c_size_t(size), pointer))

    def kernel_work_group(self, kernel: c_void_p) -> int:
        """Return the most work-items that a work-group of this kernel can have."""
        value = c_size_t()
        self.check(
            self._cl.clGetKernelWorkGroupInfo(
                kernel, self.id, 0x11B0, c_size_t(8), byref(value), None
            )
        )
        return value.value

    def launch(self, kernel: c_void_p, items: list[int], group: list[int]) -> None:
        """Run a kernel and wait."""
        self.enqueue(kernel, items, group)
        self.check(self._cl.clFinish(self.queue))

    def flush(self) -> None:
        """Let the queue begin what waits in it."""
        self.check(self._cl.clFlush(self.queue))

    def enqueue(self, kernel: c_void_p, items: list[int], group: list[int]) -> None:
        """Launch a kernel, no more."""
        n = len(items)
        self.check(
            self._cl.clEnqueueNDRangeKernel(
                self.queue, kernel, n, None, (c_size_t * n)(*items), (c_size_t * n)(*group),
                0, None, None,
            )
        )  # fmt: skip


class ClError(Exception):
    """A call has failed; the argument is OpenCL's code."""
