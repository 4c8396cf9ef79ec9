"""``python -m bench conv``: the 35 convolution layers of PyNET with every engine of the device.

Rates and bounds count the operations of direct convolution. Winograd's convolution needs fewer, so
it may exceed 100 % of the peak and of the bound.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from bench import conv_report, peaks, peers_torch
from bench.conv_layers import Case, Layer, select
from bench.conv_measure import Bench, Row, wanted
from bench.plan_digests import PYNET_12MP
from bench.record import check_folder
from bench.report import Report, write_csv
from bench.setting import PRECISIONS, File, Precision, Setting, check_known, split


def run(
    setting: Setting,
    scale: Annotated[float, typer.Option(help="Factor on height and width.")] = 1.0,
    precision: Precision = "fp32,tf32,fp16",
    engines: Annotated[
        str,
        typer.Option(help="Beginnings of candidates' names; 'default' is the chosen one."),
    ] = "",
    layers: Annotated[str, typer.Option(help="Numbers and ranges of layers, as in 1,4-6.")] = "",
    plot: Annotated[File, typer.Option(help="PNG file to write.")] = None,
) -> list[Row]:
    """Measure the 35 convolution layers of PyNET with every engine that the device offers.

    Raises
    ------
    ValueError
        If a layer, a precision, an engine or a file's folder does not exist.
    ImportError
        If a plot is asked for, and matplotlib is not installed.
    """
    precisions, names = split(precision), split(engines)
    check_known("precision", precisions, PRECISIONS)
    check_folder(plot)
    if plot is not None:
        importlib.import_module("matplotlib")  # a missing package fails before the measurements
    chosen = [layer.scaled(scale) for layer in select(layers)]
    start = time.perf_counter()
    found = setting.found
    title = f"{found.name} ({found.platform}, {found.driver_version})"
    ceilings = peaks.measure(setting.device)
    report = Report[Row](setting, width=250, torch=setting.peer)
    bench = Bench(setting, names)
    for each in precisions:
        rows: list[Row] = []
        for layer in chosen:
            with report.console.status(f"{each}: layer {layer.number} ({layer})"):
                rows.extend(bench.measure(layer, each))
                if setting.peer is not None:
                    rows.append(_peer(layer, each, setting))
        _check_engines(names, bench.seen)
        ceilings = ceilings.or_better(peaks.measure(setting.device))  # the clock may have changed
        report.add(rows, network=PYNET_12MP if scale == 1 else "", peaks=ceilings)
        report.console.print(conv_report.table_of(report.rows, each, ceilings).rich())
    report.say(f"{title}: {ceilings}")
    for line in conv_report.summary(report.rows, precisions):
        report.say(line)
    report.say(f"measured in {time.perf_counter() - start:.0f} s")
    if setting.csv is not None:
        write_csv(setting.csv, conv_report.records(report.rows, title, ceilings))
    if plot is not None:
        conv_report.plot(plot, report.rows, title, ceilings)
    return report.rows


def _peer(layer: Layer, precision: str, setting: Setting) -> Row:
    row = Row(precision, layer, peers_torch.CUDNN)
    try:
        ms = peers_torch.conv_ms(setting.peer, Case.of(layer), precision, **setting.timing())
    except RuntimeError as error:  # such as out of memory
        return dataclasses.replace(row, note=str(error))
    finally:
        peers_torch.free(setting.peer)
    return dataclasses.replace(row, ms=ms)


def _check_engines(engines: Sequence[str], seen: set[str]) -> None:
    for engine in engines:
        if engine != "default" and not any(wanted(name, [engine]) for name in seen):
            raise ValueError(
                f"no layer has an engine {engine!r}; they have {', '.join(sorted(seen))}"
            )
