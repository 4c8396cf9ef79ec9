"""``python -m bench crossover``: where two curves cross, and what the cost model says."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import crossover, networks
from bench.__main__ import app
from bench.crossover import OPERATIONS, Crossing, Row, crossing, sizes
from bench.setting import Setting
from tests.runtimes import run_reference


def rows(*ratios: float) -> list[Row]:
    return [Row("add", 8 << i, ratio, 1.0) for i, ratio in enumerate(ratios)]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((0.5, 0.5, 2.0), 16 * 2**0.5),  # in the middle between 16 and 32
        ((0.5, 1.0, 4.0), 16),
        ((2.0, 3.0), 8),  # it always wins
        ((0.5, 0.9), None),
        ((2.0, 0.5, 2.0), 16 * 2**0.5),  # the first win was none that lasts
        ((2.0, 0.5), None),
        ((), None),
    ],
)
def test_crossing(ratios, expected):
    found = crossing(rows(*ratios))
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("measured", "auto", "agrees"),
    [(100.0, 140.0, True), (140.0, 100.0, True), (100.0, 160.0, False), (None, None, True),
     (100.0, None, False), (None, 100.0, False)],
)  # fmt: skip
def test_agreement(measured, auto, agrees):
    assert Crossing("add", measured, auto, 8, 2048).agrees is agrees


def test_sizes_double_with_steps_between():
    assert sizes(8, 64) == [8, 16, 32, 64]
    assert sizes(8, 16, 4) == [8, 10, 11, 13, 16]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_models_compute_their_operation(operation):
    model = OPERATIONS[operation](8)
    inputs = networks.sample_inputs(model, seed=1)
    (found,) = run_reference(model, inputs)
    if operation == "add":
        np.testing.assert_allclose(found, inputs[0] + inputs[1], rtol=1e-6)
    elif operation == "transpose":
        np.testing.assert_array_equal(found, inputs[0].T)
    else:
        assert found.shape == ((1, 8, 8, 32) if operation == "convolution" else (8, 8))


def test_table_of_each_size_and_of_the_crossings(device, capsys):
    setting = Setting(device=device, threads=1, rounds=5, budget=0.01)
    (found,) = crossover.run(setting, ["transpose"], largest=16)
    assert (found.operation, found.smallest, found.largest) == ("transpose", 8, 16)
    assert found.auto is None  # so small a matrix is not worth a transfer
    said = capsys.readouterr().out
    assert "Where the device begins to win" in said
    assert "above 16" in said


def test_wrong_operation_is_told():
    result = CliRunner().invoke(app, ["crossover", "sum"])
    assert result.exit_code == 2
    assert "'sum' is no operation" in " ".join(result.output.replace("│", " ").split())
