"""``python -m bench``: the project's measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import conv, nets, placement, pynet, recording, stream
from bench import guard as guard_bench
from bench.figures import command as figures_command
from bench.plans import facts as facts_bench
from bench.plans import snapshots as snapshots_bench
from bench.setting import Commit, DeviceName, File, Json, Names, Strings, command, mistakes, split

app = typer.Typer(add_completion=False, help=__doc__, no_args_is_help=True)


@app.callback()
def main() -> None:
    """Measure the delegate against the stock runtime."""


# The keywords are the options of `bench.setting.Setting` that a command takes, with their defaults.
for name, function in {
    "nets": command(
        nets.run, per="network", csv=None, threads=0, rounds=20, budget=3.0, torch=True
    ),
    "conv": command(conv.run, per="layer and engine", csv=None, rounds=7, budget=0.15, torch=True),
    "pynet": command(pynet.run, per="row", csv=None, threads=0, rounds=5, budget=3.0, torch=True),
    "recording": command(recording.run, per="network", rounds=20, budget=10.0),
    "stream": command(stream.run, per="network", csv=None, rounds=5, budget=3.0),
    "placement": command(placement.run, per="visit", csv=None, threads=1, budget=0.3),
}.items():
    app.command(name)(function)


@app.command()
def facts(
    file: Annotated[Path, typer.Argument(help="To write, bench/plans/profiles/NAME.json.")],
    names: Names = None,
    device: DeviceName = "",
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core, to 8.")] = 0,
) -> None:
    """Record what a device and its driver answer, for the snapshots of plans."""
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
    """Compare plans for devices that need not be there with those that are kept."""
    with mistakes():
        if not snapshots_bench.run(names or (), profiles=profile or (), write=write):
            raise typer.Exit(1)


@app.command()
def guard(
    device: DeviceName = "",
    against: Annotated[
        Strings,
        typer.Option(help="A commit that is built and measured in turns; several may be given."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Keep this run as the baseline.")] = False,
    baseline: Annotated[File, typer.Option(help="File, instead of that of the device.")] = None,
    only: Annotated[
        str, typer.Option(help="Items: words of their names, as in 'resnet50 fp16,layer-8'.")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A few items of each kind.")] = False,
    scale: Annotated[
        float, typer.Option(help="Of the layers' height and width; 0: 1 on GPUs, else 0.125.")
    ] = 0.0,
    plans: Annotated[bool, typer.Option(help="Compare plans with the kept ones.")] = True,
    time_limit: Annotated[
        float, typer.Option(help="Seconds until no round is begun; 0: 230 for each build.")
    ] = 0.0,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each item, at most.")] = 9,
    processes: Annotated[
        int, typer.Option(min=0, help="That compile; 0: half the cores, to 8.")
    ] = 0,
    everything: Annotated[bool, typer.Option("--all", help="Show what is the same, too.")] = False,
    markdown: Annotated[File, typer.Option(help="File to write, for a note.")] = None,
    json: Json = None,
    commit: Commit = "",
) -> None:
    """Tell what a change of the C++ or the kernels made worse on this device; exits 1 then."""
    with mistakes():
        outcome = guard_bench.run(
            guard_bench.Request(
                device=device,
                against=tuple(against or ()),
                write=write,
                baseline=baseline,
                only=tuple(split(only)),
                quick=quick,
                scale=scale,
                plans=plans,
                time_limit=time_limit,
                rounds=rounds,
                processes=processes,
                commit=commit,
            ),
            everything=everything,
            markdown=markdown,
            json=json,
        )
    if outcome.failures:
        raise typer.Exit(1)


@app.command()
def figures(
    write: Annotated[
        bool, typer.Option("--write", help="Write what differs, instead of showing it.")
    ] = False,
) -> None:
    """Compare the tables and charts of README.md and docs with the files of bench/figures."""
    raise typer.Exit(figures_command.run(write=write))


if __name__ == "__main__":
    app()
