"""The stock TensorFlow Lite runtimes on the CPU, and LiteRT's own GPU accelerator."""

from __future__ import annotations

import importlib.util
from typing import Any, ClassVar

import numpy as np

from bench.peers.peer import Loaded, Means, Peer
from bench.peers.work import INT8, Made
from tests.runtimes import make_interpreter


class Interpreted(Loaded):
    """An interpreter, or what has its methods."""

    def __init__(self, interpreter: Any, made: Made) -> None:
        self._interpreter = interpreter
        interpreter.allocate_tensors()
        inputs = made.inputs()
        self._sources = [detail["index"] for detail in interpreter.get_input_details()]
        self._results = [detail["index"] for detail in interpreter.get_output_details()]
        self._inputs = list(zip(self._sources, inputs))
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        for index, value in self._inputs:
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        self._outputs = [self._interpreter.get_tensor(index) for index in self._results]

    def outputs(self) -> list[np.ndarray]:
        return self._outputs


class _Stock(Peer):
    resolver: ClassVar[str] = "builtin"
    precisions = ("fp32", INT8)

    def load(self, made: Made, means: Means) -> Loaded:
        model = made.model.read_bytes()
        interpreter = make_interpreter(
            self.module, model, resolver=self.resolver, threads=means.threads
        )
        return Interpreted(interpreter, made)


class LiteRt(_Stock):
    """ai-edge-litert with XNNPACK."""

    name = "LiteRT CPU (XNNPACK)"
    package, module = "ai-edge-litert", "ai_edge_litert"


class LiteRtPlain(LiteRt):
    """ai-edge-litert without XNNPACK."""

    name = "LiteRT CPU without XNNPACK"
    resolver = "no_delegate"


class TfLite(_Stock):
    """tflite-runtime with XNNPACK."""

    name = "tflite-runtime CPU (XNNPACK)"
    package, module = "tflite-runtime", "tflite_runtime"


class TfLitePlain(TfLite):
    """tflite-runtime without XNNPACK."""

    name = "tflite-runtime CPU without XNNPACK"
    resolver = "no_delegate"


class LiteRtGpu(Peer):
    """LiteRT's own GPU accelerator (WebGPU), through CompiledModel."""

    name = "LiteRT GPU (CompiledModel)"
    package, module = "ai-edge-litert", "ai_edge_litert"

    def missing(self) -> str:
        found = super().missing()
        if not found and importlib.util.find_spec("ai_edge_litert.compiled_model") is None:
            return "pip install 'ai-edge-litert>=2.3'"
        return found

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002  # it chooses its device
        from clgpu_delegate.litert.compiled import on_own_gpu  # noqa: PLC0415  # see `work`

        return Interpreted(on_own_gpu(made.model.read_bytes()), made)
