"""``python -m bench``: the project's measurements."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from bench import conv as conv_bench
from bench import guard as guard_bench
from bench import nets as nets_bench
from bench import placement as placement_bench
from bench import pynet as pynet_bench
from bench import recording as recording_bench
from bench import stream as stream_bench
from bench.figures import command as figures_command
from bench.plans import facts as facts_bench
from bench.plans import snapshots as snapshots_bench
from bench.record import VARIABLE, Sheet
from clgpu_delegate import ClgpuError

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


_Names = Annotated[Optional[list[str]], typer.Argument(help="Networks; all when none is given.")]
_Runtime = Annotated[str, typer.Option(help="auto, tflite_runtime or ai_edge_litert.")]
_Device = Annotated[str, typer.Option(help="OpenCL device: index or part of its name.")]
_Threads = Annotated[
    int, typer.Option(min=0, help="Threads of the stock CPU kernels; 0 uses all cores.")
]
_Precision = Annotated[str, typer.Option(help="Those of the delegate, separated by commas.")]
_Torch = Annotated[bool, typer.Option(help="Compare with PyTorch where it finds a GPU.")]
_Csv = Annotated[Optional[Path], typer.Option(help="File to write.")]
_Json = Annotated[
    Optional[Path], typer.Option(help="File to write, with commit, device and driver in it.")
]
_Commit = Annotated[
    str, typer.Option(envvar=VARIABLE, help="For the JSON file, where git does not tell it.")
]
_Rows = Annotated[
    Optional[list[str]], typer.Argument(help="Fronts of the rows' names; all when none is given.")
]
_Write = Annotated[
    Optional[Path], typer.Option(help="Write the .tflite file, and measure nothing.")
]
_Folder = Annotated[Optional[Path], typer.Option(help="Of further .tflite files.")]
_Against = Annotated[
    Optional[list[str]],
    typer.Option(help="A commit that is built and measured in turns; several may be given."),
]
_Baseline = Annotated[Optional[Path], typer.Option(help="File, instead of that of the device.")]
_Markdown = Annotated[Optional[Path], typer.Option(help="File to write, for a note.")]
_Profiles = Annotated[
    Optional[list[str]], typer.Option(help="Device profiles; all when none is given.")
]
_Plot = Annotated[Optional[Path], typer.Option(help="PNG file to write.")]


@app.command()
def nets(
    context: typer.Context,
    names: _Names = None,
    batch: Annotated[str, typer.Option(help="Sizes: 1,16")] = "1,16",
    precision: Annotated[
        str, typer.Option(help="Those of the delegate; int8: the network quantised.")
    ] = "fp32,tf32,fp16",
    tuning: Annotated[str, typer.Option(help="auto, off or exhaustive, as in Options.")] = "auto",
    csv: _Csv = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    threads: _Threads = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, at most.")] = 20,
    budget: Annotated[float, typer.Option(help="Seconds of timing per network.")] = 3.0,
    torch: _Torch = True,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure networks on the delegate, the stock CPU and, where there is a GPU, PyTorch."""
    with _mistakes():
        nets_bench.run(
            names or (),
            batches=_sizes(batch),
            precisions=_split(precision),
            tuning=tuning,
            csv=csv,
            device=device,
            runtime=runtime,
            threads=threads or None,
            rounds=rounds,
            budget_s=budget,
            use_torch=torch,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def conv(
    context: typer.Context,
    scale: Annotated[float, typer.Option(help="Of height and width; 0.25 for slow devices.")] = 1.0,
    precision: _Precision = "fp32,tf32,fp16",
    engines: Annotated[
        str, typer.Option(help="Candidates or fronts of their names; 'default': the chosen one.")
    ] = "",
    layers: Annotated[str, typer.Option(help="Numbers and ranges: 1,4-6")] = "",
    csv: _Csv = None,
    plot: _Plot = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each, at most.")] = 7,
    budget: Annotated[float, typer.Option(help="Seconds of timing per layer and engine.")] = 0.15,
    torch: _Torch = True,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure the 35 convolution layers of PyNET by every engine that the device offers."""
    with _mistakes():
        conv_bench.run(
            scale=scale,
            precisions=_split(precision),
            engines=_split(engines),
            layers=layers,
            device=device,
            runtime=runtime,
            rounds=rounds,
            budget_s=budget,
            use_torch=torch,
            csv=csv,
            plot=plot,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def pynet(
    context: typer.Context,
    rows: _Rows = None,
    size: Annotated[
        str,
        typer.Option(help="Of the raw image: 1488x1984, the default of GPUs, is 12 megapixels."),
    ] = "",
    width: Annotated[float, typer.Option(help="Factor on all filter counts.")] = 1.0,
    write: _Write = None,
    flavour: Annotated[str, typer.Option(help="Of the file: pt or tf.")] = "pt",
    memory_budget: Annotated[
        int, typer.Option(min=0, help="Bytes, for a row of your own instead of the usual ones.")
    ] = 0,
    max_object: Annotated[int, typer.Option(min=0, help="Bytes, for such a row.")] = 0,
    engines: Annotated[str, typer.Option(help="As in Options, for such a row.")] = "",
    precision: Annotated[str, typer.Option(help="Of such rows.")] = "fp32,fp16",
    tuning: Annotated[str, typer.Option(help="auto, off or exhaustive, as in Options.")] = "auto",
    csv: _Csv = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    threads: _Threads = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, at most.")] = 5,
    budget: Annotated[float, typer.Option(help="Seconds of timing per row.")] = 3.0,
    stock: Annotated[bool, typer.Option(help="Compare with the stock CPU where it can.")] = True,
    torch: _Torch = True,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure PyNET inside budgets of device memory, or write its file."""
    with _mistakes():
        if write is not None:
            net = pynet_bench.make_net(_image_size(size) or pynet_bench.FULL_SIZE, width, flavour)
            write.write_bytes(net.build())
            return
        ways = []
        if memory_budget or max_object or engines:
            ways = [
                pynet_bench.Way("own", p, engines, memory_budget or None, max_object or None)
                for p in _split(precision)
            ]
        pynet_bench.run(
            ways,
            names=rows or (),
            size=_image_size(size),
            width=width,
            csv=csv,
            device=device,
            runtime=runtime,
            tuning=tuning,
            threads=threads or None,
            rounds=rounds,
            budget_s=budget,
            stock=stock,
            use_torch=torch,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def recording(
    context: typer.Context,
    names: _Names = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Timed batches of each, at most.")] = 20,
    budget: Annotated[float, typer.Option(help="Seconds of timing per network.")] = 10.0,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure what the option profile costs."""
    with _mistakes():
        recording_bench.run(
            names or (),
            device=device,
            runtime=runtime,
            rounds=rounds,
            budget_s=budget,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def stream(
    context: typer.Context,
    names: _Names = None,
    precision: _Precision = "fp32",
    scale: Annotated[
        float, typer.Option(help="Of batches and of heights; 0.1 for slow devices.")
    ] = 1.0,
    count: Annotated[int, typer.Option(min=1, help="Inputs of a sequence.")] = 16,
    depth: Annotated[int, typer.Option(min=1, help="Inferences in flight.")] = 3,
    zero_copy: Annotated[str, typer.Option(help="As in Options.")] = "auto",
    csv: _Csv = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Timed sequences of each, at most.")] = 5,
    budget: Annotated[float, typer.Option(help="Seconds of timing per network.")] = 3.0,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure sequences of images through a Runner, and by invoke() in a loop."""
    with _mistakes():
        stream_bench.run(
            names or (),
            precisions=_split(precision),
            scale=scale,
            device=device,
            runtime=runtime,
            zero_copy=zero_copy,
            count=count,
            depth=depth,
            rounds=rounds,
            budget_s=budget,
            csv_path=csv,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def placement(
    context: typer.Context,
    names: _Names = None,
    folder: _Folder = None,
    precision: Annotated[str, typer.Option(help="Of the delegate.")] = "fp32",
    csv: _Csv = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    threads: Annotated[int, typer.Option(min=1, help="Of the CPU kernels.")] = 1,
    visits: Annotated[int, typer.Option(min=1, help="Times that each way is loaded.")] = 3,
    budget: Annotated[float, typer.Option(help="Seconds of timing per visit.")] = 0.3,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Measure models on the CPU, on the device, and as placement="auto" and "measured" do."""
    with _mistakes():
        placement_bench.run(
            names or (),
            folder=folder,
            csv_path=csv,
            runtime=runtime,
            threads=threads,
            visits=visits,
            budget_s=budget,
            device=device,
            precision=precision,
            json=Sheet.of(context, json, commit),
        )


@app.command()
def facts(
    file: Annotated[Path, typer.Argument(help="To write, bench/plans/profiles/NAME.json.")],
    names: _Names = None,
    device: _Device = "",
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core, to 8.")] = 0,
) -> None:
    """Record what a device and its driver answer, for the snapshots of plans."""
    with _mistakes():
        facts_bench.record(file, names=names or (), device=device, workers=workers)


@app.command()
def plans(
    names: _Names = None,
    profile: _Profiles = None,
    write: Annotated[bool, typer.Option(help="Keep the plans of today.")] = False,
) -> None:
    """Compare plans for devices that need not be there with those that are kept."""
    with _mistakes():
        if not snapshots_bench.run(names or (), profiles=profile or (), write=write):
            raise typer.Exit(1)


@app.command()
def guard(
    device: _Device = "",
    against: _Against = None,
    write: Annotated[bool, typer.Option("--write", help="Keep this run as the baseline.")] = False,
    baseline: _Baseline = None,
    only: Annotated[
        str, typer.Option(help="Items: words of their names, as in 'resnet50 fp16,layer-8'.")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A few items of each kind.")] = False,
    scale: Annotated[
        float, typer.Option(help="Of the layers' height and width; 0: 1 on GPUs, else 0.125.")
    ] = 0.0,
    plans: Annotated[bool, typer.Option(help="Compare plans with the kept ones.")] = True,
    time_limit: Annotated[
        float, typer.Option(help="Seconds until no round is begun; 0: 230 for each build.")
    ] = 0.0,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each item, at most.")] = 9,
    processes: Annotated[
        int, typer.Option(min=0, help="That compile; 0: half the cores, to 8.")
    ] = 0,
    everything: Annotated[bool, typer.Option("--all", help="Show what is the same, too.")] = False,
    markdown: _Markdown = None,
    json: _Json = None,
    commit: _Commit = "",
) -> None:
    """Tell what a change of the C++ or the kernels made worse on this device; exits 1 then."""
    with _mistakes():
        outcome = guard_bench.run(
            guard_bench.Request(
                device=device,
                against=tuple(against or ()),
                write=write,
                baseline=baseline,
                only=tuple(_split(only)),
                quick=quick,
                scale=scale,
                plans=plans,
                time_limit=time_limit,
                rounds=rounds,
                processes=processes,
                commit=commit,
            ),
            everything=everything,
            markdown=markdown,
            json=json,
        )
    if outcome.failures:
        raise typer.Exit(1)


@app.command()
def figures(
    write: Annotated[
        bool, typer.Option("--write", help="Write what differs, instead of showing it.")
    ] = False,
) -> None:
    """Compare the tables and charts of README.md and docs with the files of bench/figures."""
    raise typer.Exit(figures_command.run(write=write))


@contextlib.contextmanager
def _mistakes() -> Iterator[None]:
    try:
        yield
    except (ValueError, ClgpuError) as error:
        raise typer.BadParameter(str(error)) from None


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _sizes(text: str) -> list[int]:
    sizes = _split(text)
    for size in sizes:
        if not size.isdecimal() or int(size) < 1:
            raise ValueError(f"{size!r} is no batch size")
    return [int(size) for size in sizes]


def _image_size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    height, _, width = text.partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise ValueError(f"{text!r} is no size, as 1488x1984 is")
    return int(height), int(width)


if __name__ == "__main__":
    app()
