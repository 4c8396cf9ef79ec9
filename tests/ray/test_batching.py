"""Predictor without a cluster: rows, columns, batch sizes, devices that fail."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import InputError, OptionError, Runner
from clgpu_delegate.ray import Predictor, batching, slots
from tests.model_maker import ModelMaker
from tests.python import models


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setattr(slots.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(batching, "_WAIT_S", 0.0)


def two() -> bytes:
    m = ModelMaker()
    a, b = m.input("a", (1, 3)), m.input("b", (1, 3))
    m.output(m.op("ADD", [a, b], (1, 3)), m.op("SUB", [a, b], (1, 3)))
    return m.build()


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 11])
def test_rows_are_those_of_single_inferences(device, rng, rows):
    x = models.normal(rng, rows, *models.SHAPE[1:])
    with Runner(models.image(), device=device) as runner:
        (name,) = (tensor.name for tensor in runner.outputs)
        want = [runner.run(row[None])[0] for row in x]
    predictor = Predictor(models.image(), devices=device, batch=4)
    assert (predictor.batch, predictor.device) == (4, clgpu_delegate.devices()[int(device)].name)
    found = predictor({"picture": x})
    assert list(found) == [name]
    np.testing.assert_allclose(found[name], np.reshape(want, (rows, 4)), rtol=1e-5, atol=1e-6)


def test_columns_that_are_no_inputs_are_kept():
    predictor = Predictor(two(), devices=0, batch=2)
    a, b = np.ones((5, 3), np.float32), np.arange(15, dtype=np.float32).reshape(5, 3)
    ids = np.arange(5)
    found = predictor({"a": a, "b": b, "id": ids})
    sums, differences = (name for name in found if name != "id")
    np.testing.assert_array_equal(found[sums], a + b)
    np.testing.assert_array_equal(found[differences], a - b)
    np.testing.assert_array_equal(found["id"], ids)
    del predictor
    renamed = Predictor(
        two(), devices=[0, 0], inputs={"a": "left", "b": "right"}, outputs={sums: "sum"}
    )
    assert set(renamed({"left": a, "right": b})) == {"sum", differences}


def test_mistakes_are_named():
    predictor = Predictor(two(), devices=[0, 0], batch=2)
    x = np.ones((5, 3), np.float32)
    for columns, words in [
        ({"a": x}, "there is no column 'b'; columns are: a"),
        ({"a": x, "b": x[:, :2]}, r"'b' takes rows that are float32 of shape \(3,\); given are"),
        ({"a": x, "b": x.astype("d")}, "given are float64 of shape"),
        ({"a": x, "b": x[:3]}, r"different numbers of rows: \[3, 5\]"),
    ]:
        with pytest.raises(InputError, match=words):
            predictor(columns)
    for settings, error, words in [
        ({"batch": 0}, OptionError, "batch is 0; allowed"),
        ({"device": 0}, OptionError, "an actor takes one of them"),
        ({"outputs": {"z": "y"}}, InputError, "there is no output 'z'; outputs are"),
    ]:
        with pytest.raises(error, match=words):
            Predictor(two(), devices=[0, 0], **settings)


def test_the_batch_size_is_measured(monkeypatch):
    rates = {1: 100.0, 2: 190.0, 4: 300.0, 8: 310.0, 16: 290.0}
    monkeypatch.setattr(batching, "_rate", lambda _, size: (rates[size], 0.01))
    assert Predictor(models.image(), devices=[0, 0], most=16).batch == 4
    monkeypatch.setattr(batching, "_rate", lambda _, size: (rates[size], 0.6 * size))
    assert Predictor(models.image(), devices=[0, 0], most=16).batch == 2


def test_a_measured_batch_size_gives_the_same_rows(rng):
    predictor = Predictor(models.image(), devices=0, most=8)
    assert predictor.batch in (1, 2, 4, 8)
    x = models.normal(rng, 9, *models.SHAPE[1:])
    with Runner(models.image(), device=0) as runner:
        want = np.concatenate([runner.run(row[None]) for row in x])
    (found,) = predictor({"x": x}).values()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_a_model_without_a_batch_axis_is_refused():
    m = ModelMaker()
    x = m.input("x", (2, 5))
    m.output(m.op("MEAN", [x, m.constant(np.array([0], np.int32))], (5,)))
    with pytest.raises(InputError, match="no common first axis, the batch: 'x': "):
        Predictor(m.build(), devices=0)


def test_a_model_that_cannot_be_batched_keeps_its_own_size():
    m = ModelMaker()
    x = m.input("x", (1, 6))
    m.output(m.op("RESHAPE", [x, m.constant(np.array([1, -1], np.int32))], (1, 6)))
    predictor = Predictor(m.build(), devices=[0, 0], most=8)
    assert predictor.batch == 1
    rows = np.arange(18, dtype=np.float32).reshape(3, 6)
    (found,) = predictor({"x": rows}).values()
    np.testing.assert_array_equal(found, rows)
    with pytest.raises(InputError, match="no common first axis"):
        Predictor(m.build(), devices=[0, 0], batch=2)


def fail(predictor: Predictor, times: int) -> None:
    """Let the device fail in inferences to come."""
    runner = predictor._model._runner
    engine = runner._engine

    class Failing:
        def __getattr__(self, name):
            return getattr(engine, name)

        def start(self, *arguments):
            nonlocal times
            times -= 1
            if times == 0:
                raise clgpu_delegate.OpenCLError("clFinish: CL_OUT_OF_RESOURCES (-5)")
            return engine.start(*arguments)

    runner._engine = Failing()


def test_the_next_free_device_takes_the_place_of_one_that_fails():
    predictor = Predictor(models.chain((1, 5), ("NEG",)), devices=[0, 0], batch=2)
    x = np.arange(35, dtype=np.float32).reshape(7, 5)
    fail(predictor, times=3)
    for _ in range(2):
        (found,) = predictor({"x": x}).values()
        np.testing.assert_array_equal(found, -x)
    fail(predictor, times=1)
    words = r"all devices have failed: 0 \(.*CL_OUT_OF_RESOURCES.*; 0 \("
    with pytest.raises(clgpu_delegate.PoolError, match=words):
        predictor({"x": x})


def test_a_device_fails_while_the_others_are_in_use():
    predictor = Predictor(models.chain((1, 5), ("NEG",)), devices=[0, 0], batch=2)
    x = np.ones((3, 5), np.float32)
    other = slots.take([0, 0])
    assert other.name == "0-1"
    runner = predictor._model._runner
    fail(predictor, times=1)
    for _ in range(2):
        with pytest.raises(clgpu_delegate.PoolError) as raised:
            predictor({"x": x})
        ((index, _, why),) = raised.value.failures
        assert index == 0
        assert "CL_OUT_OF_RESOURCES" in why
    with pytest.raises(clgpu_delegate.ClgpuError, match="closed"):
        runner.run(x[:2])
    assert slots.take([0, 0]).name == "0-0", "its slot is free"
