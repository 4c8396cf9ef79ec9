"""Runs a small model through the delegate in every possible way, and compares.

`check` runs each kernel candidate of each node, not only the chosen one (with ``--quick`` the
chosen one and another).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests import quick
from tests.passes.texts import assert_texts_are_read_back
from tests.runtimes import (
    ENVIRONMENT_VARIABLE,
    available_runtimes,
    make_interpreter,
    run_interpreter,
    run_reference,
)
from tests.tolerance import assert_close

# Only small cases in an interpreter of OpenCL devices (Oclgrind), which is 1000 times slower.
SMALL = bool(os.environ.get("CLGPU_TEST_SMALL"))
# On an emulated device, kernels may have smaller limits than the device.
LIMITED = bool(os.environ.get("CLGPU_LIMITS"))
TRACKED = bool(os.environ.get("OCLGRIND_UNINITIALIZED"))
_SMALL_WORK = 200_000  # multiply-adds, or elements touched

# Of each hypothesis test; a new combination of macros costs a compilation.
EXAMPLES = 1 if quick.is_on() else 5

# Numbers of an operand that is computed at run time; planning waits for fewer of them.
MANY = 65

Array = Any


def op_runtime() -> str:
    """The runtime that op tests use: one is enough there, and the newer one knows more ops."""
    installed = available_runtimes()
    if not installed:
        pytest.skip("no TensorFlow Lite runtime is installed")
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    return named or ("ai_edge_litert" if "ai_edge_litert" in installed else installed[0])


def half_exact(array: Array) -> Array:
    """Round to numbers that half storage holds exactly, keeping the type.

    Inputs of functions with steps (floor, comparisons, arg max) must be such numbers. Otherwise
    fp16 correctly takes another side of a step than a reference with the unrounded input.
    """
    return np.asarray(array).astype(np.float16).astype(np.asarray(array).dtype)


def check(
    model: bytes,
    inputs: Sequence[Array],
    expected: Sequence[Array] | None,
    *,
    device: str,
    precision: str,
    accumulation: int = 1,
    reference: bool = True,
    resize: Mapping[int, Sequence[int]] | None = None,
    runtime: str | None = None,
    engines: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Run a model through the delegate, once per kernel candidate, and check each result.

    Parameters
    ----------
    model
        Bytes of a .tflite file of which the delegate should claim every node.
    inputs
        One array per model input. In fp16 float inputs are rounded to half first.
    expected
        One array per model output, float64 for real numbers, or None to rely on the runtime.
    device, precision
        The fixtures.
    accumulation
        Number of terms of the sums that make up one element; sets the tolerance.
    reference
        False where the runtime has no reference kernel to compare with (custom ops).
    resize
        New input shapes by position, given to ``resize_tensor_input`` after loading.
    runtime
        Name of the TensorFlow Lite runtime; the one of `op_runtime` if None.
    engines
        Engines of families whose candidates are not to be tried in turns.
    **options
        Further options of `clgpu_delegate.load`.
    """
    runtime = runtime or op_runtime()
    # Without warm-up each kernel runs once only. With half inputs and outputs the kernels of a
    # model of one node read and write half; models of several nodes mix both. Without sharing,
    # unwritten memory is NaN; if a tool tracks writes, it must stay unwritten.
    options = {
        "warm_up": False,
        "half_io": precision == "fp16",
        "share_memory": TRACKED,
        **options,
    }
    if precision == "fp16":
        inputs = [half_exact(x) if np.asarray(x).dtype == np.float32 else x for x in inputs]
    wanted: list[tuple[str, Sequence[Array]]] = []
    if expected is not None:
        wanted.append(("the numpy reference", expected))
    if reference:
        wanted.append(
            ("the runtime's kernels", run_reference(model, inputs, runtime, resize=resize))
        )
    if SMALL:
        _skip_if_large(model, inputs, wanted, accumulation)

    fixed = dict(engines or {})

    def run(more: dict[str, str]) -> clgpu_delegate.Explanation:
        engines = {**fixed, **more}
        delegate = clgpu_delegate.load(
            device=device, precision=precision, engines=engines, **options
        )
        interpreter = make_interpreter(runtime, model, [delegate])
        got = run_interpreter(interpreter, inputs, resize)
        explanation = delegate.explain()
        if not more:
            assert_texts_are_read_back(delegate)
        way = "".join(f" with {family}={name}" for family, name in engines.items())
        halves = any(node.adds_halves for node in explanation.nodes)
        judged = "half_sums" if halves else precision
        left = [f"{n.index} {n.op}: {n.reason}" for n in explanation.nodes if not n.claimed]
        assert not left, f"left on the CPU{way}: {'; '.join(left)}"
        broken = [note for note in explanation.notes if "does not work on this device" in note]
        assert not broken, broken[0]
        for source, arrays in wanted:
            assert len(got) == len(arrays), f"{len(got)} outputs, {source} has {len(arrays)}"
            for i, (result, want) in enumerate(zip(got, arrays)):
                what = f"output {i}{way}, against {source},"
                assert_close(result, want, judged, accumulation, what)
        return explanation

    for family, name in alternatives(run({})):
        if family in fixed:
            continue
        explanation = run({family: f"{name}|auto"})
        taken = {n.candidate for n in explanation.nodes}
        if name not in taken and LIMITED:
            # It was built first, to find out that the kernel does not allow such work-groups.
            limit = f"kernel {family}/{name} is made for smaller work-groups or left out"
            assert any(note.startswith(limit) for note in explanation.notes), explanation.notes
            continue
        assert name in taken, f"{family}={name} was asked for, the plan has {taken}"


def check_refused(model: bytes, reason: str, **options: Any) -> None:
    """Check that the delegate claims no node of a model and gives the reason.

    Parameters
    ----------
    model
        Bytes of a .tflite file.
    reason
        Part of the reason of at least one node.
    **options
        Options of `clgpu_delegate.load`.
    """
    delegate = clgpu_delegate.load(**options)
    # Kept until the end: the explanation is of the last graph the delegate has seen.
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    explanation = delegate.explain()
    claimed = [f"{n.index} {n.op}" for n in explanation.nodes if n.claimed]
    reasons = [n.reason for n in explanation.nodes]
    del interpreter
    assert not claimed, f"claimed {claimed}, expected a refusal: {reason}"
    assert any(reason in text for text in reasons), f"{reason!r} is in none of {reasons}"


def alternatives(explanation: clgpu_delegate.Explanation) -> list[tuple[str, str]]:
    """The (family, candidate) pairs to ask for, so that every node is computed in every way."""
    pairs: dict[tuple[str, str], bool] = {}  # True: every node that offers it has it already
    for node in explanation.nodes:
        for name in node.candidates:
            pair = node.family, name
            pairs[pair] = pairs.get(pair, True) and node.candidate == name
    left = [pair for pair, done in pairs.items() if not done]
    if quick.is_on() and left:  # one of them, another one in another test
        test = os.environ["PYTEST_CURRENT_TEST"]
        return [left[zlib.crc32(test.encode()) % len(left)]]
    return left


def _skip_if_large(
    model: bytes,
    inputs: Sequence[Array],
    wanted: Sequence[tuple[str, Sequence[Array]]],
    accumulation: int,
) -> None:
    sizes = [np.asarray(x).size for x in inputs]
    outputs = [np.asarray(x).size for x in wanted[0][1]] if wanted else []
    work = len(model) // 4 + sum(sizes) + accumulation * sum(outputs)
    if work > _SMALL_WORK:
        pytest.skip(f"too large for an interpreted device: {work} elements")
