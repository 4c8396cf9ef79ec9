"""OpenVINO, which reads .tflite files: its CPU and its GPU plugin."""

from __future__ import annotations

import importlib
import time
from typing import Any, ClassVar

import numpy as np

from bench.peers.peer import Loaded, Means, Peer
from bench.peers.work import INT8, Made

_TYPES = {"fp32": "f32", "fp16": "f16", INT8: "f32"}


class _Compiled(Loaded):
    def __init__(self, library: Any, model: Any, made: Made) -> None:
        self._library, self._model = library, model
        self._inputs = made.inputs()
        self._request = model.create_infer_request()
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        self._request.infer(self._inputs, share_inputs=True)
        self._outputs = [tensor.data for tensor in self._request.output_tensors]

    def outputs(self) -> list[np.ndarray]:
        return [output.copy() for output in self._outputs]

    def many_seconds(self, runs: int) -> float:
        queue = self._library.AsyncInferQueue(self._model)
        start = time.perf_counter()
        for _ in range(runs):
            queue.start_async(self._inputs, share_inputs=True)
        queue.wait_all()
        return (time.perf_counter() - start) / runs

    def facts(self) -> dict[str, Any]:
        return {"where": ", ".join(self._model.get_property("EXECUTION_DEVICES"))}


class _OpenVino(Peer):
    plugin: ClassVar[str]
    package, module = "openvino", "openvino"
    precisions = ("fp32", "fp16", INT8)

    def load(self, made: Made, means: Means) -> Loaded:
        library = importlib.import_module(self.module)
        core = library.Core()
        if self.plugin not in core.available_devices:
            raise RuntimeError(f"OpenVINO finds no {self.plugin}")
        properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": _TYPES[made.work.precision],
            "PERFORMANCE_HINT": "LATENCY",
        }
        if self.plugin == "CPU":
            properties["INFERENCE_NUM_THREADS"] = means.threads
        model = core.compile_model(str(made.model), self.plugin, properties)
        return _Compiled(library, model, made)


class OpenVinoCpu(_OpenVino):
    """The CPU plugin."""

    name, plugin = "OpenVINO CPU", "CPU"


class OpenVinoGpu(_OpenVino):
    """The plugin for Intel's GPUs."""

    name, plugin = "OpenVINO GPU", "GPU"
