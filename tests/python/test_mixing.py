"""The search for a plan of precisions ends at one that holds the bound on samples of its own."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import InputError, OptionError, Options, PrecisionPlan
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.cli import exits
from clgpu_delegate.measure import mixing
from clgpu_delegate.measure.mixing import trials
from clgpu_delegate.measure.mixing.changes import (
    KINDS,
    Change,
    grouped,
    halved,
    names_of,
    parts_of,
    precision_change,
    united,
)
from clgpu_delegate.measure.mixing.searching import _beside, _Search
from clgpu_delegate.measure.mixing.settling import Candidate, Reasons
from clgpu_delegate.measure.mixing.trials import Trials, Whole
from clgpu_delegate.runtimes import find_runtime
from tests.model_maker import ModelMaker
from tests.python.test_cli import clgpu, fails
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import relative_l2

SHAPE = (1, 24, 24, 8)


def network(amplified: bool = True) -> bytes:
    """Four convolutions; where asked, the last one multiplies the difference of two results.

    Rounding to half is harmless in most of it, but not where the two results are subtracted.
    """
    rng = np.random.default_rng(3)
    m = ModelMaker()
    x = m.input("x", SHAPE)

    def convolution(x: Any, scale: float) -> Any:
        weights = m.constant(np.float32(scale) * rng.standard_normal((8, 5, 5, 8), np.float32))
        return m.op(
            "CONV_2D", [x, weights, m.constant(np.ones(8, np.float32))], SHAPE, padding="SAME",
            stride_w=1, stride_h=1, fused_activation_function="NONE",
        )  # fmt: skip

    for _ in range(3):
        x = m.op("TANH", [convolution(x, 0.05)], SHAPE)
    if amplified:
        near = m.op("ADD", [x, m.constant(np.float32([100]))], SHAPE)
        far = m.op("TANH", [convolution(x, 0.01)], SHAPE)
        x = m.op("SUB", [m.op("ADD", [near, far], SHAPE), near], SHAPE)
    m.output(m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (1, 8)))
    return m.build()


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.tflite"
    path.write_bytes(network())
    return str(path)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache.sqlite")


@pytest.fixture
def samples() -> np.ndarray:
    return np.random.default_rng(5).random((6, *SHAPE), np.float32)


def tune(model: str, samples: Any, **options: Any) -> PrecisionPlan:
    options = {"max_error": 1e-3, "prefer": "memory", "cache": "off", **options}
    return clgpu_delegate.tune(model, samples, **options)


def worst(model: str, samples: np.ndarray, **options: Any) -> float:
    """Largest error of a model on samples."""
    content = Path(model).read_bytes()
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter("auto", content, [delegate])
    return max(
        relative_l2(run_interpreter(interpreter, [x])[0], run_reference(content, [x])[0])
        for x in samples
    )


def test_plan_holds_the_bound_where_fp16_does_not(model, samples, cache):
    plan = tune(model, samples, cache=cache)
    points = {point.name: point for point in plan.points}
    assert points["fp16"].error > plan.max_error >= plan.error == points["mixed"].error
    assert points["fp16"].bytes <= points["mixed"].bytes < points["fp32"].bytes
    assert plan.half
    assert (plan.samples, plan.held_back, plan.complete) == (4, 2, True)
    told = [change for change in plan.changes if change.taken]
    chosen = {*plan.half, *plan.int8, *plan.bfloat}
    assert {t for change in told for t in change.tensors} == chosen
    assert max(change.error for change in plan.changes) > plan.max_error
    assert PrecisionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    new = np.random.default_rng(6).random((4, *SHAPE), np.float32)
    assert worst(model, new, precision="fp16") > plan.max_error
    assert worst(model, new, precision=plan) < plan.max_error
    assert worst(model, new, precision="mixed", cache=cache) < plan.max_error
    explanation = clgpu_delegate.explain_model(model, precision="mixed", cache=cache)
    assert explanation.mixed is not None
    assert (explanation.mixed.source, explanation.mixed.half) == ("kept", plan.half)
    assert explanation.mixed.error == plan.max_error


def test_bound_that_fp16_holds_takes_all_of_it_and_weights_as_int8(model, samples):
    plan = tune(model, samples, max_error=0.5)
    points = {point.name: point for point in plan.points}
    assert points["mixed"].bytes < points["fp16"].bytes
    assert 0 < plan.error <= 0.5
    halves = clgpu_delegate.explain_model(model, precision="fp16").tensors
    mixed = clgpu_delegate.explain_model(model, precision=plan).tensors
    assert len(plan.int8) == 4
    for half, own in zip(halves, mixed):
        if half.storage == "float16":
            assert own.storage == ("int8" if own.id in plan.int8 else "float16")
    assert {change.kind for change in plan.changes if change.measured} == {"int8"}
    others = [change for change in plan.changes if not change.measured]
    assert {change.kind for change in others} == {"results", "weights"}
    assert {c.reason for c in others if c.kind == "results"} == {"holds"}
    assert {c.reason for c in others if c.kind == "weights"} == {"int8"}


def test_search_without_time_for_more_takes_all_of_what_holds(model, samples):
    plan = tune(model, samples, max_error=0.5, budget=1e-3)
    points = {point.name: point for point in plan.points}
    assert (points["mixed"].bytes, plan.int8) == (points["fp16"].bytes, ())


def test_weights_as_int8_are_given_up_where_they_cost_time(model, samples, monkeypatch):
    def points(self: Any, values: Any, numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        made = []
        for value in values:
            with self.loaded(value, numbers) as measured:
                seconds = 3.0 if value == "fp32" else 2.0 if "int8=" in value else 1.0
                peak = measured.explanation.peak_bytes
                made.append(clgpu_delegate.PrecisionPoint(value, measured.error, seconds, peak))
        return made

    integers = _Search._integers

    def gaining(self: Any, *arguments: Any) -> list[Change]:
        return [dataclasses.replace(c, gain=1e-3) for c in integers(self, *arguments)]

    monkeypatch.setattr(_Search, "_integers", gaining)
    monkeypatch.setattr(Trials, "points", points)
    plan = tune(model, samples, max_error=0.5, prefer="time")
    assert {change.kind for change in plan.changes} >= {"int8"}
    assert (plan.int8, bool(plan.half)) == ((), True)
    halves = clgpu_delegate.explain_model(model, precision="fp16").tensors
    mixed = clgpu_delegate.explain_model(model, precision=plan).tensors
    assert [tensor.storage for tensor in mixed] == [tensor.storage for tensor in halves]


def test_device_with_little_memory_measures_few_at_a_time(model, samples, monkeypatch):
    together = []

    def times(*delegates: Any, turns: int) -> list[float]:
        """As of a device that is slower each time."""
        together.append(turns)
        return [len(together) * (1.0 + number) for number, _ in enumerate(delegates)]

    monkeypatch.setattr(trials, "device_times", times)
    subject = trials.Subject(
        Path(model).read_bytes(), find_runtime(), Options(cache="off"),
        [[x] for x in samples], 1e-3, None, 0, 1.0, "time",
    )  # fmt: skip
    values = ["fp32", "fp16", "tf32", "fp32"]

    def points() -> list[clgpu_delegate.PrecisionPoint]:
        one = Trials(subject, Bar(False))
        one.compute_reference()
        together.clear()
        return one.points(values, [0, 1])

    whole = points()
    assert len(together) == 1
    assert [point.seconds for point in whole] == [1.0, 2.0, 3.0, 4.0]
    monkeypatch.setattr(trials, "_MEMORY_SHARE", 0.0)
    parts = points()
    assert len(together) == 3
    assert [point.seconds for point in parts] == [1.0, 2.0, 2.0, 2.0]
    for alone, point in zip(parts, whole):
        assert (alone.name, alone.error, alone.bytes) == (point.name, point.error, point.bytes)


def test_plan_for_time_is_slower_than_floats_only_where_it_saves_more(model, samples):
    plan = tune(model, samples, prefer="time")
    points = {point.name: point for point in plan.points}
    mixed, floats = points["mixed"], points["fp32"]
    # Both were measured in the same turns, by which the search has chosen.
    assert mixed.seconds <= 1.1 * floats.seconds
    if mixed.seconds > 1.02 * floats.seconds:
        assert mixed.seconds * mixed.bytes <= 1.02 * floats.seconds * floats.bytes
    assert plan.error <= plan.max_error
    others = [change for change in plan.changes if change.kind != "integers"]
    assert all(change.seconds > 0 for change in others if change.measured)
    slow = [change for change in others if change.seconds <= 0 and not change.taken]
    # Weights that are int8 in the plan are no halves, however long these would take.
    assert {change.reason for change in slow} <= {"slower", "int8"}


def test_same_seed_makes_the_same_plan(model, samples):
    plans = [tune(model, samples, seed=3) for _ in range(2)]
    assert plans[0].half == plans[1].half


def test_metric_of_the_user_decides(model, samples):
    seen = []

    def largest(outputs: Any, reference: Any) -> float:
        seen.append((len(outputs), outputs[0].shape, reference[0].shape))
        return float(np.abs(outputs[0] - reference[0]).max())

    plan = tune(model, samples, max_error=1.0, metric=largest)
    assert set(seen) == {(1, (1, 8), (1, 8))}
    assert plan.metric == "largest"
    assert "error=" not in plan.text, "verification knows no other metric than relative L2"
    points = {point.name: point for point in plan.points}
    assert points["mixed"].bytes <= points["fp16"].bytes


def test_budget_ends_the_search_and_the_result_holds(model, samples):
    plan = tune(model, samples, budget=1e-3)
    assert not plan.complete
    assert plan.error <= plan.max_error
    assert "the budget ended the search" in " ".join(str(plan).split())


def test_interrupt_keeps_the_best_so_far(model, samples):
    calls = []

    def progress(done: int, count: int, op: str, what: str) -> None:
        calls.append((done, count, op, what))
        if what == "added":
            raise KeyboardInterrupt

    plan = tune(model, samples, progress=progress, max_error=3e-5)
    assert plan.complete is not any(what == "added" for *_, what in calls)
    assert plan.half or plan.int8
    assert plan.error <= plan.max_error
    assert {op for _, _, op, _ in calls} <= {"CONV_2D", "TANH", "ADD", "SUB", "MEAN"}


def test_error_of_the_progress_ends_the_tuning(model, samples):
    def progress(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tune(model, samples, progress=progress)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"max_error": 1e-12}, r"max_error is 1e-12, but fp32 itself has an error of .*e-"),
        ({"max_error": 0}, "max_error is 0; allowed: a number above 0"),
        ({"max_error": float("nan")}, "max_error is nan; allowed: a number above 0"),
        ({"max_error": "1e-3"}, "max_error is '1e-3'; allowed: a number above 0"),
        ({"prefer": "speed"}, "prefer is 'speed'; allowed: time, memory"),
        ({"precision": "fp16"}, "option 'precision' is given with max_error"),
        ({"half_weights": True}, "option 'half_weights' is given with max_error"),
        ({"budget": 0}, "budget is 0; allowed: a finite number of seconds above 0"),
        ({"budget": math.inf}, "budget is inf; allowed: a finite number of seconds above 0"),
        ({"seed": -1}, "seed is -1; allowed: an integer from 0 on"),
        ({"seed": 1.5}, "seed is 1.5; allowed: an integer from 0 on"),
        ({"again": True}, "again is given with max_error"),
    ],
)
def test_wrong_argument_is_told(model, samples, changes, problem):
    with pytest.raises(OptionError, match=problem) as error:
        tune(model, samples, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("samples", "problem"),
    [
        (None, "max_error is given without samples"),
        (3, "samples is of type int; allowed: an iterable of arrays"),
        ([], "samples has 0; allowed: 2 and more"),
        ([np.zeros(SHAPE, np.float32)], "samples has 1; allowed: 2 and more"),
        ([np.zeros((1, 2, 3, 4), np.float32)], r"sample 0, input 'x' is of shape \(1, 2, 3, 4\)"),
        (
            [np.zeros(SHAPE, np.uint8)],
            "sample 0, input 'x' is of type uint8; the model takes float32",
        ),
        ([np.full(SHAPE, np.nan, np.float32)], "sample 0, input 'x' holds NaN or infinity"),
        ([[np.zeros(SHAPE, np.float32)] * 2], "sample 0 has 2 arrays; the model has 1 inputs"),
        ({"y": np.zeros((2, *SHAPE), np.float32)}, "the mapping of samples has arrays for y"),
    ],
)
def test_wrong_samples_are_told(model, samples, problem):
    with pytest.raises(InputError, match=problem):
        tune(model, samples)


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (lambda *_: float("nan"), "metric returns NaN for sample [0-9]; it has to return a number"),
        (lambda *_: None, "metric fails on sample [0-9]: "),
        (lambda *_: np.zeros(2), "metric fails on sample [0-9]: "),
        (lambda *_: {}["key"], "metric fails on sample [0-9]: 'key'"),
    ],
)
def test_metric_that_gives_no_number_is_told(model, samples, metric, problem):
    with pytest.raises(InputError, match=problem):
        tune(model, samples, metric=metric)


def test_samples_without_a_bound_are_told(model, samples):
    with pytest.raises(OptionError, match="samples and metric are given without max_error"):
        clgpu_delegate.tune(model, samples)  # type: ignore[call-overload]


@pytest.mark.parametrize("changes", [{"seed": 1}, {"prefer": "memory"}])
def test_choices_of_precisions_without_a_bound_are_told(model, changes):
    with pytest.raises(OptionError, match="seed and prefer are given without max_error"):
        clgpu_delegate.tune(model, **changes)


def test_bound_may_be_a_number_of_numpy(model, samples):
    plan = tune(model, samples, max_error=np.float32(0.5), seed=np.int64(2), budget=1e-3)
    assert type(plan.max_error) is float


def test_sample_with_more_than_the_batch_of_the_model_is_told(tmp_path):
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (-1, 4))], (-1, 4)))
    path = tmp_path / "open.tflite"
    path.write_bytes(m.build())
    batches = [np.ones((1, 4), np.float32), np.ones((3, 4), np.float32)]
    with pytest.raises(InputError, match=r"sample 1, input 'x' is of shape \(3, 4\).*'shapes'"):
        tune(str(path), batches)
    assert tune(str(path), [np.ones((3, 4), np.float32)] * 2, shapes={"x": (3, 4)}).samples == 1


def failing(monkeypatch: pytest.MonkeyPatch, fails: Any) -> None:
    """Loads of precisions for which ``fails`` is true fail as a device without memory does."""
    loaded = Trials.loaded

    def load(self: Any, precision: str, numbers: Any, **more: Any) -> Any:
        if fails(precision):
            raise clgpu_delegate.ClgpuError("out of memory")
        return loaded(self, precision, numbers, **more)

    monkeypatch.setattr(Trials, "loaded", load)


def test_trial_that_fails_has_an_infinite_error(model, samples, monkeypatch):
    failing(monkeypatch, lambda precision: "int8=" in precision and "half=" not in precision)
    assert tune(model, samples).half
    tried = []

    def second(precision: str) -> bool:
        tried.append(precision)
        return "half=" in precision and tried.count(precision) == 1 and len(tried) % 3 == 0

    failing(monkeypatch, second)
    plan = tune(model, samples)
    assert plan.error <= plan.max_error
    assert math.inf in [change.error for change in plan.changes]


def test_precision_of_the_whole_that_fails_is_left_out(model, samples, monkeypatch):
    failing(monkeypatch, lambda precision: precision in ("fp16", "tf32"))
    plan = tune(model, samples)
    names = [point.name for point in plan.points]  # with candidates between where times differ
    assert (names[0], names[-1]) == ("fp32", "mixed")
    assert all(name.startswith("candidate ") for name in names[1:-1])
    assert plan.int8 or not plan.changes
    assert plan.half == ()


def test_metric_is_not_called_with_infinite_outputs(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    large = m.op("MUL", [x, m.constant(np.float32([1e6]))], SHAPE)
    m.output(m.op("ABS", [large], SHAPE))
    path = tmp_path / "large.tflite"
    path.write_bytes(m.build())

    def strict(outputs: Any, reference: Any) -> float:
        if not np.isfinite(outputs[0]).all():
            raise ZeroDivisionError
        return mixing.relative_l2(outputs, reference)

    plan = tune(str(path), np.ones((3, *SHAPE), np.float32), metric=strict)
    assert {p.name: p.error for p in plan.points}["fp16"] == math.inf


def test_precision_whose_last_measurement_exceeds_the_bound_is_not_chosen(
    model, samples, monkeypatch
):
    def points(_self: Any, values: Any, _numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        return [
            clgpu_delegate.PrecisionPoint(value, 1e-6 if value == "fp32" else 2e-3, 1.0, 100 - i)
            for i, value in enumerate(values)
        ]

    monkeypatch.setattr(Trials, "points", points)
    plan = tune(model, samples)
    assert (plan.half, plan.int8, plan.error) == ((), (), 1e-6)


@pytest.mark.parametrize("prefer", ["time", "memory"])
def test_half_sums_are_taken_where_they_save_time(model, samples, monkeypatch, prefer):
    devices = [d.index for d in clgpu_delegate.devices() if d.abilities().half_arithmetic]
    if not devices:
        pytest.skip("no device has half arithmetic")
    own: dict[str, Any] = {"device": devices[0], "engines": {"conv2d": "quads|auto"}}
    whole = Trials.whole

    def as_on_a_phone(self: Any, precision: str, numbers: Any) -> Whole:
        measured = whole(self, precision, numbers)
        nodes = [node for node in measured.explanation.nodes if node.family]
        times = {n.index: 1 / (1 + (n.precision == "fp16") + n.adds_halves) for n in nodes}
        return Whole(measured.error, measured.explanation, times)

    def points(_self: Any, values: Any, _numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        return [
            clgpu_delegate.PrecisionPoint(value, 1e-6, 1.0 if "sums=" in value else 2.0, 100 - i)
            for i, value in enumerate(values)
        ]

    monkeypatch.setattr(Trials, "whole", as_on_a_phone)
    monkeypatch.setattr(Trials, "points", points)
    plan = tune(model, samples, prefer=prefer, max_error=0.5, sums="half", **own)
    if prefer == "memory":
        assert plan.half_sums == ()
        return
    explained = clgpu_delegate.explain_model(model, precision=plan, **own)
    adding = [node.index for node in explained.nodes if node.sums == "half"]
    assert adding
    assert plan.half_sums == tuple(adding)
    assert {explained.nodes[i].precision for i in adding} == {"fp16"}
    told = [change for change in plan.changes if change.kind == "sums"]
    assert {node for change in told for node in change.nodes} == set(adding)
    assert worst(model, samples, precision=plan, **own) < 0.5
    data = plan.to_dict()
    assert PrecisionPlan.from_dict(data) == plan
    del data["half_sums"]  # as earlier versions wrote it
    assert PrecisionPlan.from_dict(data).half_sums == ()


def as_if_integers_were_fast(monkeypatch: pytest.MonkeyPatch, border: float = 0.0) -> None:
    """A node takes 1 s, or a tenth with int8 and ``border`` for each conversion."""
    whole = Trials.whole

    def times(self: Any, precision: str, numbers: Any) -> Whole:
        measured = whole(self, precision, numbers)
        found = {node.index: 1.0 for node in measured.explanation.nodes if node.family}
        for step in measured.explanation.steps:
            if (step.pass_name, step.outcome) == ("quantize_activations", "applied"):
                found[step.node] = 0.1 + border * step.detail.count("converted")
        return Whole(measured.error, measured.explanation, found)

    def points(self: Any, values: Any, numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        made = []
        for value in values:
            with self.loaded(value, numbers) as measured:
                seconds = 1.0 if "integers=" in value else 2.0
                made.append(clgpu_delegate.PrecisionPoint(value, measured.error, seconds, 100))
        return made

    monkeypatch.setattr(Trials, "whole", times)
    monkeypatch.setattr(Trials, "points", points)


def test_nodes_compute_with_int8_where_that_saves_time(tmp_path, samples, monkeypatch):
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(amplified=False))
    as_if_integers_were_fast(monkeypatch)
    plan = tune(str(path), samples, prefer="time", max_error=0.3)
    assert plan.integers == tuple(range(7))
    assert {scale.tensor for scale in plan.scales} >= {0}
    assert plan.error <= plan.max_error
    own = [change for change in plan.changes if change.kind == "integers"]
    assert [(c.op, c.nodes, c.tensors) for c in own] == [
        ("CONV_2D", (0, 1), ()), ("CONV_2D", (2, 3), ()), ("CONV_2D", (4, 5, 6), ())
    ]  # fmt: skip
    assert all(change.taken == len(change.nodes) for change in own)
    explained = clgpu_delegate.explain_model(str(path), precision=plan)
    assert {node.sums for node in explained.nodes if node.family} == {"integer"}
    assert worst(str(path), samples, precision=plan) <= plan.max_error
    assert PrecisionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert tune(str(path), samples, max_error=0.3).integers == (), "of time only"


def test_integers_that_do_not_hold_the_bound_are_not_taken(tmp_path, samples, monkeypatch):
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(amplified=False))
    as_if_integers_were_fast(monkeypatch)
    every = tune(str(path), samples, prefer="time", max_error=0.3)
    errors = sorted(c.error for c in every.changes if c.kind == "integers")
    bound = errors[0] * 1.5
    plan = tune(str(path), samples, prefer="time", max_error=bound)
    assert len(plan.integers) < len(every.integers)
    assert plan.error <= bound
    assert worst(str(path), samples, precision=plan) <= bound


def test_integers_that_lose_by_their_conversions_are_given_up(tmp_path, samples, monkeypatch):
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(amplified=False))
    as_if_integers_were_fast(monkeypatch, border=100.0)
    plan = tune(str(path), samples, prefer="time", max_error=0.3)
    assert (plan.integers, plan.scales) == ((), ())


def test_interrupt_keeps_the_integers_found_so_far(tmp_path, samples, monkeypatch):
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(amplified=False))
    as_if_integers_were_fast(monkeypatch)

    def progress(_done: int, _count: int, _op: str, what: str) -> None:
        if what == "added":
            raise KeyboardInterrupt

    plan = tune(str(path), samples, prefer="time", max_error=0.3, progress=progress)
    assert plan.error <= plan.max_error


def test_plan_that_may_be_all_of_fp16_has_its_rounded_factors():
    """An input of a model stays float, so its products are of TF32 numbers."""
    node = SimpleNamespace(index=3, op="CONV_2D", rounds_factors=True)
    other = SimpleNamespace(index=4, op="CONV_2D", rounds_factors=False)
    halves = Whole(0.0, SimpleNamespace(nodes=[node, other]), {3: 1e-3})  # type: ignore[arg-type]
    floats = Whole(0.0, SimpleNamespace(nodes=[]), {3: 3e-3})  # type: ignore[arg-type]
    search = _Search.__new__(_Search)
    changes = search._whole_base([], floats, halves)
    assert [(c.kind, set(c.ids), c.error) for c in changes] == [("factors", {3}, 0.0)]


def test_only_all_of_fp16_may_come_nearer_to_the_bound():
    """It held the bound on all samples; as many other changes did not."""
    search = _Search.__new__(_Search)
    search._held_back, search._seen = [0], [1]
    search._subject = SimpleNamespace(  # type: ignore[assignment]
        max_error=1.0, metric=None, combine=max
    )
    search._spread = 0.0
    whole = [Change("results", frozenset((n,)), "CONV_2D", 1.0, 1) for n in range(2)]
    search._whole_of_halves = whole
    explanation = SimpleNamespace(peak_bytes=5)
    measured = SimpleNamespace(errors=(0.95, 0.1), explanation=explanation)
    search._trials = SimpleNamespace(once=lambda *_: measured)  # type: ignore[assignment]
    search._held = []

    def candidate(*changes: Change) -> Candidate:
        return Candidate(united(changes), (), (), "", names_of(changes), 0.0)

    assert search._holds_there(candidate(*whole[::-1]))
    assert [(held.error, held.bytes) for held in search._held] == [(0.95, 5)]
    assert not search._holds_there(candidate(whole[0], dataclasses.replace(whole[1], kind="int8")))


def test_model_without_a_node_on_the_device_is_told(model, samples):
    with pytest.raises(clgpu_delegate.ClgpuError, match="the delegate claims no node"):
        tune(model, samples, exclude="CONV_2D,TANH,ADD,SUB,MEAN")


def test_relative_l2_is_that_of_the_worst_output():
    floats = [np.float32([3, 4]), np.float32([1, 0])]
    worse = [np.float32([3, 4]), np.float32([1, 0.5])]
    assert mixing.relative_l2(floats, floats) == 0
    assert mixing.relative_l2(worse, floats) == 0.5
    assert mixing.relative_l2([np.int32([1, 2, 3, 4])], [np.int32([1, 2, 3, 5])]) == 0.25
    for bad in (np.nan, np.inf):
        assert mixing.relative_l2([np.float32([bad])], [np.float32([1])]) == np.inf
    assert mixing.relative_l2([np.float32([np.inf, 1])], [np.float32([np.inf, 1])]) == 0


def test_neighbours_of_one_kind_are_grouped_and_halved_again():
    def change(kind: str, number: int) -> Change:
        return Change(kind, frozenset({number}), f"OP{number}", gain=1.0, bytes=10)

    changes = [change(KINDS[i % 4], i) for i in range(40)]
    groups = grouped(changes, 8)
    assert [len(group.parts) for group in groups] == [5] * 8
    assert {part for group in groups for part in group.parts} == set(changes)
    for group in groups:
        assert {part.kind for part in group.parts} == {group.kind}
        assert (group.gain, group.bytes) == (5.0, 50)
        first, last = halved(group)
        assert (first.parts, last.parts) == (group.parts[:2], group.parts[2:])
        (single,) = halved(halved(first)[0])
        assert single == group.parts[0]
    assert grouped(changes, 40) == changes


def test_neighbouring_nodes_are_grouped_with_all_of_their_changes():
    """And a group is divided by nodes, without what the plan has already."""
    changes = [
        Change(kind, frozenset({10 * i + node}), f"OP{node}", gain=1.0, bytes=1, node=node)
        for i, kind in enumerate(("weights", "results"))
        for node in range(8)
    ]
    groups = grouped(changes, 4, together=True)
    assert [{part.node for part in group.parts} for group in groups] == [
        {0, 1}, {2, 3}, {4, 5}, {6, 7}
    ]  # fmt: skip
    assert {group.kind for group in groups} == {"several"}
    ids = united(groups[:1])
    assert ids.half == {0, 1, 10, 11}
    measured = dataclasses.replace(groups[0], error=2e-3)
    first, last = halved(measured)
    assert ({part.node for part in first.parts}, {part.node for part in last.parts}) == ({0}, {1})
    assert first.error == pytest.approx(2e-3 / math.sqrt(2)), "errors add up as their squares do"
    taken = names_of(first.parts)
    (left,) = parts_of([measured], lambda part: part.name not in taken)
    assert left.parts == last.parts
    told = precision_change(measured, united([first]))
    assert (told.tensors, told.nodes, told.taken) == ((0, 1, 10, 11), (), 2)


def test_numbers_beyond_half_are_infinite_errors(tmp_path):
    """And the plan does without them; its file is JSON that other programs read, too."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    large = m.op("MUL", [x, m.constant(np.float32([1e6]))], SHAPE)
    small = m.op("MUL", [large, m.constant(np.float32([1e-6]))], SHAPE)
    m.output(m.op("ABS", [small], SHAPE))
    path = tmp_path / "large.tflite"
    path.write_bytes(m.build())
    plan = tune(str(path), np.random.default_rng(1).random((3, *SHAPE), np.float32))
    points = {point.name: point for point in plan.points}
    assert points["fp16"].error == math.inf
    assert plan.error < 1e-3
    assert math.inf in [change.error for change in plan.changes]
    plan.save(tmp_path / "plan.json")
    assert "Infinity" not in (tmp_path / "plan.json").read_text()
    assert PrecisionPlan.load(tmp_path / "plan.json") == plan


