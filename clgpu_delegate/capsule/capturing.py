"""Writing a bug capsule: the entry point."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.files import Source, check_writable, read_content, write_atomically
from clgpu_delegate.capsule import archive, facts
from clgpu_delegate.capsule.outcome import Outcome
from clgpu_delegate.capsule.privacy import scrub_all
from clgpu_delegate.capsule.samples import Inputs, inputs_of
from clgpu_delegate.capsule.trials import Bench
from clgpu_delegate.capsule.work import Work
from clgpu_delegate.errors import OptionError
from clgpu_delegate.options import Options, Settings, with_settings
from clgpu_delegate.runtimes import RuntimeName, find_runtime
from clgpu_delegate.tflite.inference import make_interpreter
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack

Progress = Callable[[int, int, str], None]

_MOST_NAMED = 8  # nodes in a line


@dataclasses.dataclass(frozen=True)
class Capture:
    """What `capture` found and wrote.

    Examples
    --------
    >>> found = clgpu_delegate.capture("model.tflite", "model.clgpu.zip", shrink=False)
    >>> found.outcome.failed
    False
    """

    path: str
    outcome: Outcome
    """What is wrong with the model that was written."""

    nodes: tuple[tuple[int, str], ...]
    """Index in the captured model, and operation, of the nodes that were written; empty where
    nothing but their bytes is known."""

    total: int
    """Nodes of the captured model."""

    shrunk: bool
    remark: str
    """Why the model was not shrunk, or not further."""

    trials: int
    """Times that the model or parts of it were run."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        lines = [str(self.outcome)]
        if self.shrunk:
            names = ", ".join(f"{i} {name}" for i, name in self.nodes[:_MOST_NAMED])
            more = len(self.nodes) - _MOST_NAMED
            lines.append(
                f"shrunk from {self.total} nodes to {len(self.nodes)} in {self.trials} trials: "
                + names + (f" and {more} more" if more > 0 else "")
            )  # fmt: skip
        if self.remark:
            lines.append(self.remark)
        return "\n".join(lines)


@with_settings
def capture(
    model: Source,
    out: str | os.PathLike[str],
    *,
    inputs: Inputs = None,
    runtime: RuntimeName | None = None,
    seed: int = 0,
    shrink: bool | None = None,
    tolerance: float | None = None,
    timeout: float = 300.0,
    budget: float = 300.0,
    progress: Progress | None = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Capture:
    """Run a model on the CPU and through the delegate, and write one file to reproduce a failure.

    The file has the smallest part of the model that fails in the same way, its inputs, the results
    of the CPU and of the delegate, options, kernels, the compiler's messages and the properties of
    the device; `replay` runs it elsewhere. It is also written if nothing fails. The model runs in
    separate processes, because it may crash or hang.

    Parameters
    ----------
    model
        Path or bytes of a .tflite file.
    out
        Path of the file to write, ``*.clgpu.zip`` by custom. It appears when all is done.
    inputs
        An array, if the model has one input, arrays by the inputs' names, or one per input in the
        model's order, or the path of a .npy or .npz file of these; of the inputs' types and shapes.
        None: random numbers.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    seed
        Seed of the random inputs.
    shrink
        Whether to look for the smallest part that fails; None: where that is possible.
    tolerance
        Largest relative L2 error of float outputs that is right; None: 1e-4 for fp32, 1e-2 for
        tf32, 2e-2 for fp16, and 5e-2 where int8 weights meet float activations. Quantised outputs
        may be off by a step, and by nothing if it is 0.
    timeout
        A run that takes longer than this many seconds counts as hung.
    budget
        Time limit of the search in seconds; after it, the smallest part found so far is kept.
    progress
        Called with the number of trials, the number of nodes left and the current step.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`. ``verify`` and ``profile`` have no effect here.

    Raises
    ------
    FileError, ModelError
        If the model or the inputs cannot be read, the CPU cannot run them, or the file cannot be
        written.
    InputError
        If the inputs or shapes do not fit the model.
    OptionError, DeviceError, RuntimeNotFoundError
        If an option is wrong, or there is no device or runtime.
    DependencyError
        If ``shrink`` is True and the packages ``tflite`` and ``flatbuffers`` are not installed.

    Examples
    --------
    >>> found = clgpu_delegate.capture("model.tflite", "model.clgpu.zip", inputs=x)
    >>> print(found.total)
    4
    """
    asked = Options.from_settings(**settings)
    for name, value in (("timeout", timeout), ("budget", budget)):
        if not value > 0:
            raise OptionError(f"{name} is {value}; allowed: seconds above 0")
    if tolerance is not None and not tolerance >= 0:
        raise OptionError(f"tolerance is {tolerance}; allowed: 0 and above")
    path = check_writable(out)
    content, found = read_content(model), find_runtime(runtime)
    content = resized(found, content, shapes)
    stock = make_interpreter(found, content, 1)
    nature, arrays = facts.Nature.of(content, stock), inputs_of(stock, inputs, seed)
    del stock
    limit = nature.tolerance(asked) if tolerance is None else tolerance
    options = facts.settings_of(asked, drop=("verify", "profile"))
    with Bench(found.name, reference=nature.integer, tolerance=limit, timeout=timeout) as bench:
        work = Work(bench, found, content, arrays, options, progress)
        work.first_run()
        if shrink is not False and work.trial.outcome.failed:
            work.shrink(budget, explicitly=shrink is True)
        work.look_closer()
        trials = bench.trials
    outcome = work.trial.outcome
    manifest = {
        **facts.versions(found),
        "outcome": scrub_all(outcome.to_dict()),
        "tolerance": limit,
        "reference_kernels": nature.integer,
        "inputs": f"random, seed {seed}" if inputs is None else "given",
        **work.model_facts(),
    }
    members = work.members(facts.settings_of(asked, drop=facts.LOCAL))
    write_atomically(path, archive.pack(members, manifest))
    return Capture(
        os.fspath(out), outcome, work.nodes, work.total, work.part is not None, work.remark, trials
    )


def default_path(model: str | os.PathLike[str]) -> Path:
    """The default path of a model's capsule, in the current folder."""
    return Path(Path(model).stem + ".clgpu.zip")
