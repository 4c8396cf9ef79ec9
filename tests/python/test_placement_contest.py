"""Candidates of placement="measured" are measured one by one, and the fastest is kept."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import cache
from clgpu_delegate.placement import contest
from clgpu_delegate.placement.verdict import Timing
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "cache.sqlite")


def test_measuring_for_real_keeps_the_fastest_of_what_differs(device, runtime, store, monkeypatch):
    monkeypatch.setattr(contest, "_TIMING_SECONDS", 0.01)
    steps = []
    placement = clgpu_delegate.measure_placement(
        models.image(),
        runtime=runtime,
        cache=store,
        device=device,
        progress=lambda done, count, name: steps.append((done, count, name)),
    )
    names = [candidate.name for candidate in placement.candidates]
    assert names[:2] == ["cpu", "all"]
    assert all(c.ms is not None and c.ms > 0 for c in placement.candidates)
    fastest = min(c.ms for c in placement.candidates)
    chosen = next(c for c in placement.candidates if c.name == placement.choice)
    assert chosen.ms <= fastest * 1.03
    assert steps[0] == (0, 5, "cpu")
    assert placement.nodes == 3


def test_inputs_that_stock_refuses_are_replaced_for_all(runtime, store, monkeypatch):
    """Random indices of 0 and 1 lie outside of a tensor that has one row."""
    monkeypatch.setattr(contest, "_TIMING_SECONDS", 0.01)
    m = ModelMaker()
    indices, rows = m.input("indices", (9, 1), np.int32), m.input("rows", (9, 3))
    operands = [indices, rows, m.constant(np.int32([1, 3]))]
    m.output(m.op("SCATTER_ND", operands, (1, 3), dtype=np.float32))
    placement = clgpu_delegate.measure_placement(m.build(), runtime=runtime, cache=store)
    assert [candidate.name for candidate in placement.candidates][:2] == ["cpu", "all"]
    assert all(candidate.ms for candidate in placement.candidates)


def test_nothing_of_the_measurement_is_left_when_the_interpreter_is_made(runtime, store):
    before = clgpu_delegate.load().stats()["device_bytes"]
    delegate = clgpu_delegate.load(placement="measured", cache=store)
    interpreter = make_interpreter(runtime, models.image((1, 9, 9, 3)), [delegate])
    held = sum(partition.peak_bytes for partition in delegate.explain().partitions)
    assert delegate.stats()["device_bytes"] <= before + held
    del interpreter


def test_long_runs_and_hopeless_ones_are_not_repeated():
    class Interpreter:
        calls = 0

        def invoke(self):
            self.calls += 1
            time.sleep(2e-3)

    running = contest._Contest(lambda _: None, clgpu_delegate.Options(), 1)
    slow = Interpreter()
    assert running._time(contest._Loaded(slow, 1500.0)) == 1500.0
    assert slow.calls == 0
    running.timings = {"cpu": Timing("cpu", 0.1, 0)}
    assert running._time(contest._Loaded(slow, 2.0)) >= 2
    assert slow.calls == 2


def test_ties_go_to_the_cpu():
    running = contest._Contest(lambda _: None, clgpu_delegate.Options(), 1)
    for ms, winner in ((1.02, "cpu"), (1.04, "all")):
        running.timings = {"cpu": Timing("cpu", ms, 0), "all": Timing("all", 1.0, 9)}
        assert running.winner() == winner
    running.timings["cpu"] = dataclasses.replace(running.timings["cpu"], ms=None, problem="none")
    assert running.winner() == "all"


def test_second_look_that_fails_leaves_the_first():
    def fails(_):
        raise RuntimeError("out of memory")

    running = contest._Contest(fails, clgpu_delegate.Options(), 1)
    running.timings = {"cpu": Timing("cpu", 1.1, 0), "all": Timing("all", 1.0, 9)}
    before = dict(running.timings)
    running.look_again()
    assert running.timings == before


def test_what_progress_raises_ends_the_measurement_and_keeps_nothing(store):
    def stop(_done, _count, name):
        if name == "all":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clgpu_delegate.measure_placement(models.image(), cache=store, progress=stop)
    assert not [entry for entry in cache.entries(store) if entry.kind == "placement"]


def test_bad_input_is_an_error_of_ours(tmp_path):
    with pytest.raises(clgpu_delegate.FileError):
        clgpu_delegate.measure_placement(tmp_path / "none.tflite")
    with pytest.raises(clgpu_delegate.OptionError, match="threads"):
        clgpu_delegate.measure_placement(models.image(), threads=0)
    with pytest.raises(clgpu_delegate.OptionError, match="precision"):
        clgpu_delegate.measure_placement(models.image(), precision="fp64")
