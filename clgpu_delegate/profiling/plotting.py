"""A profile as a picture, drawn by matplotlib."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clgpu_delegate.errors import DependencyError, FileError
from clgpu_delegate.profiling.records import TRANSFERS, known
from clgpu_delegate.profiling.table import milliseconds

if TYPE_CHECKING:
    from clgpu_delegate.profiling.recorded import Recorded

_NODES = 15  # with a bar
_COLOURS = {"host": "#8b8f98", "kernels": "#2f6fde", "copies": "#1b9e77", "CPU": "#e0a030"}


def check(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `image`: matplotlib is missing, or the ending is not a format."""
    _format(_canvas()[1], path)


def image(profile: Recorded, path: str | os.PathLike[str]) -> bytes:
    """The content of the file; see `Profile.plot`."""
    figure, canvas = _canvas()
    ending = _format(canvas, path)
    nodes = sorted(profile.nodes, key=lambda node: -node.device_seconds)[:_NODES]
    figure.set_size_inches(11, 2.6 + 0.28 * max(len(nodes), 4))
    top, bottom = figure.subplots(2, 1, height_ratios=[1.4, 0.28 * max(len(nodes), 4)])
    _draw_timeline(profile, top)
    _draw_nodes(profile, nodes, bottom)
    name = Path(profile.model).name
    title = (
        f"{name} on {profile.device}, {profile.explanation.arithmetic}" if name else profile.device
    )
    # A dollar sign would begin a formula.
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    content = io.BytesIO()
    figure.savefig(content, format=ending, dpi=150)
    return content.getvalue()


def _canvas() -> tuple[Any, Any]:
    try:
        # Not pyplot, which would choose a window system and keep every figure.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise DependencyError(
            "plots need matplotlib; install it with: pip install 'clgpu_delegate[profile]'"
        ) from None
    figure = Figure(layout="constrained")
    return figure, FigureCanvasAgg(figure)


def _format(canvas: Any, path: str | os.PathLike[str]) -> str:
    ending, known = Path(path).suffix[1:].lower(), canvas.get_supported_filetypes()
    if ending not in known:
        names = ", ".join(f".{name}" for name in sorted(known))
        raise FileError(f"cannot write {os.fspath(path)}: its ending is none of {names}")
    return ending


def _draw_timeline(profile: Recorded, axes: Any) -> None:
    number = profile.inference("median")
    launches = [x for x in profile.launches if x.inference == number]
    partitions = [x for x in profile.partitions if x.inference == number]
    whole = [x for x in profile.invokes if x.inference == number]
    host = [[(x.start, x.end) for x in rows] for rows in (whole, partitions)]
    device = [known(launches, "launch"), known(launches, *TRANSFERS)]
    origin = min(span[0] for spans in (*host, *device) for span in spans)
    heights, colours = (2.1, 2.1, 1.1, 0.1), ("CPU", "host", "kernels", "copies")
    for spans, height, colour in zip((*host, *device), heights, colours):
        bars = [((start - origin) * 1e-6, (end - start) * 1e-6) for start, end in spans]
        axes.broken_barh(bars, (height, 0.8), color=_COLOURS[colour])
    axes.set_yticks([2.5, 1.5, 0.5], ["host", "kernels", "copies"])
    axes.set_ylim(0, 3)
    axes.set_xlim(left=0)
    wall = milliseconds(profile.totals_of(number).wall_seconds)
    axes.set_xlabel(f"ms of the median inference, {wall}")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_nodes(profile: Recorded, nodes: list[Any], axes: Any) -> None:
    times = [node.device_seconds * 1e3 for node in nodes]
    names = [f"{node.node} {node.op} ({node.candidate})" for node in nodes]
    bars = axes.barh(range(len(nodes)), times, color=_COLOURS["kernels"])
    axes.set_yticks(range(len(nodes)), [n.replace("$", r"\$") for n in names], fontsize=8)
    axes.invert_yaxis()
    notes = [
        f"{node.share * 100:.1f} %"
        + ("" if node.peak_share is None else f", {node.peak_share * 100:.0f} % of peak")
        for node in nodes
    ]
    axes.bar_label(bars, notes, padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.set_xlabel(f"ms on the device; {len(nodes)} of {len(profile.nodes)} nodes")
    axes.spines[["top", "right"]].set_visible(False)