def large_network() -> bytes:
    """Three convolutions of large images whose results are beyond the largest half."""
    rng = np.random.default_rng(3)
    m = ModelMaker()
    shape = (1, 72, 72, 8)
    size = m.constant(np.int32(shape[1:3]))
    x = m.op("RESIZE_NEAREST_NEIGHBOR", [m.input("x", SHAPE), size], shape)
    for scale in (1e6, 0.1, 0.1):
        weights = m.constant(np.float32(scale) * rng.standard_normal((8, 3, 3, 8), np.float32))
        x = m.op(
            "CONV_2D", [x, weights, m.constant(np.zeros(8, np.float32))], shape, padding="SAME",
            stride_w=1, stride_h=1, fused_activation_function="NONE",
        )  # fmt: skip
    m.output(m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (1, 8)))
    return m.build()


def test_numbers_beyond_half_are_stored_as_bfloat16(tmp_path, samples):
    path = tmp_path / "large.tflite"
    path.write_bytes(large_network())
    plan = tune(str(path), samples, max_error=1e-2)
    points = {point.name: point for point in plan.points}
    assert points["fp16"].error == math.inf
    assert plan.error <= plan.max_error
    explanation = clgpu_delegate.explain_model(str(path), precision=plan)
    stored = {t.id: t.storage for t in explanation.tensors}
    results = [node.output_ids[0] for node in explanation.nodes if node.op == "CONV_2D"]
    assert [stored[i] for i in results] == ["bfloat16"] * 3
    assert set(results) <= set(plan.bfloat)
    assert not set(plan.half) & set(plan.bfloat)
    floats = clgpu_delegate.explain_model(str(path), precision="fp32")
    assert explanation.arena_bytes <= 0.51 * floats.arena_bytes
    told = [change for change in plan.changes if change.kind == "bfloat" and change.taken]
    assert {t for change in told for t in change.tensors} == set(plan.bfloat)
    assert explanation.mixed is not None
    assert explanation.mixed.bfloat == plan.bfloat
    assert "as bfloat16" in str(plan)
    assert f"{len(plan.bfloat)} as bfloat16" in " ".join(str(explanation).split())
    new = np.random.default_rng(6).random((4, *SHAPE), np.float32)
    assert worst(str(path), new, precision=plan) < plan.max_error
    data = plan.to_dict()
    assert PrecisionPlan.from_dict(data) == plan
    del data["bfloat"]  # as earlier versions wrote it
    assert PrecisionPlan.from_dict(data).bfloat == ()


