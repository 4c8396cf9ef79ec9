"""A profile, as people and other programs see it: texts, pages, pictures, files."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from typing import Any, Literal

from clgpu_delegate.base import files
from clgpu_delegate.base.rendering import Group, Shown, Table, as_text
from clgpu_delegate.profiling import against, page, plotting, table, trace
from clgpu_delegate.profiling.recorded import Recorded


class Profile(Recorded, Shown):
    """The parts of the time of a model's inferences, on the device and on the host.

    `Delegate.profile` and `profile_model` return it. It contains the recordings up to that time.
    ``print()`` shows the nodes that take longest, and a bar with the parts of an inference's time.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=3)
    >>> profile.to_csv().splitlines()[0].split(",")[:2]
    ['node', 'op']
    >>> profile.to_html("profile.html")
    """

    def table(self, order: Literal["time", "model"] = "time", rows: int | None = None) -> Table:
        """A table of the nodes, for ``print()``, ``str()`` and rich.

        Parameters
        ----------
        order
            ``"time"``, longest first, or ``"model"``.
        rows
            At most; None for all.
        """
        return table.node_table(self, order, rows)

    def against(self, before: against.Before) -> against.ProfileChange:
        """Compare with an earlier profile of the same model.

        Parameters
        ----------
        before
            A profile, the dict of its `to_dict`, or the path of a file with that as JSON, such as
            ``clgpu profile MODEL --json`` prints.

        Raises
        ------
        FileError
            If the file cannot be read, or has no profile.
        """
        return against.compare(self, before)

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
