"""Writes networks of `bench.networks` as ONNX files, with the weights of the .tflite file."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np

from bench import networks

_Size = Union[int, tuple[int, int]]
_OPSET, _IR_VERSION = 13, 8  # old enough for all readers
_ACTIVATIONS = {"RELU": "Relu", "TANH": "Tanh"}


class OnnxNet:
    """The layers of `bench.networks.layers.Net` as ONNX nodes; images are NCHW.

    Parameters
    ----------
    drawn
        The constants of that `Net`, in its order.
    """

    def __init__(self, drawn: Sequence[np.ndarray]) -> None:
        self._onnx = importlib.import_module("onnx")
        self._drawn = iter(drawn)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._inputs: list[str] = []
        self._outputs: list[str] = []

    def write(self, path: Path) -> None:
        """Write the file."""
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        ends = [
            [helper.make_tensor_value_info(name, kind, self._shapes[name]) for name in names]
            for names in (self._inputs, self._outputs)
        ]
        graph = helper.make_graph(self._nodes, "network", *ends, self._constants)
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        self._onnx.checker.check_model(model)
        self._onnx.save(model, str(path))

    # ------------------------------------------------------------------ as in Net

    def input(self, name: str, shape: tuple[int, ...]) -> str:
        n, h, w, c = shape
        self._inputs.append(name)
        self._shapes[name] = (n, c, h, w)
        return name

    def output(self, x: str) -> None:
        self._outputs.append(x)

    def shape(self, x: str) -> tuple[int, ...]:
        """As `Net` has it: NHWC."""
        n, c, *extents = self._shapes[x]
        return (n, *extents, c)

    def conv(
        self, x: str, filters: int, kernel: _Size, stride: int = 1, *, padding: str = "SAME",
        activation: str | None = "RELU", groups: int = 1, gain: float = 1.0,  # noqa: ARG002
    ) -> str:  # fmt: skip
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        weights = next(self._drawn)
        if weights.shape[0] == 1 and groups == self._shapes[x][1]:  # depthwise
            weights = weights.transpose(3, 0, 1, 2)
        else:
            weights = weights.transpose(0, 3, 1, 2)
        n, _, *extents = self._shapes[x]
        pads, outer = _window(extents, (kh, kw), stride, padding)
        y = self._emit(
            "Conv", [x, self._constant(weights), self._constant(next(self._drawn))],
            (n, filters, *outer), kernel_shape=[kh, kw], strides=[stride, stride], pads=pads,
            group=groups,
        )  # fmt: skip
        return self.activate(y, activation)

    def depthwise(
        self, x: str, kernel: int, stride: int = 1, *, activation: str | None = "RELU"
    ) -> str:
        channels = self._shapes[x][1]
        return self.conv(x, channels, kernel, stride, activation=activation, groups=channels)

    def dense(
        self, x: str, units: int, *, activation: str | None = None, gain: float = 1.0,  # noqa: ARG002
        transposed: bool = False,
    ) -> str:  # fmt: skip
        weights, bias = (self._constant(next(self._drawn)) for _ in range(2))
        rows = self._shapes[x][0]
        y = self._emit("Gemm", [x, weights, bias], (rows, units), transB=int(not transposed))
        return self.activate(y, activation)

    def activate(self, x: str, activation: str | None) -> str:
        if not activation:
            return x
        if activation == "RELU6":
            limits = [self._constant(np.float32(limit)) for limit in (0, 6)]
            return self._emit("Clip", [x, *limits], self._shapes[x])
        return self._emit(_ACTIVATIONS[activation], [x], self._shapes[x])

    def max_pool(self, x: str, size: int, stride: int, padding: str = "VALID") -> str:
        return self._pool("MaxPool", x, size, stride, padding)

    def avg_pool(self, x: str, size: int, stride: int, padding: str = "VALID") -> str:
        return self._pool("AveragePool", x, size, stride, padding)

    def global_pool(self, x: str) -> str:
        n, c, *_ = self._shapes[x]
        y = self._emit("GlobalAveragePool", [x], (n, c, 1, 1))
        return self._emit("Flatten", [y], (n, c), axis=1)

    def local_response_norm(self, x: str) -> str:
        return self._emit(
            "LRN", [x], self._shapes[x], size=5, alpha=5e-4, beta=0.75, bias=2.0
        )  # fmt: skip

    def add(self, x: str, y: str, activation: str | None = None) -> str:
        return self.activate(self._emit("Add", [x, y], self._shapes[x]), activation)

    def concat(self, *parts: str) -> str:
        n, _, *extents = self._shapes[parts[0]]
        channels = sum(self._shapes[part][1] for part in parts)
        return self._emit("Concat", list(parts), (n, channels, *extents), axis=1)

    def pad(self, x: str, amount: int) -> str:
        n, c, h, w = self._shapes[x]
        pads = self._constant(np.int64([0, 0, amount, amount] * 2))
        return self._emit("Pad", [x, pads], (n, c, h + 2 * amount, w + 2 * amount))

    def flatten(self, x: str) -> str:
        n, c, h, w = self._shapes[x]
        y = self._emit("Transpose", [x], (n, h, w, c), perm=[0, 2, 3, 1])
        return self._emit("Flatten", [y], (n, h * w * c), axis=1)

    def softmax(self, x: str) -> str:
        return self._emit("Softmax", [x], self._shapes[x], axis=1)

    # ------------------------------------------------------------------ plumbing

    def _pool(self, kind: str, x: str, size: int, stride: int, padding: str) -> str:
        n, c, *extents = self._shapes[x]
        pads, outer = _window(extents, (size, size), stride, padding)
        return self._emit(
            kind, [x], (n, c, *outer), kernel_shape=[size, size], strides=[stride, stride],
            pads=pads,
        )  # fmt: skip

    def _emit(self, kind: str, inputs: list[str], shape: tuple[int, ...], **options: Any) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **options))
        self._shapes[name] = shape
        return name

    def _constant(self, values: np.ndarray) -> str:
        name = f"c{len(self._constants)}"
        array = np.ascontiguousarray(values)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name


def pads_of(extent: int, kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding before and after an axis, as TensorFlow's SAME and VALID have it."""
    if padding == "VALID":
        return 0, 0
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def _window(
    extents: Sequence[int], kernel: tuple[int, int], stride: int, padding: str
) -> tuple[list[int], tuple[int, ...]]:
    """ONNX's padding, and the extents of the result."""
    both = [pads_of(extent, k, stride, padding) for extent, k in zip(extents, kernel)]
    outer = [
        (extent + sum(pads) - k) // stride + 1 for extent, k, pads in zip(extents, kernel, both)
    ]
    return [pads[0] for pads in both] + [pads[1] for pads in both], tuple(outer)


def write(network: str, batch: int, path: Path) -> None:
    """Write a network of `bench.peers_torch.NETWORKS`."""
    info = networks.NETWORKS[network]
    net = OnnxNet(info.make(batch).drawn)
    info.describe(net, batch)
    net.write(path)