def test_bits_that_half_lacks_are_no_reason_for_bfloat16(model, samples):
    plan = tune(model, samples)
    told = [change for change in plan.changes if change.kind == "bfloat"]
    assert told, "a result whose half does not hold the bound is tried"
    assert max(change.error for change in told) > plan.max_error
    tried = {t for change in told if change.error > plan.max_error for t in change.tensors}
    assert not tried & set(plan.bfloat)


def test_values_that_outlive_an_inference_are_reset_for_each_sample(tmp_path):
    """Else the error of a sample would depend on those before it."""
    rng = np.random.default_rng(2)
    m = ModelMaker()
    x = m.input("x", (1, 64))
    state = m.tensor((1, 64 * 2), is_variable=True)
    features = m.constant(rng.standard_normal((64, 64)).astype(np.float32) / 8)
    times = m.constant(rng.standard_normal((64, 2)).astype(np.float32))
    m.output(
        m.op("SVDF", [x, features, times, None, state], (1, 64), rank=1,
             fused_activation_function="NONE")
    )  # fmt: skip
    path = tmp_path / "state.tflite"
    path.write_bytes(m.build())
    plan = tune(str(path), rng.standard_normal((5, 1, 64)).astype(np.float32))
    assert plan.points[0].error < 1e-6, "fp32, on samples in another order than the reference"


