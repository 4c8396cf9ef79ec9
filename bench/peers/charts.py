"""A chart of each work: bars of the median times, with the range from p10 to p90."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from bench.figures.charts import LOSS, STYLE
from bench.peers.report import is_wrong, label
from bench.peers.session import MEASURED, Row

_FIRST, _OTHER, _WRONG = LOSS, "#0072b2", "#bbbbbb"


def draw(rows: Sequence[Row]) -> str:
    """An SVG image of the measured rows of one work; empty if there is none.

    The first row of the work is the peer that the others are compared with.
    """
    measured = [row for row in rows if row.status == MEASURED]
    if not measured:
        return ""
    import matplotlib as mpl  # noqa: PLC0415  # not needed otherwise

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7, 0.8 + 0.28 * len(measured)))
        _fill(axes, measured, rows[0].peer)
        axes.set_title(
            f"{label(rows[0])}: ms, from array to array (bars to p10 and p90)", loc="left"
        )
        text = io.StringIO()
        about = {"Date": None, "Creator": None, "Title": label(rows[0])}
        figure.savefig(text, format="svg", bbox_inches="tight", metadata=about)
        pyplot.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _fill(axes: Any, rows: Sequence[Row], first: str) -> None:
    ordered = sorted(rows, key=lambda row: -(row.median_ms or 0.0))
    colours = [
        _WRONG if is_wrong(row) else _FIRST if row.peer == first else _OTHER for row in ordered
    ]
    names = [row.peer + " (wrong result)" * is_wrong(row) for row in ordered]
    medians = [row.median_ms or 0.0 for row in ordered]
    low = [m - (row.p10_ms or m) for row, m in zip(ordered, medians)]
    high = [(row.p90_ms or m) - m for row, m in zip(ordered, medians)]
    axes.barh(names, medians, color=colours, xerr=[low, high], ecolor="#555555", capsize=2)
    axes.set_xscale("log")
    for position, row in enumerate(ordered):
        ends = max(row.p90_ms or 0.0, row.median_ms or 0.0)
        axes.annotate(
            f"  {row.median_ms:.3g}", (ends, position), va="center", annotation_clip=False
        )
    axes.grid(axis="x")
