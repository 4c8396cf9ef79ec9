"""A model through the stock runtime and through the delegate, side by side."""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clgpu_delegate.base.arranging import Shapes, plain
from clgpu_delegate.base.files import check_writable, read_arrays, read_model, write_arrays
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.errors import ClgpuError, ModelError, OptionError
from clgpu_delegate.litert.compiled import Api, open_delegated, open_stock, runtime_for
from clgpu_delegate.measure import turns
from clgpu_delegate.measure.job import REFERENCE_S, Job, measure
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.runner.tensors import Arrays, bind, tensor
from clgpu_delegate.runtimes import Runtime, RuntimeName
from clgpu_delegate.tflite.inference import (
    Array,
    as_our_error,
    output_names,
    random_inputs,
    run_once,
    usable_cores,
    worst_errors,
)
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclasses.dataclass(frozen=True)
class Beside:
    """The delegate on another device, with the same options."""

    device: Device
    delegate_ms: float | None
    """Median time of one inference; None where it fails."""

    problem: str = ""
    """Why it fails."""


@dataclasses.dataclass(frozen=True)
class Comparison(Shown):
    """What `compare` found.

    Examples
    --------
    >>> result = clgpu_delegate.compare("model.tflite", runs=1)
    >>> result.relative_l2_error < 1e-5
    True
    """

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

    outputs: Mapping[str, Array]
    """What the delegate computed first, by the outputs' names."""

    beside: tuple[Beside, ...] = ()
    """Results of the first device of each other type, if requested."""

    api: str = "interpreter"
    """The runtime's interface, as in `compare`."""

    own_gpu_ms: float | None = None
    """Median time of LiteRT's own GPU, where ``api`` is ``"compiled"`` and it takes the model."""

    own_gpu_problem: str = ""
    """Why it has no time."""

    reference_max_abs_error: float | None = None
    """Of a quantised model: largest difference from the runtime's reference kernels, which define
    its results. None otherwise, and where `reference_problem` says why."""

    reference_relative_l2_error: float | None = None
    """The same as a norm, as `relative_l2_error`."""

    stock_reference_max_abs_error: float | None = None
    """How far the stock run, with optimised kernels, is from the reference kernels."""

    stock_reference_relative_l2_error: float | None = None
    """The same as a norm."""

    reference_problem: str = ""
    """Why there are no results of the reference kernels."""

    busy: float | None = None
    """Share of all cores that other work used before anything was timed; None: not known."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        explanation = data.pop("explanation")
        outputs = data.pop("outputs")
        details = explanation.to_dict()
        return {
            **data,
            "device": self.device.to_dict(),
            "beside": [
                {**dataclasses.asdict(other), "device": other.device.to_dict()}
                for other in self.beside
            ],
            "precision": explanation.precision,
            "arithmetic": explanation.arithmetic,
            "claimed": explanation.claimed,
            "total": explanation.total,
            "partitions": explanation.partition_count,
            "placement": details["placement"],
            "notes": details["notes"],
            "verification": details.get("verification"),
            "outputs": [
                {"name": name, "shape": list(output.shape), "dtype": output.dtype.name}
                for name, output in outputs.items()
            ],
        }

    def __rich__(self) -> Group:
        plan = self.explanation
        partitions = plan.partition_count
        table = Table(head=False)
        table.add_column()
        table.add_column(fold=True)
        device = self.device
        is_quantized = self.reference_max_abs_error is not None or bool(self.reference_problem)
        compiled = " with CompiledModel" if self.api == "compiled" else ""
        rows = {
            "model": self.model,
            "device": _named(device),
            "precision": plan.arithmetic,
            "nodes": f"{plan.claimed} of {plan.total} on the device, in {partitions} "
            f"{'partition' if partitions == 1 else 'partitions'}",
            "largest error": _errors(self.max_abs_error, self.relative_l2_error)
            + (" from the stock run" if is_quantized else ""),
            **({"to reference": self._to_reference()} if is_quantized else {}),
            "stock TFLite": f"{self.stock_ms:.2f} ms ({self.runtime}{compiled}, {self.threads} "
            "threads)",
            "clgpu_delegate": f"{self.delegate_ms:.2f} ms (loaded and first run in "
            f"{self.first_ms:.0f} ms, "
            f"{self.programs_built or 'no'} program{'s' * (self.programs_built != 1)} compiled)",
        }
        if self.api == "compiled":
            own = self.own_gpu_problem or f"{self.own_gpu_ms:.2f} ms"
            rows["LiteRT's GPU"] = own
        if self.undone:
            rows["warning"] = "the runtime undid the delegation; these numbers are of the CPU alone"
        for key, value in rows.items():
            table.add_row(Text(key), Text(value))
        for other in self.beside:
            what = other.problem or f"{other.delegate_ms:.2f} ms"
            table.add_row("beside", Text(f"{what} on {_named(other.device)}"))
        if plan.placement is not None:
            table.add_row("placement", Text(str(plan.placement)))
        for check in plan.verification.partitions if plan.verification else ():
            style = "" if check.is_good else "yellow"
            table.add_row("verification", Text(str(check), style))
        notes = [Text(f"note: {note}") for note in plan.notes]
        return Group(table, *notes, *(Text(remark, "dim italic") for remark in self._remarks()))

    def _to_reference(self) -> str:
        """How far both are from the reference kernels, in words."""
        if self.reference_max_abs_error is None or self.reference_relative_l2_error is None:
            return f"not known: the reference kernels: {self.reference_problem}"
        ours = _errors(self.reference_max_abs_error, self.reference_relative_l2_error)
        stock = _errors(
            self.stock_reference_max_abs_error or 0.0, self.stock_reference_relative_l2_error or 0.0
        )
        return f"{ours}; stock run: {stock}"

    def _remarks(self) -> list[str]:
        """What readers must know about the times."""
        remarks = [f"times are medians of {self.runs} runs, in turns"]
        if self.device.type == "cpu":
            remarks.append(
                "OpenCL runs on the CPU here, on the same cores: this shows that the model runs, "
                "not how fast a GPU is"
            )
        if self.busy is not None and self.busy > turns.BUSY:
            remarks.append(
                f"other work used {self.busy:.0%} of the cores: the times are unreliable, try again"
            )
        return remarks

    def __str__(self) -> str:
        return as_text(self)


@with_settings
def compare(
    model: str | os.PathLike[str],
    *,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
    inputs: Arrays | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    every_device: bool = False,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Comparison:
    """Run a model through the stock runtime and through the delegate, on the same inputs.

    Parameters
    ----------
    model
        Path of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel. With that, LiteRT's own GPU
        is timed, too, in another process.
    runs
        Number of timed inferences of each. They run in turns, and start when the cores are idle,
        after ten seconds at the latest.
    threads
        Threads of the stock run; None: all cores that this process may use.
    seed
        Seed of random inputs.
    inputs
        Instead of random ones: an array, if the model has one input, a list of them in its order,
        or a mapping from the inputs' names; or the path of a .npy or .npz file of these. Shapes and
        types are those of the model.
    out
        A .npz file to write with the delegate's outputs, by their names.
    every_device
        Time the delegate on the first device of each other type, too.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If the model or the inputs cannot be read, or the outputs cannot be written.
    InputError
        If the inputs or shapes do not fit the model.
    ClgpuError
        If an option is wrong, or there is no device or runtime.

    Examples
    --------
    >>> result = clgpu_delegate.compare("model.tflite", runs=3, inputs=x)
    >>> [output.shape for output in result.outputs.values()]
    [(1, 5)]
    """
    path = None if out is None else check_writable(out)
    if runs < 1:
        raise OptionError(f"runs is {runs}; allowed: 1 and more")
    content = read_model(model)
    given = read_arrays(inputs) if isinstance(inputs, (str, os.PathLike)) else inputs
    found = runtime_for(api, runtime)
    content = resized(found, content, shapes)
    threads = threads or usable_cores()
    load(**settings)  # its errors come first

    stock = open_stock(api, found, content, threads)
    specs = [tensor(detail) for detail in stock.get_input_details()]
    values = random_inputs(stock, seed) if given is None else bind(given, specs, "input")
    with as_our_error(f"{found} without the delegate cannot run the model", ModelError):
        expected = run_once(stock, values)
    start = time.perf_counter()
    delegated, delegate = open_delegated(api, found, content, threads, settings)
    with as_our_error(f"{found} with the delegate cannot run the model"):
        got = run_once(delegated, values)
    first_ms = (time.perf_counter() - start) * 1e3
    ways = {"stock": stock.invoke, "delegate": delegated.invoke}
    others: dict[str, Beside] = {}
    for device in _others(delegate) if every_device else ():
        key = f"device {device.index}"
        on_other: Settings = {**settings, "device": device.index}
        try:
            other, _ = open_delegated(api, found, content, threads, on_other)
            with as_our_error(f"{found} with the delegate cannot run the model"):
                run_once(other, values)
        except ClgpuError as error:
            others[key] = Beside(device, None, str(error).splitlines()[0])
        else:
            others[key] = Beside(device, None)
            ways[key] = other.invoke
    own_gpu_ms, own_gpu_problem = None, ""
    if api == "compiled":
        try:
            job = Job(
                os.fspath(model),
                found.name,
                threads,
                runs,
                api=api,
                own_gpu=True,
                shapes=plain(shapes),
            )
            own_gpu_ms = statistics.median(measure(job)[0]["times_ms"])
        except ClgpuError as error:
            own_gpu_problem = str(error)
    explanation = delegate.explain()
    to_reference = (
        _against_reference(found, model, shapes, threads, values, got, expected)
        if explanation.is_quantized
        else {}
    )
    busy = turns.wait_until_quiet()
    medians = turns.medians_ms(ways, runs)

    names = output_names(delegated)
    if path is not None:
        write_arrays(path, dict(zip(names, got)))
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
        stock_ms=medians["stock"],
        delegate_ms=medians["delegate"],
        first_ms=first_ms,
        programs_built=delegate.stats()["load"]["programs_built"],
        runs=runs,
        undone=bool(explanation.partitions) and delegate.stats()["invokes"] == 0,
        **to_reference,
        outputs=dict(zip(names, got)),
        beside=tuple(
            dataclasses.replace(other, delegate_ms=medians.get(key))
            for key, other in others.items()
        ),
        api=api,
        own_gpu_ms=own_gpu_ms,
        own_gpu_problem=own_gpu_problem,
        busy=busy,
    )


def _named(device: Device) -> str:
    return f"{device.name} ({device.platform})"


def _others(delegate: Delegate) -> list[Device]:
    """The first device of each type other than that of the delegate's device."""
    firsts: dict[str, Device] = {}
    for device in devices():
        firsts.setdefault(device.type, device)
    return [device for kind, device in firsts.items() if kind != delegate.device.type]


def _errors(largest: float, relative: float) -> str:
    return f"{largest:.2g} absolute, {relative:.2g} relative L2"


def _against_reference(
    runtime: Runtime, model: str | os.PathLike[str], shapes: Shapes | None, threads: int,
    inputs: Sequence[Array], got: Sequence[Array], stock: Sequence[Array],
) -> dict[str, Any]:  # fmt: skip
    """The fields of `Comparison` about the reference kernels."""
    with tempfile.TemporaryDirectory(prefix="clgpu-") as folder:
        path = Path(folder, "inputs.npz")
        np.savez(path, **{f"{i:06d}": value for i, value in enumerate(inputs)})
        job = Job(
            os.fspath(model), runtime.name, threads, runs=0, shapes=plain(shapes), reference=True,
            inputs=str(path),
        )  # fmt: skip
        try:
            _, reference = measure(job, REFERENCE_S)
        except ClgpuError as error:
            return {"reference_problem": str(error)}
    ours, theirs = worst_errors(got, reference), worst_errors(stock, reference)
    return {
        "reference_max_abs_error": ours[0],
        "reference_relative_l2_error": ours[1],
        "stock_reference_max_abs_error": theirs[0],
        "stock_reference_relative_l2_error": theirs[1],
    }
