"""The command ``clgpu``: each command is a thin call of a public function."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
from typing import Annotated, Any, Callable, NoReturn

import typer

import clgpu_delegate
from clgpu_delegate.cli import (
    bench,
    cache,
    capture,
    devices,
    doctor,
    explain,
    litert,
    profile,
    quantize,
    quickstart,
    replay,
    run,
    tune,
)
from clgpu_delegate.cli.exits import MEANINGS, answer
from clgpu_delegate.cli.printing import paragraphs

app = typer.Typer(
    name="clgpu",
    pretty_exceptions_enable=False,
    epilog="Exit codes: " + "; ".join(f"{code} {text}" for code, text in MEANINGS.items()) + ".",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"clgpu_delegate {clgpu_delegate.__version__}")
        raise typer.Exit


@app.callback()
def _clgpu(
    version: Annotated[  # its callback does the work
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """TensorFlow Lite models on OpenCL."""


def _add(command: Callable[..., Any], *examples: str) -> None:
    app.command(epilog=paragraphs("For example:", *examples))(command)


_add(quickstart.quickstart, "clgpu quickstart", "clgpu quickstart --precision fp16")
_add(devices.devices, "clgpu devices", "clgpu devices --json")
_add(doctor.doctor, "clgpu doctor", "clgpu doctor --json > report.json")
_add(explain.explain, "clgpu explain model.tflite", "clgpu explain model.tflite --memory --json")
_add(
    run.run,
    "clgpu run model.tflite --precision fp16 --runs 50",
    "clgpu run model.tflite --input x.npy --output y.npz",
)
_add(bench.bench, "clgpu bench lenet.tflite mobilenet.tflite --precision fp16", "clgpu bench")
_add(
    profile.profile,
    "clgpu profile model.tflite --html report.html",
    "clgpu profile model.tflite --trace t.json --csv nodes.csv",
)
_add(
    tune.tune,
    "clgpu tune model.tflite --budget 2m",
    "clgpu tune model.tflite --max-error 1e-3 --samples images.npy",
)
_add(quantize.quantize, "clgpu quantize model.tflite int8.tflite --calibration images.npy")
_add(capture.capture, "clgpu capture model.tflite", "clgpu capture model.tflite --input in.npz")
_add(replay.replay, "clgpu replay model.clgpu.zip", "clgpu replay model.clgpu.zip --json")
app.add_typer(cache.app, name="cache")
app.add_typer(litert.app, name="litert")
app.command("info", hidden=True)(devices.devices)  # its first name


def main() -> NoReturn:
    """Run the command of the process's arguments and end the process with its exit code."""
    raise SystemExit(answer(app))
