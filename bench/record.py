"""Measurements as files: what was measured, at which commit, on which device, and the rows.

Commands such as ``python -m bench nets --json FILE`` write such files; `bench.figures` makes tables
and charts from the committed ones. Other measurements can use the same format: `Sheet` writes it,
`read` reads it, and `Record.typed` makes dataclasses of its rows::

    sheet = Sheet.open(path, "guard", command="python -m bench guard", options={}, commit="")
    sheet.write(rows, device=clgpu_delegate.load().device, threads=2)

The text has one line per row and numbers have five digits, so that differences are easy to read.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer

from bench import plan_digests
from clgpu_delegate import Device
from tests.runtimes import resolve_runtime

ROOT = Path(__file__).resolve().parents[1]
FORMAT = 1
DIRTY = "-dirty"
VARIABLE = "CLGPU_COMMIT"

_DIGITS = 5
_NOT_OPTIONS = {"json", "csv", "plot", "commit"}
_Row = TypeVar("_Row")


class RecordError(ValueError):
    """A file of figures is missing, or cannot be read or written."""


@dataclasses.dataclass(frozen=True)
class Record:
    """The content of a file.

    Attributes
    ----------
    what
        The command: nets, conv, ...
    command
        How to repeat it, without the file.
    commit
        Abbreviated hash; it ends with ``-dirty`` if tracked files had other changes.
    date
        YYYY-MM-DD, UTC.
    device
        ``name``, ``platform``, ``driver`` and ``type`` of the OpenCL device, ``host`` and ``cores``
        of the host's CPU.
    peers
        ``runtime`` and ``threads`` of the stock kernels, ``torch``, ``cuda`` and ``cudnn``, if
        they took part.
    options
        All options of the command.
    plans
        Network -> digest of its plans, see `bench.plan_digests`.
    rows
        The fields of the command's row.
    peaks
        Of the device, where the command measures them.
    """

    what: str
    command: str
    commit: str
    date: str
    device: dict[str, Any]
    peers: dict[str, Any]
    options: dict[str, Any]
    plans: dict[str, str]
    rows: list[dict[str, Any]]
    peaks: dict[str, float] | None = None
    format: int = FORMAT

    def text(self) -> str:
        """The file."""
        head = {"format": self.format, **_plain(dataclasses.asdict(self))}
        rows = head.pop("rows")
        if self.peaks is None:
            head.pop("peaks")
        lines = [f'  "{key}": {json.dumps(value)},\n' for key, value in head.items()]
        body = ",\n".join(f"    {json.dumps(row)}" for row in rows)
        return "{\n" + "".join(lines) + '  "rows": [\n' + body + "\n  ]\n}\n"

    def typed(self, kind: type[_Row]) -> list[_Row]:
        """The rows as dataclasses; fields that the file lacks have their defaults.

        Raises
        ------
        RecordError
            If other fields are missing or unknown: another version of the command wrote them.
        """
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        known = {field.name for field in fields}
        needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
        for row in self.rows:
            wrong = (needed - set(row)) | (set(row) - known)
            if wrong:
                raise RecordError(
                    f"rows of {self.what} of {self.date} differ from those of today in "
                    f"{', '.join(sorted(wrong))}; measure again: {self.command}"
                )
        return [kind(**row) for row in self.rows]


def read(path: Path, root: Path = ROOT) -> Record:
    """Read a file.

    Raises
    ------
    RecordError
        If it is missing, is another kind of file, or has another format; a sentence.
    """
    name = path.relative_to(root) if path.is_relative_to(root) else path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"there is no {name}; docs/benchmarks.md says how it is measured"
        raise RecordError(message) from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{name} cannot be read: {error}") from None
    version = data.get("format") if isinstance(data, dict) else None
    if version != FORMAT:
        raise RecordError(f"{name} has format {version}, not {FORMAT}; measure again")
    try:
        return Record(**data)
    except TypeError as error:
        raise RecordError(f"{name} is no file of measurements: {error}") from None


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A file that is written during a measurement.

    Attributes
    ----------
    path, what, command, options, commit
        The file; the others as in `Record`.
    """

    path: Path
    what: str
    command: str
    options: dict[str, Any]
    commit: str

    @classmethod
    def open(
        cls, path: Path, what: str, *, command: str, options: Mapping[str, Any], commit: str
    ) -> Sheet:
        """Check everything that can be checked before the measurement.

        Raises
        ------
        RecordError
            If there is no folder for the file, or the commit is not known.
        """
        check_folder(path)
        return cls(path, what, command, dict(options), commit or commit_of(ROOT))

    @classmethod
    def of(cls, context: typer.Context, path: Path | None, commit: str) -> Sheet | None:
        """The sheet of a command of ``python -m bench``; None without a file."""
        if path is None:
            return None
        what = str(context.info_name)
        given = {str(p.name): context.params[str(p.name)] for p in _parameters(context)}
        options = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in given.items()
            if value not in (None, "")
        }
        return cls.open(path, what, command=_command(context), options=options, commit=commit)

    def write(
        self,
        rows: Iterable[Any],
        *,
        device: Device,
        runtime: str | None = None,
        threads: int | None = None,
        torch: Any = None,
        software: Mapping[str, str] | None = None,
        networks: Iterable[str] = (),
        peaks: Any = None,
    ) -> None:
        """Write the rows so far; the file is replaced as a whole.

        Parameters
        ----------
        rows
            Dataclasses.
        device
            Where they were measured.
        runtime, threads
            The stock runtime and its threads.
        torch
            The module, if it took part.
        software
            Versions of what else took part, by name.
        networks
            Names of the networks whose plans were measured.
        peaks
            A dataclass.
        """
        peers: dict[str, Any] = {}
        if runtime is not None:
            name = resolve_runtime(runtime)
            peers["runtime"] = f"{name} {importlib.metadata.version(name.replace('_', '-'))}"
        if threads is not None:
            peers["threads"] = threads
        if torch is not None:
            peers["torch"] = str(torch.__version__)
            peers["cuda"] = str(torch.version.cuda)
            peers["cudnn"] = str(torch.backends.cudnn.version())
        if software:
            peers["software"] = dict(software)
        facts = {
            "name": device.name, "platform": device.platform, "driver": device.driver_version,
            "type": device.type, "host": _cpu_name(), "cores": os.cpu_count(),
        }  # fmt: skip
        record = Record(
            what=self.what,
            command=self.command,
            commit=self.commit,
            date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            device=facts,
            peers=peers,
            options=self.options,
            plans=plan_digests.digests(facts, sorted(set(networks))),
            rows=[dataclasses.asdict(row) for row in rows],
            peaks=None if peaks is None else dataclasses.asdict(peaks),
        )
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(record.text(), encoding="utf-8")
        part.replace(self.path)


