"""The command ``clgpu capture``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from clgpu_delegate import capsule
from clgpu_delegate.base.characters import printable
from clgpu_delegate.base.consoles import SafeConsole
from clgpu_delegate.capsule.capturing import default_path
from clgpu_delegate.cli.completion import files
from clgpu_delegate.cli.printing import count, print_json, print_text
from clgpu_delegate.cli.settings import Json, Model, with_options


@with_options("verify")
def capture(
    model: Model,
    out: Annotated[
        Optional[Path],
        typer.Argument(
            help="The file to write. Default: MODEL.clgpu.zip in this folder.",
            metavar="OUT",
            readable=False,
        ),
    ] = None,
    inputs: Annotated[
        Optional[Path],
        typer.Option(
            "--input",
            help="Inputs: a .npy file, or a .npz file with one array per input. Default: random.",
            readable=False,
            autocompletion=files(".npy", ".npz"),
        ),
    ] = None,
    shrink: Annotated[
        Optional[bool],
        typer.Option(
            "--shrink/--no-shrink",
            help="Search for the smallest part that still fails. Default: where possible.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        Optional[float],
        typer.Option(
            help="Largest relative L2 error that is accepted. Default: depends on the precision."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="A run that takes longer than this many seconds counts as hung.")
    ] = 300.0,
    budget: Annotated[float, typer.Option(help="Time limit of the search, in seconds.")] = 300.0,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    as_json: Json = False,
    **settings: Any,
) -> None:
    """Write a bug capsule: one file with everything needed to reproduce a failure."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
        console=SafeConsole(stderr=True), transient=True,
        disable=as_json or not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task("reading the model", total=None)

        def show(trials: int, left: int, what: str) -> None:
            of = f" of {left}" if left else ""
            bar.update(task, description=printable(f"trial {trials}: {what}{of}"))

        result = capsule.capture(
            model,
            default_path(model) if out is None else out,
            inputs=inputs,
            shrink=shrink,
            tolerance=tolerance,
            timeout=timeout,
            budget=budget,
            seed=seed,
            progress=show,
            **settings,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        print_text(str(result))
        print_text(
            f"{result.path}: {count(len(result.nodes), 'node')} written; "
            f"replay it with: clgpu replay {result.path}"
        )
