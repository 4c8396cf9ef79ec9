"""The parts shared by all commands: tables, batches of timings, and command-line options."""

from __future__ import annotations

import csv
import dataclasses
import io

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from bench.measure import batched_median_s, medians, relative_error, sentence_of
from bench.report import Column, Report, TextTable, megabytes, name_column
from bench.setting import Setting, command


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    ms: float | None
    peak: int = 1_500_000
    note: str = ""


COLUMNS = (
    name_column("name", "name"), Column("ms", "ms", ".2f"), megabytes("peak", "peak"),
    Column("twice", lambda row: 2 * row.peak), Column("note", "note", is_optional=True),
)  # fmt: skip


def test_tables_are_texts():
    rows = [Row("a [b] | c", 1 / 3), Row("d", None)]
    table = TextTable.of("title", rows, COLUMNS)
    assert [column.heading for column in table.columns] == ["name", "ms", "peak MB", "twice"]
    assert table.rows == [("a [b] | c", "0.33", "1.5", "3000000"), ("d", "", "1.5", "3000000")]
    assert table.markdown().splitlines()[2:5] == [
        "| name | ms | peak MB | twice |",
        "| --- | --- | --- | --- |",
        "| a [b] \\| c | 0.33 | 1.5 | 3000000 |",
    ]
    text = io.StringIO()
    Console(file=text, width=80).print(table.rich())
    assert "a [b] | c" in text.getvalue()
    noted = TextTable.of("title", [*rows, Row("e", 1.0, note="slow")], COLUMNS)
    assert [row[-1] for row in noted.rows] == ["", "", "slow"]


def test_report_is_written_and_returned(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    report = Report[Row](Setting(csv=path))
    report.add([Row("a", 1.0)], "half way")
    rows = report.finish(TextTable.of("title", report.rows, COLUMNS), device="d")
    assert rows == [Row("a", 1.0)]
    assert "half way" in capsys.readouterr().out
    with path.open() as file:
        assert list(csv.DictReader(file)) == [
            {"device": "d", "name": "a", "ms": "1.0", "peak": "1500000", "note": ""}
        ]
    with pytest.raises(ValueError, match="there is no folder for"):
        Setting(csv=tmp_path / "none" / "x.csv")


def test_functions_take_turns():
    calls: list[str] = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = medians(runs, rounds=9, budget_s=0.0, least=2)
    assert "".join(calls) == "ab" + 2 * "ab", "once before, and twice although no time is left"
    assert min(times.values()) >= 0


def test_short_runs_are_timed_in_batches():
    asked: list[int] = []

    def batch(runs: int) -> float:
        asked.append(runs)
        return 1e-3

    assert batched_median_s(batch, rounds=3, budget_s=60.0) == 1e-3
    assert asked == [1, 5, 5, 5, 5]
    asked.clear()
    batched_median_s(batch, rounds=3, budget_s=1e-4)
    assert asked == [1]


def test_errors_are_relative_and_failures_one_line():
    assert relative_error([3.0, 4.5], [3.0, 4.0]) == pytest.approx(0.1)
    assert sentence_of(RuntimeError("\nclgpu_delegate: no memory\nNode 3 failed")) == "no memory"
    assert sentence_of(KeyError()) == "KeyError"


def test_commands_have_the_options_that_they_name():
    seen: list[tuple[Setting, str]] = []

    def run(setting: Setting, word: str = "x") -> None:
        """Do something.

        Not shown.
        """
        if word == "bad":
            raise ValueError("'bad' is no word")
        seen.append((setting, word))

    app = typer.Typer()
    app.command()(command(run, per="word", rounds=3, budget=2.0))
    invoke = CliRunner().invoke
    assert invoke(app, ["--word", "y", "--rounds", "4", "--device", "cpu"]).exit_code == 0
    assert seen == [(Setting(device="cpu", rounds=4, budget=2.0), "y")]
    shown = invoke(app, ["--help"]).output
    assert "Do something." in shown
    assert "Not shown." not in shown
    assert "Seconds of timing per word." in shown
    assert invoke(app, ["--threads", "2"]).exit_code == 2, "which it does not name"
    failed = invoke(app, ["--word", "bad"])
    assert failed.exit_code == 2
    assert "'bad' is no word" in failed.output