def check_folder(*paths: Path | None) -> None:
    """Check that files can be written; None stands for no file.

    Raises
    ------
    RecordError
        If there is no folder for a file.
    """
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise RecordError(f"there is no folder for {path}")


def commit_of(folder: Path) -> str:
    """The commit that is checked out, with ``-dirty`` where tracked files differ from it.

    Raises
    ------
    RecordError
        If git does not know the folder.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=10", "HEAD") + (DIRTY if changed else "")
    except (OSError, subprocess.CalledProcessError):
        raise RecordError(
            f"git does not tell the commit of {folder.name}; name it with --commit or in {VARIABLE}"
        ) from None


def _parameters(context: typer.Context) -> list[Any]:
    """The options of a command that define the measurement, without those for output."""
    return [p for p in context.command.params if p.name in context.params.keys() - _NOT_OPTIONS]


def _command(context: typer.Context) -> str:
    """The command line, without files and commit."""
    words: list[str] = []
    for parameter in _parameters(context):
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            words[:0] = [str(value)] if isinstance(value, str) else map(str, value or ())
        elif value is False:
            words.append(parameter.secondary_opts[0])
        else:
            words += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return shlex.join(["python", "-m", "bench", str(context.info_name), *words])


def _plain(value: Any) -> Any:
    """A value for JSON: numbers with a few digits, null for those that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor()
