"""``python -m bench``: the project's measurements."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

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


if __name__ == "__main__":
    app()
