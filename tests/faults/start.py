"""One experiment of a process's start: ``python -m tests.faults.start [CALL SKIP COUNT CODE]``.

Here calls fail that a process makes once: for platforms, devices and the context. Prints a JSON
object: the outcome, or, without arguments, how often each call is made.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

from tests.faults.configurations import narrow
from tests.faults.control import Layer
from tests.runtimes import make_interpreter, run_interpreter, run_reference

CALLS = (
    "clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
)  # fmt: skip
TOLERANCE = 1e-3


def main() -> None:
    """Run the experiment that the arguments name."""
    import clgpu_delegate  # noqa: PLC0415  # the layer has to be told before

    layer = Layer()
    model = narrow()
    x = np.random.default_rng(1).standard_normal((1, 8, 8, 4)).astype(np.float32)
    (want,) = run_reference(model, [x])
    if len(sys.argv) > 1:
        call, skip, count, code = sys.argv[1], *map(int, sys.argv[2:5])
        layer.fail(call, code, skip, count)
    seen = {"outcome": "right"}
    try:
        delegate = clgpu_delegate.load(cache="off")
        interpreter = make_interpreter("auto", model, [delegate])
        (got,) = run_interpreter(interpreter, [x])
        if not np.abs(got - want).max() <= TOLERANCE:
            seen["outcome"] = "wrong"
    except Exception as error:
        seen.update(outcome="told", error=f"{type(error).__name__}: {error}"[:400])
        if "CL_" not in str(error) and "device" not in str(error):
            seen["outcome"] = "stuck"
    if layer.misuse:
        seen["dead"] = layer.misuse
    seen["hit"] = layer.failed
    if len(sys.argv) == 1:
        seen["calls"] = {name: layer.calls()[name] for name in CALLS}
    print(json.dumps(seen), flush=True)
    os._exit(0)  # other tests cover the end of a process


if __name__ == "__main__":
    main()
