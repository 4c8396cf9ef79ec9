"""Loading a model into a runtime and running it, with errors of this package."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clgpu_delegate.base.number_types import kind_of
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.errors import ClgpuError, ModelError, OptionError
from clgpu_delegate.runtimes import Runtime

# What runtimes append to the delegate's message, without a space.
_RESTORED = "Restored original execution plan after delegate application failure."

Array = np.ndarray[Any, Any]


def make_interpreter(
    runtime: Runtime,
    content: bytes | Path,
    threads: int,
    delegate: object = None,
    *,
    reference: bool = False,
) -> Any:
    """An interpreter, with a `clgpu_delegate.Delegate` or, where that is None, stock.

    A path is mapped into memory instead of read. With ``reference``, nodes on the CPU run the
    reference kernels of TensorFlow Lite, which are plain loops.

    Raises
    ------
    OptionError
        If ``threads`` is below 1.
    ModelError
        If the runtime rejects the model, delegate or not.
    ClgpuError
        If it does so because of the delegate.
    """
    if threads < 1:
        raise OptionError(f"threads is {threads}; allowed: 1 and more")

    types = runtime.module.OpResolverType
    resolver = types.BUILTIN_REF if reference else types.AUTO

    named = isinstance(content, Path)
    source = {"model_path": str(content)} if named else {"model_content": content}

    def make(delegates: list[object]) -> Any:
        return runtime.module.Interpreter(
            **source, num_threads=threads, experimental_delegates=delegates,
            experimental_op_resolver_type=resolver,
        )  # fmt: skip

    if delegate is None:
        with as_our_error(f"{runtime} cannot load the model", ModelError):
            return make([])
    try:
        return make([delegate])
    except (RuntimeError, ValueError) as error:
        with as_our_error(f"{runtime} cannot load the model", ModelError):
            make([])
        with as_our_error(f"{runtime} with the delegate cannot load the model"):
            raise error


@contextlib.contextmanager
def as_our_error(what: str, kind: type[ClgpuError] = ClgpuError) -> Iterator[None]:
    """Turn what a runtime raises into an error of this package, in one line."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if isinstance(error, ClgpuError):
            raise
        text = one_line(str(error).replace(_RESTORED, " "))
        # Without enough memory, runtimes give no message.
        raise kind(f"{what}: {text or 'it gave no reason'}") from None
    except MemoryError:
        raise kind(f"{what}: there is not enough memory") from None


def random_inputs(interpreter: Any, seed: int = 0) -> list[Array]:
    """Inputs that any model accepts: normal reals, codes of quantized tensors, else 0 and 1.

    Raises
    ------
    ModelError
        If they are larger than the machine's memory.
    """
    rng = np.random.default_rng(seed)
    return [_random_input(rng, detail) for detail in interpreter.get_input_details()]


def _random_input(rng: np.random.Generator, detail: dict[str, Any]) -> Array:
    shape, dtype = tuple(int(size) for size in detail["shape"]), np.dtype(detail["dtype"])
    value: Array
    try:
        if kind_of(dtype) == "f":
            value = rng.standard_normal(shape)
        elif dtype.kind in "iu" and detail["quantization"][0] != 0:
            limits = np.iinfo(dtype)
            value = rng.integers(limits.min, limits.max, shape, endpoint=True)
        else:
            # Token ids, masks: small numbers are in range.
            value = rng.integers(0, 1, shape, endpoint=True)
        return value.astype(dtype)
    except (MemoryError, ValueError):  # numpy has a largest array
        gib = math.prod(shape) * dtype.itemsize / 2**30
        raise ModelError(
            f"the input {detail['name']} of {dtype} has the shape {list(shape)}: its {gib:,.1f} "
            "GiB cannot be allocated"
        ) from None


def run_once(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    """Allocate, set the inputs, run, and return the outputs."""
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def output_names(interpreter: Any) -> list[str]:
    """Names of the outputs; one without, or with that of another, is named by its position."""
    names: list[str] = []
    for position, detail in enumerate(interpreter.get_output_details()):
        name = detail["name"]
        names.append(name if name and name not in names else f"output {position}")
    return names


def times_ms(interpreter: Any, runs: int) -> list[float]:
    """Times of inferences on the inputs that are set."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        interpreter.invoke()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def worst_errors(got: Sequence[Array], expected: Sequence[Array]) -> tuple[float, float]:
    """Largest difference of any element, and largest relative L2 norm of it, of any output."""
    pairs = [_errors(g, e) for g, e in zip(got, expected)]
    return max((p[0] for p in pairs), default=0.0), max((p[1] for p in pairs), default=0.0)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _errors(got: Array, expected: Array) -> tuple[float, float]:
    difference = got.astype(np.float64) - expected.astype(np.float64)
    norm = float(np.linalg.norm(expected.astype(np.float64)))
    worst = float(np.abs(difference).max(initial=0.0))
    return worst, float(np.linalg.norm(difference)) / max(norm, 1e-30)
