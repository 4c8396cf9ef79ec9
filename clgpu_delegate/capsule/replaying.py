"""Running a bug capsule again."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Literal

from clgpu_delegate.capsule import archive, facts
from clgpu_delegate.capsule.outcome import Outcome
from clgpu_delegate.capsule.record import Record
from clgpu_delegate.capsule.trials import Bench
from clgpu_delegate.devices import devices
from clgpu_delegate.errors import ModelError, OptionError, RuntimeNotFoundError
from clgpu_delegate.options import Options, Settings
from clgpu_delegate.runtimes import Runtime, RuntimeName, find_runtime

if TYPE_CHECKING:
    from typing_extensions import Unpack

REPRODUCED, GONE, DIFFERENT = "reproduced", "not reproduced", "different failure"
AGREES = "nothing failed, then or now"


@dataclasses.dataclass(frozen=True)
class Replay:
    """What `replay` found.

    Examples
    --------
    >>> _ = clgpu_delegate.capture("model.tflite", "model.clgpu.zip", shrink=False)
    >>> clgpu_delegate.replay("model.clgpu.zip").verdict
    'nothing failed, then or now'
    """

    path: str
    verdict: str
    """``"reproduced"``, ``"not reproduced"``, ``"different failure"``, or ``"nothing failed, then
    or now"``."""

    recorded: Outcome
    """What was wrong when the capsule was written."""

    outcome: Outcome
    """What is wrong here."""

    device: str
    runtime: str
    kernels: str
    """``"own"`` or ``"recorded"``."""

    nodes: tuple[tuple[int, str], ...]
    """Index in the captured model, and operation, of the capsule's nodes."""

    warnings: tuple[str, ...]
    """What differs between then and here."""

    @property
    def failed(self) -> bool:
        """Whether the delegate fails here."""
        return self.outcome.failed

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, and ``summary`` in Markdown."""
        return {**dataclasses.asdict(self), "summary": self.summary()}

    def summary(self) -> str:
        """What to write into a report, in Markdown."""
        names = ", ".join(name for _, name in self.nodes[:8]) or "unknown"
        rows = {
            "recorded": str(self.recorded),
            "here": str(self.outcome),
            "nodes": f"{len(self.nodes)}: {names}",
            "device": self.device,
            "runtime": self.runtime,
            "kernels": self.kernels,
        }
        lines = [*rows.items(), *(("differs", warning) for warning in self.warnings)]
        table = [f"| {key} | {_cell(value)} |" for key, value in lines]
        head = f"**{self.verdict}**: {_cell(str(self.outcome))}"
        return "\n".join([head, "", "| | |", "| --- | --- |", *table])

    def __str__(self) -> str:
        lines = [f"{self.verdict}", f"recorded: {self.recorded}", f"here: {self.outcome}"]
        return "\n".join([*lines, *(f"note: {warning}" for warning in self.warnings)])


def replay(
    capsule: str | os.PathLike[str],
    *,
    runtime: RuntimeName | None = None,
    kernels: Literal["own", "recorded"] = "own",
    timeout: float = 300.0,
    **overrides: Unpack[Settings],
) -> Replay:
    """Run a capsule of `capture` on this machine, and tell whether it fails in the same way.

    Parameters
    ----------
    capsule
        Path of the file. Its model runs in a separate process, and nothing of it is written to
        disk.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`; None: the recorded one where it is installed.
    kernels
        ``"own"``: those of this package. ``"recorded"``: those of the capsule, to tell whether a
        bug has been fixed since; they run on the device, so trust the capsule's origin.
    timeout
        A run that takes longer than this many seconds counts as hung.
    **overrides
        Fields of `Options` to take instead of the recorded ones. ``device`` is a device of the
        recorded name, or the default one, unless it is given.

    Raises
    ------
    FileError, ModelError
        If the file cannot be read, is no capsule or damaged, or the CPU cannot run its model.
    OptionError, DeviceError, RuntimeNotFoundError
        If an option is wrong, or there is no device or runtime.

    Examples
    --------
    >>> _ = clgpu_delegate.capture("model.tflite", "model.clgpu.zip", shrink=False)
    >>> again = clgpu_delegate.replay("model.clgpu.zip", precision="fp16")
    >>> again.failed
    False
    """
    if kernels not in ("own", "recorded"):
        raise OptionError(f"kernels is {kernels!r}; allowed: own, recorded")
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout}; allowed: seconds above 0")
    Options.from_settings(**overrides)
    name = os.fspath(capsule)
    manifest, members = archive.unpack(capsule)
    try:
        record = Record(manifest, members)
    except ModelError as error:
        raise ModelError(f"{name} {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ModelError(f"{name} is damaged: its manifest is not as it was written") from None
    warnings: list[str] = []
    found = _runtime(record, runtime, warnings)
    chosen = _device(record, overrides.get("device"), warnings)
    options = {**record.options, **overrides, **({"device": chosen} if chosen else {})}
    try:
        options = facts.settings_of(Options.from_settings(**options), drop=("verify", "profile"))
    except OptionError as error:
        raise ModelError(f"{name} has options that this version does not know: {error}") from None
    warnings += record.differences()
    texts = record.texts() if kernels == "recorded" else None
    with Bench(
        found.name, reference=record.reference, tolerance=record.tolerance, timeout=timeout,
        kernels=texts,
    ) as bench:  # fmt: skip
        trial = bench.run(members["model.tflite"], record.inputs, options, details=True)
    if trial.outcome.kind == "unusable":
        raise ModelError(f"{found} cannot run the model of {name}: {trial.outcome.text}")
    warnings += record.other_numbers(trial) + record.other_candidates(trial)
    told = trial.facts.get("device") or {}
    return Replay(
        path=name,
        verdict=_verdict(record.outcome, trial.outcome),
        recorded=record.outcome,
        outcome=trial.outcome,
        device=f"{told['name']} ({told['platform']})" if told else _named(chosen),
        runtime=str(found),
        kernels=kernels,
        nodes=record.nodes,
        warnings=tuple(warnings),
    )


def _cell(text: str) -> str:
    """A text in a cell of a table in Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _verdict(then: Outcome, now: Outcome) -> str:
    if not now.failed:
        return GONE if then.failed else AGREES
    return REPRODUCED if now.is_like(then) else DIFFERENT


def _runtime(record: Record, wanted: str | None, warnings: list[str]) -> Runtime:
    if wanted is None:
        try:
            found = find_runtime(record.runtime.get("name"))
        except RuntimeNotFoundError:
            found = find_runtime()
    else:
        found = find_runtime(wanted)
    then = f"{record.runtime.get('name')} {record.runtime.get('version')}"
    if then != str(found):
        warnings.append(f"the runtime was {then} and is {found}")
    return found


def _device(record: Record, wanted: str | int | None, warnings: list[str]) -> str:
    if wanted is not None:
        return str(wanted)
    name, platform = record.device
    alike = [d for d in devices() if d.name == name and d.platform == platform]
    if alike:
        return str(alike[0].index)
    if name:
        warnings.append(f"there is no device {name} ({platform}) here; the default one is used")
    return ""


def _named(index: str) -> str:
    """A device whose name is unknown."""
    alike = [d for d in devices() if str(d.index) == index]
    return f"{alike[0].name} ({alike[0].platform})" if alike else index or "the default one"