def test_command_tunes_and_writes_the_plan(model, samples, cache, tmp_path):
    given, out = tmp_path / "samples.npy", tmp_path / "plan.json"
    np.save(given, samples)
    arguments = (
        "tune", model, "--max-error", "1e-3", "--samples", str(given), "--out", str(out),
        "--prefer", "memory", "--cache", cache,
    )  # fmt: skip
    told = json.loads(clgpu(*arguments, "--json"))
    assert PrecisionPlan.load(out) == PrecisionPlan.from_dict(told)
    assert "samples that the search did not see" in " ".join(clgpu(*arguments).split())
    explained = json.loads(clgpu("explain", model, "--precision", str(out), "--json"))
    assert explained["mixed"]["half"] == told["half"]


def test_command_tells_what_is_missing(model, samples, capsys, tmp_path):
    given = tmp_path / "samples.npy"
    np.save(given, samples)
    wrong = exits.USAGE
    assert "without samples" in fails(capsys, exits.FAILED, "tune", model, "--max-error", "1e-3")
    assert "without max_error" in fails(capsys, wrong, "tune", model, "--samples", str(given))
    assert "--out is given without" in fails(capsys, wrong, "tune", model, "--out", "plan.json")
    assert "seed and prefer are given without" in fails(capsys, wrong, "tune", model, "--seed", "1")
    bounded = ("tune", model, "--max-error", "1e-3", "--samples", str(given))
    assert "again is given with max_error" in fails(capsys, wrong, *bounded, "--again")


