"""The command ``clgpu quickstart``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated

import typer

from clgpu_delegate.cli import completion
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quieten
from clgpu_delegate.cli.settings import Json, Runtime, word
from clgpu_delegate.measure import quickstart as tour


def quickstart(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Where the model and the page of its profile are written.",
            metavar="[FOLDER]",
            readable=False,
        ),
    ] = Path("clgpu_quickstart"),
    as_json: Json = False,
    device: Annotated[
        str,
        typer.Option(
            help="Index of the device, or a part of its name; else the first.",
            autocompletion=completion.devices,
        ),
    ] = "",
    precision: Annotated[
        str,
        typer.Option(
            help="fp32, fp16 or tf32.", autocompletion=completion.words("fp32", "fp16", "tf32")
        ),
    ] = "fp32",
    runs: Annotated[int, typer.Option(help="Timed inferences of each.", min=1)] = 20,
    runtime: Runtime = None,
) -> None:
    """Show in a minute what the delegate does, with a small model that is part of it."""
    quieten(runtime)
    result = tour.quickstart(
        folder,
        device=device,
        precision=word(precision),
        runs=runs,
        runtime=word(runtime),
        progress=False if as_json else None,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
