"""The two libraries that fail on demand, from Python."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from clgpu_delegate.base.embedded import libraries
from tests.limits.build import LayerError, shared_library

FOLDER = Path(__file__).parent
SOURCES = FOLDER.parents[1] / "src_cpp"
KINDS = ("context", "queue", "memory", "program", "kernel", "event")

ALLOCATIONS = "CLGPU_TEST_ALLOCATIONS"  # names the library that fails to allocate, if it is loaded


def layer(folder: Path) -> Path:
    """Return the path of the OpenCL library that fails on demand, compiled unless it is there."""
    sources = [FOLDER / "layer.cpp", SOURCES / "cl" / "api.hpp"]
    what = "failing calls of OpenCL are emulated by"
    return shared_library("faults", sources, folder, what, include=SOURCES)


def allocations(folder: Path) -> Path:
    """Return the path of the library that fails to allocate memory on demand."""
    what = "failing allocations are emulated by"
    return shared_library("allocations", [FOLDER / "allocations.cpp"], folder, what)


def real_library() -> str:
    """Return the path of the OpenCL library that tests use here.

    That of an emulated device, if there is one (--limits), of a package, or of the first device.
    Raises LayerError if no path is known.
    """
    import clgpu_delegate  # noqa: PLC0415  # a parent process may do without

    if emulated := os.environ.get("CLGPU_OPENCL_LIBRARY"):
        return emulated
    if (embedded := next(iter(libraries()), None)) is not None:
        return str(embedded)
    try:
        found = clgpu_delegate.devices()[0].library
    except clgpu_delegate.DeviceError as error:
        raise LayerError(str(error)) from None
    if "/" in found:
        return found
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if found in line:
            return line.split(maxsplit=5)[5]
    message = f"no file of {found} is known"
    raise LayerError(message)


def environment(folder: Path, *, fail_allocations: bool = False) -> dict[str, str]:
    """Return the environment variables for a process that uses the layer."""
    variables = {"CLGPU_OPENCL_LIBRARY": str(layer(folder)), "FAULTS_LIBRARY": real_library()}
    if fail_allocations:
        path = str(allocations(folder))
        variables.update(
            {"LD_PRELOAD": path, ALLOCATIONS: path, "FAULTS_CALLER": "clgpu_delegate/_core."}
        )
    return variables


class Layer:
    """The OpenCL library of this process."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(os.environ["CLGPU_OPENCL_LIBRARY"])
        for name in ("calls", "failed", "live", "host_commands", "events"):
            getattr(library, f"faults_{name}").restype = ctypes.c_long
        for name in ("name", "misuse"):
            getattr(library, f"faults_{name}").restype = ctypes.c_char_p
        library.faults_set.restype = ctypes.c_bool
        library.faults_peak_bytes.restype = ctypes.c_size_t
        number = library.faults_functions()
        self.functions = [library.faults_name(i).decode() for i in range(number)]

    def fail(self, call: str, code: int, skip: int = 0, count: int = 1) -> None:
        """Make a call fail: `count` times (negative: always) after `skip` others."""
        found = self._library.faults_set(
            call.encode(), code, ctypes.c_long(skip), ctypes.c_long(count)
        )
        assert found, f"the layer has no {call}"

    def lose_device(self, code: int, skip: int) -> None:
        """Make all calls fail permanently, after `skip` others."""
        self._library.faults_lose_device(code, ctypes.c_long(skip))

    def lose_queue(self, code: int, skip: int) -> None:
        """Make all commands of one queue fail permanently: that of the launch after `skip`."""
        self._library.faults_lose_queue(code, ctypes.c_long(skip))

    def refuse_host_pointers(self, code: int, skip: int = 0, count: int = 1) -> None:
        """Make `fail` of objects in memory of the program alone."""
        self._library.faults_refuse_host_pointers(code, ctypes.c_long(skip), ctypes.c_long(count))

    def clear(self) -> None:
        """No call fails any more."""
        self._library.faults_clear()

    def reset(self) -> None:
        """Reset all counters."""
        self._library.faults_reset_counts()

    def calls(self) -> dict[str, int]:
        """Return how often each function was called."""
        return {name: self._library.faults_calls(i) for i, name in enumerate(self.functions)}

    @property
    def failed(self) -> int:
        """Calls that have failed on demand."""
        return self._library.faults_failed()

    def live(self) -> dict[str, int]:
        """Return the number of objects that exist, by kind."""
        return {kind: self._library.faults_live(i) for i, kind in enumerate(KINDS)}

    def tell_number(self, what: int, bits: int) -> None:
        """Set the answer of all devices to a query of a number."""
        self._library.faults_tell_number(what, ctypes.c_uint64(bits))

    def tell_name(self, name: bytes) -> None:
        """Set the name of all devices."""
        self._library.faults_tell_name(name)

    def tell_type(self, index: int, bits: int) -> None:
        """Set the type of the device that is queried as the `index`-th one."""
        self._library.faults_tell_type(ctypes.c_size_t(index), ctypes.c_uint64(bits))

    @property
    def events(self) -> int:
        """Events that commands were asked for since the start of the process."""
        return self._library.faults_events()

    @property
    def host_commands(self) -> int:
        """Commands that may still use host memory."""
        return self._library.faults_host_commands()

    @property
    def peak_bytes(self) -> int:
        """The most device memory since the last reset."""
        return self._library.faults_peak_bytes()

    @property
    def misuse(self) -> str:
        """A line for each use of a released object; empty if there was none."""
        return self._library.faults_misuse().decode()


class Allocations:
    """`operator new` of the extension in this process."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(os.environ[ALLOCATIONS])
        library.allocations_watch.restype = ctypes.c_bool
        for name in ("seen", "thrown"):
            getattr(library, f"allocations_{name}").restype = ctypes.c_long

    def watch(self, after: int = -1) -> None:
        """Count calls; the one after `after` others throws, unless that is negative."""
        assert self._library.allocations_watch(ctypes.c_long(after)), "the extension is not loaded"

    def rest(self) -> None:
        """Stop counting."""
        self._library.allocations_rest()

    @property
    def seen(self) -> int:
        """Calls since `watch`."""
        return self._library.allocations_seen()

    @property
    def thrown(self) -> int:
        """The number of calls that have thrown."""
        return self._library.allocations_thrown()


def can_preload(folder: Path) -> bool:
    """Whether a process starts with the library that fails to allocate."""
    try:
        path = allocations(folder)
    except LayerError:
        return False
    done = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": str(path)}, check=False)
    return done.returncode == 0
