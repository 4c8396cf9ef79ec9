"""The charts: SVG files that carry the digests of the files they were made of."""

from __future__ import annotations

import dataclasses
import io
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.conv_report import by_layer
from bench.figures.source import Source, Sources
from bench.figures.tables import (
    BY_BATCH,
    CHART_TITLES,
    GPU,
    NAMES,
    NETWORKS,
    batch_times,
    conv_peaks,
    conv_rows,
)
from bench.nets import Row as NetRow
from bench.setting import PRECISIONS

FOLDER = Path("docs/images")

# From the palette of Okabe and Ito, which colour-blind people can distinguish.
_COLOURS = {"fp32": "#0072b2", "tf32": "#009e73", "fp16": "#e69f00"}
LOSS = "#d55e00"
STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "clgpu_delegate", "font.size": 9,
    "axes.titlesize": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "grid.alpha": 0.3, "legend.frameon": False,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name
        Name of the file in `FOLDER`, without its suffix, and a key of `CHART_TITLES`.
    draw
        A function of pyplot and a `Source` for each file; returns a figure.
    files
        Names as in `Source`.
    """

    name: str
    draw: Callable[..., Any]
    files: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Path of the SVG file in the repository."""
        return FOLDER / f"{self.name}.svg"

    def stamp(self, sources: Sources) -> str:
        """The line of the SVG file with the digests of its files."""
        used = [sources[name] for name in self.files]
        return ", ".join(f"{source.path.as_posix()} {source.digest}" for source in used)

    def svg(self, sources: Sources) -> str:
        """Draw it."""
        import matplotlib as mpl  # noqa: PLC0415  # not needed otherwise

        mpl.use("Agg")
        from matplotlib import pyplot  # noqa: PLC0415

        with mpl.rc_context(STYLE):
            figure = self.draw(pyplot, *(sources[name] for name in self.files))
            text = io.StringIO()
            about = {"Date": None, "Creator": None, "Title": CHART_TITLES[self.name]}
            figure.savefig(
                text, format="svg", bbox_inches="tight",
                metadata={**about, "Source": self.stamp(sources)},
            )  # fmt: skip
            pyplot.close(figure)
        return re.sub(r"[ \t]+$", "", text.getvalue(), flags=re.MULTILINE)


def stamp_of(svg: str) -> str:
    """The line with the digests in a chart; empty if there is none."""
    found = re.search(r"<dc:source>(.*?)</dc:source>", svg, re.DOTALL)
    return found[1].strip() if found else ""


def draw_networks(pyplot: Any, source: Source) -> Any:
    """Speed relative to the stock CPU and PyTorch: bars from 1 to the right (faster) or left."""
    panels = [
        ("stock CPU, host to host", 1, lambda row: (row.cpu_ms, row.host_ms)),
        ("PyTorch, batch 1", 1, lambda row: (row.torch_ms, row.device_ms)),
        ("PyTorch, batch 16", 16, lambda row: (row.torch_ms, row.device_ms)),
    ]
    figure, axes = pyplot.subplots(1, 3, figsize=(7.6, 5.0), sharey=True, layout="constrained")
    thick = 0.8 / len(PRECISIONS)
    for axis, (title, batch, times) in zip(axes, panels):
        for i, precision in enumerate(PRECISIONS):
            for place, name in enumerate(NETWORKS):
                row = source.row(NetRow, network=name, batch=batch, precision=precision)
                peer, own = times(row)
                if peer is None:
                    continue
                ratio = peer / own
                y = place + (i - 1) * thick
                axis.barh(y, ratio - 1, thick, left=1, color=_COLOURS[precision])
                ahead = ratio >= 1
                axis.annotate(
                    f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}", (ratio, y),
                    xytext=(2 if ahead else -2, 0), textcoords="offset points", va="center",
                    ha="left" if ahead else "right", fontsize=7,
                    color="black" if ahead else LOSS, weight="normal" if ahead else "bold",
                )  # fmt: skip
        axis.set(xscale="log", title=title)
        axis.axvline(1, color="black", linewidth=0.8)
        low, high = axis.get_xlim()
        wide = (high / low) ** 0.14  # room for the numbers
        axis.set_xlim(min(low, 0.9) / wide, high * wide)
        _plain_ticks(axis.xaxis, axis.get_xlim())
        axis.grid(visible=True, axis="x")
    axes[0].set_yticks(range(len(NETWORKS)), [NAMES[name] for name in NETWORKS])
    axes[0].invert_yaxis()
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=_COLOURS[p]) for p in PRECISIONS]
    figure.legend(handles, PRECISIONS, loc="outside lower center", ncols=len(PRECISIONS))
    figure.suptitle(f"How many times as fast as others: {source.device}, {source.when}", fontsize=9)
    return figure


