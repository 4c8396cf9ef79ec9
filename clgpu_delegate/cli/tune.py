"""The command ``clgpu tune``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import re
from typing import Annotated, Any

import typer

from clgpu_delegate import tuning
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.settings import Json, Model, with_options
from clgpu_delegate.errors import OptionError


@with_options("tuning")
def tune(
    model: Model,
    as_json: Json = False,
    budget: Annotated[
        str, typer.Option(help="After this time, as in 90s or 2m, no further kernel is tried.")
    ] = "60s",
    again: Annotated[
        bool, typer.Option("--again", help="Measure what was measured before.")
    ] = False,
    **settings: Any,
) -> None:
    """Measure which kernels are the fastest for a model, and keep the winners in the cache."""
    result = tuning.tune(
        model,
        budget=_seconds(budget),
        again=again,
        progress=False if as_json else None,
        **settings,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(s|m|min|h|)", text.strip())
    if match is None:
        raise OptionError(f"budget is {text!r}; allowed: a number of seconds, as in 90s or 2m")
    return float(match[1]) * {"m": 60, "min": 60, "h": 3600}.get(match[2], 1)
