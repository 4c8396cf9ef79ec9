"""A model through the stock runtime and through the delegate, side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.devices import Device
from clgpu_delegate.errors import ModelError, OptionError
from clgpu_delegate.explain import Explanation
from clgpu_delegate.files import read_model
from clgpu_delegate.inference import (
    as_our_error,
    make_interpreter,
    random_inputs,
    run_once,
    times_ms,
    usable_cores,
    worst_errors,
)
from clgpu_delegate.memory import MemoryMap
from clgpu_delegate.options import Settings
from clgpu_delegate.runtimes import find_runtime

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
    threads = threads or usable_cores()
    delegate = load(**settings)

    stock = make_interpreter(found, content, threads)
    inputs = random_inputs(stock, seed)
    with as_our_error(f"{found} without the delegate cannot run the model", ModelError):
        expected = run_once(stock, inputs)
    stock_ms = statistics.median(times_ms(stock, runs))
    del stock

    start = time.perf_counter()
    delegated = make_interpreter(found, content, threads, delegate)
    with as_our_error(f"{found} with the delegate cannot run the model"):
        got = run_once(delegated, inputs)
    first_ms = (time.perf_counter() - start) * 1e3
    delegate_ms = statistics.median(times_ms(delegated, runs))

    explanation = delegate.explain()
    max_abs_error, relative_l2_error = worst_errors(got, expected)
    return Comparison(
        model=str(model),
        runtime=str(found),
        threads=threads,
        device=delegate.device,
        explanation=explanation,
        max_abs_error=max_abs_error,
        relative_l2_error=relative_l2_error,
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
