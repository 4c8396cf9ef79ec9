"""``python -m bench``: the project's measurements."""

from __future__ import annotations

import typer

from bench import models as models_bench
from bench.networks import NETWORKS

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


@app.command()
def models(
    names: list[str] = typer.Argument(None, help="Networks; all when none is given."),
    runtime: str = typer.Option("auto", help="tflite_runtime or ai_edge_litert."),
    device: str = typer.Option("", help="OpenCL device: index or part of its name."),
    threads: int = typer.Option(0, help="Threads of the stock CPU kernels; 0 = all cores."),
    batch: int = typer.Option(1, min=1),
    rounds: int = typer.Option(20, min=1, help="Timed runs of each, at most."),
    budget: float = typer.Option(10.0, help="Seconds of timing per network."),
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
