"""Observers, which settle ranges."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.quantization import observers, parameters
from clgpu_delegate.runtimes import find_runtime
from clgpu_delegate.tflite.runs import Run
from tests.model_maker import ModelMaker
from tests.python.test_quantize_graphs import dense, samples


def observed(observer: observers.Observer, *values: object) -> tuple[float, float]:
    for value in values:
        observer.observe(np.asarray(value, np.float32))
    return observer.range()


def outlier(rng: np.random.Generator) -> np.ndarray:
    values = rng.standard_normal(100_000)
    values[7] = 1000.0
    return values


def test_minmax_spans_all_samples():
    assert observed(observers.MinMax(), [1, 2], [-3, 0], [5]) == (-3, 5)


def test_moving_average_forgets():
    assert observed(observers.MovingAverage(0.5), [0, 8], [0, 4]) == (0, 6)


def test_histogram_keeps_its_counts_as_the_range_grows(rng):
    histogram = observers.Percentile()
    values = rng.standard_normal(5000)
    observed(histogram, values, 10 * values, np.zeros(3))
    assert histogram.counts.sum() == 10_003
    assert abs(np.average(histogram.centres(), weights=histogram.counts)) < 0.2


@pytest.mark.parametrize("values", [np.zeros(4), np.full(4, 2.5), np.full(4, -2.5)])
@pytest.mark.parametrize("name", observers.NAMES)
def test_constant_tensors_have_a_range(name, values):
    low, high = observed(observers.make(name, 256), values)
    low, high = min(low, 0), max(high, 0)
    assert low <= values[0] * (1 - 1e-6) or values[0] >= 0
    assert abs(high - low - abs(values[0])) < 0.01


def test_percentile_drops_an_outlier(rng):
    low, high = observed(observers.Percentile(0.999), outlier(rng))
    assert high < 10
    assert low < -2


def test_least_squares_beats_the_whole_range_where_there_are_outliers(rng):
    values = np.concatenate([rng.standard_normal(100_000), [40.0]])
    errors = []
    for observer in (observers.MinMax(), observers.LeastSquares()):
        affine = parameters.of_range(*observed(observer, values), "int8")
        stored = parameters.quantize(values, affine, "int8")
        errors.append(np.square(parameters.dequantize(stored, affine) - values).mean())
    assert errors[1] < 0.9 * errors[0]


def test_zero_is_exact_and_the_ends_are_reached(rng):
    for low, high in [(-1.5, 2.5), (0.5, 3.0), (-7.0, -1.0), *rng.normal(0, 5, (20, 2))]:
        affine = parameters.of_range(min(low, high), max(low, high), "int8")
        ends = np.array([min(low, high, 0), 0, max(low, high, 0)], np.float32)
        got = parameters.dequantize(parameters.quantize(ends, affine, "int8"), affine)
        assert got[1] == 0
        assert np.abs(got - ends).max() <= 0.51 * affine.scale


def test_observers_of_one_s_own(tmp_path):
    class Fixed:
        def observe(self, values: np.ndarray) -> None:
            assert values.dtype == np.float32

        def range(self) -> tuple[float, float]:
            return -12.75, 12.75

    m = ModelMaker()
    m.output(dense(m, m.input("x", (2, 6))))
    report = clgpu_delegate.quantize(m.build(), samples(), tmp_path / "o.tflite", observer=Fixed)
    assert report.layers[0].scale == pytest.approx(0.1)
    assert report.observer == "Fixed"


def test_tensors_are_read_as_they_were_computed(runtime, rng):
    # Runtime 2.14 adds in the place of an input, even where all tensors are to be preserved.
    m = ModelMaker()
    shape = (1, 8, 8, 4)
    x = m.input("x", shape)
    tanh = m.op("TANH", [x], shape)
    y = m.op("ADD", [tanh, x], shape)
    m.output(m.op("SOFTMAX", [y], shape, beta=1.0))
    value = rng.standard_normal(shape).astype(np.float32)
    run = Run(m.build(), find_runtime(runtime))
    run.invoke([value])
    np.testing.assert_allclose(run.value(tanh), np.tanh(value), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.value(y), np.tanh(value) + value, rtol=1e-5, atol=1e-6)
