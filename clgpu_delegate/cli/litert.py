"""The commands ``clgpu litert ...``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import typer

from clgpu_delegate.cli.printing import paragraphs, print_json, print_text
from clgpu_delegate.cli.settings import Json
from clgpu_delegate.litert import LiteRtSwitch, litert_off, litert_on, litert_status

app = typer.Typer(
    help="Let LiteRT's CompiledModel use OpenCL as its GPU in this Python environment."
)


def _print(switch: LiteRtSwitch, as_json: bool) -> None:
    if as_json:
        print_json(switch.to_dict())
    else:
        print_text(str(switch))


@app.command("on", epilog=paragraphs("For example:", "clgpu litert on"))
def on(as_json: Json = False) -> None:
    """Write a link into LiteRT's folder: every CompiledModel uses this delegate as its GPU."""
    _print(litert_on(), as_json)


@app.command("off", epilog=paragraphs("For example:", "clgpu litert off"))
def off(as_json: Json = False) -> None:
    """Remove the link."""
    _print(litert_off(), as_json)


@app.command("status", epilog=paragraphs("For example:", "clgpu litert status --json"))
def status(as_json: Json = False) -> None:
    """Show whether the link exists, and what is wrong with it."""
    _print(litert_status(), as_json)
