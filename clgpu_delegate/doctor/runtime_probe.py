"""Tries the extension and the TensorFlow Lite runtimes; runs in a separate process."""

from __future__ import annotations

import importlib
import math
import time
from typing import Any


def import_extension() -> dict[str, Any]:
    """Import the compiled extension; returns its file and version."""
    core = importlib.import_module("clgpu_delegate._core")
    core.devices  # noqa: B018  # raises if it is the stand-in
    return {"file": core.__file__, "version": core.__version__}


def import_runtime(module: str) -> dict[str, Any]:
    """Import a runtime's interpreter."""
    importlib.import_module(module)
    return {}


def run_model(runtime: str, device: str) -> dict[str, Any]:
    """Run the test model with a runtime alone and with the delegate."""
    import numpy as np  # noqa: PLC0415

    import clgpu_delegate  # noqa: PLC0415
    from clgpu_delegate import runtimes  # noqa: PLC0415
    from clgpu_delegate.doctor import model  # noqa: PLC0415

    module = runtimes.find_runtime(runtime).module
    x = np.linspace(-1, 1, math.prod(model.INPUT), dtype=np.float32).reshape(model.INPUT)

    def run(delegates: list[Any]) -> Any:
        interpreter = module.Interpreter(
            model_content=model.content(), experimental_delegates=delegates, num_threads=1
        )
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy()

    expected = run([])
    start = time.perf_counter()
    delegate = clgpu_delegate.load(device=device, cache="off", placement="all", verify="off")
    got = run([delegate])
    seconds = time.perf_counter() - start
    plan = delegate.explain()
    return {
        "error": float(np.abs(got - expected).max()),
        "seconds": seconds,
        "device": delegate.device.name,
        "left": [f"{node.op}: {node.reason}" for node in plan.nodes if not node.claimed],
        "nodes": len(plan.nodes),
        "notes": list(plan.notes),
    }
