"""The command ``clgpu profile``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from clgpu_delegate.cli import completion
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quieten
from clgpu_delegate.cli.settings import Json, Model, with_options
from clgpu_delegate.measure.profiling import profile_model
from clgpu_delegate.profiling.against import read


def _file(help_: str, *suffixes: str) -> Any:
    # The function checks the paths.
    complete = completion.files(*suffixes)
    return typer.Option(help=help_, metavar="FILE", readable=False, autocompletion=complete)


@with_options()
def profile(
    model: Model,
    as_json: Json = False,
    runs: Annotated[
        int, typer.Option(help="Number of inferences; at most the last 32 are kept.")
    ] = 20,
    threads: Annotated[
        int, typer.Option(help="Threads for the nodes that stay on the CPU.", min=1)
    ] = 1,
    html: Annotated[
        Optional[Path], _file("Write a page for a browser: graph, timeline, memory.", ".html")
    ] = None,
    trace: Annotated[
        Optional[Path], _file("Write a trace for https://ui.perfetto.dev.", ".json")
    ] = None,
    csv: Annotated[Optional[Path], _file("Write a line per node.", ".csv")] = None,
    plot: Annotated[
        Optional[Path], _file("Write a picture, such as .png or .svg.", ".png", ".svg", ".pdf")
    ] = None,
    against: Annotated[
        Optional[Path],
        _file("Show instead what has changed since a profile that --json printed.", ".json"),
    ] = None,
    **settings: Any,
) -> None:
    """Show how much time each node of a model takes."""
    quieten(settings["runtime"])
    before = None if against is None else read(against)  # first: the measurement takes longer
    result = profile_model(
        model,
        runs=runs,
        threads=threads,
        html=html,
        trace=trace,
        csv=csv,
        plot=plot,
        progress=False if as_json else None,
        **settings,
    )
    shown: Any = result if before is None else result.against(before)
    if as_json:
        print_json(shown.to_dict())
    else:
        print_rich(shown)
