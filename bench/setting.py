"""How a command of ``python -m bench`` measures: the options that several of them take."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Optional, get_type_hints

import typer

import clgpu_delegate
from bench import peers_torch
from bench.record import VARIABLE, Sheet, check_folder

PRECISIONS = ("fp32", "tf32", "fp16")

File = Optional[Path]
Strings = Optional[list[str]]
OptionalSheet = Optional[Sheet]
Names = Annotated[Strings, typer.Argument(help="Networks; all when none is given.")]
Precision = Annotated[str, typer.Option(help="Those of the delegate, separated by commas.")]
Tuning = Annotated[str, typer.Option(help="auto, off or exhaustive, as in Options.")]
DeviceName = Annotated[str, typer.Option(help="OpenCL device: index or part of its name.")]
Commit = Annotated[
    str, typer.Option(envvar=VARIABLE, help="For the JSON file, where git does not tell it.")
]
Json = Annotated[File, typer.Option(help="File to write, with commit, device and driver in it.")]


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a command measures, and which files it writes.

    Attributes
    ----------
    csv
        File to write.
    device, runtime
        As in `clgpu_delegate.load` and `tests.runtimes.make_interpreter`.
    threads
        Of the stock CPU kernels; 0 uses all cores.
    rounds, budget
        Timings of each thing at most, and the seconds after which no further one starts.
    torch
        Whether to compare with PyTorch where it finds a GPU.
    sheet
        The JSON file to write.
    """

    csv: Annotated[File, typer.Option(help="File to write.")] = None
    device: DeviceName = ""
    runtime: Annotated[str, typer.Option(help="auto, tflite_runtime or ai_edge_litert.")] = "auto"
    threads: Annotated[
        int, typer.Option(min=0, help="Threads of the stock CPU kernels; 0 uses all cores.")
    ] = 0
    rounds: Annotated[int, typer.Option(min=1, help="Timed runs of each, at most.")] = 5
    budget: float = 3.0
    torch: Annotated[bool, typer.Option(help="Compare with PyTorch where it finds a GPU.")] = False
    sheet: OptionalSheet = None

    def __post_init__(self) -> None:
        check_folder(self.csv)

    @functools.cached_property
    def found(self) -> clgpu_delegate.Device:
        """The device."""
        return clgpu_delegate.load(device=self.device).device

    @functools.cached_property
    def peer(self) -> Any:
        """The module torch where it takes part, else None."""
        return peers_torch.find() if self.torch else None

    @property
    def cpu_threads(self) -> int:
        """Threads of the stock CPU kernels."""
        return self.threads or os.cpu_count() or 1

    def timing(self, share: float = 1.0) -> dict[str, Any]:
        """Return arguments for the functions of `bench.measure`, with a share of the seconds."""
        return {"rounds": self.rounds, "budget_s": self.budget * share}


def command(run: Callable[..., object], *, per: str, **defaults: Any) -> Callable[..., None]:
    """Make a function that takes a `Setting` a command for typer.

    Parameters
    ----------
    run
        Takes a `Setting`, and then parameters that typer understands; the first paragraph of its
        docstring is the help of the command.
    per
        What the option ``--budget`` is for.
    defaults
        The options of `Setting` that the command has besides ``--device`` and ``--runtime``, with
        their defaults.
    """
    defaults.update(device="", runtime="auto")
    shared = get_type_hints(Setting, include_extras=True)
    # Not of the function itself: before Python 3.11 a default of None would change the hint.
    annotations = SimpleNamespace(__annotations__=run.__annotations__)
    own = get_type_hints(annotations, run.__globals__, include_extras=True)
    seconds = typer.Option(help=f"Seconds of timing per {per}.")
    parameters = {"context": (typer.Context, inspect.Parameter.empty)}
    for name, parameter in list(inspect.signature(run).parameters.items())[1:]:
        parameters[name] = (own[name], parameter.default)
    taken = [field.name for field in dataclasses.fields(Setting) if field.name in defaults]
    for name in taken:
        kind = Annotated[float, seconds] if name == "budget" else shared[name]
        parameters[name] = (kind, defaults[name])
    parameters.update(json=(Json, None), commit=(Commit, ""))

    @mistakes()
    def main(context: typer.Context, **given: Any) -> None:
        sheet = Sheet.of(context, given.pop("json"), given.pop("commit"))
        run(Setting(sheet=sheet, **{name: given.pop(name) for name in taken}), **given)

    main.__doc__ = (inspect.getdoc(run) or "").partition("\n\n")[0]
    # Typer makes options of these two.
    main.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    only = inspect.Parameter.KEYWORD_ONLY
    main.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, only, default=default, annotation=kind)
            for name, (kind, default) in parameters.items()
        ]
    )
    return main


@contextlib.contextmanager
def mistakes() -> Iterator[None]:
    """Show errors in what was asked for as those of the command line."""
    try:
        yield
    except (ValueError, clgpu_delegate.ClgpuError) as error:
        raise typer.BadParameter(str(error)) from None


def split(text: str) -> list[str]:
    """Return the parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def check_known(kind: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise ValueError if one of the given names is not known."""
    for name in given:
        if name not in known:
            raise ValueError(f"{name!r} is no {kind}; there are {', '.join(known)}")
