"""Libraries that read ONNX files: ONNX Runtime and tinygrad. The files are those of `onnx_net`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.peers.peer import Loaded, Means, Peer, nchw, nhwc
from bench.peers.work import Made, Work


class _FromOnnx(Peer):
    def missing(self) -> str:
        needed = [("onnx", "onnx"), (self.package, self.module)]
        packages = [package for package, module in needed if not _is_there(module)]
        return f"pip install {' '.join(packages)}" if packages else ""

    def unsuited(self, work: Work) -> str:
        found = super().unsuited(work)
        if not found and not work.has_builder:
            return "it does not read .tflite files, and the network has no builder for ONNX"
        return found


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class _OrtSession(Loaded):
    def __init__(self, session: Any, made: Made) -> None:
        self._session = session
        names = [each.name for each in session.get_inputs()]
        self._feed = dict(zip(names, nchw(made.inputs())))
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        self._outputs = self._session.run(None, self._feed)

    def outputs(self) -> list[np.ndarray]:
        return nhwc(self._outputs)

    def facts(self) -> dict[str, Any]:
        return {"where": ", ".join(self._session.get_providers())}


class OnnxRuntime(_FromOnnx):
    """ONNX Runtime on the CPU."""

    name = "ONNX Runtime CPU"
    package, module = "onnxruntime", "onnxruntime"

    def load(self, made: Made, means: Means) -> Loaded:
        library = importlib.import_module(self.module)
        options = library.SessionOptions()
        options.intra_op_num_threads = means.threads
        session = library.InferenceSession(
            str(made.onnx), options, providers=["CPUExecutionProvider"]
        )
        return _OrtSession(session, made)


class _Jitted(Loaded):
    def __init__(self, tinygrad: Any, run: Any, inputs: list[np.ndarray], where: str) -> None:
        self._tinygrad, self._run, self._inputs, self._where = tinygrad, run, inputs, where
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        tensors = [self._tinygrad.Tensor(value).realize() for value in self._inputs]
        self._outputs = [self._run(*tensors).numpy()]

    def outputs(self) -> list[np.ndarray]:
        return nhwc(self._outputs)

    def facts(self) -> dict[str, Any]:
        return {"where": self._where}


class Tinygrad(_FromOnnx):
    """The OpenCL backend of tinygrad, with its JIT."""

    name = "tinygrad (OpenCL)"
    package, module = "tinygrad", "tinygrad"

    def environment(self, means: Means) -> Mapping[str, str]:
        return {**means.opencl_environment, "DEV": "CL"}

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002  # see `environment`
        tinygrad = importlib.import_module(self.module)
        runner = importlib.import_module("tinygrad.nn.onnx").OnnxRunner(str(made.onnx))
        (name,) = runner.graph_inputs

        @tinygrad.TinyJit
        def run(x: Any) -> Any:
            return next(iter(runner({name: x}).values())).realize()

        where = tinygrad.Device["CL"].device_name
        loaded = _Jitted(tinygrad, run, nchw(made.inputs()), where)
        for _ in range(2):  # the JIT records the second run
            loaded.run()
        return loaded
