"""The command ``clgpu run``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from typing import Annotated, Any

import typer

from clgpu_delegate import comparison
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.settings import Json, Model, with_options


@with_options()
def run(
    model: Model,
    as_json: Json = False,
    runs: Annotated[int, typer.Option(help="Timed inferences of each.")] = 20,
    threads: Annotated[int, typer.Option(help="Of stock TFLite; 0: all cores.")] = 0,
    **settings: Any,
) -> None:
    """Run a model through stock TensorFlow Lite and through the delegate, side by side."""
    result = comparison.compare(model, runs=runs, threads=threads or None, **settings)
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
