"""OpenCV's DNN module, which reads .tflite files: on OpenCL and on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bench.peers.peer import Loaded, Means, Peer, nchw, nhwc
from bench.peers.work import Made


class _Net(Loaded):
    def __init__(self, net: Any, made: Made, where: str) -> None:
        self._net, self._where = net, where
        self._inputs = nchw(made.inputs())
        self._results = net.getUnconnectedOutLayersNames()
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        for value in self._inputs:  # there is one: see `_read`
            self._net.setInput(value)
        self._outputs = list(self._net.forward(self._results))

    def outputs(self) -> list[np.ndarray]:
        return nhwc(self._outputs)

    def facts(self) -> dict[str, Any]:
        return {"where": self._where}


class _OpenCv(Peer):
    package, module = "opencv-python-headless<5", "cv2"

    @property
    def install(self) -> str:
        return f"pip install '{self.package}'"

    def _read(self, cv2: Any, made: Made) -> Any:
        if len(made.inputs()) != 1:
            raise RuntimeError("only models with one input are fed here")
        return cv2.dnn.readNetFromTFLite(str(made.model))


class OpenCvCl(_OpenCv):
    """On OpenCL; without a GPU, on the platform of our device."""

    name = "OpenCV DNN (OpenCL)"
    precisions = ("fp32", "fp16")
    targets: ClassVar[dict[str, str]] = {
        "fp32": "DNN_TARGET_OPENCL", "fp16": "DNN_TARGET_OPENCL_FP16",
    }  # fmt: skip

    def environment(self, means: Means) -> Mapping[str, str]:
        return {
            **means.opencl_environment,
            "OPENCV_DNN_OPENCL_ALLOW_ALL_DEVICES": "1",
            "OPENCV_OPENCL_DEVICE": f"{means.platform}:{means.kind.upper()}:",
        }

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002  # see `environment`
        cv2 = importlib.import_module(self.module)
        if not cv2.ocl.haveOpenCL():
            raise RuntimeError("OpenCV finds no OpenCL device")
        cv2.ocl.setUseOpenCL(True)
        net = self._read(cv2, made)
        net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
        net.setPreferableTarget(getattr(cv2.dnn, self.targets[made.work.precision]))
        device = cv2.ocl.Device.getDefault()
        return _Net(net, made, f"{device.name()} ({device.vendorName()})")


class OpenCvCpu(_OpenCv):
    """On the CPU."""

    name = "OpenCV DNN (CPU)"

    def load(self, made: Made, means: Means) -> Loaded:
        cv2 = importlib.import_module(self.module)
        cv2.setNumThreads(means.threads)
        net = self._read(cv2, made)
        net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
        net.setPreferableTarget(cv2.dnn.DNN_TARGET_CPU)
        return _Net(net, made, "CPU")
