"""``python -m bench conv``: the 35 convolution layers of PyNET by every engine of the device.

Rates and bounds count the operations of the plain sum. Winograd's convolution needs fewer, so it
may pass 100 % of the peak and of the bound.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import clgpu_delegate
from bench import conv_report, peaks, peers_torch
from bench.conv_layers import Case, Layer, select
from bench.conv_measure import PRECISIONS, Bench, Row, wanted
from bench.plan_digests import PYNET_12MP
from bench.record import Sheet


def run(
    *,
    scale: float = 1.0,
    precisions: Sequence[str] = PRECISIONS,
    engines: Sequence[str] = (),
    layers: str = "",
    device: str = "",
    runtime: str = "auto",
    rounds: int = 7,
    budget_s: float = 0.15,
    use_torch: bool = True,
    csv: Path | None = None,
    plot: Path | None = None,
    json: Sheet | None = None,
) -> list[Row]:
    """Measure, print tables and totals, write files; parameters as on the command line.

    Raises
    ------
    ValueError
        If a layer, a precision, an engine or a file's folder does not exist.
    ImportError
        If a plot is asked for, and matplotlib is not installed.
    """
    _check_request(precisions, csv, plot)
    chosen = [layer.scaled(scale) for layer in select(layers)]
    start = time.perf_counter()
    found = clgpu_delegate.load(device=device).device
    title = f"{found.name} ({found.platform}, {found.driver_version})"
    console = Console(width=None if Console().is_terminal else 250)
    ceilings = peaks.measure(device)
    torch = peers_torch.find() if use_torch else None
    bench = Bench(runtime=runtime, device=device, engines=engines, rounds=rounds, budget_s=budget_s)
    rows: list[Row] = []
    for precision in precisions:
        for layer in chosen:
            with console.status(f"{precision}: layer {layer.number} ({layer})"):
                rows.extend(bench.measure(layer, precision))
                if torch is not None:
                    rows.append(_peer(torch, layer, precision, rounds, budget_s))
        _check_engines(engines, bench.seen)
        ceilings = ceilings.or_better(peaks.measure(device))  # its clock may have changed
        if json is not None:
            layers_of = [PYNET_12MP] if scale == 1 else []
            json.write(rows, device=found, torch=torch, peaks=ceilings, networks=layers_of)
        console.print(conv_report.make_table(rows, precision, ceilings))
    console.print(f"{title}: {ceilings}", highlight=False)
    for line in conv_report.notes(rows):
        console.print(line, highlight=False)
    for precision in precisions:
        sums = conv_report.totals(rows, precision)
        for line in conv_report.sentences(sums, precision) if sums else []:
            console.print(line, highlight=False)
    console.print(f"measured in {time.perf_counter() - start:.0f} s", highlight=False)
    if csv is not None:
        conv_report.write_csv(csv, conv_report.records(rows, title, ceilings))
    if plot is not None:
        conv_report.plot(plot, rows, title, ceilings)
    return rows


def _check_request(precisions: Sequence[str], csv: Path | None, plot: Path | None) -> None:
    for precision in precisions:
        if precision not in PRECISIONS:
            raise ValueError(f"{precision!r} is no precision; those are {', '.join(PRECISIONS)}")
    for path in (csv, plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"there is no folder for {path}")
    if plot is not None:
        importlib.import_module("matplotlib")  # fails now, not when all is measured


def _peer(torch: Any, layer: Layer, precision: str, rounds: int, budget_s: float) -> Row:
    case = Case.of(layer)
    row = Row(precision, layer, peers_torch.CUDNN)
    try:
        ms = peers_torch.conv_ms(torch, case, precision, rounds=rounds, budget_s=budget_s)
    except RuntimeError as error:  # out of memory, say
        return dataclasses.replace(row, note=str(error))
    finally:
        peers_torch.free(torch)
    return dataclasses.replace(row, ms=ms)


def _check_engines(engines: Sequence[str], seen: set[str]) -> None:
    for engine in engines:
        if engine != "default" and not any(wanted(name, [engine]) for name in seen):
            raise ValueError(
                f"no layer has an engine {engine!r}; they have {', '.join(sorted(seen))}"
            )
