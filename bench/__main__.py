"""``python -m bench``: the project's measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from bench import conv as conv_bench
from bench import models as models_bench
from bench.networks import NETWORKS

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


_Names = Annotated[Optional[list[str]], typer.Argument(help="Networks; all when none is given.")]
_Runtime = Annotated[str, typer.Option(help="auto, tflite_runtime or ai_edge_litert.")]
_Device = Annotated[str, typer.Option(help="OpenCL device: index or part of its name.")]
_Threads = Annotated[int, typer.Option(min=0, help="Of the stock CPU kernels; 0: all cores.")]
_Batch = Annotated[int, typer.Option(min=1)]
_Csv = Annotated[Optional[Path], typer.Option(help="File to write.")]
_Plot = Annotated[Optional[Path], typer.Option(help="PNG file to write.")]
_Rounds = Annotated[int, typer.Option(min=1, help="Timed runs of each, at most.")]
_Budget = Annotated[float, typer.Option(help="Seconds of timing per network.")]


@app.command()
def models(
    names: _Names = None,
    runtime: _Runtime = "auto",
    device: _Device = "",
    threads: _Threads = 0,
    batch: _Batch = 1,
    rounds: _Rounds = 20,
    budget: _Budget = 10.0,
) -> None:
    """Print every network on the stock CPU and on the delegate in fp32 and fp16."""
    unknown = [name for name in names or [] if name not in NETWORKS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(sorted(NETWORKS))}")
    models_bench.run(
        names or sorted(NETWORKS),
        runtime=runtime,
        device=device,
        threads=threads or None,
        batch=batch,
        rounds=rounds,
        budget_s=budget,
    )


@app.command()
def conv(
    scale: Annotated[float, typer.Option(help="Of height and width; 0.25 for slow devices.")] = 1.0,
    precision: Annotated[str, typer.Option(help="fp32,tf32,fp16")] = "fp32,tf32,fp16",
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
    torch: Annotated[bool, typer.Option(help="Compare with cuDNN where PyTorch has it.")] = True,
) -> None:
    """Measure the 35 convolution layers of PyNET by every engine that the device offers."""
    try:
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
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    app()
