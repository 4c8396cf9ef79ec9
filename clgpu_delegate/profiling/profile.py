"""A profile: the launches of the recorded inferences, and what they amount to."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group

from clgpu_delegate import files
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.explain import Explanation
from clgpu_delegate.memory import MemoryMap
from clgpu_delegate.profiling import page, plotting, sums, table, trace
from clgpu_delegate.profiling.records import Invoke, Launch, NodeProfile, Totals
from clgpu_delegate.rendering import Shown, as_text

if TYPE_CHECKING:
    from rich.console import RenderableType


class Profile(Shown):
    """Where the time of a model's inferences goes, on the device and beside it.

    `Delegate.profile` and `profile_model` make it. It keeps what was recorded when it was made.
    ``print()`` shows the nodes that take longest, and a bar of what an inference consists of.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        explanation: Explanation,
        memory: MemoryMap,
        *,
        model: str = "",
        invokes: Sequence[tuple[int, int]] = (),
    ) -> None:
        if not data["enabled"]:
            raise ClgpuError("nothing is profiled: make the delegate with load(profile=True)")
        if not data["inferences"]:
            raise ClgpuError(
                "nothing was recorded: no inference has run on the device since the model was "
                "loaded; call invoke() first"
            )
        data = sums.of_these(data, invokes)
        self._data = copy.deepcopy(dict(data))
        self.model: str = model
        """Path of the model, where it is known."""

        self.device: str = data["device"]
        self.platform: str = data["platform"]
        self.precision: str = data["precision"]
        self.inferences: int = data["inferences"]
        """Recorded ones: the last, up to a limit."""

        self.peaks: dict[str, float] | None = data["peaks"] and dict(data["peaks"])
        """What the device can do at most, in operations, bytes and seconds; None if unknown."""

        self.notes: tuple[str, ...] = tuple(data["notes"])
        """Such as why the device's times are not known."""

        self.explanation: Explanation = explanation
        self.memory: MemoryMap = memory
        self.launches: tuple[Launch, ...] = tuple(sums.launches(data))
        """Of all recorded inferences, in the order in which they were enqueued."""

        self.partitions: tuple[Invoke, ...] = tuple(Invoke(**row) for row in data["host"])
        """When the host was in which partition."""

        self.invokes: tuple[Invoke, ...] = tuple(sums.match(data["host"], invokes))
        """When the host was in which inference; empty where nobody has timed that."""

        self.nodes: tuple[NodeProfile, ...] = tuple(sums.node_profiles(data, self.launches))
        """In the order of the model. Nodes without kernels of their own are in `explanation`."""

        self._parts = sums.parts(self.launches, self.partitions, self.invokes)
        self.totals: Totals = sums.medians(self._parts.values())
        """Where the time of an inference goes."""

    def inference(self, which: str = "median") -> int:
        """Number of the ``"fastest"``, ``"median"`` or ``"slowest"`` recorded inference."""
        order = sorted(self._parts, key=lambda number: self._parts[number].wall_seconds)
        places = {"fastest": 0, "median": (len(order) - 1) // 2, "slowest": -1}
        if which not in places:
            raise ClgpuError(f"which is {which!r}; allowed: {', '.join(places)}")
        return order[places[which]]

    def totals_of(self, inference: int) -> Totals:
        """Where the time of one of the recorded inferences went."""
        if inference not in self._parts:
            raise ClgpuError(f"inference {inference} was not recorded")
        return self._parts[inference]

    def table(self, order: str = "time", rows: int | None = None) -> RenderableType:
        """A rich table of the nodes.

        Parameters
        ----------
        order
            ``"time"``, longest first, or ``"model"``.
        rows
            At most; None for all.
        """
        return table.node_table(self, order, rows)

    def to_dict(self) -> dict[str, Any]:
        """All that was recorded and derived as plain data, ready for JSON; times as attributes."""
        data = copy.deepcopy(self._data)
        return {
            **data,
            "launches": [
                {**row, "peak_share": launch.peak_share}
                for row, launch in zip(data["launches"], self.launches)
            ],
            "model": self.model,
            "totals": dataclasses.asdict(self.totals),
            "nodes": [node.to_dict() for node in self.nodes],
            "invokes": [dataclasses.asdict(invoke) for invoke in self.invokes],
        }

    def to_csv(
        self, path: str | os.PathLike[str] | None = None, *, launches: bool = False
    ) -> str | None:
        """A line per node, or per launch; the header names the fields of their classes.

        Returns
        -------
        str or None
            The text, where no path is given.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        rows: list[dict[str, Any]]
        if launches:
            rows = [dataclasses.asdict(launch) for launch in self.launches]
        else:
            rows = [node.to_dict() for node in self.nodes]
        for row in rows:
            for key in ("global_size", "local_size"):
                if key in row:
                    row[key] = "x".join(map(str, row[key]))
        text = io.StringIO(newline="")
        if rows:
            writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        if path is None:
            return text.getvalue()
        files.write_atomically(path, text.getvalue().encode())
        return None

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write all recorded inferences as Trace Event JSON, for https://ui.perfetto.dev.

        Tracks of the device (kernels, uploads, downloads), of the host (partitions, what the CPU
        does between them, the calls that enqueue) and the memory in use. FileError as `to_csv`.
        """
        files.write_atomically(path, trace.text(self).encode())

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page for a browser, which needs nothing else. FileError as `to_csv`."""
        files.write_atomically(path, page.text(self).encode())

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the timeline of the median inference and the nodes that take longest.

        Parameters
        ----------
        path
            Its ending says the format, such as ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        DependencyError
            If matplotlib is not installed.
        FileError
            If the file cannot be written, or not in such a format.
        """
        files.write_atomically(path, plotting.image(self, path))

    def __rich__(self) -> Group:
        return table.summary(self)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return (
            f"<Profile: {len(self.nodes)} nodes on {self.device}, {self.inferences} inferences, "
            f"{self.totals.wall_seconds * 1e3:.3g} ms>"
        )
