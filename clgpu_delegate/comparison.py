"""A model through the stock runtime and through the delegate, side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.devices import Device
from clgpu_delegate.errors import ClgpuError, ModelError, OptionError
from clgpu_delegate.explain import Explanation
from clgpu_delegate.files import read_model
from clgpu_delegate.memory import MemoryMap
from clgpu_delegate.options import Settings
from clgpu_delegate.runtimes import Runtime, find_runtime

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WIDTH = 100  # columns of str()


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` found."""

    model: str
    runtime: str
    threads: int
    """Of the stock run."""

    device: Device
    explanation: Explanation

    max_abs_error: float
    """Largest difference of any element of any output."""

    relative_l2_error: float
    """Norm of the difference over the norm of the stock output; of the worst output."""

    stock_ms: float
    """Median time of one inference."""

    delegate_ms: float
    """Median time of one inference, copies to and from the device included."""

    first_ms: float
    """Time to load the model into the delegate and to run it for the first time."""

    programs_built: int
    """Compiled from source for that; none where the cache has them all."""

    runs: int
    undone: bool
    """Whether the runtime silently took back what the delegate had claimed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        explanation = data.pop("explanation")
        return {
            **data,
            "device": self.device.to_dict(),
            "precision": explanation.precision,
            "claimed": explanation.claimed,
            "total": explanation.total,
            "partitions": len(explanation.partitions),
        }

    def __rich__(self) -> Table:
        plan = self.explanation
        partitions = len(plan.partitions)
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        device = self.device
        rows = {
            "model": self.model,
            "device": f"{device.name} ({device.platform})",
            "precision": plan.precision,
            "nodes": f"{plan.claimed} of {plan.total} on the device, in {partitions} "
            f"{'partition' if partitions == 1 else 'partitions'}",
            "largest error": f"{self.max_abs_error:.2g} absolute, "
            f"{self.relative_l2_error:.2g} relative L2",
            "stock TFLite": f"{self.stock_ms:.2f} ms ({self.runtime}, {self.threads} threads)",
            "clgpu_delegate": f"{self.delegate_ms:.2f} ms (loaded and first run in "
            f"{self.first_ms:.0f} ms, "
            f"{self.programs_built or 'no'} program{'s' * (self.programs_built != 1)} compiled)",
        }
        if self.undone:
            rows["warning"] = "the runtime undid the delegation; these numbers are of the CPU alone"
        for key, value in rows.items():
            table.add_row(Text(key), Text(value))
        table.caption = f"times are medians of {self.runs} runs"
        table.caption_justify = "left"
        return table

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return "\n".join(line.rstrip() for line in capture.get().strip().splitlines())


def compare(
    model: str | os.PathLike[str],
    *,
    runtime: str | None = None,
    runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
    **settings: Unpack[Settings],
) -> Comparison:
    """Run a model on random inputs, through the stock runtime and through the delegate.

    Parameters
    ----------
    model
        Path of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    runs
        Number of timed inferences of each; the first is not among them.
    threads
        Of the stock run; all cores this process may use if None.
    seed
        Of the inputs.
    **settings
        The fields of `Options`.

    Raises
    ------
    ClgpuError
        If the model cannot be read, an option is wrong, or there is no device or runtime.
    """
    if runs < 1:
        raise OptionError(f"runs is {runs}; allowed: 1 and more")
    content = read_model(model)
    found = find_runtime(runtime)
    threads = threads or _usable_cores()
    delegate = load(**settings)

    stock = make_interpreter(found, content, threads)
    inputs = random_inputs(stock, seed)
    with _as_our_error(f"{found} without the delegate cannot run the model"):
        expected = _run(stock, inputs)
    stock_ms = _median_ms(stock, runs)
    del stock

    start = time.perf_counter()
    delegated = make_interpreter(found, content, threads, delegate)
    with _as_our_error(f"{found} with the delegate cannot run the model"):
        got = _run(delegated, inputs)
    first_ms = (time.perf_counter() - start) * 1e3
    delegate_ms = _median_ms(delegated, runs)

    explanation = delegate.explain()
    errors = [_errors(g, e) for g, e in zip(got, expected)]
    return Comparison(
        model=str(model),
        runtime=str(found),
        threads=threads,
        device=delegate.device,
        explanation=explanation,
        max_abs_error=max((e[0] for e in errors), default=0.0),
        relative_l2_error=max((e[1] for e in errors), default=0.0),
        stock_ms=stock_ms,
        delegate_ms=delegate_ms,
        first_ms=first_ms,
        programs_built=delegate.stats()["load"]["programs_built"],
        runs=runs,
        undone=bool(explanation.partitions) and delegate.stats()["invokes"] == 0,
    )


def explain_model(
    model: str | os.PathLike[str], *, runtime: str | None = None, **settings: Unpack[Settings]
) -> Explanation:
    """Load a model into a delegate and tell what it claims; parameters as in `compare`."""
    delegate, _interpreter = _loaded(model, runtime, settings)
    return delegate.explain()


def map_memory(
    model: str | os.PathLike[str], *, runtime: str | None = None, **settings: Unpack[Settings]
) -> MemoryMap:
    """Load a model into a delegate and tell where its tensors lie; parameters as in `compare`."""
    delegate, _interpreter = _loaded(model, runtime, settings)
    return delegate.memory_map()


def _loaded(
    model: str | os.PathLike[str], runtime: str | None, settings: Settings
) -> tuple[Delegate, Any]:
    content = read_model(model)
    found = find_runtime(runtime)
    delegate = load(**settings)
    interpreter = make_interpreter(found, content, 1, delegate)
    # The plan may change once the runtime has settled the shapes.
    with contextlib.suppress(RuntimeError):
        interpreter.allocate_tensors()
    return delegate, interpreter


def make_interpreter(
    runtime: Runtime, content: bytes, threads: int, delegate: Delegate | None = None
) -> Any:
    """An interpreter, with the delegate or stock; a ModelError if the runtime rejects the model."""
    delegates = [] if delegate is None else [delegate]
    with _as_our_error(f"{runtime} cannot load the model"):
        return runtime.module.Interpreter(
            model_content=content, num_threads=threads, experimental_delegates=delegates
        )


def random_inputs(interpreter: Any, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Inputs that any model accepts: normal reals, codes of quantized tensors, else 0 and 1."""
    rng = np.random.default_rng(seed)
    inputs = []
    for detail in interpreter.get_input_details():
        shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
        value: np.ndarray[Any, Any]
        if dtype.kind == "f":
            value = rng.standard_normal(shape)
        elif dtype.kind in "iu" and detail["quantization"][0] != 0:
            limits = np.iinfo(dtype)
            value = rng.integers(limits.min, limits.max, shape, endpoint=True)
        else:
            # Token ids, masks: small numbers are in range.
            value = rng.integers(0, 1, shape, endpoint=True)
        inputs.append(value.astype(dtype))
    return inputs


@contextlib.contextmanager
def _as_our_error(what: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if isinstance(error, ClgpuError):
            raise
        raise ModelError(f"{what}: {' '.join(str(error).split())}") from None


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run(interpreter: Any, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def _median_ms(interpreter: Any, runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _errors(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> tuple[float, float]:
    difference = got.astype(np.float64) - expected.astype(np.float64)
    norm = float(np.linalg.norm(expected.astype(np.float64)))
    worst = float(np.abs(difference).max(initial=0.0))
    return worst, float(np.linalg.norm(difference)) / max(norm, 1e-30)
