"""The command ``clgpu run``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from clgpu_delegate.cli.completion import files
from clgpu_delegate.cli.exits import FINDING
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quiet
from clgpu_delegate.cli.settings import Api, Json, Model, with_options, word
from clgpu_delegate.measure import comparison


@with_options()
def run(
    model: Model,
    as_json: Json = False,
    api: Api = "interpreter",
    runs: Annotated[int, typer.Option(help="Timed inferences of each.", min=1)] = 20,
    threads: Annotated[
        int, typer.Option(help="Threads of stock TensorFlow Lite; 0 uses all cores.", min=0)
    ] = 0,
    inputs: Annotated[
        Optional[Path],
        typer.Option(
            "--input",
            help="Inputs: a .npy file, or a .npz file with one array per input. Default: random.",
            readable=False,
            autocompletion=files(".npy", ".npz"),
        ),
    ] = None,
    output: Annotated[
        Optional[Path],
        typer.Option(help="Write the delegate's outputs to this .npz file.", readable=False),
    ] = None,
    every_device: Annotated[
        bool,
        typer.Option("--every-device", help="Also run on the first device of each other type."),
    ] = False,
    **settings: Any,
) -> None:
    """Compare a model's results and times in stock TensorFlow Lite and with the delegate.

    With --verify the exit code is 5 if verification has found wrong numbers, or could not compare.
    """
    with quiet(settings["runtime"], api):
        result = comparison.compare(
            model,
            api=word(api),
            runs=runs,
            threads=threads or None,
            inputs=inputs,
            out=output,
            every_device=every_device,
            **settings,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
    verification = result.explanation.verification
    if verification and not verification.is_good:
        raise typer.Exit(FINDING)
