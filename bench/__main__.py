"""``python -m bench``: the project's measurements."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from bench import conv as conv_bench
from bench import nets as nets_bench
from clgpu_delegate import ClgpuError

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


_Names = Annotated[Optional[list[str]], typer.Argument(help="Networks; all when none is given.")]
_Runtime = Annotated[str, typer.Option(help="auto, tflite_runtime or ai_edge_litert.")]
_Device = Annotated[str, typer.Option(help="OpenCL device: index or part of its name.")]
_Threads = Annotated[int, typer.Option(min=0, help="Of the stock CPU kernels; 0: all cores.")]
_Precision = Annotated[str, typer.Option(help="Those of the delegate, separated by commas.")]
_Torch = Annotated[bool, typer.Option(help="Compare with PyTorch where it finds a GPU.")]
_Csv = Annotated[Optional[Path], typer.Option(help="File to write.")]
_Plot = Annotated[Optional[Path], typer.Option(help="PNG file to write.")]


@app.command()
def nets(
    names: _Names = None,
    batch: Annotated[str, typer.Option(help="Sizes: 1,16")] = "1,16",
    precision: _Precision = "fp32,tf32,fp16",
    tuning: Annotated[str, typer.Option(help="auto, off or exhaustive, as in Options.")] = "auto",
    csv: _Csv = None,
    device: _Device = "",
    runtime: _Runtime = "auto",
    threads: _Threads = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, at most.")] = 20,
    budget: Annotated[float, typer.Option(help="Seconds of timing per network.")] = 3.0,
    torch: _Torch = True,
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
        )


@app.command()
def conv(
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
        )


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


if __name__ == "__main__":
    app()
