"""OpenCL through ctypes, in a separate process; it works without the compiled extension.

Every function returns plain data and may crash with the driver that it calls.
"""

from __future__ import annotations

import ctypes
import os
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

_KERNEL = b"""
__kernel void check(__global const float* x, __global float* y, float a) {
  const size_t i = get_global_id(0);
  y[i] = fma(a, x[i], (float)i);
}
"""
_COUNT = 1024
_PLATFORM = {"version": 0x0901, "name": 0x0902, "vendor": 0x0903}
_DEVICE = {"name": 0x102B, "vendor": 0x102C, "driver_version": 0x102D, "version": 0x102F}
_TYPE, _UNITS, _MEMORY, _AVAILABLE, _COMPILER, _EXTENSIONS = (
    0x1000, 0x1002, 0x101F, 0x1027, 0x1028, 0x1030,
)  # fmt: skip
_ALL_DEVICES = 0xFFFFFFFF
_BUILD_LOG = 0x1183
_RELATIVE = "{} is a relative path; allowed: an absolute path, or a name without '/'"


def load_vendor(path: str) -> dict[str, Any]:
    """Open a vendor's library as a loader does; returns its count of platforms, or an error."""
    if _is_relative(path):
        return {"error": _RELATIVE.format(path)}
    system = ctypes.CDLL(None)
    system.dlopen.restype, system.dlopen.argtypes = c_void_p, [c_char_p, c_int]
    system.dlerror.restype = c_char_p
    handle = system.dlopen(os.fsencode(path), os.RTLD_LAZY | os.RTLD_LOCAL)
    if not handle:
        return {"error": os.fsdecode(system.dlerror() or b"dlopen failed")}
    library = ctypes.CDLL(path, handle=handle)
    try:
        find = library.clGetExtensionFunctionAddress
    except AttributeError:
        return {"error": f"{path} is not an OpenCL driver: it lacks clGetExtensionFunctionAddress"}
    find.restype, find.argtypes = c_void_p, [c_char_p]
    address = find(b"clIcdGetPlatformIDsKHR")
    if not address:
        return {
            "error": f"{path} is not an OpenCL driver for a loader: it lacks clIcdGetPlatformIDsKHR"
        }
    count = c_uint32()
    get = ctypes.CFUNCTYPE(c_int, c_uint32, c_void_p, POINTER(c_uint32))(address)
    code = get(0, None, byref(count))
    return {"platforms": count.value if code == 0 else 0, "code": code}


def list_platforms(path: str) -> dict[str, Any]:
    """The platforms of a library, each with its devices."""
    try:
        library = _open(path)
    except (OSError, AttributeError) as error:
        return {"error": str(error), "platforms": []}
    count = c_uint32()
    code = library.clGetPlatformIDs(0, None, byref(count))
    platforms: Any = (c_void_p * count.value)() if code == 0 else []
    if count.value and code == 0:
        library.clGetPlatformIDs(count, platforms, None)
    found = []
    for platform in platforms:
        devices, failure = _devices(library, platform)
        ask = library.clGetPlatformInfo
        facts = {key: _text(ask, platform, what) for key, what in _PLATFORM.items()}
        found.append(
            {
                **facts,
                "code": failure,
                "devices": [_describe(library, device) for device in devices],
            }
        )
    return {"error": "", "code": code, "platforms": found, "file": _file_of(library)}


def run_kernel(path: str, platform: int, device: int) -> dict[str, Any]:
    """Compile a kernel and run it; returns the times in seconds, and an error or none."""
    library = _open(path)
    count = c_uint32()
    _check("clGetPlatformIDs", library.clGetPlatformIDs(0, None, byref(count)))
    platforms = (c_void_p * count.value)()
    library.clGetPlatformIDs(count, platforms, None)
    chosen = (c_void_p * 1)(_devices(library, platforms[platform])[0][device])
    code = c_int()

    def made(name: str, *arguments: Any) -> c_void_p:
        handle = getattr(library, name)(*arguments, byref(code))
        _check(name, code.value)
        return c_void_p(handle)

    context = made("clCreateContext", None, 1, chosen, None, None)
    queue = made("clCreateCommandQueue", context, c_void_p(chosen[0]), c_uint64(0))
    start = time.perf_counter()
    source, size = c_char_p(_KERNEL), c_size_t(len(_KERNEL))
    program = made("clCreateProgramWithSource", context, 1, byref(source), byref(size))
    built = library.clBuildProgram(program, 1, chosen, b"", None, None)
    if built != 0:
        log = ctypes.create_string_buffer(4096)
        library.clGetProgramBuildInfo(
            program, c_void_p(chosen[0]), _BUILD_LOG, c_size_t(4096), log, None
        )
        return {
            "error": f"clBuildProgram failed ({built})",
            "log": log.value.decode("utf-8", "replace"),
        }
    kernel = made("clCreateKernel", program, b"check")
    compiled = time.perf_counter()
    values = (ctypes.c_float * _COUNT)(*(0.5 * i for i in range(_COUNT)))
    got = (ctypes.c_float * _COUNT)()
    size = c_size_t(ctypes.sizeof(values))
    x = made("clCreateBuffer", context, c_uint64(4 | 32), size, values)  # read only, copied
    y = made("clCreateBuffer", context, c_uint64(2), size, None)  # write only
    factor = ctypes.c_float(3.0)
    for index, value in enumerate((x, y, factor)):
        bytes_ = c_size_t(ctypes.sizeof(value))
        _check("clSetKernelArg", library.clSetKernelArg(kernel, index, bytes_, byref(value)))
    work = (c_size_t * 1)(_COUNT)
    launched = library.clEnqueueNDRangeKernel(queue, kernel, 1, None, work, None, 0, None, None)
    _check("clEnqueueNDRangeKernel", launched)
    read = library.clEnqueueReadBuffer(queue, y, 1, c_size_t(0), size, got, 0, None, None)
    _check("clEnqueueReadBuffer", read)
    wrong = sum(got[i] != 2.5 * i for i in range(_COUNT))  # exact in float
    done = time.perf_counter()
    return {
        "error": f"{wrong} of {_COUNT} numbers are wrong" if wrong else "",
        "compile_seconds": compiled - start,
        "run_seconds": done - compiled,
    }


