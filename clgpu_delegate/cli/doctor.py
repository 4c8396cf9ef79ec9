"""The command ``clgpu doctor``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import sys
from typing import Annotated

import typer

from clgpu_delegate.base.consoles import SafeConsole
from clgpu_delegate.cli import completion
from clgpu_delegate.cli.exits import FINDING
from clgpu_delegate.cli.printing import print_by, print_json
from clgpu_delegate.cli.settings import Json
from clgpu_delegate.doctor import doctor as examine


def doctor(
    as_json: Json = False,
    device: Annotated[
        str,
        typer.Option(
            help="Try this device only: its index, or part of its name.",
            autocompletion=completion.devices,
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option(help="Time limit of one step, in seconds.", min=1)
    ] = 60.0,
) -> None:
    """Find what keeps models from running on this machine's devices, and how to fix it."""
    console = SafeConsole(stderr=True)
    with console.status("looking", spinner="dots") as status:
        if as_json or not sys.stderr.isatty():
            status.stop()
        found = examine(
            device=device, timeout=timeout, progress=lambda name: status.update(f"looking: {name}")
        )
    if as_json:
        print_json(found.to_dict())
    else:
        print_by(found.print_to)
    if not found.healthy:
        raise typer.Exit(FINDING)
