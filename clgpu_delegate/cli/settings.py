"""Parameters that commands share, and the options of a delegate as options of a command."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import dataclasses
import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Callable, Optional

import typer

from clgpu_delegate import _core
from clgpu_delegate.cli import completion
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.options import Options

# Typer would report unreadable files in its own way. None of the paths is `readable`, so the
# function that reads the file reports the error.
Model = Annotated[
    Path,
    typer.Argument(
        help="A .tflite file.",
        metavar="MODEL",
        readable=False,
        autocompletion=completion.files(".tflite"),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Runtime = Annotated[
    Optional[str],
    typer.Option(
        help="ai_edge_litert, tflite_runtime or tensorflow; else the first that is installed.",
        autocompletion=completion.runtimes,
    ),
]

Api = Annotated[
    str,
    typer.Option(
        help="interpreter, or compiled: LiteRT's CompiledModel.",
        autocompletion=completion.words("interpreter", "compiled"),
    ),
]

# Each other field of `Options` is an option of the commands that load a model.
NOT_OPTIONS = {
    "memory_pool": "a command has one interpreter at a time, so no pool is shared",
    "profile": "the command profile sets it, and nothing else shows what is recorded",
}


def word(text: Any) -> Any:
    """Words of the command line for a parameter of few values: the function checks them."""
    return text


def with_options(*left_out: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each field of `Options` and ``--runtime``, as ``**settings``.

    Parameters
    ----------
    *left_out
        Fields that the command sets itself; those that it has parameters for are left out anyway.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command)
        own = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        added = [
            parameter
            for parameter in _parameters()
            if parameter.name not in own and parameter.name not in left_out
        ]

        @functools.wraps(command)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return command(*args, **kwargs)

        parameters = [*own.values(), *added]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def _parameters() -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    rows = _table()
    parameters = []
    for field in dataclasses.fields(Options):
        name, default = field.name, field.default
        if name in NOT_OPTIONS:
            continue
        row = rows.get(name, {})
        # One word is sufficient for an option that is off by default.
        names = (f"--{name.replace('_', '-')}",) if default is False else ()
        option = typer.Option(
            *names,
            help=_help(row),
            autocompletion=_complete(row),
            rich_help_panel="Options of the delegate",
        )
        type_: Any = type(default) if isinstance(default, int) else str
        annotation: Any = Annotated[type_, option]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    return [*parameters, inspect.Parameter("runtime", kind, default=None, annotation=Runtime)]


def _table() -> dict[str, Any]:
    """Rows by name; none without the extension, so that ``clgpu doctor`` can report why."""
    try:
        return {row["key"]: row for row in _core.option_table()}
    except ClgpuError:
        return {}


def _help(row: Mapping[str, Any]) -> str:
    """The help text of an option, from the table."""
    if not row:
        return ""
    phrase = row["help"]
    if row["kind"] == "choice":
        *words, last = row["words"]
        return f"{', '.join(words)} or {last}: {phrase}."
    if row["kind"] in ("count", "choice or count"):
        phrase = f"{phrase}; {row['allowed']}"
    return f"{phrase[0].upper()}{phrase[1:]}."


def _complete(row: Mapping[str, Any]) -> Optional[Callable[..., Any]]:
    """The completion of an option's values."""
    kind = row.get("kind", "")
    if kind in ("choice", "choice or count"):
        return completion.words(*row["words"])
    return {"device": completion.devices, "engines": completion.engines}.get(kind)