def draw_roofline(pyplot: Any, source: Source) -> Any:
    """Roofline plot: rates of the layers over operations per byte, and the measured peaks."""
    rows, peaks = conv_rows(source), conv_peaks(source)
    figure, axes = pyplot.subplots(1, 3, figsize=(7.6, 3.3), sharey=True, layout="constrained")
    for axis, precision in zip(axes, PRECISIONS):
        size = 2 if precision == "fp16" else 4
        own: list[tuple[float, float]] = []
        peer: list[tuple[float, float]] = []
        for times in by_layer(rows, precision):
            layer = times.layer
            x = layer.flops / layer.bytes(size)
            for row, points in ((times.default, own), (times.peer, peer)):
                if row is not None and row.ms:
                    points.append((x, layer.flops / row.ms / 1e9))
        roof = peaks.flops(precision) / 1e12
        knee = roof * 1e12 / peaks.copy_bytes
        every = [x for x, _ in own]
        span = [min([*every, knee]) / 1.5, knee, max([*every, knee]) * 1.5]
        axis.plot(span, [min(roof, x * peaks.copy_bytes / 1e12) for x in span], color="black",
                  linewidth=1, label="roof")  # fmt: skip
        if peer:
            axis.plot(
                *zip(*peer), "o", color="#777777", fillstyle="none", markersize=4, label="cuDNN"
            )
        axis.plot(*zip(*own), "o", color=_COLOURS[precision], markersize=4, label="clgpu_delegate")
        axis.set(xscale="log", yscale="log", xlabel="FLOP per byte", title=precision)
        axis.grid(visible=True)
    axes[0].set_ylabel("TFLOP/s")
    for axis in axes:
        _plain_ticks(axis.xaxis, axis.get_xlim())
    _plain_ticks(axes[0].yaxis, axes[0].get_ylim())
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.suptitle(f"35 convolution layers of PyNET: {source.device}, {source.when}", fontsize=9)
    return figure


def draw_batches(pyplot: Any, one: Source, more: Source) -> Any:
    """Time per image by batch."""
    figure, axes = pyplot.subplots(1, len(BY_BATCH), figsize=(7.6, 3.0), layout="constrained")
    for axis, name in zip(axes, BY_BATCH):
        for precision in PRECISIONS:
            rows = batch_times(one, more, name, precision)
            own = [(batch, row.device_ms / batch) for batch, row in rows.items()]
            peer = [(b, row.torch_ms / b) for b, row in rows.items() if row.torch_ms is not None]
            style = {"color": _COLOURS[precision], "markersize": 4}
            axis.plot(*zip(*own), "o-", label=precision, **style)
            if peer:
                axis.plot(
                    *zip(*peer), "o--", fillstyle="none", label=f"{precision}, PyTorch", **style
                )
        axis.set(xscale="log", yscale="log", xlabel="batch", title=NAMES[name])
        sizes = sorted(batch_times(one, more, name, PRECISIONS[0]))
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        _plain_ticks(axis.yaxis, axis.get_ylim())
        axis.grid(visible=True)
    axes[0].set_ylabel("device ms per image")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle(f"{one.device}, {more.when}", fontsize=9)
    return figure


def _plain_ticks(axis: Any, span: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, written plainly."""
    low, high = span
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 1.5, 2, 3, 5) if high / low < 10 else (1, 2, 5) if high / low < 300 else (1,)
    values = [step * 10.0**decade for decade in decades for step in steps]
    inside = [value for value in values if low <= value <= high]
    axis.set_ticks(inside, [f"{value:g}" for value in inside])
    axis.set_ticks([], minor=True)


CHARTS = (
    Chart("networks", draw_networks, (f"{GPU}/nets.json",)),
    Chart("roofline", draw_roofline, (f"{GPU}/conv.json",)),
    Chart("batches", draw_batches, (f"{GPU}/nets.json", f"{GPU}/batches.json")),
)