def of_positive_numbers() -> bytes:
    """A network whose error in fp16 is that of its weights; what they multiply is above 0."""
    rng = np.random.default_rng(13)
    m = ModelMaker()
    x = m.input("x", SHAPE)
    for _ in range(3):
        weights = m.constant(np.abs(rng.standard_normal((8, 5, 5, 8), np.float32)) / 100)
        x = m.op(
            "CONV_2D", [x, weights, m.constant(np.ones(8, np.float32))], SHAPE, padding="SAME",
            stride_w=1, stride_h=1, fused_activation_function="RELU",
        )  # fmt: skip
    m.output(m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (1, 8)))
    return m.build()


def test_biases_are_corrected_where_that_lowers_the_error(tmp_path, samples):
    path = tmp_path / "positive.tflite"
    path.write_bytes(of_positive_numbers())
    fp16 = worst(str(path), samples, precision="fp16", cache="off")
    bound = 0.7 * fp16
    plan = tune(str(path), samples[:4], max_error=bound)
    assert plan.means
    assert plan.error <= bound
    assert worst(str(path), samples[4:], precision=plan, cache="off") <= bound
    assert PrecisionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert f"means={plan.means[0].tensor}/{plan.means[0].bits}" in plan.text
    explained = explained_with(str(path), plan)
    corrected = {
        step.node
        for step in explained.steps
        if step.pass_name in ("round_weights", "quantize_weights") and "its bias" in step.detail
    }
    rounded = {*plan.half, *plan.int8}
    assert corrected == {n.index for n in explained.nodes if rounded.intersection(n.input_ids[1:2])}
    without = dataclasses.replace(plan, means=())
    assert worst(str(path), samples, precision=without, cache="off") > plan.error


def explained_with(model: str, plan: PrecisionPlan) -> Any:
    delegate = clgpu_delegate.load(precision=plan, cache="off")
    make_interpreter("auto", Path(model).read_bytes(), [delegate])
    return delegate.explain()


def test_inputs_and_outputs_as_half_count(tmp_path, samples):
    path = tmp_path / "positive.tflite"
    path.write_bytes(of_positive_numbers())
    plan = tune(str(path), samples, max_error=2e-3, half_io=True)
    assert worst(str(path), samples, precision=plan, half_io=True, cache="off") <= 2e-3
    assert "half_io" not in plan.text
    with pytest.raises(OptionError, match=r"inputs and outputs alone have an error of .* as half"):
        tune(str(path), samples, max_error=1e-5, half_io=True)


def test_all_factors_are_tried_first_and_weights_as_half_beside_them(model, samples, monkeypatch):
    factors = [Change("factors", frozenset((n,)), "CONV_2D", 1e-3, 0) for n in (0, 2)]
    monkeypatch.setattr(_Search, "_rounded", lambda *_: factors)
    tried = []
    holds = _Search._holds

    def listed(self, changes):
        tried.append([change.kind for change in changes])
        return holds(self, changes)

    monkeypatch.setattr(_Search, "_holds", listed)
    halves = _Search._halves

    def gaining(self, *arguments):
        return [dataclasses.replace(c, gain=1e-3) for c in halves(self, *arguments)]

    monkeypatch.setattr(_Search, "_halves", gaining)
    plan = tune(model, samples, prefer="time")
    assert tried[0] == ["factors", "factors"]
    assert tried[1] == ["factors", "factors", *["weights"] * 4]
    assert plan.error <= plan.max_error


