"""Parameters that commands share, and the options of a delegate as options of a command."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import dataclasses
import functools
import inspect
from pathlib import Path
from typing import Annotated, Any, Callable, NamedTuple, Optional

import typer

from clgpu_delegate.cli import completion
from clgpu_delegate.options import Options

# Typer would tell of files without the right to read them in its own way; none of the paths is
# `readable`, so that all is told by the function that reads.
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


class _Option(NamedTuple):
    help: str
    complete: Optional[Callable[..., Any]] = None
    type: Any = str


def _one_of(what: str, *values: str) -> _Option:
    return _Option(f"{', '.join(values[:-1])} or {values[-1]}{what}", completion.words(*values))


# The rest, names and defaults, is that of the fields.
OPTIONS = {
    "device": _Option("Index of an OpenCL device, or part of its name.", completion.devices),
    "precision": _one_of(".", "fp32", "fp16", "tf32"),
    "placement": _one_of(
        ": which of the nodes that the device can compute it takes.", "all", "auto", "measured"
    ),
    "verify": _Option(
        "off, first, or a number N: compute the first or every Nth inference on the CPU, too.",
        completion.words("off", "first"),
    ),
    "ops": _one_of(": core has the families of convolution only.", "all", "core"),
    "engines": _Option("Kernels to use, as family=engine,...", completion.engines),
    "exclude": _Option(
        "Nodes to leave on the CPU: indices or operation names, separated by commas."
    ),
    "min_nodes": _Option("Smaller partitions stay on the CPU.", type=int),
    "tuning": _one_of(": whether tuned kernels count.", "auto", "off", "exhaustive"),
    "cache": _Option("auto, off, or the file of compiled programs and tuned choices."),
    "warm_up": _Option("Run every kernel once while loading.", type=bool),
    "half_weights": _Option("Store large weights as half.", type=bool),
    "half_io": _Option("With fp16, transfer inputs and outputs as half, too.", type=bool),
    "dynamic_range": _one_of(
        ": arithmetic of int8 weights with float activations.", "dequantize", "hybrid"
    ),
    "memory_budget": _Option("Device memory for the model, such as 64MiB or 1.5GB."),
    "max_object": _Option("Largest single buffer, as --memory-budget."),
    "row_band": _Option(
        "Rows of an image that are computed at a time; 0 uses bands only if the budget needs them.",
        type=int,
    ),
    "zero_copy": _one_of(": whether the device may work on inputs in place.", "auto", "off"),
    "share_memory": _Option("Let tensors share memory where lifetimes allow.", type=bool),
}

NOT_OPTIONS = {
    "memory_pool": "a command has one interpreter at a time, so nobody to share a pool with",
    "profile": "the command profile sets it, and nothing else shows what is recorded",
}


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
    defaults = {field.name: field.default for field in dataclasses.fields(Options)}
    parameters = []
    for name, (help_, complete, type_) in OPTIONS.items():
        default = defaults[name]
        # One word suffices for what is off otherwise.
        names = (f"--{name.replace('_', '-')}",) if default is False else ()
        option = typer.Option(
            *names, help=help_, autocompletion=complete, rich_help_panel="Options of the delegate"
        )
        annotation: Any = Annotated[type_, option]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    return [*parameters, inspect.Parameter("runtime", kind, default=None, annotation=Runtime)]
