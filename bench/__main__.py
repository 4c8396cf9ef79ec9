"""``python -m bench``: the project's measurements."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import (
    compare,
    conv,
    crossover,
    decode,
    experts,
    formats,
    frames,
    guard,
    half_sums,
    layers,
    litert,
    mixed,
    nets,
    placement,
    pool,
    pynet,
    recording,
    reuse,
    stream,
)
from bench.boards import command as boards_command
from bench.figures import command as figures_command
from bench.peers import command as peers_command
from bench.plans import facts as facts_bench
from bench.plans import snapshots as snapshots_bench
from bench.setting import (
    DeviceName,
    Names,
    Strings,
    command,
    make_command,
    mistakes,
    options_of,
)

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


# The keywords are the options of `bench.setting.Setting` that a command takes, with their defaults.
for name, function in {
    "nets": command(
        nets.run, per="network", csv=None, threads=0, rounds=20, budget=3.0, torch=True
    ),
    "layers": command(layers.run, per="layer", csv=None, rounds=7, budget=1.0, torch=True),
    "conv": command(conv.run, per="layer and engine", csv=None, rounds=7, budget=0.15, torch=True),
    "pynet": command(pynet.run, per="row", csv=None, threads=0, rounds=5, budget=3.0, torch=True),
    "recording": command(recording.run, per="network", rounds=20, budget=10.0),
    "stream": command(stream.run, per="network", csv=None, rounds=5, budget=3.0),
    "reuse": command(reuse.run, per="scene", csv=None, rounds=100, budget=3.0),
    "pool": command(pool.run, per="network", csv=None, rounds=7, budget=20.0),
    "litert": command(litert.run, per="network", csv=None, threads=0, rounds=200, budget=2.0),
    "frames": command(frames.run, per="precision", csv=None, rounds=200, budget=5.0),
    "placement": command(placement.run, per="visit", csv=None, threads=1, budget=0.3),
    "mixed": command(mixed.run, per="model", csv=None, budget=120.0),
    "half_sums": command(half_sums.run, per="network", csv=None),
    "formats": command(formats.run, per="network", csv=None, threads=0, rounds=20, budget=5.0),
    "peers": command(peers_command.run, per="turn", csv=None, threads=0, rounds=7, budget=0.3),
    "crossover": command(crossover.run, per="size", csv=None, threads=0, rounds=200, budget=0.3),
    "experts": command(experts.run, per="form", csv=None, threads=0, rounds=20, budget=5.0),
    "decode": command(
        decode.run, per="form", csv=None, threads=0, rounds=9, budget=20.0, torch=False
    ),
    "guard": make_command(
        guard.run,
        lambda _, given: guard.Request(**given),
        options_of(guard.Request),
        failed=lambda outcome: bool(outcome.failures),
    ),
}.items():
    app.command(name)(function)


@app.command("compare", help=(compare.run.__doc__ or "").partition("\n")[0])
@functools.wraps(compare.run)
def compare_files(**given: Any) -> None:
    with mistakes():
        changes = compare.run(**given)
    if compare.failed(changes):
        raise typer.Exit(1)


@app.command()
def facts(
    file: Annotated[Path, typer.Argument(help="To write, bench/plans/profiles/NAME.json.")],
    names: Names = None,
    device: DeviceName = "",
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core, to 8.")] = 0,
) -> None:
    """Record a device's and its driver's answers, for the snapshots of plans."""
    with mistakes():
        facts_bench.record(file, names=names or (), device=device, workers=workers)


@app.command()
def plans(
    names: Names = None,
    profile: Annotated[
        Strings, typer.Option(help="Device profiles; all when none is given.")
    ] = None,
    write: Annotated[bool, typer.Option(help="Keep the plans of today.")] = False,
) -> None:
    """Compare the plans for recorded devices with the stored ones; no device is needed."""
    with mistakes():
        if not snapshots_bench.run(names or (), profiles=profile or (), write=write):
            raise typer.Exit(1)


@app.command()
def figures(
    write: Annotated[
        bool, typer.Option("--write", help="Write what differs, instead of showing it.")
    ] = False,
) -> None:
    """Compare the tables and charts of README.md and docs with the files of bench/figures."""
    raise typer.Exit(figures_command.run(write=write))


@app.command()
def boards(
    write: Annotated[
        bool, typer.Option("--write", help="Write what differs, instead of showing it.")
    ] = False,
) -> None:
    """Compare the tables of docs/arm64.md with staged boards and estimates; no board is needed."""
    with mistakes():
        raise typer.Exit(boards_command.run(write=write))


if __name__ == "__main__":
    app()
