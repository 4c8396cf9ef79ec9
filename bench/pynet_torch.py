"""PyNET in PyTorch with the weights of the .tflite file: the peer of ``python -m bench pynet``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.networks.pynet import pynet
from bench.peers_torch import TorchNet, free, median_s, precision_of


class Network(TorchNet):
    """PyNET in PyTorch's form with given weights.

    Parameters
    ----------
    torch
        The module.
    precision
        As in `bench.peers_torch.precision_of`, with the same layouts.
    drawn
        The constants of `bench.networks.layers.Net`, in its order.
    raw
        ``(n, h, w, 4)``.
    device
        Of PyTorch.
    """

    def __init__(
        self, torch: Any, precision: str, drawn: Sequence[np.ndarray], raw: np.ndarray,
        device: str = "cuda",
    ) -> None:  # fmt: skip
        super().__init__(torch, precision)
        self._device = device
        self._inputs["raw"] = self._tensor(raw)
        self._weights = [self._tensor(array) for array in drawn]
        self._epsilons = [float(array) if array.ndim == 0 else 0.0 for array in drawn]

    def image(self) -> np.ndarray:
        """The last result, NHWC."""
        return self.result.permute(0, 2, 3, 1).float().cpu().numpy()

    def normalize(
        self, x: Any, axes: tuple[int, ...], *, scale: float, shift: float  # noqa: ARG002
    ) -> Any:  # fmt: skip
        epsilon = self._epsilons[self._used]
        self._used += 1
        factors, shifts = self._weight(), self._weight()
        return self._functional.instance_norm(x, weight=factors, bias=shifts, eps=epsilon)

    def pad(self, x: Any, amount: int, *, reflect: bool = False) -> Any:
        mode = "reflect" if reflect else "constant"
        return self._functional.pad(x, (amount,) * 4, mode=mode)

    def resize_bilinear(self, x: Any, factor: int) -> Any:
        return self._functional.interpolate(
            x, scale_factor=factor, mode="bilinear", align_corners=True
        )

    def activate(self, x: Any, activation: str | None) -> Any:
        if activation == "LEAKY_RELU":
            return self._functional.leaky_relu_(x, 0.2)
        if activation == "LOGISTIC":
            return self._torch.sigmoid_(x)
        return super().activate(x, activation)

    def _tensor(self, array: np.ndarray) -> Any:
        tensor = self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device, self._dtype)
        if tensor.ndim != 4:
            return tensor
        return tensor.permute(0, 3, 1, 2).contiguous(memory_format=self._form)


def measure(
    torch: Any, drawn: Sequence[np.ndarray], raw: np.ndarray, precision: str, *,
    width: float, rounds: int, budget_s: float,
) -> tuple[np.ndarray, float, int]:  # fmt: skip
    """Run and time it; fp32 is NCHW without TF32, fp16 channels_last.

    Returns
    -------
    image
        The result, NHWC and float32.
    seconds
        Device time of an inference, median.
    peak_bytes
        Peak of its allocator's device memory, including weights and work spaces of cuDNN.

    Raises
    ------
    RuntimeError
        If the device has too little memory.
    """
    free(torch)
    torch.cuda.reset_peak_memory_stats()
    with precision_of(torch, precision):
        network = Network(torch, precision, drawn, raw)
        describe = functools.partial(pynet, size=raw.shape[1:3], width=width)
        run = functools.partial(network.run, describe, 1)
        seconds = median_s(torch, run, rounds=rounds, budget_s=budget_s)
        image = network.image()
    peak = int(torch.cuda.max_memory_allocated())
    del network, run
    free(torch)
    return image, seconds, peak
