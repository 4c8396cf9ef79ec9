"""The command ``clgpu``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import dataclasses
import json
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from clgpu_delegate import cache, comparison, tuning
from clgpu_delegate.devices import devices
from clgpu_delegate.errors import ClgpuError, OptionError
from clgpu_delegate.explain import Explanation
from clgpu_delegate.memory import MemoryMap
from clgpu_delegate.quantization import command

app = typer.Typer(
    name="clgpu",
    help="TensorFlow Lite models on OpenCL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_Model = Annotated[Path, typer.Argument(help="A .tflite file.", metavar="MODEL")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Runtime = Annotated[
    Optional[str], typer.Option(help="ai_edge_litert, tflite_runtime or tensorflow.")
]
_Device = Annotated[str, typer.Option(help="Index of an OpenCL device, or part of its name.")]
_Precision = Annotated[str, typer.Option(help="fp32, fp16 or tf32.")]
_Ops = Annotated[str, typer.Option(help="all, or core for the families of convolution only.")]
_Engines = Annotated[str, typer.Option(help="Kernels to use: family=candidate,...")]
_Exclude = Annotated[str, typer.Option(help="Nodes to leave on the CPU: indices or op names.")]
_Tuning = Annotated[str, typer.Option(help="auto, off or exhaustive: whether tuned kernels count.")]
_Budget = Annotated[
    Optional[str], typer.Option(help="Device memory for the model, such as 64MiB or 1.5GB.")
]
_MaxObject = Annotated[
    Optional[str], typer.Option(help="Largest single buffer, as --memory-budget.")
]
_HalfWeights = Annotated[bool, typer.Option("--half-weights", help="Store weights as half.")]
_ZeroCopy = Annotated[
    str, typer.Option(help="auto or off: whether the device may work on inputs in place.")
]
_MinNodes = Annotated[int, typer.Option(help="Smaller partitions stay on the CPU.")]


@app.command()
def info(as_json: _Json = False) -> None:
    """List the OpenCL devices."""
    found = devices()
    if as_json:
        _print_json([device.to_dict() for device in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("index", "name", "type", "platform", "OpenCL", "units", "memory", "half"):
        table.add_column(heading)
    for device in found:
        table.add_row(
            str(device.index),
            device.name,
            device.type,
            device.platform,
            " ".join(device.opencl_version.split()[1:2]),  # "OpenCL 3.0 vendor's words"
            str(device.compute_units),
            f"{device.global_bytes / 2**30:.1f} GiB",
            "yes" if device.has_half else "storage only",
        )
    _print(table)


@app.command()
def explain(
    model: _Model,
    as_json: _Json = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="Show where the tensors lie in device memory instead.")
    ] = False,
    device: _Device = "",
    precision: _Precision = "fp32",
    ops: _Ops = "all",
    engines: _Engines = "",
    exclude: _Exclude = "",
    tuning: _Tuning = "auto",
    min_nodes: _MinNodes = 1,
    memory_budget: _Budget = None,
    max_object: _MaxObject = None,
    half_weights: _HalfWeights = False,
    zero_copy: _ZeroCopy = "auto",
    runtime: _Runtime = None,
) -> None:
    """Tell which nodes of a model the delegate claims, and why it leaves the others."""
    load = comparison.map_memory if memory else comparison.explain_model
    result: Explanation | MemoryMap = load(
        model,
        runtime=runtime,
        device=device,
        precision=precision,
        ops=ops,
        engines=engines,
        exclude=exclude,
        tuning=tuning,
        min_nodes=min_nodes,
        memory_budget=memory_budget,
        max_object=max_object,
        half_weights=half_weights,
        zero_copy=zero_copy,
    )
    if as_json:
        _print_json(result.to_dict())
    else:
        _print(Text(str(result)) if memory else result)


@app.command()
def run(
    model: _Model,
    as_json: _Json = False,
    runs: Annotated[int, typer.Option(help="Timed inferences of each.")] = 20,
    threads: Annotated[int, typer.Option(help="Of stock TFLite; 0: all cores.")] = 0,
    device: _Device = "",
    precision: _Precision = "fp32",
    ops: _Ops = "all",
    engines: _Engines = "",
    exclude: _Exclude = "",
    tuning: _Tuning = "auto",
    min_nodes: _MinNodes = 1,
    memory_budget: _Budget = None,
    max_object: _MaxObject = None,
    half_weights: _HalfWeights = False,
    zero_copy: _ZeroCopy = "auto",
    runtime: _Runtime = None,
) -> None:
    """Run a model through stock TensorFlow Lite and through the delegate, side by side."""
    result = comparison.compare(
        model,
        runtime=runtime,
        runs=runs,
        threads=threads or None,
        device=device,
        precision=precision,
        ops=ops,
        engines=engines,
        exclude=exclude,
        tuning=tuning,
        min_nodes=min_nodes,
        memory_budget=memory_budget,
        max_object=max_object,
        half_weights=half_weights,
        zero_copy=zero_copy,
    )
    if as_json:
        _print_json(result.to_dict())
    else:
        _print(result)


@app.command()
def tune(
    model: _Model,
    as_json: _Json = False,
    budget: Annotated[
        str, typer.Option(help="After this time, as in 90s or 2m, no further kernel is tried.")
    ] = "60s",
    again: Annotated[
        bool, typer.Option("--again", help="Measure what was measured before.")
    ] = False,
    device: _Device = "",
    precision: _Precision = "fp32",
    ops: _Ops = "all",
    engines: _Engines = "",
    exclude: _Exclude = "",
    min_nodes: _MinNodes = 1,
    memory_budget: _Budget = None,
    max_object: _MaxObject = None,
    half_weights: _HalfWeights = False,
    zero_copy: _ZeroCopy = "auto",
    runtime: _Runtime = None,
) -> None:
    """Measure which kernels are the fastest for a model, and keep the winners in the cache."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
        disable=as_json or not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task("reading the model", total=None)

        def show(done: int, count: int, op: str, candidate: str) -> None:
            bar.update(task, description=f"{op} {candidate}", completed=done, total=count)

        result = tuning.tune(
            model,
            budget=_seconds(budget),
            again=again,
            progress=show,
            runtime=runtime,
            device=device,
            precision=precision,
            ops=ops,
            engines=engines,
            exclude=exclude,
            min_nodes=min_nodes,
            memory_budget=memory_budget,
            max_object=max_object,
            half_weights=half_weights,
            zero_copy=zero_copy,
        )
    if as_json:
        _print_json(result.to_dict())
    else:
        _print(result)


