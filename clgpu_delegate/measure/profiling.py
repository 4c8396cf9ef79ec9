"""Running a model to profile it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from clgpu_delegate.base import files
from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.progress import Bar, Option
from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.errors import ClgpuError, OptionError
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.profiling import plotting
from clgpu_delegate.profiling.profile import Profile
from clgpu_delegate.runtimes import RuntimeName, find_runtime
from clgpu_delegate.tflite import inference
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WARM_UP = 3  # inferences: drivers compile at the first, clocks rise during the next


@with_settings
def profile_model(
    model: str | os.PathLike[str],
    *,
    runs: int = 20,
    html: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    csv: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    runtime: RuntimeName | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: Option = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Profile:
    """Run a model on random inputs and tell where the time goes.

    Parameters
    ----------
    model
        A .tflite file.
    runs
        Inferences after the warm-up; the last 32 at most are recorded.
    html, trace, csv, plot
        Files to write as `Profile.to_html`, `Profile.to_chrome_trace`, `Profile.to_csv` and
        `Profile.plot` do. Whether that is possible is checked before the model runs.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    threads
        For the nodes that are left on the CPU.
    seed
        Of the inputs.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals, or a
        function to call with ``"running"``, the number of inferences done, and of all.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`; ``profile`` is always on.

    Raises
    ------
    FileError
        If the model cannot be read, or a file not be written.
    InputError
        If the shapes do not fit the model's inputs.
    DependencyError
        If ``plot`` is asked for and matplotlib is not installed.
    ClgpuError
        If the model cannot be run, no node of it is on the device, or there is no device or
        runtime.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=3)
    >>> profile.inferences
    3
    """
    if runs < 1:
        raise OptionError(f"runs is {runs}; at least 1 is needed")
    for out in (html, trace, csv, plot):
        if out is not None:
            files.check_writable(out)
    if plot is not None:
        plotting.check(plot)
    content = files.read_model(model)
    found = find_runtime(runtime)
    content = resized(found, content, shapes)
    settings["profile"] = True
    delegate = load(**settings)
    interpreter = inference.make_interpreter(found, content, threads, delegate)
    with inference.as_our_error(f"{found} with the delegate cannot run the model"):
        interpreter.allocate_tensors()
        inputs = inference.random_inputs(interpreter, seed)
        with Bar(progress) as bar:
            spans = _run(delegate, interpreter, inputs, runs, bar)
    if not delegate.explain().partitions:
        raise ClgpuError(
            "no node of the model runs on the device, so there is nothing to profile; "
            "explain shows why"
        )
    result = delegate._profile(os.fspath(model), spans)
    if html is not None:
        result.to_html(html)
    if trace is not None:
        result.to_chrome_trace(trace)
    if csv is not None:
        result.to_csv(csv)
    if plot is not None:
        result.plot(plot)
    return result


def _run(
    delegate: Delegate, interpreter: Any, inputs: list[Any], runs: int, bar: Bar
) -> list[tuple[int, int]]:
    """Nanoseconds of the monotonic clock in which each inference began and ended."""
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    spans = []
    bar.stage("running", _WARM_UP + runs)
    for number in range(_WARM_UP + runs):
        if number == _WARM_UP:
            delegate.reset_profile(runs)
        start = time.monotonic_ns()
        interpreter.invoke()
        spans.append((start, time.monotonic_ns()))
        bar.step()
    return spans[_WARM_UP:]
