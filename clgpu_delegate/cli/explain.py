"""The command ``clgpu explain``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.text import Text

from clgpu_delegate import inspection
from clgpu_delegate.cli.printing import print_json, print_rich, print_text
from clgpu_delegate.cli.quiet import quiet
from clgpu_delegate.cli.settings import Api, Json, Model, with_options, word


@with_options()
def explain(
    model: Model,
    as_json: Json = False,
    api: Api = "interpreter",
    memory: Annotated[
        bool, typer.Option("--memory", help="Show instead where the tensors are in device memory.")
    ] = False,
    passes: Annotated[
        bool,
        typer.Option(
            "--passes", help="Show instead which passes rewrote the graph, and why others did not."
        ),
    ] = False,
    ir: Annotated[
        Optional[str],
        typer.Option(
            metavar="[before|after]",
            help="Print instead the graphs as text, before or after the passes that rewrite them.",
        ),
    ] = None,
    **settings: Any,
) -> None:
    """Show which nodes of a model the delegate claims, and why it does not claim the others."""
    with quiet(settings["runtime"], api):
        _explain(model, as_json, memory, passes, ir, {"api": word(api), **settings})


def _explain(
    model: Path,
    as_json: bool,
    memory: bool,
    passes: bool,
    ir: Optional[str],
    settings: Any,
) -> None:
    if ir is not None:
        texts = inspection.graph_texts(model, word(ir), **settings)
        if as_json:
            print_json(texts)
        else:
            print_text("\n".join(f"# partition {i}\n{text}" for i, text in enumerate(texts)))
        return
    if memory:
        memory_map = inspection.map_memory(model, **settings)
        if as_json:
            print_json(memory_map.to_dict())
        else:
            print_rich(Text(str(memory_map)))
        return
    explanation = inspection.explain_model(model, **settings)
    if as_json:
        print_json(explanation.to_dict())
    elif passes:
        print_rich(Text("\n".join(map(str, explanation.steps)) or "no pass has changed anything"))
    else:
        print_rich(explanation)
