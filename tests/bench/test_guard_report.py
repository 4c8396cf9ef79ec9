"""The reports of ``python -m bench guard`` on invented numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bench.guard_items import all_items, chosen
from bench.guard_report import (
    DIFFERENCE,
    FLOOR,
    HOST_FLOOR,
    LIMIT,
    Row,
    compare,
    compare_all,
    details,
    groups,
    in_turns,
    spread,
)
from bench.guard_session import Result
from bench.guard_worker import SKETCH, sketch

ROW = Row("resnet50 b16 fp16", 0.5, 0.001, 0.89, 9, 58, 73, 73)
REFUSAL = "kernel conv2d/tensor_gemm_64x64 does not work on this device: ptxas says no"


def like(**changes: object) -> Row:
    return dataclasses.replace(ROW, **changes)


def test_what_is_the_same_has_no_verdict():
    change = compare(ROW, ROW)
    assert (change.ratio, change.noise, change.verdict) == (1, FLOOR, "")


@pytest.mark.parametrize(
    ("factor", "noise", "problem", "remark"),
    [
        (1.61, 0.001, "slower: 1.61 times", ""),
        (1 + 0.9 * LIMIT * FLOOR, 0.001, "", ""),
        (1 + 1.1 * LIMIT * FLOOR, 0.001, "slower: 1.05 times", ""),
        (1.3, 0.1, "", ""),  # within the noise
        (1.5, 0.1, "slower: 1.50 times", ""),
        (0.5, 0.001, "", "faster: 0.50 times"),
        (0.97, 0.001, "", ""),
        (0.8, 0.1, "", ""),
    ],
)
def test_times_move_beyond_the_noise_only(factor, noise, problem, remark):
    change = compare(like(ratio=0.5 * factor, noise=noise), ROW)
    assert change.problems == ((problem,) if problem else ())
    assert change.remarks == ((remark,) if remark else ())
    assert change.is_faster == bool(remark)


@pytest.mark.parametrize(
    ("now", "then", "problems"),
    [
        ((3.0, 4.0), (3.0, 4.0), 0),
        ((3.0, 4.0 + 4.9 * DIFFERENCE), (3.0, 4.0), 0),
        ((3.0, 4.0 + 5.1 * DIFFERENCE), (3.0, 4.0), 1),
        ((float("nan"), 4.0), (3.0, 4.0), 1),
        ((3.0, 4.0, 0.0), (3.0, 4.0), 1),  # of other outputs
        ((1.0,), (0.0,), 1),
        ((0.0,), (0.0,), 0),
        ((3.0, 4.0), (), 0),  # a baseline of before
    ],
)
def test_other_results_are_a_problem(now, then, problems):
    change = compare(like(sketch=now), like(sketch=then))
    assert len(change.problems) == problems
    assert all(p.startswith("other results: they differ by ") for p in change.problems)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (SKETCH,), (3, 7, 50), (10_000,)], ids=str)
def test_sketch_tells_how_much_results_differ(shape):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32)
    y = x + 0.3 * rng.standard_normal(shape).astype(np.float32)
    assert len(sketch(x)) == SKETCH
    assert sketch(x) == sketch(x.copy())
    estimate = np.linalg.norm(np.subtract(sketch(x), sketch(y)))
    least, most = (0.999, 1.001) if x.size <= SKETCH else (0.5, 2)  # exact, or an estimate
    assert least < estimate / np.linalg.norm(x - y) < most


def test_sketch_is_of_integers_and_of_halves_too():
    assert sketch(np.full(100, -128, np.int8)) == sketch(np.full(100, -128.0))
    assert sketch(np.full(100, 60000, np.float16)) == sketch(np.full(100, 60000.0))
    assert sketch(np.zeros(0, np.float32)) == [0.0] * SKETCH


def test_noise_is_that_of_both_runs():
    assert compare(like(noise=0.03), like(noise=0.04)).noise == pytest.approx(0.05)


def test_rows_that_the_host_bounds_have_a_higher_floor():
    assert compare(like(host_bound=True), ROW).noise == HOST_FLOOR
    assert compare(like(host_bound=True, ratio=0.55), ROW).verdict == ""


@pytest.mark.parametrize("host_bound", [False, True])
def test_slower_rows_that_the_host_bounds_are_doubtful(host_bound):
    assert compare(like(ratio=0.7, host_bound=host_bound), ROW).is_doubtful == host_bound
    assert not compare(like(host_bound=host_bound), ROW).is_doubtful


def test_more_launches_are_a_failure_and_fewer_are_not():
    assert compare(like(launches=76), ROW).problems == ("more launches: 58 -> 76",)
    change = compare(like(launches=50), ROW)
    assert (change.problems, change.remarks) == ((), ("fewer launches: 58 -> 50",))


def test_nodes_that_went_to_the_cpu_are_a_failure():
    assert compare(like(claimed=72), ROW).problems == ("nodes on the CPU: 0 -> 1",)
    assert compare(ROW, like(claimed=72)).remarks == ("nodes: 72/73 -> 73/73",)


def test_a_refusal_that_the_baseline_lacks_is_a_failure():
    assert compare(like(notes=(REFUSAL,)), ROW).problems == (f"new note: {REFUSAL}",)
    front = REFUSAL.split(":", maxsplit=1)[0]
    assert compare(ROW, like(notes=(REFUSAL,))).remarks == (f"gone: {front}",)


def test_the_reason_behind_a_refusal_may_differ():
    now, then = (like(notes=(f"{REFUSAL} at {address}",)) for address in ("0x1", "0x2"))
    assert compare(now, then).verdict == ""


@pytest.mark.parametrize(
    ("now", "then", "problem", "remark"),
    [
        (None, ROW, "not measured", ""),
        (ROW, None, "", "new: renew the baseline to have it guarded"),
        (like(error="no"), ROW, "fails: no", ""),
        (like(error="no"), None, "fails: no", ""),
        (like(error="no"), like(error="never"), "", "fails, as it did: no"),
        (ROW, like(error="no"), "", "works now; it failed: no"),
    ],
)
def test_rows_may_be_missing_or_fail(now, then, problem, remark):
    change = compare(now, then)
    assert change.problems == ((problem,) if problem else ())
    assert change.remarks == ((remark,) if remark else ())
    assert change.ratio is None


def test_runs_in_turns_are_compared_round_by_round():
    now = Result({0: (2.0, 1.0), 1: (4.0, 1.0), 2: (9.0, 1.0)})
    then = Result({0: (1.0, 0.0), 1: (2.0, 0.0), 3: (1.0, 0.0)})
    times = in_turns(now, then)
    assert times == [2, 2]
    change = compare(ROW, like(ratio=0.0), times)
    assert (change.ratio, change.noise) == (2, FLOOR)
    assert change.problems == ("slower: 2.00 times",)


def test_spread_is_half_the_range_between_the_quartiles():
    assert spread([10, 11, 12, 13, 14]) == pytest.approx(1 / 12)
    assert spread([10, 11, 12, 13, 1000]) == pytest.approx(1 / 12)
    assert spread([10, 12]) == pytest.approx(1 / 11)
    assert spread([10]) > FLOOR


def test_rows_are_medians_of_ratios():
    samples = {0: (1e-3, 2e-3), 1: (3e-3, 3e-3), 2: (1e-3, 4e-3)}
    facts = {
        "launches": 3, "claimed": 5, "nodes": 6, "notes": ["a"], "left": ["b"], "sketch": [1.5],
    }  # fmt: skip
    row = Row.of("x", Result(samples, facts), launch_seconds=1e-6)
    assert (row.ratio, row.ms, row.rounds) == (0.5, 1.0, 3)
    assert (row.launches, row.claimed, row.nodes, row.notes) == (3, 5, 6, ("a",))
    assert row.sketch == (1.5,)
    assert not row.host_bound
    assert Row.of("x", Result(samples, facts), launch_seconds=2e-4).host_bound
    assert Row.of("x", Result(error="no"), 1e-6).error == "no"
    assert Row.of("x", Result(facts=facts), 1e-6).error == "not measured within the time limit"


def test_all_rows_of_both_runs_are_compared():
    changes = compare_all([like(item="a"), like(item="b")], [like(item="b"), like(item="c")])
    assert {c.item: c.verdict for c in changes} == {
        "a": "new: renew the baseline to have it guarded", "b": "", "c": "not measured",
    }  # fmt: skip


def test_tables_tell_what_was_and_what_is():
    slower = compare(like(ratio=0.8, ms=1.43, launches=76, notes=(REFUSAL,)), ROW)
    sheet = details([slower, compare(None, like(item="gone b1 fp32"))], "baseline", "title")
    assert sheet.rows[0][:6] == (
        "resnet50 b16 fp16",
        "1.430",
        "0.890",
        "1.600",
        "1.5 %",
        "58 -> 76",
    )
    assert sheet.rows[0][6].startswith("slower: 1.60 times; more launches: 58 -> 76; new note: k")
    assert sheet.rows[1] == ("gone b1 fp32", "", "0.890", "", "", "58", "not measured")
    assert "| resnet50 b16 fp16 | 1.430 | 0.890 |" in sheet.markdown()
    assert sheet.rich().row_count == 2


def test_groups_are_geometric_means():
    def change(item: str, ratio: float) -> object:
        return compare(like(item=item, ratio=0.5 * ratio, launches=2), like(item=item, launches=2))

    changes = [
        change("lenet5 b1 fp32", 0.5), change("lenet5 b16 fp32", 2), change("layer-8 fp16", 3),
        change("layer-9 fp16", 3), compare(None, like(item="layer-10 fp16")),
    ]  # fmt: skip
    assert groups(changes, "title").rows == [
        ("layers", "", "3.000", "3", "4"),
        ("lenet5", "1.000", "", "2", "4"),
    ]


def test_items_cover_all_networks_and_a_dozen_layers():
    items = all_items(gpu=True, tensor_cores=True)
    names = [item.name for item in items]
    assert len(set(names)) == len(names)
    assert len({name.split()[0] for name in names}) == 11 + 12 + 2
    assert "decoder-0.1b token int4" in names
    assert "decoder_moe dense fp16" in names
    assert "pynet 1488x1984 winograd fp16" in names
    smaller = [item.name for item in all_items(gpu=False, tensor_cores=False)]
    assert "layer-8 x0.125 fp32" in smaller
    assert "decoder-0.1b x0.25 prompt fp16" in smaller
    assert not any("tf32" in name for name in smaller)


def test_items_are_chosen_by_words():
    names = [item.name for item in all_items(gpu=True, tensor_cores=True)]
    assert chosen(names, ["resnet50 fp16"]) == ["resnet50 b1 fp16", "resnet50 b16 fp16"]
    assert chosen(names, ["lenet5 b1 fp32", "layer-8 tf32"]) == ["lenet5 b1 fp32", "layer-8 tf32"]
    assert len(chosen(names, ["layer"])) == 36
    assert chosen(names) == names
    quick = chosen(names, quick=True)
    assert len(quick) == 12
    assert "resnet50 b16 fp16" in quick
    smaller = [item.name for item in all_items(gpu=False, tensor_cores=False)]
    assert len(chosen(smaller, quick=True)) == 11  # without tf32
    with pytest.raises(ValueError, match=r"'lenet6'.*there are .*lenet5"):
        chosen(names, ["lenet6"])
