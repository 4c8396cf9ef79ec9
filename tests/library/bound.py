"""The functions of clgpu_delegate.h that bind memory, for scripts of test_bound.py.

A script's arguments are the library's path and the runtime. The process sees an emulated driver
(tests/limits) and AHardwareBuffers in memory of the host (nativewindow.c).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from ctypes import Structure, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

BLOB, RGBA, RGBX, RGB565 = 0x21, 1, 2, 4
SAMPLED, DATA = 1 << 8, 1 << 24
GL_CONTEXT = 0x617  # the one that the emulated driver shares with
TEXTURE_2D, TEXTURE_EXTERNAL = 0x0DE1, 0x8D65


class _Desc(Structure):
    _fields_ = (
        *((name, c_uint) for name in ("width", "height", "layers", "format")),
        ("usage", ctypes.c_uint64), ("stride", c_uint), ("reserved0", c_uint),
        ("reserved1", ctypes.c_uint64),
    )  # fmt: skip


class _Gl(Structure):
    _fields_ = (("system", c_int), ("display", c_void_p), ("context", c_void_p))


class _Scaling(Structure):
    _fields_ = (("scale", c_float), ("offset", c_float))


class _Option(Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


library = ctypes.CDLL(sys.argv[1])
runtime = sys.argv[2]
layer = ctypes.CDLL(os.environ["CLGPU_OPENCL_LIBRARY"])
window = ctypes.CDLL("libnativewindow.so") if len(sys.argv) > 3 else None

for name in ("create", "create_with_gl", "import_hardware_buffer", "import_gl_buffer",
             "import_gl_texture"):  # fmt: skip
    getattr(library, f"clgpu_delegate_{name}").restype = c_void_p


class RefusedError(Exception):
    """A function has failed; the text is its sentence."""


def call(name: str, *arguments: Any) -> Any:
    """Call a function whose last argument is the error."""
    error = c_void_p(1)  # whatever it was before
    result = getattr(library, f"clgpu_delegate_{name}")(*arguments, byref(error))
    if not result:
        assert error.value, name
        text = ctypes.string_at(error.value).decode()
        library.clgpu_delegate_free(error)
        raise RefusedError(text)
    assert not error.value
    return result


@contextlib.contextmanager
def refused(*parts: str) -> Iterator[None]:
    """A call is refused, with a sentence that has these parts."""
    with pytest.raises((RefusedError, RuntimeError)) as error:
        yield
    for part in parts:
        assert part in str(error.value)


class Delegate:
    """A delegate of the library, as the runtimes' Python takes it."""

    def __init__(self, *, gl: int | None = None, **options: str) -> None:
        options.setdefault("cache", "off")
        pairs = (_Option * len(options))(*((k.encode(), v.encode()) for k, v in options.items()))
        if gl is None:
            self.pointer = c_void_p(call("create", pairs, c_size_t(len(options))))
        else:
            shared = _Gl(1, 1, gl)
            self.pointer = c_void_p(
                call("create_with_gl", pairs, c_size_t(len(options)), byref(shared))
            )

    def _get_native_delegate_pointer(self) -> int:
        assert self.pointer.value
        return self.pointer.value

    def destroy(self) -> None:
        library.clgpu_delegate_destroy(self.pointer)

    def hardware_buffer(self, buffer: HardwareBuffer) -> c_void_p:
        return c_void_p(call("import_hardware_buffer", self.pointer, buffer.pointer))

    def gl_buffer(self, name: int) -> c_void_p:
        return c_void_p(call("import_gl_buffer", self.pointer, c_uint(name)))

    def gl_texture(self, name: int, target: int = TEXTURE_2D, level: int = 0) -> c_void_p:
        return c_void_p(call("import_gl_texture", self.pointer, target, level, c_uint(name)))

    def bind(
        self, tensor: int, memory: c_void_p | None, scaling: tuple[float, float] | None = None
    ) -> None:
        given = None if scaling is None else byref(_Scaling(*scaling))
        assert call("bind", self.pointer, tensor, memory, given) == 1


def release(memory: c_void_p | None) -> None:
    """End the use of imported memory."""
    library.clgpu_delegate_release_memory(memory)


class HardwareBuffer:
    """An AHardwareBuffer; `array` is its memory, without the padding of rows."""

    def __init__(self, width: int, height: int = 1, form: int = BLOB, usage: int = -1) -> None:
        assert window is not None
        if usage < 0:
            usage = DATA if form == BLOB else SAMPLED
        desc = _Desc(width, height, 1, form, usage)
        self.pointer = c_void_p()
        window.AHardwareBuffer_allocate(byref(desc), byref(self.pointer))
        window.AHardwareBuffer_describe(self.pointer, byref(desc))
        memory = c_void_p()
        window.AHardwareBuffer_lock(self.pointer, 0, -1, None, byref(memory))
        window.AHardwareBuffer_unlock(self.pointer, None)
        assert memory.value
        shape = (width,) if form == BLOB else (height, desc.stride, 4)
        size = int(np.prod(shape))
        array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(memory.value))
        self.array = array.reshape(shape) if form == BLOB else array.reshape(shape)[:, :width]

    @property
    def references(self) -> int:
        assert window is not None
        return window.fake_references(self.pointer)

    def release(self) -> None:
        assert window is not None
        window.AHardwareBuffer_release(self.pointer)


def gl_texture(name: int, array: np.ndarray) -> None:
    """Make an array [height, width, 4] the memory of a texture."""
    height, width, _ = array.shape
    layer.limits_gl_texture(
        c_uint(name), c_size_t(width), c_size_t(height), int(array.dtype != np.uint8),
        c_void_p(array.ctypes.data),
    )  # fmt: skip


def gl_buffer(name: int, array: np.ndarray) -> None:
    """Make an array the memory of a buffer."""
    layer.limits_gl_buffer(c_uint(name), c_size_t(array.nbytes), c_void_p(array.ctypes.data))


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return zeros at the beginning of a page."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + size].view(dtype).reshape(shape)


def model(shape: tuple[int, ...] = (1, 6, 8, 3), dtype: Any = np.float32) -> bytes:
    """Return a model of y = softmax(tanh(x)); x is cast to float32."""
    m = ModelMaker()
    x = m.input("x", shape, dtype)
    if dtype != np.float32:
        x = m.op("CAST", [x], shape)
    x = m.op("SOFTMAX", [m.op("TANH", [x], shape)], shape)
    m.output(x)
    return m.build()


class Model:
    """An interpreter with one input and one output."""

    def __init__(self, data: bytes, delegate: Delegate | None) -> None:
        self.interpreter = make_interpreter(runtime, data, [delegate] if delegate else [])
        self.interpreter.allocate_tensors()
        self.x = self.interpreter.get_input_details()[0]["index"]
        self.y = self.interpreter.get_output_details()[0]["index"]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Run the copying way."""
        self.interpreter.set_tensor(self.x, x)
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.y)

    def invoke(self) -> None:
        self.interpreter.invoke()
