"""The command ``clgpu tune``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from clgpu_delegate.base.files import check_writable
from clgpu_delegate.cli.completion import files, words
from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.quiet import quieten
from clgpu_delegate.cli.settings import Json, Model, with_options, word
from clgpu_delegate.errors import OptionError
from clgpu_delegate.measure import tuning
from clgpu_delegate.quantization.observers import NAMES

_PANEL = "Precisions"


@with_options("tuning")
def tune(
    model: Model,
    as_json: Json = False,
    budget: Annotated[
        str,
        typer.Option(help="Time limit, such as 90s or 2m. Nothing further is tried after it."),
    ] = "60s",
    again: Annotated[
        bool, typer.Option("--again", help="Also measure layers that were measured before.")
    ] = False,
    max_error: Annotated[
        Optional[float],
        typer.Option(
            help="Tune the precisions, not the kernels: the largest relative L2 error of an "
            "output, such as 1e-3.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    samples: Annotated[
        Optional[Path],
        typer.Option(
            help="Inputs to measure the error on: a .npy file, or a .npz file with an array per "
            "input; the first axis counts the samples.",
            readable=False,
            autocompletion=files(".npy", ".npz"),
            rich_help_panel=_PANEL,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Of the choice of samples that only measure the result.", rich_help_panel=_PANEL
        ),
    ] = 0,
    prefer: Annotated[
        str,
        typer.Option(
            help="What the precisions are to save: time, or memory of the device.",
            autocompletion=words("time", "memory"),
            rich_help_panel=_PANEL,
        ),
    ] = "time",
    metric: Annotated[
        Optional[str],
        typer.Option(
            help="What --max-error bounds: 'relative L2', the default, or top-1, the share of "
            "samples whose largest output is another one.",
            autocompletion=words("relative L2", "top-1"),
            rich_help_panel=_PANEL,
        ),
    ] = None,
    start: Annotated[
        Optional[Path],
        typer.Option(
            help="A plan of this model to begin with, such as that of another device: a .json "
            "file of --out.",
            readable=False,
            autocompletion=files(".json"),
            rich_help_panel=_PANEL,
        ),
    ] = None,
    observer: Annotated[
        Optional[str],
        typer.Option(
            help="Of the ranges of int8, as of clgpu quantize. Default: minmax and percentile "
            "are tried.",
            autocompletion=words(*NAMES),
            rich_help_panel=_PANEL,
        ),
    ] = None,
    out: Annotated[
        Optional[Path],
        typer.Option(
            help="Also write the plan of precisions to this .json file.",
            readable=False,
            rich_help_panel=_PANEL,
        ),
    ] = None,
    **settings: Any,
) -> None:
    """Measure which kernels, or which precisions, are the fastest for a model, and store them."""
    quieten(settings["runtime"])
    given = {**settings, "budget": budget, "progress": False if as_json else None}
    given.update(max_error=max_error, seed=seed, prefer=word(prefer), again=again)
    given.update(start=start, observer=None if observer is None else word(observer))
    if metric is not None:
        given.update(metric=metric)
    if max_error is None and out is not None:
        raise OptionError("--out is given without --max-error, so there is no plan to write")
    if out is not None:
        check_writable(out)
    search: Any = tuning.tune
    result = search(model, samples, **given)
    if out is not None:
        result.save(out)
    if as_json:
        print_json(result.to_dict())
    else:
        print_rich(result)