def test_products_of_pairs_are_what_a_search_begins_with_where_they_are_faster(
    model, samples, monkeypatch
):
    """As on a device with TF32 products, on which the third of the convolutions gains nothing."""
    whole = Trials.whole

    def as_with_tensor_cores(self: Any, precision: str, numbers: Any) -> Whole:
        measured = whole(self, precision, numbers)
        nodes = [n for n in measured.explanation.nodes if n.op == "CONV_2D"]
        times = {n.index: 1.0 for n in measured.explanation.nodes}
        if "pairs=" in precision:
            times.update({n.index: 0.5 if i != 2 else 2.0 for i, n in enumerate(nodes)})
        if precision == "tf32":
            nodes = [
                dataclasses.replace(n, rounds_factors=True) if n.op == "CONV_2D" else n
                for n in measured.explanation.nodes
            ]
            return Whole(1.0, SimpleNamespace(nodes=nodes), times)  # type: ignore[arg-type]
        return Whole(measured.error, measured.explanation, times)

    def points(_self: Any, values: Any, _numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        return [
            clgpu_delegate.PrecisionPoint(value, 1e-6, 1.0 if "pairs=" in value else 2.0, 100)
            for value in values
        ]

    monkeypatch.setattr(Trials, "whole", as_with_tensor_cores)
    monkeypatch.setattr(Trials, "points", points)
    plan = tune(model, samples, prefer="time", budget=0.5)
    products = [n.index for n in clgpu_delegate.explain_model(model).nodes if n.op == "CONV_2D"]
    assert plan.bf16_pairs == tuple(n for i, n in enumerate(products) if i != 2)
    assert "pairs=" in plan.text
    assert f"{len(plan.bf16_pairs)} with bfloat16 pairs" in " ".join(str(plan).split())
    assert PrecisionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    data = plan.to_dict()
    data["tf32_pairs"] = data.pop("bf16_pairs")  # as earlier versions wrote it
    assert PrecisionPlan.from_dict(data) == plan
    with pytest.raises(ValueError, match="tf32_pairs is an earlier name of bf16_pairs"):
        PrecisionPlan.from_dict({**data, "bf16_pairs": data["tf32_pairs"]})
    del data["tf32_pairs"]
    assert PrecisionPlan.from_dict(data).bf16_pairs == ()


def test_weights_become_half_where_that_costs_no_time(tmp_path, samples, monkeypatch):
    path = tmp_path / "positive.tflite"
    path.write_bytes(of_positive_numbers())
    whole, loaded = Trials.whole, Trials.loaded

    def as_on_a_cpu(self: Any, precision: str, numbers: Any) -> Whole:
        """Which halves make slower."""
        measured = whole(self, precision, numbers)
        seconds = 1.0 if precision == "fp32" else 2.0
        times = {n.index: seconds for n in measured.explanation.nodes}
        return Whole(measured.error, measured.explanation, times)

    def points(self: Any, values: Any, numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        made = []
        for value in values:
            with loaded(self, value, numbers) as m:
                peak = m.explanation.peak_bytes
                made.append(clgpu_delegate.PrecisionPoint(value, m.error, 1.0, peak))
        return made

    monkeypatch.setattr(Trials, "whole", as_on_a_cpu)
    monkeypatch.setattr(_Search, "_holds_as_halves", lambda *_: False)
    monkeypatch.setattr(Trials, "points", points)
    fp16 = worst(str(path), samples, precision="fp16", cache="off")
    plan = tune(str(path), samples, prefer="time", max_error=0.9 * fp16)
    assert len(plan.half) > 1
    weights = {n.input_ids[1] for n in clgpu_delegate.explain_model(str(path)).nodes[:3]}
    assert len(weights.intersection(plan.half)) > 1
    assert set(plan.half) - weights, "results at the peak of memory are half, too"
    measured = {point.name: point for point in plan.points}
    assert measured["mixed"].bytes < measured["fp32"].bytes
    assert measured["mixed"].error <= plan.max_error


def test_results_that_lower_the_peak_become_half():
    """The second and the third only together; of what is tried behind them, nothing lowers it."""
    search = _Search.__new__(_Search)
    search._subject = SimpleNamespace(max_error=1.0, metric=None)  # type: ignore[assignment]
    search._allowed, search._spread, search._peak = 0.8, 0.0, 100_000
    search._base, search._seen, search._alone = [], [0, 1], [0]
    search._tell = lambda *_: None  # type: ignore[method-assign]
    results = [Change("results", frozenset((n,)), "CONV_2D", 0.0, 9) for n in range(5)]
    peaks = {(): 100_000, (1,): 100_000, (1, 2): 60_000, (1, 2, 3): 59_990, (1, 2, 3, 4): 59_980}

    def trial(changes: Any, _numbers: Any) -> Any:
        ids = tuple(sorted(i for change in changes for i in change.ids))
        error = 0.9 if 0 in ids else 0.1 * len(ids)
        peak = peaks.get(ids, 50_000)
        return SimpleNamespace(
            error=error, errors=(error,), explanation=SimpleNamespace(peak_bytes=peak)
        )

    search._trial = trial  # type: ignore[method-assign]
    taken: list[Change] = []
    search._lower_peak(results, taken)
    assert [set(change.ids) for change in taken] == [{1}, {2}]


@pytest.mark.parametrize(
    ("seconds", "peak", "chosen"),
    [(1.04, 50, True), (1.04, 99, False), (1.12, 50, False), (1.09, 95, False)],
)
def test_memory_may_cost_little_time(model, samples, monkeypatch, seconds, peak, chosen):
    def points(_self: Any, values: Any, _numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        times = {"fp32": (1.0, 100), "fp16": (1.5, 50)}
        return [
            clgpu_delegate.PrecisionPoint(value, 1e-6, *times.get(value, (seconds, peak)))
            for value in values
        ]

    monkeypatch.setattr(Trials, "points", points)
    plan = tune(model, samples, max_error=0.5, prefer="time")
    assert bool(plan.half) == chosen


def test_fewer_samples_leave_more_of_the_bound(samples):
    def allowed(count: int) -> float:
        subject = SimpleNamespace(samples=samples[:1].repeat(count, 0), max_error=1.0, seed=0)
        return _Search(subject, None, None)._allowed  # type: ignore[arg-type]

    assert 0.4 < allowed(2) < allowed(3) < allowed(6) < allowed(300) < 0.85


def test_nodes_beside_a_group_count_with_it():
    """Their kernels convert what they write for it, or read of it."""
    chain = [SimpleNamespace(index=i, input_ids=(i, 90 + i), output_ids=(i + 1,)) for i in range(5)]
    assert _beside({2}, chain) == {1, 3}
    assert _beside({0, 1}, chain) == {2}
    assert _beside({0, 4}, chain) == {1, 3}


# What explain() says of a plan.


def test_explanation_says_why_each_node_has_its_precision(model, samples):
    plan = tune(model, samples)
    explanation = clgpu_delegate.explain_model(model, precision=plan)
    nodes = {node.index: node for node in explanation.nodes}
    for change in plan.changes:
        outcome = "taken" if change.taken == len(change.tensors) + len(change.nodes) else "part"
        kernels = {
            n.index if n.fused_into is None else n.fused_into
            for n in explanation.nodes
            if set(change.tensors).intersection((*n.output_ids, *n.input_ids))
        }
        own = [
            (told, node)
            for node in kernels
            if nodes[node].plan is not None
            for told in nodes[node].plan.changes
            if (told.kind, told.error, told.bytes) == (change.kind, change.error, change.bytes)
        ]
        assert own
        for told, node in own:
            assert node in told.nodes
            assert (told.seconds, told.reason) == (change.seconds, change.reason)
            assert told.outcome == (outcome if change.taken else "left")
            assert told.why == clgpu_delegate.precision.REASONS[told.reason]
    over = [c for node in nodes.values() if node.plan for c in node.plan.changes if c.error > 1e-3]
    assert {(c.outcome, c.reason) for c in over} == {("left", "error")}
    words = " ".join(str(explanation).split())
    assert f"error {over[0].error:.2g} alone" in words
    assert "its error alone exceeds the bound" in words
    again = clgpu_delegate.Explanation(json.loads(json.dumps(explanation.to_dict())))
    assert [node.plan for node in again.nodes] == [node.plan for node in explanation.nodes]
    assert again.notes == explanation.notes
    text = clgpu_delegate.explain_model(model, precision=plan.text, cache="off")
    assert {node.plan for node in text.nodes} == {None}, "what was measured is not known"


def test_explanation_shows_weights_that_take_less_than_what_is_computed(model, samples):
    plan = tune(model, samples)
    (first, *_) = clgpu_delegate.explain_model(model).nodes
    weights = first.input_ids[1]
    for listed, storage, shown in (
        ({"half": (weights,), "int8": ()}, "float16", "fp32, weights half"),
        ({"half": (), "int8": (weights,)}, "int8", "fp32, weights int8"),
        ({"half": (), "int8": ()}, "float32", "fp32"),
    ):
        own = dataclasses.replace(plan, **listed)
        explanation = clgpu_delegate.explain_model(model, precision=own)
        assert explanation.nodes[0].weights_storage == storage
        assert explanation.nodes[0].precision == "fp32"
        row = next(line for line in str(explanation).splitlines() if "CONV_2D" in line)
        assert row.endswith(shown)


def test_explanation_says_which_listed_tensors_stay_float(model, samples):
    plan = tune(model, samples)
    nodes = clgpu_delegate.explain_model(model).nodes
    bias, output = nodes[0].input_ids[2], nodes[-1].output_ids[0]
    own = dataclasses.replace(plan, half=(*plan.half, bias, output))
    explanation = clgpu_delegate.explain_model(model, precision=own)
    told = {f.tensor: f.reason for node in explanation.nodes if node.plan for f in node.plan.floats}
    assert told[bias] == "small tensor"
    assert told[output].startswith("input or output of the model")
    assert f"tensor {bias} stays float (small tensor)" in " ".join(str(explanation).split())
    steps = [step for step in explanation.steps if step.tensor == bias]
    assert [(step.pass_name, step.outcome, step.node) for step in steps] == [
        ("choose_storage", "declined", 0)
    ]
    assert str(steps[0]) == f"choose_storage declined node 0, tensor {bias}: small tensor"


def test_plan_of_another_device_is_told(model, samples):
    plan = dataclasses.replace(tune(model, samples), device="Another device")
    explanation = clgpu_delegate.explain_model(model, precision=plan)
    assert explanation.mixed is not None
    assert explanation.mixed.device == "Another device"
    (note,) = [note for note in explanation.notes if "Another device" in note]
    assert "start=PLAN" in note
    assert note in explanation.to_dict()["notes"]


def test_changes_are_left_for_the_reason_that_the_search_had():
    subject = SimpleNamespace(prefer="time", max_error=1e-3)
    reasons = Reasons(subject)  # type: ignore[arg-type]

    def change(number: int, **facts: Any) -> Change:
        given: dict[str, Any] = {"kind": "results", "gain": 1.0, "error": 1e-4, **facts}
        return Change(ids=frozenset((number,)), op="CONV_2D", bytes=8, **given)

    measured = [change(i) for i in range(6)]
    measured[1] = change(1, error=2e-3)
    reasons.found, reasons.held = names_of(measured[2:4]), names_of(measured[2:3])
    reasons.rejected = names_of(measured[4:5])
    reasons.offer([change(7, gain=-1.0), change(8, kind="weights"), change(9)])
    taken = united([change(0), change(8, kind="weights"), change(8, kind="int8"), change(9)])

    def told() -> list[str]:
        return [c.reason for c in reasons.changes(measured, taken)]

    ends = ["slower", "int8", "holds"]
    assert told() == ["holds", "error", "whole", "held_back", "bound", "bound", *ends]
    reasons.ended = "budget"
    assert told() == ["holds", "error", "whole", "held_back", "bound", "budget", *ends]
    assert [c.measured for c in reasons.changes(measured, taken)] == [True] * 6 + [False] * 3
    subject.prefer = "memory"
    reasons.offer([dataclasses.replace(change(10), bytes=0)])
    assert told()[-1] == "no_memory"


# Ctrl-C.


def interrupted(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, call: int = 1) -> None:
    """Ctrl-C in a method, at its so-many-th call."""
    method, calls = getattr(where, name), []

    def raising(*arguments: Any, **more: Any) -> Any:
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return method(*arguments, **more)

    monkeypatch.setattr(where, name, raising)


def test_interrupt_in_the_last_measurements_keeps_what_held(model, samples, cache, monkeypatch):
    interrupted(monkeypatch, Trials, "points")
    plan = tune(model, samples, cache=cache)
    assert (plan.complete, plan.interrupted, plan.points) == (False, True, ())
    assert plan.half
    assert 0 < plan.error <= plan.max_error
    words = " ".join(str(plan).split())
    assert "interrupted" in words
    assert "budget" not in words
    assert PrecisionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert worst(model, samples, precision="mixed", cache=cache) <= plan.max_error


@pytest.mark.parametrize("method", ["_halves", "_integers", "_holds_there"])
def test_interrupt_before_anything_held_keeps_floats(model, samples, monkeypatch, method):
    interrupted(monkeypatch, _Search, method)
    plan = tune(model, samples)
    assert (plan.complete, plan.interrupted) == (False, True)
    assert (plan.half, plan.int8, plan.bfloat) == ((), (), ())
    assert 0 < plan.error < 1e-5


def test_interrupt_keeps_all_of_fp16_if_that_held(model, samples, monkeypatch):
    interrupted(monkeypatch, _Search, "_integers")
    plan = tune(model, samples, max_error=0.5)
    halves = clgpu_delegate.explain_model(model, precision="fp16").tensors
    mixed = clgpu_delegate.explain_model(model, precision=plan).tensors
    assert plan.interrupted
    assert [tensor.storage for tensor in mixed] == [tensor.storage for tensor in halves]


def test_interrupt_before_fp32_is_measured_ends_the_tuning(model, samples, monkeypatch):
    interrupted(monkeypatch, Trials, "whole")
    with pytest.raises(KeyboardInterrupt):
        tune(model, samples)


# Plans that a search begins with.


def test_worse_plan_does_not_replace_a_better_one(model, samples, cache):
    best = tune(model, samples, cache=cache)
    assert best.stored == "new"
    hurried = tune(model, samples, cache=cache, budget=1e-3, seed=1)
    assert hurried.stored == "replaced"
    points = [{p.name: p.bytes for p in plan.points}["mixed"] for plan in (best, hurried)]
    assert points[1] <= points[0]
    assert (hurried.earlier_metric, hurried.earlier_max_error) == ("relative L2", 1e-3)
    alone = tune(model, samples, budget=1e-3, seed=1)
    assert (alone.stored, alone.earlier_max_error) == ("off", 0.0)
    wide = tune(model, samples, cache=cache, max_error=0.5, budget=1e-3)
    assert wide.stored == "other_bound"
    line = "it replaces the plan that the cache had for this model and device, for relative L2"
    assert f"{line} error 0.001" in " ".join(str(wide).split())
    other = tune(model, samples, cache=cache, max_error=0.5, budget=1e-3, metric=mixing.relative_l2)
    assert other.stored == "other_metric"


def test_plan_that_was_not_timed_replaces_none(model, samples, cache, monkeypatch):
    best = tune(model, samples, cache=cache)
    interrupted(monkeypatch, Trials, "points")
    plan = tune(model, samples, cache=cache, max_error=0.5)
    assert plan.stored == "left"
    assert "stays there" in " ".join(str(plan).split())
    explanation = clgpu_delegate.explain_model(model, precision="mixed", cache=cache)
    assert explanation.mixed is not None
    assert explanation.mixed.half == best.half


def test_search_begins_with_a_given_plan(model, samples, tmp_path):
    """Also with one of another device, and where its bound is exceeded, it is not the result."""
    best = dataclasses.replace(tune(model, samples), device="Another device")
    best.save(tmp_path / "plan.json")
    for start in (best, tmp_path / "plan.json", str(tmp_path / "plan.json")):
        plan = tune(model, samples, start=start, budget=1e-3)
        memory = {p.name: p.bytes for p in plan.points}
        assert memory["mixed"] <= {p.name: p.bytes for p in best.points}["mixed"]
        assert plan.error <= plan.max_error
    assert plan.device != best.device
    wide = tune(model, samples, max_error=0.5)
    assert tune(model, samples, start=wide, budget=1e-3).error <= 1e-3


@pytest.mark.parametrize(
    ("start", "kind", "problem"),
    [
        (3, OptionError, "start is of type int; allowed: a PrecisionPlan, or the path of its file"),
        ("none.json", clgpu_delegate.FileError, "start: cannot read the plan none.json"),
    ],
)
def test_wrong_start_is_told(model, samples, start, kind, problem):
    with pytest.raises(kind, match=problem):
        tune(model, samples, start=start)


def test_start_of_another_model_is_told(model, samples):
    plan = dataclasses.replace(tune(model, samples, budget=1e-3), model="00")
    with pytest.raises(OptionError, match="start is a plan of another model: it is of 00") as error:
        tune(model, samples, start=plan)
    assert "\n" not in str(error.value)


# Points, metrics, observers, half_io.


def test_every_candidate_that_was_timed_is_a_point(model, samples, monkeypatch):
    values = []
    points = Trials.points

    def listed(self: Any, given: Any, numbers: Any) -> Any:
        values.extend(given)
        return points(self, given, numbers)

    monkeypatch.setattr(Trials, "points", listed)
    start = tune(model, samples, max_error=1e-5)
    values.clear()
    plan = tune(model, samples, start=start)
    names = [point.name for point in plan.points]
    assert len(values) == len(names) > 3
    assert (names[:2], names[-1]) == (["fp32", "fp16"], "mixed")
    assert names[2:-1] == [f"candidate {i}" for i in range(1, len(names) - 2)]
    mixed = plan.points[-1]
    assert (mixed.half, mixed.int8) == (len(plan.half), len(plan.int8))
    assert any(point.half for point in plan.points[2:-1])
    assert {point.half for point in plan.points[:2]} == {0}


def test_tf32_is_a_point_where_it_differs(model, samples, monkeypatch):
    monkeypatch.setattr(_Search, "_tf32_differs", lambda _self: True)
    assert "tf32" in [point.name for point in tune(model, samples, budget=1e-3).points]


def test_top_1_is_the_share_of_rows_with_another_largest_element():
    want = np.float32([[1, 3, 2], [5, 4, 6]])
    got = np.float32([[1, 3, 2], [7, 4, 6]])
    assert mixing.top_1([want], [want]) == 0
    assert mixing.top_1([got], [want]) == 0.5
    assert mixing.top_1([got[0], got[1]], [want[0], want[1]]) == 1.0, "the worst output"
    assert mixing.top_1([np.float32([1, 1])], [np.float32([2, 1])]) == 0, "the first of equal ones"
    assert mixing.top_1([np.float32([np.nan, 0])], [np.float32([2, 1])]) == 1
    assert mixing.top_1([np.float32([[1], [2]]), got], [np.float32([[1], [3]]), want]) == 0.5
    with pytest.raises(InputError, match=r"of shape \(2, 1\); it needs one whose last axis has 2"):
        mixing.top_1([np.float32([[1], [2]])], [np.float32([[1], [3]])])


def test_top_1_of_several_samples_is_their_share(model, samples):
    subject = SimpleNamespace(metric=mixing.top_1)
    assert trials.Subject.combine(subject, [0.0, 1.0, 0.0, 0.0]) == 0.25  # type: ignore[arg-type]
    plan = tune(model, samples, max_error=0.5, metric="top-1")
    assert plan.metric == "top-1"
    assert "error=" not in plan.text
    assert 0 <= plan.error <= 0.5
    assert tune(model, samples, metric="relative L2", budget=1e-3).metric == "relative L2"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metric": "top1"}, "metric is 'top1'; allowed: relative L2, top-1, or a function"),
        ({"metric": 3}, "metric is 3; allowed: relative L2, top-1, or a function"),
        ({"observer": "mean"}, "observer is 'mean'; allowed: .*minmax"),
    ],
)
def test_wrong_metric_and_observer_are_told_early(model, changes, problem):
    with pytest.raises(OptionError, match=problem) as error:
        tune(model, None, **changes)
    assert "\n" not in str(error.value)


def test_observer_of_the_ranges_may_be_chosen(tmp_path, samples, monkeypatch):
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(amplified=False))
    as_if_integers_were_fast(monkeypatch)
    plans = [
        tune(str(path), samples, prefer="time", max_error=0.3, observer=observer)
        for observer in ("moving_average", "mse")
    ]
    assert all(plan.integers for plan in plans)
    assert plans[0].scales != plans[1].scales
    with pytest.raises(OptionError, match="start and observer are given without max_error"):
        clgpu_delegate.tune(str(path), observer="mse")  # type: ignore[call-overload]


