"""The command ``clgpu quantize``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import json
from pathlib import Path
from typing import Annotated, List, Optional  # noqa: UP035

import typer
from rich.console import Console

from clgpu_delegate.quantization import api


def quantize(
    model: Annotated[Path, typer.Argument(help="A float .tflite file.", metavar="MODEL")],
    out: Annotated[Path, typer.Argument(help="The .tflite file to write.", metavar="OUT")],
    calibration: Annotated[
        Optional[Path],
        typer.Option(
            help="Samples: a .npy file, or a .npz file with an array per input; "
            "the first axis counts the samples."
        ),
    ] = None,
    scheme: Annotated[str, typer.Option(help="int8, int16x8, fp16 or dynamic.")] = "int8",
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="One scale for all weights of a layer.")
    ] = False,
    observer: Annotated[
        str, typer.Option(help="minmax, moving_average, percentile or mse.")
    ] = "minmax",
    skip: Annotated[
        Optional[List[str]],  # noqa: UP006
        typer.Option(
            help="A layer to leave in float: index, op name or output's name. Repeatable."
        ),
    ] = None,
    io: Annotated[
        str, typer.Option(help="Type of inputs and outputs: float, int8, uint8 or int16.")
    ] = "float",
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="Float arithmetic on the integers' grids.")
    ] = False,
    runtime: Annotated[
        Optional[str], typer.Option(help="ai_edge_litert, tflite_runtime or tensorflow.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a quantised form of a float model, and tell how well each layer does."""
    report = api.quantize(
        model,
        calibration,
        out,
        scheme=scheme,
        per_channel=not per_tensor,
        observer=observer,
        skip=skip or (),
        io=io,
        mode="pseudo" if pseudo else "integer",
        runtime=runtime,
        progress=False if as_json else None,
    )
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
        return
    # Narrow pipes would break tables apart; terminals know their width.
    console = Console()
    Console(width=None if console.is_terminal else 120).print(report)
