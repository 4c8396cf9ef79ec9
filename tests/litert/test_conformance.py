"""The families of LiteRT's suite for accelerators, on this one and on LiteRT's CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests import tolerance
from tests.litert import conformance
from tests.litert.compiled import Array, Compiled, needs_litert, preferred_device
from tests.litert.conformance import F16, F32, Case
from tests.runtimes import run_reference

pytestmark = needs_litert


@pytest.fixture(scope="module")
def environment():
    """One for all cases, as making one takes longer than a case."""
    with clgpu_delegate.litert_environment(
        device=preferred_device(), warm_up=False, dynamic_range="hybrid"
    ) as made:
        yield made


HALVES = ["COS", "FLOOR", "GELU", "LOGISTIC", "NEG", "PAD", "SIN", "SOFTMAX", "TANH", "TRANSPOSE"]


def is_for_the_device(case: Case) -> bool:
    """Whether the delegate takes it; what it leaves is in docs/limits.md."""
    operation, rank = case.name.split("-")[:2]
    if case.dtype == F16 and operation not in HALVES:
        return False
    if np.dtype(case.dtype) == np.uint64:
        return False
    return not (operation == "TRANSPOSE" and int(rank) > 6)


def expected(case: Case, environment: Any) -> list[Array]:
    """The results of LiteRT's CPU, for halves those of the same case in float."""
    model, inputs, _ = case.made(F32 if case.dtype == F16 else None)
    if case.family == "hybrid":
        # With CompiledModel, LiteRT's CPU ignores that inputs are to be rounded symmetrically.
        return run_reference(model, inputs, "ai_edge_litert", "ref")
    return Compiled(model, "CPU", environment).run(inputs)


def check(case: Case, environment: Any) -> None:
    """Run with the GPU alone what the device computes, else with the help of the CPU."""
    model, inputs, terms = case.made()
    whole = is_for_the_device(case)
    try:
        compiled = Compiled(model, "GPU" if whole else "GPU|CPU", environment)
        found = compiled.run(inputs)
    except RuntimeError:
        if whole:
            raise
        with pytest.raises(RuntimeError):  # LiteRT's CPU has no kernel, either
            Compiled(model, "CPU", environment).run(inputs)
        return
    plan = clgpu_delegate.litert_delegates()[-1].explain()
    assert (plan.claimed == plan.total) == whole, plan
    for got, want in zip(found, expected(case, environment)):
        precision = "fp16" if got.dtype == F16 else "fp32"
        tolerance.assert_close(got, want.astype(got.dtype), precision, terms, case.name)


def name_of(case: Case) -> str:
    return f"{case.name}-{np.dtype(case.dtype).name}"


@pytest.mark.parametrize("case", conformance.quick_cases(), ids=name_of)
def test_operation_gives_the_results_of_the_cpu(case, environment):
    check(case, environment)


@pytest.mark.slow
@pytest.mark.parametrize("family", conformance.FAMILIES, ids=lambda family: family.__name__)
def test_family_gives_the_results_of_the_cpu(family, environment):
    for case in family():
        check(case, environment)