app.command()(command.quantize)


_cache = typer.Typer(
    help="Look after the file that keeps compiled programs and tuned choices.",
    no_args_is_help=True,
)
app.add_typer(_cache, name="cache")
_CacheFile = Annotated[
    Optional[Path], typer.Option("--cache", help="Another file than the user's own cache.")
]


@_cache.command("list")
def cache_list(as_json: _Json = False, path: _CacheFile = None) -> None:
    """List what the cache keeps."""
    file, found = cache.resolve(path), cache.entries(path)
    if as_json:
        _print_json({"path": str(file), "entries": [entry.to_dict() for entry in found]})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind")
    table.add_column("what", overflow="fold")
    table.add_column("KiB", justify="right")
    table.add_column("made")
    table.add_column("used")
    for entry in found:
        days = (time.strftime("%Y-%m-%d", time.localtime(t)) for t in (entry.created, entry.used))
        table.add_row(entry.kind, Text(entry.label), f"{entry.bytes / 1024:.1f}", *days)
    if found:
        _print(table)
    total = sum(entry.bytes for entry in found)
    print(f"{file}: {_count(len(found))}, {total / 2**20:.1f} MiB")


@_cache.command("clear")
def cache_clear(
    kind: Annotated[
        Optional[str], typer.Option(help="Only these rows: program, tuning or probe.")
    ] = None,
    path: _CacheFile = None,
) -> None:
    """Delete what the cache keeps."""
    print(f"{cache.resolve(path)}: {_count(cache.clear(path, kind))} deleted")


@_cache.command("export")
def cache_export(
    file: Annotated[Path, typer.Argument(help="The file to write.")], path: _CacheFile = None
) -> None:
    """Write the cache to a file that another machine of the same kind can import."""
    print(f"{file}: {_count(cache.export_file(file, path))} written")


@_cache.command("import")
def cache_import(
    file: Annotated[Path, typer.Argument(help="A file that was exported.")],
    as_json: _Json = False,
    path: _CacheFile = None,
) -> None:
    """Add what another cache has exported. It contains machine code: trust its origin."""
    merged = cache.import_file(file, path)
    if as_json:
        _print_json(dataclasses.asdict(merged))
        return
    print(
        f"{cache.resolve(path)}: {_count(merged.added)} added, {merged.kept} there already, "
        f"{merged.damaged} damaged"
    )


def _count(rows: int) -> str:
    return f"{rows} {'row' if rows == 1 else 'rows'}"


def main() -> None:
    """Run the command; what went wrong is one sentence on standard error."""
    try:
        app()
    except ClgpuError as error:
        print(f"clgpu: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(s|m|min|h|)", text.strip())
    if match is None:
        raise OptionError(f"budget is {text!r}; allowed: a number of seconds, as in 90s or 2m")
    return float(match[1]) * {"m": 60, "min": 60, "h": 3600}.get(match[2], 1)


def _print(what: Any) -> None:
    # Narrow pipes would break tables apart; terminals know their width.
    console = Console()
    Console(width=None if console.is_terminal else 120).print(what)


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))
