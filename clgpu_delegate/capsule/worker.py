"""The process that runs a model where it may crash or hang; `trials` starts it and talks to it."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.base.number_types import kind_of
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.capsule.protocol import in_order, numbered, receive, send
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.options import Options
from clgpu_delegate.runtimes import Runtime, find_runtime
from clgpu_delegate.tflite.graph import Array
from clgpu_delegate.tflite.inference import usable_cores

_RUNS = 2  # one inference may affect the next


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of runtimes and drivers must not mix with answers
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    requests = sys.stdin.buffer
    while True:
        try:
            message, arrays = receive(requests)
        except EOFError:
            return
        _answer(answers, message, arrays)


def _end_with(starter: int) -> None:
    """End this process soon after its parent has ended, even during a hang."""
    while os.getppid() == starter:
        time.sleep(1)
    os._exit(1)


def _answer(answers: BinaryIO, message: dict[str, Any], arrays: dict[str, Array]) -> None:
    for path in _core.kernel_overrides():
        _core.override_kernel_source(path, None)
    for path, text in message["kernels"].items():
        _core.override_kernel_source(path, text)
    content, inputs = arrays["model"].tobytes(), in_order(arrays, "in")
    runtime = find_runtime(message["runtime"])
    try:
        expected, _ = _run(_interpreter(runtime, content, message["reference"]), inputs)
    except Exception as error:
        send(answers, {"stage": "unusable", **_told(error)}, {})
        return
    send(answers, {"stage": "expected"}, numbered(expected, "out"))
    delegate, step = None, "load"
    try:
        delegate = Delegate(Options(**message["options"]))
        interpreter = _interpreter(runtime, content, message["reference"], delegate)
        step = "run"
        if message["plan_only"]:
            interpreter.allocate_tensors()
            got: list[Array] = []
        else:
            got, first = _run(interpreter, inputs, _RUNS)
            got = _worse(got, first, expected)
    except Exception as error:
        facts = _facts(delegate, message["details"])
        signs = _signs(error, step, (facts["explain"] or {}).get("failure"))
        send(answers, {"stage": "error", **_told(error), "signs": signs, **facts}, {})
        return
    send(answers, {"stage": "got", **_facts(delegate, message["details"])}, numbered(got, "out"))


def _interpreter(
    runtime: Runtime, content: bytes, reference: bool, delegate: Delegate | None = None
) -> Any:
    types = getattr(runtime.module, "OpResolverType", None)
    if types is None:  # tensorflow.lite
        types = runtime.module.experimental.OpResolverType
    # The plain loops are the specification of integers, and slow. What the delegate leaves to the
    # CPU is computed by the same kernels in both runs, so only the delegate makes a difference.
    resolver = types.BUILTIN_REF if reference else types.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return runtime.module.Interpreter(
        model_content=content,
        num_threads=usable_cores(),
        experimental_delegates=[] if delegate is None else [delegate],
        experimental_op_resolver_type=resolver,
    )


def _run(interpreter: Any, inputs: list[Array], runs: int = 1) -> tuple[list[Array], list[Array]]:
    """Outputs of the last run and of the first."""
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], list(array.shape))
    interpreter.allocate_tensors()
    outputs: list[list[Array]] = []
    for _ in range(runs):
        for detail, array in zip(details, inputs):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        values = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
        outputs.append([v.astype(np.bytes_) if v.dtype.kind == "O" else v for v in values])
    return outputs[-1], outputs[0]


def _worse(last: list[Array], first: list[Array], expected: list[Array]) -> list[Array]:
    """The run that differs more from the CPU; the first unless the last is worse."""
    same = [all(map(_equal, run, expected)) for run in (first, last)]
    return last if same[0] and not same[1] else first


def _equal(a: Array, b: Array) -> bool:
    if kind_of(a.dtype) == "f" and a.shape == b.shape:
        a, b = a.astype(np.float64), b.astype(np.float64)
        return bool(np.allclose(a, b, rtol=1e-2, atol=1e-4 * float(np.abs(b).max(initial=0.0))))
    return bool(np.array_equal(a, b))


def _told(error: Exception) -> dict[str, Any]:
    kind = type(error).__name__ if isinstance(error, ClgpuError) else ""
    return {"text": one_line(error), "log": getattr(error, "log", ""), "class": kind}


def _signs(error: Exception, step: str, failure: dict[str, str] | None) -> list[str]:
    """The part of an error that is independent of the graph: `Outcome.signs`.

    A runtime passes on only the message of the delegate's errors, which names nodes and sizes; the
    delegate keeps the rest. Of a runtime's own errors only the step is known.
    """
    if failure is not None:
        return [failure["class"], failure["call"], failure["code"]]
    return [type(error).__name__, step, ""]


def _facts(delegate: Delegate | None, details: bool) -> dict[str, Any]:
    if delegate is None:
        return {"explain": None}
    native = delegate._native
    facts: dict[str, Any] = {"explain": native.explain()}
    if not details:
        return facts
    facts["memory_map"] = native.memory_map()
    facts["programs"] = native.programs()
    device = delegate.device
    facts["device"] = device.to_dict()
    try:
        facts["abilities"] = dataclasses.asdict(device.abilities())
    except Exception as error:
        facts["abilities"] = {"error": str(error)}
    return facts
