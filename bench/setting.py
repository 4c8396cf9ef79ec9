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
from typing import Annotated, Any, Optional, get_origin, get_type_hints

import typer

import clgpu_delegate
from bench import peers_torch
from bench.record import VARIABLE, Sheet, check_folder
from bench.session import Session

PRECISIONS = ("fp32", "tf32", "fp16")

File = Optional[Path]
Strings = Optional[list[str]]
_Options = dict[str, tuple[Any, Any]]  # type and default by name
_Sheet = Optional[Sheet]
Names = Annotated[Strings, typer.Argument(help="Networks; all when none is given.")]
Precision = Annotated[str, typer.Option(help="Precisions of the delegate, separated by commas.")]
Tuning = Annotated[str, typer.Option(help="auto, off or exhaustive, as in Options.")]
DeviceName = Annotated[str, typer.Option(help="OpenCL device: index or part of its name.")]
Commit = Annotated[
    str, typer.Option(envvar=VARIABLE, help="Commit for the JSON file, where git does not know it.")
]
Json = Annotated[File, typer.Option(help="JSON file to write, with commit, device and driver.")]


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a command measures, and which files it writes.

    Attributes
    ----------
    csv
        The CSV file to write.
    device, runtime
        As in `clgpu_delegate.load` and `tests.runtimes.make_interpreter`.
    threads
        Threads of the stock CPU kernels; 0 uses all cores.
    rounds, budget
        The largest number of timings, and the seconds after which no further timing starts.
    torch
        Whether to compare with PyTorch if it finds a GPU.
    sheet
        The JSON file to write.
    """

    csv: Annotated[File, typer.Option(help="CSV file to write.")] = None
    device: DeviceName = ""
    runtime: Annotated[str, typer.Option(help="auto, tflite_runtime or ai_edge_litert.")] = "auto"
    threads: Annotated[
        int, typer.Option(min=0, help="Threads of the stock CPU kernels; 0 uses all cores.")
    ] = 0
    rounds: Annotated[int, typer.Option(min=1, help="Largest number of timings.")] = 5
    budget: Annotated[float, typer.Option(help="Seconds of timing.")] = 3.0
    torch: Annotated[bool, typer.Option(help="Compare with PyTorch, where it finds a GPU.")] = False
    sheet: _Sheet = None

    def __post_init__(self) -> None:
        check_folder(self.csv)

    @functools.cached_property
    def found(self) -> clgpu_delegate.Device:
        """The device."""
        return clgpu_delegate.load(device=self.device).device

    @property
    def title(self) -> str:
        """Device and platform."""
        return f"{self.found.name} ({self.found.platform})"

    @functools.cached_property
    def peer(self) -> Any:
        """The module torch if it takes part, else None."""
        return peers_torch.find() if self.torch else None

    @property
    def cpu_threads(self) -> int:
        """Threads of the stock CPU kernels."""
        return self.threads or os.cpu_count() or 1

    def session(self, model: bytes, delegate: clgpu_delegate.Delegate | None = None) -> Session:
        """Return a model in the runtime, with the threads of the stock CPU kernels."""
        return Session(model, delegate, runtime=self.runtime, threads=self.cpu_threads)

    def timing(self, share: float = 1.0) -> dict[str, Any]:
        """Return arguments for the functions of `bench.measure`, with a share of the seconds."""
        return {"rounds": self.rounds, "budget_s": self.budget * share}


def options_of(kind: type[Any]) -> _Options:
    """Return the options that the fields of a dataclass describe: those that are `Annotated`."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], field.default)
        for field in dataclasses.fields(kind)
        if get_origin(hints[field.name]) is Annotated
    }


def make_command(
    run: Callable[..., object],
    build: Callable[[typer.Context, dict[str, Any]], Any],
    options: _Options,
    *,
    failed: Callable[[Any], bool] = lambda _: False,
) -> Callable[..., None]:
    """Make a command for typer of a function.

    Parameters
    ----------
    run
        Its first parameter is what ``build`` returns; typer understands the others. The first
        paragraph of its docstring is the help of the command.
    build
        Takes the context, and the values of ``options`` by name.
    options
        Type and default of each option that ``build`` takes.
    failed
        Whether the command exits with 1, given what ``run`` returns.
    """
    # Not of the function itself: before Python 3.11 a default of None would change the hint.
    annotations = SimpleNamespace(__annotations__=run.__annotations__)
    hints = get_type_hints(annotations, run.__globals__, include_extras=True)
    parameters: _Options = {"context": (typer.Context, inspect.Parameter.empty)}
    for name, parameter in list(inspect.signature(run).parameters.items())[1:]:
        parameters[name] = (hints[name], parameter.default)
    parameters.update(options)

    def main(context: typer.Context, **given: Any) -> None:
        with mistakes():
            first = build(context, {name: given.pop(name) for name in options})
            result = run(first, **given)
        if failed(result):
            raise typer.Exit(1)

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


def command(run: Callable[..., object], *, per: str, **defaults: Any) -> Callable[..., None]:
    """Make a command for typer of a function that takes a `Setting`.

    Parameters
    ----------
    run
        As in `make_command`.
    per
        The unit that ``--budget`` seconds are spent on.
    defaults
        The options of `Setting` that the command has besides ``--device`` and ``--runtime``, with
        their defaults.
    """
    known = options_of(Setting)
    defaults.update(device="", runtime="auto")
    options = {name: (known[name][0], defaults[name]) for name in known if name in defaults}
    if "budget" in defaults:
        seconds = typer.Option(help=f"Seconds of timing per {per}.")
        options["budget"] = (Annotated[float, seconds], defaults["budget"])
    options.update(json=(Json, None), commit=(Commit, ""))

    def build(context: typer.Context, given: dict[str, Any]) -> Setting:
        sheet = Sheet.of(context, given.pop("json"), given.pop("commit"))
        return Setting(sheet=sheet, **given)

    return make_command(run, build, options)


@contextlib.contextmanager
def mistakes() -> Iterator[None]:
    """Show errors in the request like errors of the command line."""
    try:
        yield
    except (ValueError, clgpu_delegate.ClgpuError) as error:
        raise typer.BadParameter(str(error)) from None


def split(text: str) -> list[str]:
    """Return the items of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def batch_sizes(text: str) -> list[int]:
    """Return the batch sizes of a comma-separated list.

    Raises
    ------
    ValueError
        If an item is no number above 0.
    """
    sizes = split(text)
    for size in sizes:
        if not size.isdecimal() or int(size) < 1:
            raise ValueError(f"{size!r} is no batch size")
    return [int(size) for size in sizes]


def check_known(kind: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise ValueError if one of the given names is not known."""
    for name in given:
        if name not in known:
            raise ValueError(f"{name!r} is no {kind}; there are {', '.join(known)}")