def test_borders_that_exceed_the_bound_on_held_back_samples_are_an_error(tmp_path, monkeypatch):
    path = tmp_path / "positive.tflite"
    path.write_bytes(of_positive_numbers())
    samples = np.random.default_rng(5).random((6, *SHAPE), np.float32)

    def points(_self: Any, values: Any, _numbers: Any) -> list[clgpu_delegate.PrecisionPoint]:
        return [clgpu_delegate.PrecisionPoint(value, 3e-3, 1.0, 100) for value in values]

    monkeypatch.setattr(Trials, "points", points)
    problem = r"inputs and outputs alone have an error of 0.003 as half on the samples held back"
    with pytest.raises(OptionError, match=problem):
        tune(str(path), samples, max_error=2e-3, half_io=True)


def test_command_takes_metric_start_and_observer(model, samples, tmp_path, capsys):
    given, out = tmp_path / "samples.npy", tmp_path / "plan.json"
    np.save(given, samples)
    bounded = ("tune", model, "--max-error", "0.5", "--samples", str(given), "--cache", "off")
    clgpu(*bounded, "--metric", "top-1", "--budget", "1s", "--out", str(out))
    assert PrecisionPlan.load(out).metric == "top-1"
    told = clgpu(*bounded, "--start", str(out), "--observer", "mse", "--budget", "1s", "--json")
    assert json.loads(told)["metric"] == "relative L2"
    assert "metric is 'top-5'" in fails(capsys, exits.USAGE, *bounded, "--metric", "top-5")
    assert "start: cannot read" in fails(capsys, exits.FILE, *bounded, "--start", "no.json")


def test_run_without_a_plan_says_so(model, cache):
    told = " ".join(clgpu("run", model, "--precision", "mixed", "--cache", cache).split())
    assert "note: precision mixed is fp32 here: no plan is kept" in told
    data = json.loads(clgpu("run", model, "--precision", "mixed", "--cache", cache, "--json"))
    assert any("precision mixed is fp32 here" in note for note in data["notes"])
