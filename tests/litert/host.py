"""LiteRT's C interface from Python: tensor buffers and events that LiteRT's own package lacks."""

from __future__ import annotations

import ctypes
import importlib.util
from ctypes import byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clgpu_delegate.litert import package

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray
HOST, OPENCL = 1, 14  # kinds of tensor buffers
READ, WRITE = 0, 1  # modes of a lock
DEVICE, CONTEXT = 2, 4  # options of an environment
FLOAT32 = 1


class LiteRtError(Exception):
    """A function of LiteRT's has returned a status that is not 0."""


class _Any(ctypes.Structure):
    _fields_ = (("type", c_int), ("value", c_void_p))


class _Text(ctypes.Structure):
    _fields_ = (("type", c_int), ("value", c_char_p))


class _Option(ctypes.Structure):
    _fields_ = (("tag", c_int), ("value", _Any))


class _TensorType(ctypes.Structure):
    _fields_ = (("element", c_int), ("rank", c_int), ("dims", c_int * 8), ("strides", c_uint * 8))


def litert() -> Path | None:
    """LiteRT's library for C; none if the package has none."""
    spec = importlib.util.find_spec("ai_edge_litert")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("libLiteRt.so")
    return path if path.exists() else None


def _call(name: str, *arguments: Any) -> None:
    status = ctypes.CDLL(str(litert()))["LiteRt" + name](*arguments)
    if status != 0:
        raise LiteRtError(f"{name}: {status}")


class Object:
    """Something of LiteRT's that is destroyed explicitly; the kind is the end of its name."""

    kind = ""

    def __init__(self) -> None:
        self.handle = c_void_p()

    def destroy(self) -> None:
        """End its life; nothing else may be called then."""
        function = ctypes.CDLL(str(litert()))["LiteRtDestroy" + self.kind]
        function.restype = None
        function(self.handle)


class Environment(Object):
    """An environment that loads this package's accelerator from ``folder``."""

    kind = "Environment"

    def __init__(self, folder: Path, **options: int) -> None:
        super().__init__()
        self.folder = folder
        link = folder / package.LIBRARY
        if not link.exists():
            link.symlink_to(package.accelerator())
        text = _Text(8, str(folder).encode())
        given = [_Option(22, _Any.from_buffer_copy(bytes(text)))]
        tags = {"device": DEVICE, "context": CONTEXT}
        given += [_Option(tags[name], _Any(2, value)) for name, value in options.items()]
        array = (_Option * len(given))(*given)
        _call("CreateEnvironment", len(given), array, byref(self.handle))

    def option(self, tag: int) -> int | None:
        """The value of an option that is an integer or a pointer; none if it is not set."""
        options, value = c_void_p(), _Any()
        _call("GetEnvironmentOptions", self.handle, byref(options))
        try:
            _call("GetEnvironmentOptionsValue", options, tag, byref(value))
        except LiteRtError:
            return None
        return value.value


class Buffer(Object):
    """A tensor buffer of float32."""

    kind = "TensorBuffer"

    def __init__(
        self, environment: Environment, shape: tuple[int, ...], kind: int = OPENCL,
        memory: int | None = None, size: int | None = None,
    ) -> None:  # fmt: skip
        """``memory``: an OpenCL buffer of the application; ``size``: bytes, if not all."""
        super().__init__()
        self.shape = shape
        self.type = _TensorType(FLOAT32, len(shape), (c_int * 8)(*shape))
        size = 4 * int(np.prod(shape)) if size is None else size
        if memory is None:
            _call("CreateManagedTensorBuffer", environment.handle, kind, byref(self.type),
                  c_size_t(size), byref(self.handle))  # fmt: skip
        else:
            _call("CreateTensorBufferFromOpenClMemory", environment.handle, byref(self.type),
                  kind, c_void_p(memory), c_size_t(size), None, byref(self.handle))  # fmt: skip

    def lock(self, mode: int) -> Array:
        """The host's view, which ends with `unlock`."""
        data = c_void_p()
        _call("LockTensorBuffer", self.handle, byref(data), mode)
        count = int(np.prod(self.shape))
        array = (ctypes.c_float * count).from_address(data.value or 0)
        return np.frombuffer(array, np.float32).reshape(self.shape)

    def unlock(self) -> None:
        """End the view."""
        _call("UnlockTensorBuffer", self.handle)

    def write(self, array: Array) -> None:
        """Copy an array into the buffer."""
        self.lock(WRITE)[...] = array
        self.unlock()

    def read(self) -> Array:
        """Copy the contents."""
        array = self.lock(READ).copy()
        self.unlock()
        return array

    def clear(self) -> None:
        """Set all to zero."""
        _call("ClearTensorBuffer", self.handle)

    @property
    def memory(self) -> int:
        """The OpenCL object."""
        memory = c_void_p()
        _call("GetTensorBufferOpenClMemory", self.handle, byref(memory))
        assert memory.value is not None
        return memory.value

    def has_event(self) -> bool:
        """Whether something must be waited for before the buffer is used."""
        has = c_bool()
        _call("HasTensorBufferEvent", self.handle, byref(has))
        return has.value

    def attach(self, environment: Environment, event: int) -> None:
        """Let an OpenCL event be waited for before the buffer is used."""
        made = c_void_p()
        _call("CreateEventFromOpenClEvent", environment.handle, c_void_p(event), byref(made))
        _call("SetTensorBufferEvent", self.handle, made)

    def forget_event(self) -> None:
        """The buffer may be an output again."""
        _call("ClearTensorBufferEvent", self.handle)

    def wait(self) -> None:
        """Wait for its event on the host."""
        event = c_void_p()
        _call("GetTensorBufferEvent", self.handle, byref(event))
        _call("WaitEvent", event, c_int64(-1))


