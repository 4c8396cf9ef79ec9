"""The first minute: a small model on a device, compared with the CPU, explained and profiled."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal

from clgpu_delegate.base import files
from clgpu_delegate.base.progress import Option
from clgpu_delegate.base.rendering import Block, Group, Shown, Table, Text, as_text
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.errors import FileError
from clgpu_delegate.measure import sample
from clgpu_delegate.measure.comparison import Comparison, compare
from clgpu_delegate.measure.profiling import profile_model
from clgpu_delegate.options import Settings
from clgpu_delegate.profiling import table
from clgpu_delegate.profiling.profile import Profile
from clgpu_delegate.report.parts import Node
from clgpu_delegate.runtimes import RuntimeName

Precision = Literal["fp32", "fp16", "tf32"]

_MODEL, _PAGE = "model.tflite", "profile.html"
_NODES = 3  # of the profile that are printed
_COMMANDS = {
    "clgpu run MODEL": "your model on the CPU and on the device",
    "clgpu explain MODEL": "which of its nodes run where, and why",
    "clgpu profile MODEL --html page.html": "where its time goes",
    "clgpu doctor": "what is wrong, and how to fix it",
}


@dataclasses.dataclass(frozen=True)
class Quickstart(Shown):
    """What `quickstart` did; ``print()`` tells it step by step.

    Examples
    --------
    >>> tour = clgpu_delegate.quickstart("tour", runs=1)
    >>> tour.refused.op
    'FAKE_QUANT'
    """

    model: Path
    """The file with the model."""

    page: Path
    """The file with its profile, a page for a browser."""

    devices: tuple[Device, ...]
    """All that were found; ``comparison.device`` is the one that was used."""

    comparison: Comparison
    """The model on the stock CPU kernels and on the device."""

    profile: Profile

    @property
    def refused(self) -> Node:
        """The first node that stays on the CPU."""
        return next(node for node in self.comparison.explanation.nodes if not node.claimed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "model": str(self.model),
            "page": str(self.page),
            "devices": [device.to_dict() for device in self.devices],
            "comparison": self.comparison.to_dict(),
            "refused": dataclasses.asdict(self.refused),
            "profile": self.profile.to_dict(),
        }

    def __rich__(self) -> Group:
        return Group(*self._device(), *self._compared(), *self._refusal(), *self._time(), *_next())

    def _device(self) -> list[Text]:
        used = self.comparison.device
        others = [device for device in self.devices if device.index != used.index]
        lines = [
            _heading("1. A device"),
            Text(f"{used.name} ({used.platform}), device {used.index}"),
        ]
        if others:
            names = ", ".join(f"{device.index} = {device.name}" for device in others)
            lines.append(Text(f"--device selects another one: {names}"))
        return lines

    def _compared(self) -> list[Block]:
        explanation = self.comparison.explanation
        return [
            _heading("2. A model on the CPU and on the device"),
            Text(
                f"{self.model}: a network of {explanation.total} nodes for images, with weights "
                "made by a rule; its results have no meaning"
            ),
            *self.comparison.__rich__().blocks,
        ]

    def _refusal(self) -> list[Text]:
        node = self.refused
        lines = [
            _heading("3. A node that stays on the CPU"),
            Text(f"node {node.index}, {node.op}: {node.reason}", "yellow"),
        ]
        if node.hint:
            lines.append(Text(f"hint: {node.hint}", "yellow"))
        parts = self.comparison.explanation.partition_count
        lines.append(Text(f"It divides the nodes on the device into {parts} partitions."))
        return lines

    def _time(self) -> list[Block]:
        left = len(self.profile.nodes) - _NODES
        return [
            _heading("4. Where the time goes"),
            self.profile.table(rows=_NODES).fitting(3),
            *table.definitions(self.profile, _NODES),
            Text(f"and {left} nodes more; all of them are on a page for a browser:"),
            Text(str(self.page), "bold", wrap=False),
        ]

    def __str__(self) -> str:
        return as_text(self)


def quickstart(
    folder: str | os.PathLike[str] = "clgpu_quickstart",
    *,
    device: str | int = "",
    precision: Precision = "fp32",
    runs: int = 20,
    runtime: RuntimeName | None = None,
    progress: Option = None,
) -> Quickstart:
    """Show in a minute what the delegate does, with a small model that is part of the package.

    It runs the model on the stock CPU kernels and on a device, compares times and results, tells
    why one node stays on the CPU, and profiles the others. Nothing is downloaded.

    Parameters
    ----------
    folder
        Where the model and the page of its profile are written; it is made if it is missing, and
        files of an earlier call are replaced.
    device, precision
        As in `Options`.
    runs
        Timed inferences of each.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    progress
        As in `profile_model`.

    Raises
    ------
    FileError
        If the files cannot be written.
    ClgpuError
        If an option is wrong, or there is no device or runtime.

    Examples
    --------
    >>> tour = clgpu_delegate.quickstart("tour", runs=1)
    >>> print(tour)  # doctest: +ELLIPSIS
    1. A device...
    >>> tour.page.name
    'profile.html'
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {place}: {error.strerror}") from None
    model, page = place / _MODEL, place / _PAGE
    files.check_writable(page)
    files.write_atomically(model, sample.content())
    settings: Settings = {"device": device, "precision": precision}
    compared = compare(model, runs=runs, runtime=runtime, **settings)
    profile = profile_model(
        model, runs=runs, html=page, runtime=runtime, progress=progress, **settings
    )
    return Quickstart(model, page, tuple(devices()), compared, profile)


def _heading(text: str) -> Text:
    return Text(f"\n{text}", "bold")


def _next() -> list[Block]:
    commands = Table(head=False)
    commands.add_column()
    commands.add_column(fold=True)
    for command, what in _COMMANDS.items():
        commands.add_row(Text(command, "bold"), what)
    return [_heading("Next"), commands.fitting(1)]
