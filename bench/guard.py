"""``python -m bench guard``: what is slower than a device's baseline or another commit."""

from __future__ import annotations

import dataclasses
import json as json_format
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import clgpu_delegate
from bench import guard_baseline, guard_builds, guard_plans, guard_report
from bench.guard_baseline import Baseline
from bench.guard_items import Item, all_items, chosen
from bench.guard_report import Change, Row
from bench.guard_session import (
    TOO_LATE,
    Build,
    Measured,
    Session,
)
from bench.process import ROOT, WorkerError, WorkerLostError
from bench.record import check_folder, commit_of
from bench.report import TextTable, make_console
from bench.setting import Commit, DeviceName, File, Json, Strings, split
from clgpu_delegate import Device, _core

THIS = "this"
_BASELINE = "baseline"
_REPLACED = "replaced baseline"
_PLANS = "kept plans"
_ITSELF = "run itself"
_LIMIT_S = 230.0
_ALONE_S = 60.0  # for doubtful items
_NOISY = 0.05

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Request:
    """The request, as on the command line.

    Attributes
    ----------
    device
        As in `clgpu_delegate.load`.
    against
        Commits to compare with.
    write
        Whether to store the run as the baseline.
    baseline
        A file instead of the device's own.
    only, quick
        See `bench.guard_items.chosen`.
    scale
        Of the layers; 0: as suits the device.
    plans
        Whether to compare the plans with the stored ones.
    time_limit, rounds, processes
        See `bench.guard_session.Session`; 0 seconds: 230 for each build; 0 processes: as many as
        suit.
    commit
        The measured commit; empty: the one that git reports.
    root, folder, builds
        The repository of the commits, the folder of the baselines, and that of the builds; None:
        within the repository.
    """

    device: DeviceName = ""
    against: Annotated[
        Strings,
        typer.Option(help="A commit that is built and measured in turns; several may be given."),
    ] = None
    write: Annotated[bool, typer.Option("--write", help="Keep this run as the baseline.")] = False
    baseline: Annotated[
        File, typer.Option(help="Baseline file; by default that of the device.")
    ] = None
    only: Annotated[
        str, typer.Option(help="Items: words of their names, as in 'resnet50 fp16,layer-8'.")
    ] = ""
    quick: Annotated[bool, typer.Option("--quick", help="A few items of each kind.")] = False
    scale: Annotated[
        float,
        typer.Option(help="Factor on the layers' sides; 0: 1 on GPUs, else 0.125."),
    ] = 0.0
    plans: Annotated[bool, typer.Option(help="Compare plans with the kept ones.")] = True
    time_limit: Annotated[
        float, typer.Option(help="Seconds after which no round starts; 0: 230 for each build.")
    ] = 0.0
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each item, at most.")] = 9
    processes: Annotated[
        int, typer.Option(min=0, help="Processes that compile; 0: half the cores, to 8.")
    ] = 0
    commit: Commit = ""
    root: Path = ROOT
    folder: Path = guard_baseline.FOLDER
    builds: File = None

    @property
    def words(self) -> list[str]:
        """The parts of ``only``."""
        return split(self.only)

    @property
    def limit_s(self) -> float:
        """Seconds of a session."""
        return self.time_limit or _LIMIT_S * (1 + len(set(self.against or ())))

    @property
    def command(self) -> str:
        """How to make the same baseline again."""
        words = ["python", "-m", "bench", "guard", "--write"]
        words += ["--only", ",".join(self.words)] if self.only else []
        words += ["--quick"] if self.quick else []
        words += ["--scale", f"{self.scale:g}"] if self.scale else []
        return shlex.join(words)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes
    ----------
    device, commit
        That were measured.
    rows
        Of this build.
    changes
        By the baseline or commit that they are compared with.
    replaced
        By comparison with the baseline that this run replaces; nothing in it is a failure.
    measured
        All samples.
    lines, told
        Sentences about the run, and how many of them are printed already.
    """

    device: Device
    commit: str
    rows: list[Row]
    changes: dict[str, list[Change]]
    replaced: list[Change]
    measured: Measured
    lines: tuple[str, ...]
    told: int

    @property
    def _compared(self) -> dict[str, list[Change]]:
        return {**self.changes, **({_REPLACED: self.replaced} if self.replaced else {})}

    @property
    def failures(self) -> list[Change]:
        """What has become worse."""
        return [c for changes in self.changes.values() for c in changes if c.problems]

    @property
    def verdict(self) -> str:
        """One sentence."""
        failed = {change.item for change in self.failures}
        if failed:
            names = {change.item for changes in self.changes.values() for change in changes}
            return f"FAILED: {len(failed)} of {len(names | {r.item for r in self.rows})} items"
        worse = sorted({change.item for change in self.replaced if change.problems})
        if worse:
            return (
                f"written, and {len(worse)} of {len(self.rows)} items are worse than in the "
                f"baseline before: {', '.join(worse)}"
            )
        changes = self.changes.get(_BASELINE, [])
        faster = sum(change.is_faster for change in changes)
        advice = f"; faster are {faster}: renew the baseline with --write" if faster else ""
        return f"passed: none of {len(self.rows)} items is worse{advice}"

    def sheets(self, *, everything: bool = False) -> list[TextTable]:
        """For each comparison, tables of the changes, failures first, and of all groups."""
        sheets = []
        for name, changes in self._compared.items():
            other = name if name in (_BASELINE, _REPLACED, _PLANS, _ITSELF) else f"commit {name}"
            shown = [c for c in changes if c.verdict or everything]
            shown = [c for c in shown if everything or not c.is_late]
            if shown:
                what = "all items" if everything else "what moved"
                shown = sorted(shown, key=lambda change: not change.problems)
                sheets.append(guard_report.details(shown, name, f"{what}, against the {other}"))
            if any(change.ratio for change in changes):
                title = f"times as multiples of those of the {other}, geometric means"
                sheets.append(guard_report.groups(changes, title))
        return sheets

    def markdown(self, sheets: list[TextTable]) -> str:
        """Markdown for the note of a change."""
        lines = [self.lines[0], "", *(f"- {line}" for line in [*self.lines[1:], self.verdict]), ""]
        return "\n".join(["\n".join(lines), *(sheet.markdown() for sheet in sheets)])

    def json(self) -> str:
        """As data, every sample included."""
        data = {
            "device": self.device.to_dict(),
            "commit": self.commit,
            "lines": self.lines,
            "verdict": self.verdict,
            "calibration": self.measured.calibration,
            "seconds": self.measured.seconds,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "changes": {
                other: [{**dataclasses.asdict(c), "verdict": c.verdict} for c in changes]
                for other, changes in self._compared.items()
            },
            "chains": {
                build: {item: result.facts.get("chains", []) for item, result in results.items()}
                for build, results in self.measured.results.items()
            },
            "samples": {
                build: {item: result.samples for item, result in results.items()}
                for build, results in self.measured.results.items()
            },
        }
        return json_format.dumps(data, indent=1) + "\n"


def run(
    request: Request,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Show unchanged items, too.")] = False,
    markdown: Annotated[File, typer.Option(help="Markdown file to write.")] = None,
    json: Json = None,
) -> Outcome:
    """Find what a change of the C++ or the kernels made worse on this device; exits 1 then.

    It measures, compares and prints, and writes files.

    Parameters
    ----------
    request
        What to do.
    everything
        Whether the tables include unchanged items.
    markdown, json
        Files for the tables and for the data.

    Raises
    ------
    ValueError
        If there is no such baseline, item, commit or folder, a commit does not build, or the device
        cannot be used; nothing has been written then.
    """
    console = make_console()

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    check_folder(markdown, json)
    outcome = _guard(request, say)
    sheets = outcome.sheets(everything=everything)
    for sheet in sheets:
        console.print(sheet.rich())
    if markdown is not None:
        markdown.write_text(outcome.markdown(sheets), encoding="utf-8")
    if json is not None:
        json.write_text(outcome.json(), encoding="utf-8")
    for line in outcome.lines[outcome.told :]:
        say(line)
    say(outcome.verdict)
    return outcome


def _guard(request: Request, say: Say) -> Outcome:
    device = clgpu_delegate.load(device=request.device, cache="off").device
    items = _items(request, device)
    target, before = _files(request, device, say)
    builds = _others(request, say)
    commit = _commit(request, must=target is not None)
    head = f"{device.name} ({device.platform}, {device.driver_version})"
    lines = [f"`bench guard` on {head}{f', commit {commit}' if commit else ''}"]
    if device.type != "gpu":
        lines.append("this is no GPU: the guard is meant for GPUs, and times scatter here")
    if newer := _newer_source():
        lines.append(f"the compiled package is older than {newer}: is it of these sources?")
    if before is not None and target is None:
        lines.append(_age(before, device))
    profile = None
    if request.plans:
        profile, line = guard_plans.profile_of(device)
        lines.append(line)
    for line in lines:
        say(line)
    told = len(lines)
    everything = [Build(THIS), *builds]
    measured = _measure(request, items, everything, device, before, profile is not None, say)
    clock, seconds = measured.calibration, measured.seconds
    lines.append(
        f"calibration kernel {clock['seconds'] * 1e3:.3f} ms, empty launch "
        f"{clock['launch_seconds'] * 1e6:.1f} us; {len(items)} items loaded in "
        f"{seconds['loading']:.0f} s, {measured.rounds} rounds, {seconds['all']:.0f} s in all"
    )

    def rows_of(build: str) -> list[Row]:
        results = measured.results[build]
        return [Row.of(i.name, results[i.name], clock["launch_seconds"]) for i in items]

    rows = rows_of(THIS)
    if late := [row.item for row in rows if row.error.endswith(TOO_LATE)]:
        lines.append(
            f"{len(late)} items were not measured within {request.limit_s:g} s; --time-limit "
            f"gives more: {', '.join(late[:5])}{', ...' if len(late) > 5 else ''}"
        )
    moved: list[Change] = []
    if before is not None:
        wanted = _wanted(request, before, items)
        moved = guard_report.compare_all(rows, wanted)
        if doubtful := [change for change in moved if change.is_doubtful]:
            alone = _measure_alone(request, items, doubtful, device, before, say)
            rows = [alone.get(row.item, row) for row in rows]
            moved = guard_report.compare_all(rows, wanted)
            lines.append(_again(doubtful, moved, alone))
    is_new = target is not None  # then what moved is no failure
    changes: dict[str, list[Change]] = {_BASELINE: moved} if before and not is_new else {}
    for build in builds:
        mine, theirs = measured.results[THIS], measured.results[build.name]
        changes[build.name] = [
            guard_report.compare(now, then, guard_report.in_turns(mine[now.item], theirs[now.item]))
            for now, then in zip(rows, rows_of(build.name))
        ]
    if profile is not None:
        odd = guard_plans.compare(profile, items, measured.results[THIS])
        changes.update({_PLANS: odd} if odd else {})
    if target is not None:
        failed = [guard_report.compare(row, None) for row in rows if row.error]
        changes.update({_ITSELF: failed} if failed else {})
        _write(request, target, before, device, commit, rows, measured, say)
    replaced = moved if is_new else []
    return Outcome(device, commit, rows, changes, replaced, measured, tuple(lines), told)


def _items(request: Request, device: Device) -> list[Item]:
    gpu = device.type == "gpu"
    items = all_items(gpu=gpu, tensor_cores=device.gpu == "nvidia", scale=request.scale or None)
    names = set(chosen([i.name for i in items], request.words, quick=request.quick))
    return [item for item in items if item.name in names]


def _files(request: Request, device: Device, say: Say) -> tuple[Path | None, Baseline | None]:
    """The baseline to be written, and the existing one."""
    if request.write:
        if (request.only or request.quick) and request.baseline is None:
            raise ValueError(
                "a baseline has all items: leave out --only and --quick, or name a file of your "
                "own with --baseline"
            )
        target = guard_baseline.target(device, request.baseline, request.folder)
        return target, guard_baseline.read(target) if target.exists() else None
    try:
        return None, guard_baseline.find(device, request.baseline, request.folder)
    except guard_baseline.MissingError as missing:
        if not request.against:
            raise
        say(f"{missing}; this run compares with commits only")
        return None, None


def _others(request: Request, say: Say) -> list[Build]:
    """Builds of the commits to compare with; git resolves all of them before the first is built."""
    hashes = [guard_builds.resolve(commit, request.root) for commit in request.against or ()]
    return [
        Build(sha[:10], str(guard_builds.build(sha, request.root, request.builds, say)))
        for sha in dict.fromkeys(hashes)
    ]


def _commit(request: Request, *, must: bool) -> str:
    try:
        return request.commit or commit_of(request.root)
    except ValueError:
        if must:
            raise
        return ""


def _newer_source() -> str:
    """A source file that is newer than the compiled package; empty if there is none."""
    compiled = Path(_core.__file__).stat().st_mtime
    files = [f for top in ("src_cpp", "kernels") for f in (ROOT / top).rglob("*") if f.is_file()]
    newest = max(files, key=lambda file: file.stat().st_mtime, default=None)
    if newest is None or newest.stat().st_mtime <= compiled:
        return ""
    return str(newest.relative_to(ROOT))


def _age(before: Baseline, device: Device) -> str:
    text = f"baseline of {before.date}, commit {before.commit}"
    if before.device["driver"] == device.driver_version:
        return text
    return (
        f"{text}, of driver {before.device['driver']}: if times moved with it, renew the baseline"
    )


def _measure(
    request: Request, items: list[Item], builds: list[Build], device: Device,
    before: Baseline | None, plans: bool, say: Say,
) -> Measured:  # fmt: skip
    alike = [
        each.index
        for each in clgpu_delegate.devices()
        if (each.name, each.platform) == (device.name, device.platform)
    ]
    clock = {
        "library": device.library, "platform": device.platform, "device": device.name,
        "position": alike.index(device.index), "work": list(before.work) if before else None,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="clgpu-guard-") as folder:
        session = Session(
            items, builds, device=str(device.index), clock=clock, folder=Path(folder),
            limit_s=request.limit_s, rounds=request.rounds,
            processes=request.processes or None, plans=plans, say=say,
        )  # fmt: skip
        try:
            return session.run()
        except (WorkerError, WorkerLostError) as failure:
            raise ValueError(f"{device.name} cannot be measured: {failure}") from None


def _measure_alone(
    request: Request, items: list[Item], doubtful: list[Change], device: Device, before: Baseline,
    say: Say,
) -> dict[str, Row]:  # fmt: skip
    """Rows of doubtful items, measured by a process that has loaded nothing else."""
    names = {change.item for change in doubtful}
    few = [item for item in items if item.name in names]
    say(f"{len(few)} items that are bound by launches seem slower: measuring them alone")
    limited = dataclasses.replace(request, time_limit=_ALONE_S)
    measured = _measure(limited, few, [Build(THIS)], device, before, plans=False, say=say)
    launch = measured.calibration["launch_seconds"]
    rows = [Row.of(item.name, measured.results[THIS][item.name], launch) for item in few]
    return {row.item: row for row in rows if not row.error}


def _again(doubtful: list[Change], now: list[Change], alone: dict[str, Row]) -> str:
    """A line that tells what became of doubtful items."""
    ratios = {change.item: change.ratio for change in now}
    texts = [
        f"{change.item} {change.ratio:.2f} -> {ratios[change.item] or 0:.2f}"
        for change in doubtful
        if change.item in alone
    ]
    left = [change.item for change in doubtful if change.item not in alone]
    line = f"bound by launches, and measured again alone: {', '.join(texts) or 'none'}"
    return line + (f"; not measured again: {', '.join(left)}" if left else "")


def _wanted(request: Request, before: Baseline, items: list[Item]) -> list[Row]:
    """The baseline's rows of the requested items, which this run should have measured."""
    try:
        names = set(chosen([r.item for r in before.rows], request.words, quick=request.quick))
    except ValueError:  # an item that the baseline does not contain yet
        names = set()
    names |= {item.name for item in items}
    return [row for row in before.rows if row.item in names]