class Model(Object):
    """A compiled model with one signature."""

    kind = "CompiledModel"

    def __init__(
        self, environment: Environment, content: bytes, hardware: int = 2, *, profiled: bool = False
    ) -> None:
        """``hardware``: 1 the CPU, 2 the GPU, 3 both; ``profiled``: LiteRT's profiler may run."""
        super().__init__()
        path = environment.folder / f"{id(self)}.tflite"
        path.write_bytes(content)
        self._model, options = c_void_p(), c_void_p()
        _call("CreateModelFromFile", environment.handle, str(path).encode(), byref(self._model))
        _call("CreateOptions", byref(options))
        _call("SetOptionsHardwareAccelerators", options, hardware)
        if profiled:
            _call("AddOpaqueOptions", options, _profiling())
        try:
            _call("CreateCompiledModel", environment.handle, self._model, options,
                  byref(self.handle))  # fmt: skip
        finally:
            ctypes.CDLL(str(litert())).LiteRtDestroyOptions(options)

    def kinds(self, index: int = 0, *, is_input: bool = True) -> list[int]:
        """Kinds of buffers that an input or output takes, the default first."""
        requirements, count, kind = c_void_p(), c_int(), c_int()
        name = "Input" if is_input else "Output"
        _call(f"GetCompiledModel{name}BufferRequirements", self.handle, c_size_t(0),
              c_size_t(index), byref(requirements))  # fmt: skip
        _call("GetNumTensorBufferRequirementsSupportedBufferTypes", requirements, byref(count))
        kinds = []
        for i in range(count.value):
            _call("GetTensorBufferRequirementsSupportedTensorBufferType", requirements, i,
                  byref(kind))  # fmt: skip
            kinds.append(kind.value)
        return kinds

    def run(self, inputs: list[Buffer], outputs: list[Buffer]) -> None:
        """One inference."""
        _call("RunCompiledModel", self.handle, c_size_t(0), *_arrays(inputs, outputs))

    def run_async(self, inputs: list[Buffer], outputs: list[Buffer]) -> bool:
        """Begin an inference; false if it has ended already."""
        is_async = c_bool()
        _call("RunCompiledModelAsync", self.handle, c_size_t(0), *_arrays(inputs, outputs),
              byref(is_async))  # fmt: skip
        return is_async.value

    def profile(self, inference: Callable[[], None], times: int) -> str:
        """What LiteRT's profiler prints of so many inferences."""
        profiler, found = c_void_p(), c_char_p()
        _call("CompiledModelGetProfiler", self.handle, byref(profiler))
        _call("StartProfiler", profiler)
        for _ in range(times):
            inference()
        _call("StopProfiler", profiler)
        _call("GetProfileSummary", profiler, self.handle, byref(found))
        return (found.value or b"").decode()

    def destroy(self) -> None:
        """End its life."""
        super().destroy()
        ctypes.CDLL(str(litert())).LiteRtDestroyModel(self._model)


_PROFILING = ctypes.create_string_buffer(b"enable_profiling = true\n")
_KEEP = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)  # the text above is nobody's to free


def _profiling() -> c_void_p:
    options = c_void_p()
    _call("CreateOpaqueOptions", b"runtime_options_string", _PROFILING, _KEEP, byref(options))
    return options


def _arrays(inputs: list[Buffer], outputs: list[Buffer]) -> list[Any]:
    found: list[Any] = []
    for buffers in (inputs, outputs):
        handles = (c_void_p * len(buffers))(*[buffer.handle for buffer in buffers])
        found += [c_size_t(len(buffers)), handles]
    return found
