"""A committed file of measurements, for the renderers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from bench import plan_digests
from bench.record import DIRTY, ROOT, Record, RecordError, read

FOLDER = Path("bench/figures")
_Row = TypeVar("_Row")


class Source:
    """A file of `FOLDER`.

    Parameters
    ----------
    name
        ``nvidia_h200/nets.json``.
    root
        Of the repository.
    """

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.path = FOLDER / name
        self.record: Record = read(root / self.path, root)
        self.digest = hashlib.sha256((root / self.path).read_bytes()).hexdigest()[:16]

    def rows(self, kind: type[_Row], **wanted: Any) -> list[_Row]:
        """The rows as dataclasses, only those whose fields have the wanted values.

        Raises
        ------
        RecordError
            If there is none, or another version of the command wrote them.
        """
        try:
            every = self.record.typed(kind)
        except RecordError as error:
            raise RecordError(f"{self.path}: {error}") from None
        found = [row for row in every if all(getattr(row, k) == v for k, v in wanted.items())]
        if not found:
            what = ", ".join(f"{key} {value}" for key, value in wanted.items())
            raise RecordError(f"{self.path} has no row of {what}; measure again: {self.command}")
        return found

    def row(self, kind: type[_Row], **wanted: Any) -> _Row:
        """The first of such rows."""
        return self.rows(kind, **wanted)[0]

    @property
    def command(self) -> str:
        """How to measure it again."""
        return f"{self.record.command} --json {self.path}"

    @property
    def device(self) -> str:
        """The device in a few words."""
        return device_words(self.record.device)

    @property
    def peers(self) -> str:
        """The peers of the delegate; empty if there are none."""
        peers = self.record.peers
        parts = []
        if "torch" in peers:
            parts.append(f"PyTorch {peers['torch']}")
        if "threads" in peers:
            count = peers["threads"]
            threads = "1 thread" if count == 1 else f"{count} threads"
            host = (
                "" if self.record.device["type"] == "cpu" else f" of {self.record.device['host']}"
            )
            parts.append(f"{peers['runtime']} with {threads}{host}")
        return "; ".join(parts)

    @functools.cached_property
    def changed(self) -> list[str]:
        """Networks whose plans have changed since the measurement."""
        return plan_digests.changed(self.record)

    @property
    def when(self) -> str:
        """Commit and date, and what has changed since then."""
        commit = self.record.commit
        if commit.endswith(DIRTY):
            commit = f"{commit[: -len(DIRTY)]} with changes"
        since = f", with earlier plans of {', '.join(self.changed)}" if self.changed else ""
        return f"commit {commit}, {self.record.date}{since}"

    @property
    def facts(self) -> str:
        """Device, commit and peers."""
        words = [f"{self.device}, driver {self.record.device['driver']}", self.when, self.peers]
        return "; ".join(filter(None, words))

    def remark(self) -> str:
        """The same inside a sentence."""
        return f"({self.device}, {self.when})"


class Sources(Mapping[str, Source]):
    """All files; each is read at its first use."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._read: dict[str, Source] = {}

    def __getitem__(self, name: str) -> Source:
        if name not in self._read:
            self._read[name] = Source(name, self._root)
        return self._read[name]

    def __iter__(self) -> Any:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def caption(*sources: Source, peers: bool = True) -> str:
    """The line below a table; it states once what its files have in common."""
    files: dict[str, list[str]] = {}
    for source in sources:
        facts = source.facts if peers else f"{source.device}; {source.when}"
        files.setdefault(facts, []).append(f"`{source.path.as_posix()}`")
    return "\n\n".join(f"*{facts}: {', '.join(paths)}*" for facts, paths in files.items())


def device_words(device: Mapping[str, Any]) -> str:
    """A device by its name, a CPU by its OpenCL as well."""
    if device["type"] != "cpu":
        return str(device["name"])
    return f"{device['platform']} on {device['cores']} cores of {device['host']}"
