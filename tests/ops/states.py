"""Runs models with states for several inferences, with each kernel candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import clgpu_delegate
from tests.ops import harness
from tests.runtimes import make_interpreter
from tests.tolerance import assert_close

Array = Any


def run(interpreter: Any, inferences: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Outputs of inferences in a row."""
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    results = []
    for arrays in inferences:
        for detail, array in zip(inputs, arrays):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(d["index"]) for d in outputs])
    return results


def check_states(
    model: bytes,
    inferences: Sequence[Sequence[Array]],
    expected: Sequence[Sequence[Array]] | None,
    *,
    device: str,
    precision: str = "fp32",
    accumulation: int = 1,
    stock: bool = True,
    compare: Callable[..., None] = assert_close,
) -> None:
    """Run inferences in a row through the delegate, once per kernel candidate, and check each.

    Parameters
    ----------
    model
        Bytes of a .tflite file of one node, which the delegate should claim.
    inferences
        For each inference one array per input.
    expected
        For each inference one array per output, float64 for real numbers; or None.
    device, precision, accumulation
        As in `harness.check`.
    stock
        Whether to compare with the runtime's reference kernels, too.
    compare
        Called as `assert_close`.
    """
    runtime = harness.op_runtime()
    if precision == "fp16":
        inferences = [[harness.half_exact(x) for x in arrays] for arrays in inferences]
    wanted = [("the numpy reference", expected)] if expected is not None else []
    if stock:
        plain = make_interpreter(runtime, model, resolver="ref")
        wanted.append(("the runtime's kernels", run(plain, inferences)))

    def check(engines: dict[str, str]) -> clgpu_delegate.Explanation:
        delegate = clgpu_delegate.load(
            device=device,
            precision=precision,
            engines=engines,
            warm_up=False,
            half_io=precision == "fp16",
            share_memory=harness.TRACKED,
        )
        got = run(make_interpreter(runtime, model, [delegate]), inferences)
        explanation = delegate.explain()
        left = [f"{n.op}: {n.reason}" for n in explanation.nodes if not n.claimed]
        assert not left, left
        broken = [note for note in explanation.notes if "does not work on this device" in note]
        assert not broken, broken[0]
        for source, all_arrays in wanted:
            for i, (results, arrays) in enumerate(zip(got, all_arrays)):
                for k, (result, want) in enumerate(zip(results, arrays)):
                    what = f"output {k} of inference {i} {engines}, against {source},"
                    compare(result, want, precision, accumulation, what)
        return explanation

    first = check({})
    for family, name in harness.alternatives(first):
        taken = {node.candidate for node in check({family: f"{name}|auto"}).nodes}
        assert name in taken, f"{family}={name} was asked for, the plan has {taken}"


def sigmoid(x: Array) -> Array:
    """The logistic function of float64."""
    return 1.0 / (1.0 + np.exp(-np.asarray(x, np.float64)))
