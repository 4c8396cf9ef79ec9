"""Each operation that quantize() knows, alone: the runtimes agree with the float model."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.quantization.rules import RULES
from tests import runtimes
from tests.python import quantize_cases

TYPES = {"int8": "int8", "int16x8": "int16"}
# Which of nearly equal elements is the largest is up to rounding.
DISCRETE = ("ARG_MAX", "ARG_MIN")
NO_REFERENCE = {"ELU"}  # BUILTIN_REF lacks it


def cases() -> list[tuple[str, str]]:
    known = {name: RULES[name.split("/")[0]].versions for name in quantize_cases.CASES}
    return [(name, s) for name in known for s in TYPES if TYPES[s] in known[name]]


def test_every_rule_has_a_case():
    assert {name.split("/")[0] for name in quantize_cases.CASES} == set(RULES)


@pytest.mark.parametrize(("name", "scheme"), cases())
def test_operation_is_close_to_its_float_form(name, scheme, tmp_path):
    model, out = quantize_cases.model(name), tmp_path / "out.tflite"
    report = clgpu_delegate.quantize(model, quantize_cases.samples(), out, scheme=scheme)
    op = name.split("/")[0]
    assert {layer.dtype for layer in report.layers if layer.op == op} == {TYPES[scheme]}
    (x, *_) = quantize_cases.samples()
    (expected,) = runtimes.run_reference(model, [x], resolver="builtin")
    for runtime in runtimes.available_runtimes():
        for resolver in ("builtin",) if op in NO_REFERENCE else ("builtin", "ref"):
            (got,) = runtimes.run_reference(out.read_bytes(), [x], runtime, resolver)
            if op in DISCRETE:
                assert np.mean(got == expected) > 0.8
            else:
                assert np.abs(got - expected).max() <= 0.03 * np.abs(expected).max()