def _write(
    request: Request, target: Path, before: Baseline | None, device: Device, commit: str,
    rows: list[Row], measured: Measured, say: Say,
) -> None:  # fmt: skip
    kept = [row for row in rows if not row.error.endswith(TOO_LATE)]
    if not kept:
        say(f"nothing was measured {TOO_LATE}, and nothing is written")
        return
    if before is not None and before.is_same(device, commit):
        kept = guard_baseline.joined(kept, before.rows)
        say(f"{target} is of this commit: the means of both runs, and the noise between them")
    options = {"rounds": measured.rounds, **({"scale": request.scale} if request.scale else {})}
    work = measured.calibration["work"]
    guard_baseline.write(
        target, device, kept, work=work, command=request.command, commit=commit, options=options
    )
    say(f"wrote {target}: {len(kept)} of {len(rows)} items")
    noisy = sorted((row for row in kept if row.noise > _NOISY), key=lambda row: -row.noise)
    if noisy:
        worst = ", ".join(f"{row.item} {100 * row.noise:.0f} %" for row in noisy[:5])
        say(f"{len(noisy)} rows are noisy and guard little: {worst}{', ...' * (len(noisy) > 5)}")
    for note in dict.fromkeys(note for row in kept for note in row.notes):
        say(f"from now on this note is no failure: {note}")