def _is_relative(path: str) -> bool:
    """Whether the name would load a file of the current folder."""
    return "/" in path and not path.startswith("/")


def _open(path: str) -> ctypes.CDLL:
    if _is_relative(path):
        raise OSError(_RELATIVE.format(path))
    library = ctypes.CDLL(path)
    # Handles are pointers: without these they would be cut to 32 bits.
    for name in (
        "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clCreateKernel",
        "clCreateBuffer",
    ):  # fmt: skip
        getattr(library, name).restype = c_void_p
    library.clGetPlatformIDs.argtypes = [c_uint32, c_void_p, POINTER(c_uint32)]
    information: Any = [c_void_p, c_uint32, c_size_t, c_void_p, POINTER(c_size_t)]
    library.clGetPlatformInfo.argtypes = library.clGetDeviceInfo.argtypes = information
    library.clGetDeviceIDs.argtypes = [c_void_p, c_uint64, c_uint32, c_void_p, POINTER(c_uint32)]
    return library


def _check(name: str, code: int) -> None:
    if code != 0:
        raise RuntimeError(f"{name} failed ({code})")


def _devices(library: Any, platform: Any) -> tuple[list[int], int]:
    count = c_uint32()
    code = library.clGetDeviceIDs(platform, c_uint64(_ALL_DEVICES), 0, None, byref(count))
    if code != 0 or count.value == 0:
        return [], code
    devices = (c_void_p * count.value)()
    code = library.clGetDeviceIDs(platform, c_uint64(_ALL_DEVICES), count, devices, None)
    return (list(devices) if code == 0 else []), code


def _describe(library: Any, device: int) -> dict[str, Any]:
    ask = library.clGetDeviceInfo
    kinds = {1: "cpu", 2: "gpu", 3: "accelerator"}
    kind = _number(ask, device, _TYPE, c_int64())
    return {
        **{key: _text(ask, device, what) for key, what in _DEVICE.items()},
        # Emulators report several types at once.
        "type": next((name for bit, name in kinds.items() if kind >> bit & 1), "other"),
        "units": _number(ask, device, _UNITS, c_uint32()),
        "bytes": _number(ask, device, _MEMORY, c_uint64()),
        "half": "cl_khr_fp16" in _text(ask, device, _EXTENSIONS).split(),
        "usable": bool(
            _number(ask, device, _AVAILABLE, c_uint32())
            and _number(ask, device, _COMPILER, c_uint32())
        ),
    }


def _number(ask: Any, handle: int, what: int, value: Any) -> int:
    ask(handle, what, ctypes.sizeof(value), byref(value), None)
    return int(value.value)


def _text(ask: Any, handle: Any, what: int) -> str:
    size = c_size_t()
    if ask(handle, what, 0, None, byref(size)) != 0 or size.value == 0:
        return ""
    text = ctypes.create_string_buffer(size.value)
    ask(handle, what, size.value, text, None)
    return text.value.decode("utf-8", "replace").strip()


def _file_of(library: Any) -> str:
    """The file that a name such as libOpenCL.so.1 was resolved to."""
    try:
        address = ctypes.cast(library.clGetPlatformIDs, c_void_p).value or 0
        with open("/proc/self/maps") as maps:  # noqa: PTH123  # no file, and read line by line
            for line in maps:
                first, last = (int(end, 16) for end in line.split()[0].split("-"))
                if first <= address < last:
                    return line.split(maxsplit=5)[5].strip()
    except (OSError, ValueError, IndexError):
        pass
    return ""
