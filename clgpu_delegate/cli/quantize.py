"""The command ``clgpu quantize``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, List, Optional  # noqa: UP035

import typer

from clgpu_delegate.cli.completion import files, words
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quieten
from clgpu_delegate.cli.settings import Json, Runtime, word
from clgpu_delegate.quantization import api


def quantize(
    model: Annotated[
        Path,
        typer.Argument(
            help="A float .tflite file.",
            metavar="MODEL",
            readable=False,
            autocompletion=files(".tflite"),
        ),
    ],
    out: Annotated[
        Path, typer.Argument(help="The .tflite file to write.", metavar="OUT", readable=False)
    ],
    calibration: Annotated[
        Optional[Path],
        typer.Option(
            help="Samples: a .npy file, or a .npz file with an array per input; "
            "the first axis counts the samples.",
            readable=False,
            autocompletion=files(".npy", ".npz"),
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            help="int8, int16x8, fp16 or dynamic.",
            autocompletion=words("int8", "int16x8", "fp16", "dynamic"),
        ),
    ] = "int8",
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="One scale for all weights of a layer.")
    ] = False,
    observer: Annotated[
        str,
        typer.Option(
            help="minmax, moving_average, percentile or mse.",
            autocompletion=words("minmax", "moving_average", "percentile", "mse"),
        ),
    ] = "minmax",
    skip: Annotated[
        Optional[List[str]],  # noqa: UP006
        typer.Option(
            help="A layer to leave in float: index, op name or output's name. Repeatable."
        ),
    ] = None,
    io: Annotated[
        str,
        typer.Option(
            help="Type of inputs and outputs: float, int8, uint8 or int16.",
            autocompletion=words("float", "int8", "uint8", "int16"),
        ),
    ] = "float",
    pseudo: Annotated[
        bool,
        typer.Option(
            "--pseudo", help="Compute in float, with values rounded to the grid of the integers."
        ),
    ] = False,
    runtime: Runtime = None,
    as_json: Json = False,
) -> None:
    """Quantise a float model, and show the accuracy of each layer."""
    quieten(runtime)
    report = api.quantize(
        model,
        calibration,
        out,
        scheme=word(scheme),
        per_channel=not per_tensor,
        observer=word(observer),
        skip=skip or (),
        io=word(io),
        mode="pseudo" if pseudo else "integer",
        runtime=word(runtime),
        progress=False if as_json else None,
    )
    if as_json:
        print_json(report.to_dict())
    else:
        print_rich(report)
