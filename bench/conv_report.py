"""Results of the layers: table, totals, CSV file, plot."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.conv_layers import Layer
from bench.conv_measure import Row, roots_of
from bench.peaks import Peaks
from bench.report import Column, TextTable

BASELINE = "direct"


def bound_ms(layer: Layer, precision: str, peaks: Peaks) -> float:
    """Least milliseconds for a layer's operations, and for its bytes moved once."""
    size = 2 if precision == "fp16" else 4
    return peaks.bound_ms(precision, layer.flops, layer.bytes(size))


@dataclasses.dataclass(frozen=True)
class LayerTimes:
    """The measured rows of one layer in one precision.

    Attributes
    ----------
    own
        The delegate's, the fastest first.
    default, best
        The delegate's choice, and its fastest engine.
    peer
        The other library's.
    by_root
        The fastest variant of each engine.
    over_direct
        How many times faster than direct each engine's fastest variant is; empty without direct.
    """

    layer: Layer
    own: list[Row]
    default: Row | None
    best: Row | None
    peer: Row | None
    by_root: Mapping[str, Row]
    over_direct: Mapping[str, float]

    @classmethod
    def of(cls, layer: Layer, rows: Iterable[Row], roots: Mapping[str, str]) -> LayerTimes:
        """Sort rows; ``roots`` are the engines of all candidates."""
        rows = sorted(rows, key=_ms)
        own = [row for row in rows if not row.is_peer]
        by_root = {roots[row.engine]: row for row in reversed(own)}
        direct = by_root.get(BASELINE)
        return cls(
            layer,
            own,
            default=next((row for row in own if row.default), None),
            best=next(iter(own), None),
            peer=next((row for row in rows if row.is_peer), None),
            by_root=by_root,
            over_direct={name: _ms(direct) / _ms(row) for name, row in by_root.items() if direct},
        )


def by_layer(rows: Iterable[Row], precision: str) -> list[LayerTimes]:
    """Group the measured rows of a precision, in the order of the layers."""
    rows = list(rows)
    roots = roots_of(row.engine for row in rows)
    groups: dict[Layer, list[Row]] = defaultdict(list)
    for row in rows:
        if row.precision == precision and row.ms is not None:
            groups[row.layer].append(row)
    return [LayerTimes.of(layer, group, roots) for layer, group in groups.items()]


@dataclasses.dataclass(frozen=True)
class Totals:
    """Figures over the layers of one precision.

    Attributes
    ----------
    layers
        Layers that were measured.
    default_ms, best_ms
        Sums over these, with the engine that the delegate chooses untuned and with its fastest.
    peer_ms, peer_layers
        Sum of the other library, and over how many layers.
    tuning_geomean, tuning_max
        What tuning can gain: default over best, by layer.
    over_direct
        Engine -> layers it applies to, arithmetic and geometric mean of direct over it.
    """

    layers: int
    default_ms: float
    best_ms: float
    peer_ms: float
    peer_layers: int
    tuning_geomean: float
    tuning_max: float
    over_direct: Mapping[str, tuple[int, float, float]]


def totals(rows: Iterable[Row], precision: str) -> Totals | None:
    """The totals of one precision; None if no layer's default engine was measured."""
    every = by_layer(rows, precision)
    times = [t for t in every if t.default is not None]
    if not times:
        return None
    defaults = [_ms(t.default) for t in times]
    bests = [_ms(t.best) for t in times]
    gains = [d / b for d, b in zip(defaults, bests)]
    ratios: dict[str, list[float]] = defaultdict(list)
    for t in every:
        for name, ratio in t.over_direct.items():
            if name != BASELINE:
                ratios[name].append(ratio)
    peers = [_ms(t.peer) for t in times if t.peer is not None]
    return Totals(
        layers=len(times),
        default_ms=sum(defaults),
        best_ms=sum(bests),
        peer_ms=sum(peers),
        peer_layers=len(peers),
        tuning_geomean=statistics.geometric_mean(gains),
        tuning_max=max(gains),
        over_direct={
            name: (len(r), statistics.fmean(r), statistics.geometric_mean(r))
            for name, r in ratios.items()
        },
    )


def sentences(sums: Totals, precision: str) -> list[str]:
    """The totals as sentences."""
    lines = [
        f"{precision}: sum of {sums.layers} layers: {sums.default_ms:.4g} ms by the untuned "
        f"choice, {sums.best_ms:.4g} ms by the best engine of each layer; tuning gains "
        f"{sums.tuning_geomean:.2f}x (geometric mean), {sums.tuning_max:.2f}x at most"
    ]
    if sums.peer_layers:
        lines.append(
            f"{precision}: cuDNN takes {sums.peer_ms:.4g} ms for {sums.peer_layers} of them"
        )
    for name, (count, mean, geometric) in sums.over_direct.items():
        lines.append(
            f"{precision}: {name} over direct: {mean:.2f}x (arithmetic mean), {geometric:.2f}x "
            f"(geometric mean) over the {count} layers it applies to"
        )
    return lines


def summary(rows: Sequence[Row], precisions: Iterable[str]) -> list[str]:
    """Sentences about what was not measured, and the totals of each precision."""
    lines = notes(rows)
    for precision in precisions:
        sums = totals(rows, precision)
        lines += sentences(sums, precision) if sums else []
    return lines


