"""Compares pages and charts with the files, or writes them."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.figures import marks
from bench.figures.charts import CHARTS, Chart, stamp_of
from bench.figures.source import Sources
from bench.figures.tables import FIGURES, Figure
from bench.record import ROOT, RecordError

ADVICE = "python -m bench figures --write"
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run has found.

    Attributes
    ----------
    problems
        Sentences about what could not be rendered; then nothing was written.
    differences
        Page or chart -> how it differs from its files.
    """

    problems: list[str]
    differences: dict[str, str]


class Book:
    """The pages and charts of a repository.

    Parameters
    ----------
    root
        Of the repository.
    figures, charts
        By default those that are registered.
    """

    def __init__(
        self,
        root: Path = ROOT,
        figures: dict[str, Figure] | None = None,
        charts: Sequence[Chart] = CHARTS,
    ) -> None:
        self.root = root
        self.figures = FIGURES if figures is None else figures
        self.charts = charts
        self._sources = Sources(root)
        self._problems: dict[str, None] = {}

    def pages(self) -> list[Path]:
        """README.md and the pages of docs."""
        return [self.root / "README.md", *sorted((self.root / "docs").glob("*.md"))]

    def compare(self) -> Outcome:
        """Find the differences from the files."""
        found = {}
        for page, text in self._render_pages().items():
            before = page.read_text(encoding="utf-8").splitlines(keepends=True)
            name = page.relative_to(self.root).as_posix()
            lines = difflib.unified_diff(
                before, text.splitlines(keepends=True), name, f"{name}, of its files"
            )
            if diff := "".join(lines):
                found[name] = diff
        for chart in self.charts:
            wanted = self._try(chart.stamp, self._sources)
            path = self.root / chart.path
            made = stamp_of(path.read_text(encoding="utf-8")) if path.exists() else "no file"
            if wanted not in (None, made):
                found[chart.path.as_posix()] = f"made of {made}, not of {wanted}\n"
        return Outcome(list(self._problems), found)

    def write(self) -> Outcome:
        """Render everything; if that succeeds, write what differs."""
        texts = self._render_pages()
        for chart in self.charts:
            svg = self._try(chart.svg, self._sources)
            if svg is not None:
                texts[self.root / chart.path] = svg
        written = {}
        if not self._problems:
            for path, text in texts.items():
                if not path.exists() or path.read_text(encoding="utf-8") != text:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                    written[path.relative_to(self.root).as_posix()] = "written"
        return Outcome(list(self._problems), written)

    def places(self) -> dict[Path, list[str]]:
        """The names of the places by page."""
        found: dict[Path, list[str]] = {}
        for page in self.pages():
            name = page.relative_to(self.root).as_posix()
            try:
                found[page] = marks.names(page.read_text(encoding="utf-8"), name)
            except marks.MarkError as error:
                self._problems[str(error)] = None
        return {page: names for page, names in found.items() if names}

    def old(self) -> list[str]:
        """Sentences about files that were measured with other plans than the current ones."""
        found = []
        for name in self.files():
            source = self._try(self._sources.__getitem__, name)
            if source is not None:
                for network in source.changed:
                    found.append(
                        f"{source.path.as_posix()} was measured with other plans of {network}; "
                        f"measure again: {source.command}"
                    )
        return found

    def files(self) -> list[str]:
        """All files that figures or charts are made of."""
        used = [figure.files for figure in self.figures.values()]
        used += [chart.files for chart in self.charts]
        return sorted({name for files in used for name in files})

    def _render_pages(self) -> dict[Path, str]:
        texts = {}
        for page, names in self.places().items():
            rendered = {}
            for name in names:
                if name not in self.figures:
                    where = page.relative_to(self.root).as_posix()
                    self._problems[f"{where}: there are no figures {name}"] = None
                    continue
                text = self._try(self.figures[name].text, self._sources)
                if text is not None:
                    rendered[name] = text
            if len(rendered) == len(names):
                texts[page] = marks.fill(page.read_text(encoding="utf-8"), rendered)
        return texts

    def _try(self, make: Callable[..., _T], *arguments: object) -> _T | None:
        try:
            return make(*arguments)
        except RecordError as error:
            self._problems[str(error)] = None
            return None


def run(root: Path = ROOT, *, write: bool = False) -> int:
    """Write or compare, print the result, and return the exit code."""
    book = Book(root)
    outcome = book.write() if write else book.compare()
    old = book.old()
    for text in [*outcome.problems, *old]:
        print(text)
    if write:
        print("\n".join(f"written: {name}" for name in outcome.differences) or "nothing to write")
        return 1 if outcome.problems else 0
    for name, difference in outcome.differences.items():
        print(f"{name} differs from its files; {ADVICE} renews it\n{difference}")
    return 1 if outcome.problems or outcome.differences or old else 0
