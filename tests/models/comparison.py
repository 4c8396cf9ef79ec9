"""Compares whole models with the stock runtime, by relative L2 error and top-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import clgpu_delegate
from tests.runtimes import make_interpreter, run_interpreter

# The project's goal for whole networks since its first issue.
LIMITS = {"fp32": 1e-5, "fp16": 5e-3}


def relative_l2(got: np.ndarray, want: np.ndarray) -> float:
    """Return ``|got - want| / |want|`` of two arrays as vectors."""
    got, want = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    scale = np.linalg.norm(want)
    return float(np.linalg.norm(got - want) / (scale if scale > 0 else 1.0))


def run_delegated(
    runtime: str,
    model: bytes,
    inputs: Sequence[np.ndarray],
    resolver: str = "builtin",
    **options: Any,
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Run a model through the delegate; return its outputs and the explanation as a dictionary."""
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(runtime, model, [delegate], resolver)
    outputs = run_interpreter(interpreter, inputs)
    return outputs, delegate.explain().to_dict()


def assert_close(got: Sequence[np.ndarray], want: Sequence[np.ndarray], limit: float) -> None:
    """Fail if an output differs by more than `limit` from the stock runtime's, or top-1 differs."""
    assert len(got) == len(want)
    for index, (g, w) in enumerate(zip(got, want)):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        error = relative_l2(g, w)
        assert error <= limit, f"output {index}: relative L2 error {error:.2e} > {limit}"