def records(rows: Iterable[Row], device: str, peaks: Peaks) -> list[dict[str, Any]]:
    """The rows as those of the CSV file."""
    rows = list(rows)
    direct = {
        (t.layer, precision): t.by_root.get(BASELINE)
        for precision in {row.precision for row in rows}
        for t in by_layer(rows, precision)
    }
    table = []
    for row in rows:
        layer, ms = row.layer, row.ms
        bound = bound_ms(layer, row.precision, peaks)
        rate = row.rate
        baseline = direct.get((layer, row.precision))
        table.append(
            {
                "device": device,
                "precision": row.precision,
                "layer": layer.number,
                "C": layer.channels,
                "H": layer.height,
                "W": layer.width,
                "filter": layer.filter,
                "K": layer.filters,
                "gflop": _digits(layer.flops / 1e9),
                "engine": row.engine,
                "default": int(row.default),
                "ms": _digits(ms),
                "gflops": _digits(rate and rate / 1e9),
                "over_direct": _digits(ms and baseline and _ms(baseline) / ms),
                "peak_share": _digits(rate and rate / peaks.flops(row.precision)),
                "bound_ms": _digits(bound),
                "bound_share": _digits(ms and bound / ms),
                "max_error": "" if row.error is None else f"{row.error:.2e}",
                "note": row.note,
            }
        )
    return table


def table_of(rows: Sequence[Row], precision: str, peaks: Peaks) -> TextTable:
    """One line per layer: the untuned choice, and the best variant of each engine."""

    def bound(t: LayerTimes) -> float:
        return bound_ms(t.layer, precision, peaks)

    def engine(name: str) -> Column:
        return Column(f"{name} ms", lambda t: ms_of(t.by_root.get(name)), ".4g")

    times = by_layer(rows, precision)
    roots = dict.fromkeys(name for t in times for name in sorted(t.by_root))
    peak = peaks.flops(precision)
    columns = [
        Column("", lambda t: t.layer.number),
        Column("C,H,W,filter,K", "layer"),
        Column("GFLOP", lambda t: t.layer.flops / 1e9, ".4g"),
        Column("bound ms", bound, ".3g"),
        Column("default", lambda t: t.default and t.default.engine, is_text=True),
        Column("ms", lambda t: ms_of(t.default), ".4g"),
        Column("best", lambda t: t.best and t.best.engine, is_text=True),
        Column("ms", lambda t: ms_of(t.best), ".4g"),
        Column("GFLOP/s", lambda t: t.best and t.best.rate / 1e9, ".0f"),
        Column("of peak", lambda t: t.best and t.best.rate / peak, ".0%"),
        Column("of bound", lambda t: t.best and bound(t) / t.best.ms, ".0%"),
        Column("x direct", lambda t: t.best and max(t.over_direct.values(), default=None), ".2f"),
        Column("error", lambda t: t.best and max(r.error or 0 for r in t.own), ".0e"),
        Column("cuDNN ms", lambda t: ms_of(t.peer), ".4g", is_optional=True),
        Column(
            "x cuDNN", lambda t: t.peer and t.best and t.peer.ms / t.best.ms, ".2f",
            is_optional=True,
        ),
    ]  # fmt: skip
    return TextTable.of(precision, times, [*columns, *map(engine, roots)])


def notes(rows: Iterable[Row]) -> list[str]:
    """Why engines were not measured: one line for each, with its most frequent reason."""
    reasons: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.note:
            reasons[row.precision, row.engine][row.note] += 1
    lines = []
    for (precision, engine), counts in reasons.items():
        (reason, count), *others = counts.most_common()
        more = f"; other reasons: {sum(n for _, n in others)}" if others else ""
        layers = "layer" if count == 1 else "layers"
        lines.append(f"{precision}: {engine}: {reason} ({count} {layers}{more})")
    return lines


def plot(path: Path, rows: Sequence[Row], title: str, peaks: Peaks) -> None:
    """Draw GFLOP/s by layer, one panel per precision, with the bound; PNG, PDF or SVG by name."""
    import matplotlib as mpl  # noqa: PLC0415  # not needed otherwise

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    precisions = list(dict.fromkeys(row.precision for row in rows))
    colours = sorted(set(roots_of(row.engine for row in rows).values()))
    figure, axes = pyplot.subplots(
        len(precisions), 1, figsize=(14, 4.5 * len(precisions)), squeeze=False
    )
    for axis, precision in zip(axes[:, 0], precisions):
        times = by_layer(rows, precision)
        lines: dict[str, list[float]] = {}
        for i, t in enumerate(times):
            named = {**t.by_root, "default": t.default, "cuDNN": t.peer}
            for name, row in named.items():
                if row is not None:
                    lines.setdefault(name, [math.nan] * len(times))[i] = row.rate / 1e9
        bounds = [t.layer.flops / bound_ms(t.layer, precision, peaks) / 1e6 for t in times]
        axis.plot(bounds, color="black", linestyle=":", label="bound (arithmetic, copies)")
        for name, values in sorted(lines.items()):
            if name == "default":
                axis.plot(values, "ko", label=name, fillstyle="none")
            elif name == "cuDNN":
                axis.plot(values, "k--", label=name)
            else:
                axis.plot(values, ".-", label=name, color=f"C{colours.index(name) % 10}")
        axis.set(yscale="log", ylabel="GFLOP/s", title=precision)
        axis.set_xticks(range(len(times)), [str(t.layer) for t in times], rotation=90, fontsize=7)
        axis.grid(visible=True, alpha=0.3)
        axis.legend(fontsize=8, ncols=4)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def ms_of(row: Row | None) -> float | None:
    """The time of a row; None without the row."""
    return None if row is None else row.ms


def _ms(row: Row | None) -> float:
    ms = ms_of(row)
    assert ms is not None
    return ms


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
