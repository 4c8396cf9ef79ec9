"""Parameters that commands share, and the options of a delegate as options of a command."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import contextlib
import dataclasses
import functools
import inspect
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Callable, List, Optional  # noqa: UP035

import typer

from clgpu_delegate import _core
from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.cli import completion
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.measure.guessing import guess_shapes, shapes_of_arrays
from clgpu_delegate.options import Options
from clgpu_delegate.tflite import shapes

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

Shape = Annotated[
    Optional[List[str]],  # noqa: UP006
    typer.Option(
        metavar="[NAME=]SHAPE",
        help="Shape of an input, such as 1x224x224x3 or image=1x224x224x3. Repeatable: one for "
        "each input.",
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


_NO_GUESS = (
    "it runs with none of the usual ones: give those of its inputs, such as --shape 1x224x224x3"
)


def word(text: Any) -> Any:
    """Words of the command line for a parameter of few values: the function checks them."""
    return text


def with_options(*left_out: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each field of `Options`, ``--runtime`` and ``--shape``.

    It gets them as ``**settings``, the shapes as ``shapes``. Where a model leaves extents open and
    no shape is given, usual ones are tried and told on standard error.

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
            kwargs.update(_with_shapes(kwargs.pop("shape"), kwargs))
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
    more: dict[str, Any] = {"runtime": Runtime, "shape": Shape}
    for name, annotation in more.items():
        parameters.append(inspect.Parameter(name, kind, default=None, annotation=annotation))
    return parameters


def _with_shapes(texts: Optional[Sequence[str]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The shapes of a command's models, asked for or guessed; None: those of the file."""
    asked = shapes.parse(texts or ())
    if asked is not None or ("model" not in given and not given.get("models")):
        return {"shapes": asked}
    if "model" in given:
        return {"shapes": _guessed(given["model"], given)}
    pairs = [(model, _guessed(model, given)) for model in given["models"]]
    return {"shapes": None, "models": [pair if pair[1] else pair[0] for pair in pairs]}


def _guessed(model: Path, given: Mapping[str, Any]) -> Optional[Shapes]:
    """Shapes for a model that leaves extents open; told on standard error."""
    guessed = None
    with contextlib.suppress(ClgpuError):  # the command itself tells it
        if given.get("inputs") is not None:
            return shapes_of_arrays(model, given["inputs"])
        guessed = guess_shapes(model, given["runtime"])
    if guessed is None:
        return None
    if not given.get("as_json"):  # there, errors alone are on its stream
        told = f"assumed: {_options(guessed)}" if guessed else _NO_GUESS
        print(f"clgpu: {one_line(str(model))} leaves shapes open; {told}", file=sys.stderr)
    return guessed or None


def _options(guessed: Mapping[str, shapes.Shape]) -> str:
    words = [shapes.text_of(shape) for shape in guessed.values()]
    if len(guessed) > 1:
        words = [f"{one_line(name)}={word}" for name, word in zip(guessed, words)]
    return " ".join(f"--shape {shlex.quote(word)}" for word in words)


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
    if row["kind"] in ("count", "choice or count", "choice or number", "choice or plan"):
        phrase = f"{phrase}; {row['allowed']}"
    return f"{phrase[0].upper()}{phrase[1:]}."


def _complete(row: Mapping[str, Any]) -> Optional[Callable[..., Any]]:
    """The completion of an option's values."""
    kind = row.get("kind", "")
    if kind in ("choice", "choice or count", "choice or number", "choice or plan"):
        return completion.words(*row["words"])
    return {"device": completion.devices, "engines": completion.engines}.get(kind)
