"""``python -m bench peers``: the same work for all libraries that are installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench import networks
from bench.conv_layers import select
from bench.peers import charts, page, registry, report
from bench.peers.energy import Meter
from bench.peers.peer import Means
from bench.peers.session import Plan, Row, measure
from bench.peers.work import INT8, Work
from bench.record import check_folder
from bench.report import Report
from bench.setting import PRECISIONS, File, Setting, Strings, batch_sizes, check_known, split
from clgpu_delegate.measure.turns import BUSY, wait_until_quiet

DEFAULT = ("lenet5", "mobilenet_v1", "mobilenet_v2", "inception_v3", "resnet50")


def works_of(
    names: Sequence[str], *, batches: Sequence[int], precisions: Sequence[str], layers: str = "",
    scale: float = 1.0,
) -> list[Work]:  # fmt: skip
    """The works of a request.

    Parameters
    ----------
    names
        Networks of the bench, and paths of .tflite files. A file has its own batch, and no int8
        version: it is one, or is not.
    batches, precisions
        Of each network and layer.
    layers, scale
        As in `bench.conv_layers.select`, or ``"all"``; a factor for their height and width.

    Raises
    ------
    ValueError
        If a name is neither a network nor a file.
    """
    found: list[Work] = []
    for name in names:
        if name.endswith(".tflite"):
            if not Path(name).is_file():
                raise ValueError(f"there is no file {name}")
            path, floats = Path(name).resolve(), [p for p in precisions if p != INT8]
            found += [Work(path.stem, 0, p, file=str(path)) for p in floats or ["fp32"]]
        else:
            check_known(
                "network, nor the path of a .tflite file", [name], sorted(networks.NETWORKS)
            )
            found += [Work(name, b, p, network=name) for b in batches for p in precisions]
    for layer in select("" if layers == "all" else layers) if layers else ():
        found += [
            Work(f"layer {layer.number}: {layer.scaled(scale)}", b, p, layer=layer.number,
                 scale=scale)
            for b in batches for p in precisions
        ]  # fmt: skip
    return found


def run(
    setting: Setting,
    names: Annotated[Strings, typer.Argument(help="Networks, or .tflite files.")] = None,
    batch: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "1",
    precision: Annotated[str, typer.Option(help="fp32, tf32, fp16, int8.")] = "fp32",
    peers: Annotated[str, typer.Option(help="Parts of peers' names; all without any.")] = "",
    layers: Annotated[str, typer.Option(help="PyNET's layers: all, or as in 1,4-6.")] = "",
    scale: Annotated[float, typer.Option(help="Factor for height and width of layers.")] = 1.0,
    limit: Annotated[float, typer.Option(help="Seconds for a peer to load a model.")] = 120.0,
    markdown: Annotated[File, typer.Option(help="Markdown file to write.")] = None,
    html: Annotated[File, typer.Option(help="Page to write, with charts.")] = None,
    plots: Annotated[File, typer.Option(help="Folder for the charts, as SVG files.")] = None,
) -> list[Row]:
    """Measure the same models on all libraries that are installed, each in its own process.

    Raises
    ------
    ValueError
        If a network, file, layer, precision or peer does not exist.
    """
    precisions = split(precision)
    check_known("precision", precisions, (*PRECISIONS, INT8))
    check_folder(markdown, html, plots)
    wanted = names or ([] if layers else list(DEFAULT))
    works = works_of(
        wanted, batches=batch_sizes(batch), precisions=precisions, layers=layers, scale=scale
    )
    chosen = registry.chosen(split(peers))
    device = setting.found
    means = Means(setting.device, device.type, device.platform, device.library, setting.cpu_threads)
    plan = Plan(means, setting.rounds, setting.budget, limit)
    facts = environment(setting) | report.software(chosen)
    table = Report[Row](setting, threads=setting.cpu_threads, software=facts)
    rows: list[Row] = []
    for work, found in measure(works, chosen, plan, say=table.say):
        rows += found
        table.add(found, network=work.network)
        table.console.print(report.of_work(found).rich())
        write(rows, facts, markdown=markdown, html=html, plots=plots)
    for each in (report.losses(rows), report.left_out(rows), report.not_installed(rows)):
        if each.rows:
            table.console.print(each.rich())
    return rows


def environment(setting: Setting) -> dict[str, str]:
    """Facts about the machine, by name."""
    busy = wait_until_quiet(0.0)
    energy = ", ".join(Meter().sources) or "not reported by this machine"
    return {
        "device": setting.title,
        "system": platform.platform(),
        "Python": platform.python_version(),
        "cores": f"{os.cpu_count()}, {setting.cpu_threads} used",
        "energy": energy,
        "other work at the start": _share(busy),
    }


def _share(busy: float | None) -> str:
    if busy is None:
        return "unknown"
    return f"{busy:.0%} of the cores" + ", so times are unreliable" * (busy > BUSY)


def write(
    rows: Sequence[Row], facts: dict[str, str], *, markdown: Path | None, html: Path | None,
    plots: Path | None,
) -> None:  # fmt: skip
    """Write the files with the rows so far."""
    if markdown is not None:
        head = "".join(f"- {name}: {text}\n" for name, text in facts.items())
        parts = (table.markdown() for table in report.tables(rows))
        markdown.write_text(head + "\n" + "\n".join(parts), encoding="utf-8")
    if html is not None:
        html.write_text(page.render(rows, facts), encoding="utf-8")
    if plots is not None:
        plots.mkdir(exist_ok=True)
        for name, of in report.by_work(rows).items():
            file = "".join(c if c.isalnum() else "-" for c in name)
            if svg := charts.draw(of):
                (plots / f"{file}.svg").write_text(svg, encoding="utf-8")
