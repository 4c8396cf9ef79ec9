"""PyTorch with the weights of the .tflite file: on CUDA with cuDNN, else on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from bench import networks
from bench.peers.onnx_net import pads_of
from bench.peers.peer import Loaded, Means, Peer, nchw, nhwc
from bench.peers.work import Made, Work
from bench.peers_torch import TorchNet, captured, precision_of


class GivenNet(TorchNet):
    """A network with given weights and the paddings of TensorFlow.

    Parameters
    ----------
    torch, precision
        As in `TorchNet`.
    drawn
        The constants of `bench.networks.layers.Net`, in its order.
    device
        Of PyTorch.
    """

    def __init__(
        self, torch: Any, precision: str, drawn: Sequence[np.ndarray], device: str
    ) -> None:
        super().__init__(torch, precision)
        self._device = device
        self._weights = [self._given(array) for array in drawn]

    def feed(self, name: str, image: Any) -> None:
        """Take a tensor, NCHW, as an input."""
        self._inputs[name] = image

    def tensor(self, array: np.ndarray) -> Any:
        """An array on the device, in the type and layout of the network."""
        value = self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device, self._dtype)
        return value.contiguous(memory_format=self._form) if value.ndim == 4 else value

    def conv(
        self, x: Any, filters: int, kernel: Any, stride: int = 1, *, padding: str = "SAME",
        activation: str | None = "RELU", groups: int = 1, gain: float = 1.0,
    ) -> Any:  # fmt: skip
        size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        x, pads = self._padded(x, size, stride, padding, 0.0)
        weights = self._weight(filters, x.shape[1] // groups, *size, gain=gain)
        bias = self._weight(filters)
        y = self._functional.conv2d(x, weights, bias, stride, pads, groups=groups)
        return self.activate(y, activation)

    def dense(
        self, x: Any, units: int, *, activation: str | None = None, gain: float = 1.0,
        transposed: bool = False,
    ) -> Any:  # fmt: skip
        weights = self._weight(units, x.shape[-1], gain=gain)
        bias = self._weight(units)
        y = self._functional.linear(x, weights.t() if transposed else weights, bias)
        return self.activate(y, activation)

    def max_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        x, pads = self._padded(x, (size, size), stride, padding, -float("inf"))
        return self._functional.max_pool2d(x, size, stride, pads)

    def avg_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        _, pads = self._padded(x, (size, size), stride, padding, None)
        return self._functional.avg_pool2d(x, size, stride, pads, count_include_pad=False)

    def flatten(self, x: Any) -> Any:
        return x.permute(0, 2, 3, 1).flatten(1)

    def _padded(
        self, x: Any, kernel: tuple[int, int], stride: int, padding: str, fill: float | None
    ) -> tuple[Any, tuple[int, int]]:
        """Pad what the operation itself cannot: more at the end than at the begin.

        Raises
        ------
        ValueError
            If that is needed and there is nothing to fill with.
        """
        (top, bottom), (left, right) = (
            pads_of(extent, k, stride, padding) for extent, k in zip(x.shape[2:], kernel)
        )
        if (top, left) == (bottom, right):
            return x, (top, left)
        if fill is None:
            raise ValueError("an average pool with unequal padding")
        return self._functional.pad(x, (left, right, top, bottom), value=fill), (0, 0)

    def _given(self, array: np.ndarray) -> Any:
        if array.ndim == 4 and array.shape[0] == 1:  # depthwise
            array = array.transpose(3, 0, 1, 2)
        elif array.ndim == 4:
            array = array.transpose(0, 3, 1, 2)
        return self.tensor(array)


class _Eager(Loaded):
    """Runs a function of tensors on the device."""

    def __init__(self, torch: Any, made: Made, device: str) -> None:
        self._torch, self._device = torch, device
        work = made.work
        info = networks.NETWORKS[work.network]
        self._describe, self._batch = info.describe, work.batch
        self._net = GivenNet(torch, work.precision, info.make(work.batch).drawn, device)
        self._images = nchw(made.inputs())
        self._names = [each.name for each in info.inputs]
        self._precision = work.precision
        self._call: Callable[..., Any] = self._forward
        self._outputs: list[np.ndarray] = []

    def _forward(self, *tensors: Any) -> Any:
        for name, tensor in zip(self._names, tensors):
            self._net.feed(name, tensor)
        self._net.run(self._describe, self._batch)
        return self._net.result

    def run(self) -> None:
        with precision_of(self._torch, self._precision):
            result = self._call(*map(self._net.tensor, self._images))
            self._outputs = [result.float().cpu().numpy()]

    def outputs(self) -> list[np.ndarray]:
        return nhwc(self._outputs)

    def device_seconds(self, runs: int) -> float | None:
        if self._device != "cuda":
            return None
        with precision_of(self._torch, self._precision):
            tensors = [self._net.tensor(image) for image in self._images]
            start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._torch.cuda.synchronize()
            start.record()
            for _ in range(runs):
                self._call(*tensors)
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) * 1e-3 / runs

    def facts(self) -> dict[str, Any]:
        if self._device != "cuda":
            return {"where": "CPU"}
        cuda = self._torch.cuda
        return {"where": cuda.get_device_name(), "device_bytes": cuda.max_memory_reserved()}


class _Graph(_Eager):
    """Replays a CUDA graph; inputs are copied into its tensors."""

    def __init__(self, torch: Any, made: Made, device: str) -> None:
        super().__init__(torch, made, device)
        with precision_of(torch, self._precision):
            self._static = [self._net.tensor(image) for image in self._images]
            self._replay_graph = captured(torch, self._run)
        self._call = self._replay

    def _run(self) -> None:
        self._result = self._forward(*self._static)

    def _replay(self, *tensors: Any) -> Any:
        for static, tensor in zip(self._static, tensors):
            static.copy_(tensor)
        self._replay_graph()
        return self._result


class _Compiled(_Eager):
    """What torch.compile makes, with frozen weights."""

    def __init__(self, torch: Any, made: Made, device: str) -> None:
        super().__init__(torch, made, device)
        importlib.import_module("torch._inductor.config").freezing = True
        self._call = torch.compile(self._forward, mode="max-autotune-no-cudagraphs")


class _PyTorch(Peer):
    package, module = "torch", "torch"
    precisions = ("fp32", "tf32", "fp16")
    loaded: ClassVar[type[_Eager]] = _Eager
    needs_cuda: ClassVar[bool] = False

    def unsuited(self, work: Work) -> str:
        found = super().unsuited(work)
        if not found and not work.has_builder:
            return "it does not read .tflite files, and the network has no builder for PyTorch"
        return found

    def load(self, made: Made, means: Means) -> Loaded:
        torch = importlib.import_module(self.module)
        torch.set_num_threads(means.threads)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cpu" and (self.needs_cuda or made.work.precision != "fp32"):
            raise RuntimeError("PyTorch finds no CUDA device")
        return self.loaded(torch, made, device)


class PyTorchEager(_PyTorch):
    """One operation after the other."""

    name = "PyTorch (eager)"


class PyTorchGraph(_PyTorch):
    """A CUDA graph."""

    name = "PyTorch (CUDA graph)"
    loaded = _Graph
    needs_cuda = True


class PyTorchCompiled(_PyTorch):
    """`torch.compile`."""

    name = "PyTorch (torch.compile)"
    loaded = _Compiled
