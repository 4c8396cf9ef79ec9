"""Measuring where a model runs fastest, the CPU alone included, and keeping the verdict."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from clgpu_delegate.base import files
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.errors import OptionError
from clgpu_delegate.options import Options, Settings, with_settings
from clgpu_delegate.placement import contest, verdicts
from clgpu_delegate.placement.verdict import Verdict
from clgpu_delegate.runtimes import RuntimeName, find_runtime

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclasses.dataclass(frozen=True)
class PlacementCandidate:
    """One way to place the nodes of a model.

    Examples
    --------
    >>> placement = clgpu_delegate.measure_placement("model.tflite")
    >>> placement.candidates[0].name
    'cpu'
    """

    name: str
    """``"cpu"``: without the delegate; ``"all"``, ``"auto"``: as the option `placement`;
    ``"core"``: as ``ops="core"``; ``"largest"``: the partition with the most arithmetic only."""

    ms: float | None
    """Median milliseconds of an inference, host array to host array; None where not measured."""

    claimed: int
    """Number of nodes on the device."""

    problem: str
    """Why there is no time; else empty."""


@dataclasses.dataclass(frozen=True)
class Placement(Shown):
    """What `measure_placement` found.

    Examples
    --------
    >>> placement = clgpu_delegate.measure_placement("model.tflite")
    >>> placement.nodes
    4
    """

    model: str
    """Path of the file; empty for a model given as bytes."""

    device: str
    precision: str
    runtime: str
    """Name and version."""

    threads: int
    """Of the runtime's CPU kernels."""

    choice: str
    """Name of the fastest placement; the CPU wins ties within 3 %."""

    left: tuple[int, ...]
    """Indices of the nodes that stay on the CPU."""

    nodes: int
    """Number of nodes of the model."""

    candidates: tuple[PlacementCandidate, ...]
    source: str
    """``"measured now"`` or ``"kept"``, from an earlier measurement."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("placement")
        for heading in ("nodes on the device", "ms", "x CPU"):
            table.add_column(heading, right=True)
        table.add_column("", fold=True)
        cpu = next((c.ms for c in self.candidates if c.name == "cpu"), None)
        for candidate in self.candidates:
            ms = candidate.ms
            remark = candidate.problem or ("chosen" if candidate.name == self.choice else "")
            cells = (
                candidate.name,
                f"{candidate.claimed} of {self.nodes}",
                "" if ms is None else f"{ms:.3f}",
                f"{cpu / ms:.2f}" if cpu and ms else "",
                remark,
            )
            style = "bold" if candidate.name == self.choice else ""
            table.add_row(*map(Text, cells), style=style)
        line = (
            f"{self.device}, {self.precision}, {self.runtime} with {self.threads} "
            f"thread{'s' * (self.threads != 1)}: {self.choice} ({self.source})"
        )
        return Group(table, Text(line))

    def __str__(self) -> str:
        return as_text(self)


@with_settings
def measure_placement(
    model: files.Source,
    *,
    runtime: RuntimeName | None = None,
    threads: int | None = None,
    again: bool = False,
    progress: contest.Progress | None = None,
    **settings: Unpack[Settings],
) -> Placement:
    """Measure several placements of a model end to end and store the fastest.

    These are the CPU alone (the stock runtime), all nodes on the device, the choice of the cost
    model, the core operations, and the largest partition. They run one after the other on random
    inputs, for some seconds in total. The cache (option `cache`) stores the verdict for delegates
    with ``placement="measured"``.

    Parameters
    ----------
    model
        Path or bytes of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    threads
        Of the runtime's CPU kernels, as its interpreters' ``num_threads``; None: 1.
    again
        Measure, even if there is a verdict already.
    progress
        Called before each placement with how many are done, how many there are at most, and the
        name. What it raises ends the measurement, and nothing is kept.
    **settings
        The fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If the model cannot be read, or is none.
    ClgpuError
        If an option is wrong, there is no device or runtime, or nothing can run the model.

    Examples
    --------
    >>> placement = clgpu_delegate.measure_placement("model.tflite", cache="cache.sqlite")
    >>> placement.choice in [candidate.name for candidate in placement.candidates]
    True
    """
    if threads is not None and threads < 1:
        raise OptionError(f"threads is {threads}; allowed: 1 and more")
    content = files.read_content(model)
    found = find_runtime(runtime)
    subject = verdicts.Subject(
        content=content,
        options=Options.from_settings(**settings),
        interpreter=found.module.Interpreter,
        runtime=str(found),
        threads=threads or 1,
    )
    verdict = verdicts.settle(subject, again=again, progress=progress)
    path = "" if isinstance(model, (bytes, bytearray)) else os.fspath(model)
    return _placement(verdict, path)


def _placement(verdict: Verdict, path: str) -> Placement:
    return Placement(
        model=path,
        device=verdict.device,
        precision=verdict.precision,
        runtime=verdict.runtime,
        threads=verdict.threads,
        choice=verdict.choice,
        left=tuple(verdict.left),
        nodes=len(verdict.ops),
        candidates=tuple(
            PlacementCandidate(timing.name, timing.ms, timing.claimed, timing.problem)
            for timing in verdict.timings
        ),
        source=verdict.source,
    )
