"""The command ``clgpu replay``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from clgpu_delegate import capsule
from clgpu_delegate.cli.completion import devices, engines, files, words
from clgpu_delegate.cli.exits import FINDING
from clgpu_delegate.cli.printing import print_json, print_text
from clgpu_delegate.cli.settings import Json, Runtime, word


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="A bug capsule.",
            metavar="FILE",
            readable=False,
            autocompletion=files(".clgpu.zip"),
        ),
    ],
    as_json: Json = False,
    device: Annotated[
        Optional[str],
        typer.Option(
            help="Index of an OpenCL device, or part of its name. Default: the recorded name.",
            autocompletion=devices,
        ),
    ] = None,
    precision: Annotated[
        Optional[str],
        typer.Option(
            help="fp32, fp16 or tf32; else as recorded.",
            autocompletion=words("fp32", "fp16", "tf32"),
        ),
    ] = None,
    engines: Annotated[
        Optional[str],
        typer.Option(
            help="Kernels to use, as family=engine,.... Default: those recorded.",
            autocompletion=engines,
        ),
    ] = None,
    kernels: Annotated[
        str,
        typer.Option(
            help="own: those of this package; recorded: those of the capsule, if you trust it.",
            autocompletion=words("own", "recorded"),
        ),
    ] = "own",
    timeout: Annotated[
        float, typer.Option(help="A run that takes longer than this many seconds counts as hung.")
    ] = 300.0,
    runtime: Runtime = None,
) -> None:
    """Run a bug capsule here and show whether it fails in the same way."""
    given = {"device": device, "precision": precision, "engines": engines}
    overrides: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    result = capsule.replay(
        file, kernels=word(kernels), timeout=timeout, runtime=word(runtime), **overrides
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_text(str(result))
    if result.failed:
        raise typer.Exit(FINDING)
