"""The examples: every number format keeps what the network has learned."""

from __future__ import annotations

import importlib

import pytest

from examples import formats

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra: examples)")

LOSS = 0.5  # points of accuracy that a format may cost


@pytest.mark.parametrize("name", ["digits", "lenet"])
def test_accuracy_survives_every_format(name, device):
    task = importlib.import_module(f"examples.{name}").task()
    rows = {row.name: row for row in formats.compare(task, device=device)}
    assert rows["fp32"].score > 95
    for row in rows.values():
        assert row.claimed == row.nodes
        assert row.score >= rows["fp32"].score - LOSS, row
    assert rows["int8"].file_bytes < 0.5 * rows["fp32"].file_bytes


def test_neuron_converts_temperatures(device):
    task = importlib.import_module("examples.celsius").task()
    errors = {row.name: row.score for row in formats.compare(task, device=device)}
    step = 252 / 255  # degrees Fahrenheit between neighbouring int8 results
    limits = {"fp32": 0.01, "fp16": 0.1, "int16": 0.02, "int8": step}
    for name, limit in limits.items():
        assert errors[name] <= limit, errors
