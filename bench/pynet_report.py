"""What ``python -m bench pynet`` prints and writes."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table


@dataclasses.dataclass(frozen=True)
class Row:
    """One way to run the network.

    Attributes
    ----------
    way
        Its name.
    precision
        Of the delegate, or of the peer.
    budget
        Bytes of device memory that it may hold; None: what the device has.
    host_ms, device_ms
        Host array to host array, and many in flight without the inputs' and outputs' copies;
        medians. None where it was not measured.
    predicted, counted, largest
        Bytes: predicted and counted peak of device memory, and the largest object.
    error, psnr
        Relative L2 error and decibels (of 1) of the image against our own in fp32 without a budget.
    launches
        Kernel launches per inference.
    note
        Why it was not measured.
    """

    way: str
    precision: str
    budget: int | None = None
    host_ms: float | None = None
    device_ms: float | None = None
    predicted: int | None = None
    counted: int | None = None
    largest: int | None = None
    error: float | None = None
    psnr: float | None = None
    launches: int | None = None
    note: str = ""


def psnr(got: np.ndarray, want: np.ndarray) -> float:
    """Peak signal-to-noise ratio of images in 0..1, in decibels; infinite where they are equal."""
    mean = float(np.mean((got.astype(np.float64) - want) ** 2))
    return -10 * math.log10(mean) if mean else math.inf


def make_table(rows: Sequence[Row], title: str) -> Table:
    """One line per row."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("way")
    headings = ["", "budget MB", "predicted MB", "counted MB", "largest MB", "host ms"]
    for heading in [*headings, "device ms", "error", "PSNR dB"]:
        table.add_column(heading, justify="right", no_wrap=True)
    if any(row.note for row in rows):
        table.add_column("note", overflow="fold")
    for row in rows:
        sizes = (row.budget, row.predicted, row.counted, row.largest)
        cells = [row.way, row.precision]
        cells += ["" if size is None else f"{size / 1e6:.1f}" for size in sizes]
        cells += ["" if ms is None else f"{ms:.2f}" for ms in (row.host_ms, row.device_ms)]
        cells.append("" if row.error is None else f"{row.error:.1e}")
        cells.append("" if row.psnr is None else f"{row.psnr:.1f}")
        table.add_row(*cells, *([row.note] if len(table.columns) > len(cells) else []))
    return table


def write_csv(path: Path, rows: Sequence[Row], device: str) -> None:
    """Write the rows; columns are ``device`` and the fields of `Row`."""
    with path.open("w", newline="") as file:
        columns = ["device", *(field.name for field in dataclasses.fields(Row))]
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({"device": device, **dataclasses.asdict(row)})
