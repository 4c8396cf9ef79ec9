"""The command ``clgpu tune``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from typing import Annotated, Any

import typer

from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quieten
from clgpu_delegate.cli.settings import Json, Model, with_options
from clgpu_delegate.measure import tuning


@with_options("tuning")
def tune(
    model: Model,
    as_json: Json = False,
    budget: Annotated[
        str,
        typer.Option(help="Time limit, such as 90s or 2m. No further kernel is tried after it."),
    ] = "60s",
    again: Annotated[
        bool, typer.Option("--again", help="Also measure layers that were measured before.")
    ] = False,
    **settings: Any,
) -> None:
    """Measure which kernels are the fastest for a model, and store the choice in the cache."""
    quieten(settings["runtime"])
    result = tuning.tune(
        model,
        budget=budget,
        again=again,
        progress=False if as_json else None,
        **settings,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
