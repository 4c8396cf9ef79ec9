"""``python -m bench compare``: synthetic samples, and the files of several commands."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import compare, guard_report, nets
from bench.__main__ import app
from bench.compare import Series, Verdict
from bench.peers.session import FAILED, MEASURED, MISSING, Row
from bench.record import Record

RULES = {"confidence": 0.95, "tolerance": 0.03}


def rounds(median: float, spread: float, count: int = 15, seed: int = 0) -> tuple[float, ...]:
    random = np.random.default_rng(seed)
    return tuple(median * (1 + spread * random.standard_normal(count)))


def verdict(old: tuple[float, ...], new: tuple[float, ...]) -> Verdict:
    (change,) = compare.compare({"x": Series(old)}, {"x": Series(new)}, **RULES)
    return change.verdict


def test_interval_contains_the_true_ratio_as_often_as_it_says():
    hits = 0
    for seed in range(200):
        old, new = rounds(1, 0.1, seed=2 * seed), rounds(1.2, 0.1, seed=2 * seed + 1)
        low, high = compare.interval(old, new, 0.9, draws=500)
        hits += low <= 1.2 <= high
    assert 170 <= hits <= 198


def test_interval_narrows_with_rounds_and_widens_with_confidence():
    def width(count: int, confidence: float) -> float:
        low, high = compare.interval(rounds(1, 0.1, count), rounds(1, 0.1, count, 1), confidence)
        return high - low

    assert width(100, 0.95) < width(10, 0.95)
    assert width(30, 0.99) > width(30, 0.8)


def test_interval_of_equal_rounds_is_a_point():
    assert compare.interval((2.0,) * 5, (3.0,) * 5, 0.95) == (1.5, 1.5)


def test_false_alarms_are_rare():
    slower = sum(
        verdict(rounds(1, 0.05, seed=2 * seed), rounds(1, 0.05, seed=2 * seed + 1))
        is Verdict.SLOWER
        for seed in range(100)
    )
    assert slower <= 5


@pytest.mark.parametrize(
    ("factor", "spread", "expected"),
    [
        (1.3, 0.05, Verdict.SLOWER),
        (0.7, 0.05, Verdict.FASTER),
        (1.02, 0.001, Verdict.SAME),  # sure, and within the tolerance
        (1.05, 0.6, Verdict.SAME),  # noise
    ],
)
def test_verdicts(factor, spread, expected):
    assert verdict(rounds(1, spread), rounds(factor, spread, seed=1)) is expected


def test_single_numbers_move_only_by_much():
    for new, expected in ((1.2, Verdict.SAME), (1.3, Verdict.SLOWER), (0.7, Verdict.FASTER)):
        (change,) = compare.compare({"x": Series((1.0,))}, {"x": Series((new,))}, **RULES)
        assert (change.verdict, change.low) == (expected, None)


def test_rows_of_one_file_and_rows_that_fail():
    old = {"gone": Series((1.0,)), "broken": Series((1.0,)), "never": Series(())}
    new = {"new": Series((1.0,)), "broken": Series((), "it crashed"), "never": Series(())}
    changes = {change.what: change for change in compare.compare(old, new, **RULES)}
    assert {what: change.verdict for what, change in changes.items()} == {
        "broken": Verdict.BROKEN, "gone": Verdict.GONE, "never": Verdict.SAME, "new": Verdict.NEW,
    }  # fmt: skip
    assert changes["broken"].note == "it crashed"
    assert next(iter(changes)) == "broken"
    assert compare.failed([*changes.values()])


def record_of(what: str, rows: list) -> Record:
    return Record(
        what=what, command="", commit="c", date="2026-01-01", device={"name": "d"}, peers={},
        options={}, plans={}, rows=[dataclasses.asdict(row) for row in rows],
    )  # fmt: skip


def peer_row(peer: str, factor: float, **others) -> Row:
    times = rounds(factor, 0.02, seed=len(peer))
    return dataclasses.replace(
        Row("net", 1, "fp32", 1, peer, MEASURED, rounds_ms=times, many_rounds_ms=times), **others
    )


def test_files_of_peers():
    rows = [
        peer_row("ours", 2.0), peer_row("stock", 1.0),
        Row("net", 1, "fp32", 1, "gpu", FAILED, note="no GPU"),
        Row("net", 1, "fp32", 1, "other", MISSING),
    ]  # fmt: skip
    found = compare.series_of(record_of("peers", rows))
    assert list(found) == [
        "net, batch 1, fp32, ours: host", "net, batch 1, fp32, ours: in flight",
        "net, batch 1, fp32, stock: host", "net, batch 1, fp32, stock: in flight",
        "net, batch 1, fp32, gpu: host",
    ]  # fmt: skip
    assert found["net, batch 1, fp32, gpu: host"] == Series((), "no GPU")


def test_times_relative_to_a_peer_do_not_see_a_slower_machine():
    def file(machine: float) -> Record:
        return record_of("peers", [peer_row("ours", 2 * machine), peer_row("stock", machine)])

    files = file(1.0), file(1.5)
    absolute = compare.compare(*map(compare.series_of, files), **RULES)
    assert {change.verdict for change in absolute} == {Verdict.SLOWER}
    relative = [compare.series_of(data, "stock") for data in files]
    (change,) = compare.compare(*relative, **RULES)
    assert (change.what, change.verdict) == ("net, batch 1, fp32, ours", Verdict.SAME)
    with pytest.raises(ValueError, match="has no measured peer 'nobody'"):
        compare.series_of(files[0], "nobody")


def test_files_of_guard_and_nets():
    row = guard_report.Row("lenet5 b1 fp32", 0.5, ratios=(0.4, 0.5, 0.6))
    assert compare.series_of(record_of("guard", [row])) == {
        "lenet5 b1 fp32": Series((0.4, 0.5, 0.6))
    }
    before = dataclasses.replace(row, ratios=())
    assert compare.series_of(record_of("guard", [before]))["lenet5 b1 fp32"].values == (0.5,)
    net = nets.Row("lenet5", 1, "fp32", 13, 13, 6, 2.0, 1.0, 0.5, 0.25, 9.0, 0, 1e-7, 10, 20)
    assert compare.series_of(record_of("nets", [net])) == {
        "lenet5, batch 1, fp32: host": Series((1.0,)),
        "lenet5, batch 1, fp32: device": Series((0.5,)),
    }
    with pytest.raises(ValueError, match="files of bench conv are not compared"):
        compare.series_of(record_of("conv", []))


def test_command_fails_where_something_is_slower(tmp_path):
    paths = [tmp_path / name for name in ("old.json", "new.json")]
    for path, factor in zip(paths, (1.0, 1.5)):
        path.write_text(record_of("peers", [peer_row("ours", factor)]).text())
    markdown = tmp_path / "out.md"
    words = ["compare", *map(str, paths), "--markdown", str(markdown)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "2 of 2 slower" in result.output
    assert "| slower |" in markdown.read_text()
    same = CliRunner().invoke(app, ["compare", str(paths[0]), str(paths[0])])
    assert same.exit_code == 0
    missing = CliRunner().invoke(app, ["compare", str(paths[0]), str(tmp_path / "none.json")])
    assert missing.exit_code == 2
