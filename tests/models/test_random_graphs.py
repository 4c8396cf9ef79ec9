"""Random graphs on each device, and some hundred by the seed of the day."""

from __future__ import annotations

import datetime
import os

import hypothesis
import pytest
from hypothesis import strategies as st

from tests import quick
from tests.campaign import graphs
from tests.models.random_graphs import compare, random_graph

# Of each device and precision; most of their time goes into compiling kernels.
EXAMPLES = 2 if quick.is_on() else 10


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(random=st.randoms(use_true_random=False))
def test_random_graph_is_right(device, precision, random):
    graph = random_graph(random)
    hypothesis.note(str(graph))
    compare(graph, device, precision=precision, half_io=precision == "fp16")


def seed_of_the_day() -> int:
    """The day, so that every run of a day is the same; CLGPU_TEST_SEED names another."""
    return int(os.environ.get("CLGPU_TEST_SEED") or datetime.date.today().toordinal())


@pytest.mark.parametrize(
    "count", [pytest.param(500, marks=pytest.mark.slow, id="500"), pytest.param(24, id="24")]
)
def test_graphs_of_the_day(count):
    seed = seed_of_the_day()
    print(f"CLGPU_TEST_SEED={seed}")
    row, failures = graphs.attempt(count, seed)
    assert row.is_clean(), "\n".join(failures)


def test_output_without_elements_is_right():
    """After the resize of this graph a window fits nowhere: stock's and our output are empty."""
    assert graphs.one("5023000068") == ("right", "")
