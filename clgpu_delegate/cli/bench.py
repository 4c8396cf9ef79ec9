"""The command ``clgpu bench``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, List, Optional  # noqa: UP035

import typer

from clgpu_delegate.cli.completion import files, listed
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.settings import Api, Json, with_options, word
from clgpu_delegate.measure.benchmarking import benchmark
from clgpu_delegate.measure.ceilings import ceilings


@with_options()
def bench(
    models: Annotated[
        Optional[List[Path]],  # noqa: UP006
        typer.Argument(
            help="Models to time. Without any, the peak rates of the devices are measured.",
            metavar="[MODEL]...",
            readable=False,
            show_default=False,
            autocompletion=files(".tflite"),
        ),
    ] = None,
    as_json: Json = False,
    api: Api = "interpreter",
    precision: Annotated[
        str,
        typer.Option(
            help="Values of this option, separated by commas.",
            autocompletion=listed("fp32", "fp16", "tf32"),
        ),
    ] = "fp32,fp16",
    placement: Annotated[
        str,
        typer.Option(
            help="Values of this option, separated by commas.",
            autocompletion=listed("all", "auto", "measured"),
        ),
    ] = "all",
    runs: Annotated[int, typer.Option(help="Timed inferences of each.", min=1)] = 20,
    rounds: Annotated[int, typer.Option(help="How often the variants take turns.")] = 3,
    threads: Annotated[
        int, typer.Option(help="Threads of the CPU kernels; 0 uses all cores.", min=0)
    ] = 0,
    **settings: Any,
) -> None:
    """Measure models on the stock CPU and in variants of the delegate, or devices alone."""
    progress = False if as_json else None
    result: Any
    if models:
        result = benchmark(
            models,
            api=word(api),
            precisions=word(precision.split(",")),
            placements=word(placement.split(",")),
            threads=threads or None,
            runs=runs,
            rounds=rounds,
            progress=progress,
            **settings,
        )
    else:
        result = ceilings(settings["device"], progress=progress)
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
