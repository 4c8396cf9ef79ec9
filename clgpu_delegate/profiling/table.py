"""A profile as text: a table of nodes, and a bar of the parts of an inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clgpu_delegate.base.rendering import Group, Table, Text, size
from clgpu_delegate.errors import ClgpuError

if TYPE_CHECKING:
    from clgpu_delegate.profiling.recorded import Recorded
    from clgpu_delegate.profiling.records import NodeProfile, Totals

ROWS = 20  # of print()
_ABOVE = (
    "of peak: the least time that the device's measured rates of arithmetic and memory allow, as a "
    "share of the time; above 100 % where data come from caches, or where a node needs fewer "
    "operations than its definition has (Winograd's algorithm, integer units)"
)
_BAR = 10  # cells of a node's share
_LINE = 60  # cells of an inference's parts
PARTS = (
    ("kernels", "kernel_seconds", "green"),
    ("transfers", "transfer_seconds", "blue"),
    ("gaps", "gap_seconds", "bright_black"),
    ("CPU", "cpu_seconds", "yellow"),
)
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def summary(profile: Recorded) -> Group:
    """What print() shows."""
    totals = profile.totals
    left = len(profile.nodes) - ROWS
    head = (
        f"{profile.device}, {profile.explanation.arithmetic}: "
        f"{milliseconds(totals.wall_seconds)} per inference (median of {profile.inferences}), "
        f"{totals.launches} kernel launches"
    )
    more = [Text(f"and {left} nodes more; profile.table() has them all")] if left > 0 else []
    notes = [Text(f"note: {note}") for note in profile.notes]
    table = node_table(profile, "time", ROWS).fitting(3)
    return Group(Text(head), table, *more, *definitions(profile, ROWS), *_parts(totals), *notes)


def node_table(profile: Recorded, order: str, rows: int | None) -> Table:
    """See `Profile.table`."""
    if order not in ("time", "model"):
        raise ClgpuError(f"order is {order!r}; allowed: time, model")
    nodes = _by_time(profile) if order == "time" else profile.nodes
    table = Table()
    table.add_column("node", right=True)
    table.add_column("op")
    table.add_column("engine", fold=True)
    table.add_column("device us", right=True)
    table.add_column("share")
    for heading in ("host us", "GFLOP/s", "GB/s", "of peak"):
        table.add_column(heading, right=True)
    for node in nodes[:rows]:
        table.add_row(*map(Text, _cells(node)))
    return table


def definitions(profile: Recorded, rows: int) -> list[Text]:
    """What a table of the longest nodes needs below it: what a share of the peak above 1 means."""
    above = any((node.peak_share or 0) > 1 for node in _by_time(profile)[:rows])
    return [Text(_ABOVE)] if above else []


def _by_time(profile: Recorded) -> list[NodeProfile]:
    return sorted(profile.nodes, key=lambda node: -node.device_seconds)


def milliseconds(seconds: float) -> str:
    """Three digits."""
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def percent(share: float | None) -> str:
    """Whole percent; a dash for None."""
    return "-" if share is None else f"{share * 100:.0f} %"


def _cells(node: NodeProfile) -> tuple[str, ...]:
    return (
        str(node.node),
        node.op,
        node.candidate,
        f"{node.device_seconds * 1e6:.1f}",
        f"{node.share * 100:4.1f} % {_bar(node.share)}",
        f"{node.host_seconds * 1e6:.1f}",
        f"{node.flops_per_second / 1e9:.3g}",
        f"{node.bytes_per_second / 1e9:.3g}",
        percent(node.peak_share),
    )


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _parts(totals: Totals) -> tuple[Text, Text]:
    """A line of coloured cells, and what they mean."""
    bar, legend = Text(), Text()
    seconds = [getattr(totals, field) for _, field, _ in PARTS]
    whole = sum(seconds) or 1.0
    for (name, _, style), value in zip(PARTS, seconds):
        bar.append("█" * round(_LINE * value / whole), style)
        legend.append("█ ", style)
        legend.append(f"{name} {milliseconds(value)}")
        if name == "transfers":
            legend.append(f" ({size(totals.bytes_up)} up, {size(totals.bytes_down)} down)")
        legend.append("\n" if name == "transfers" else "   ")
    return bar, legend
