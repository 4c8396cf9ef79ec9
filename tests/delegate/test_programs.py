"""How long programs stay built in a process."""

from __future__ import annotations

from typing import Any

import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

KEPT = 128  # programs, as in src_cpp/cl/context.cpp


def slopes(first: int, count: int) -> bytes:
    """Each operation of this model has a program of its own: slopes are constants in the source."""
    m = ModelMaker()
    x = m.input("x", (3, 7))
    for i in range(first, first + count):
        m.output(m.op("LEAKY_RELU", [x], (3, 7), alpha=1 / (2 + i)))
    return m.build()


def load(model: bytes, device: str) -> tuple[int, Any]:
    """The number of programs that a new delegate compiles for this model, and what uses them."""
    delegate = clgpu_delegate.load(device=device, cache="off")
    interpreter = make_interpreter("auto", model, [delegate])
    return delegate.stats()["load"]["programs_built"], interpreter


@pytest.mark.slow
def test_programs_that_nothing_uses_are_dropped_at_last(device, monkeypatch):
    monkeypatch.delenv("CLGPU_PROGRAMS")  # those that the tests share
    used, closed = slopes(0, 2), slopes(2, 2)
    assert load(closed, device)[0] == 2
    assert load(closed, device)[0] == 0, "kept for a while"
    count, interpreter = load(used, device)
    assert count == 2
    assert load(slopes(4, KEPT), device)[0] == KEPT
    assert load(used, device)[0] == 0, "an interpreter uses them"
    assert load(closed, device)[0] == 2, "nothing has used them for longest"
    del interpreter
