"""Shared parts of the tests of convolutions: geometry of windows, operands, and sums in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.ops.harness import half_exact

LIMITS = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0, np.inf),
    "RELU6": (0, 6),
    "RELU_N1_TO_1": (-1, 1),
}


class Geometry(NamedTuple):
    """The geometry of a convolution, without channels.

    ``image`` is batch, height and width. A transposed convolution has the same image as its input.
    """

    image: tuple[int, int, int]
    filter: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"
    bias: bool = True


# Each family adds channels. What only some families can do (groups, Winograd's filters, outputs
# that are larger than need be) and the edges of tiles stand in their own files. There, geometry is
# COMMON where no kernel of the family has branches for it: the chosen candidate alone computes it,
# because most of the time goes to compilers, which would compile all candidates again.
GEOMETRIES = {
    "one_element": Geometry((1, 1, 1), (1, 1)),
    "odd": Geometry((1, 5, 7), (3, 3), activation="RELU6"),
    "strided": Geometry((1, 9, 7), (3, 3), stride=(2, 2), activation="RELU6"),
    "strided_columns": Geometry((2, 5, 6), (3, 3), stride=(1, 2), activation="RELU"),
    "pointwise": Geometry((1, 5, 7), (1, 1)),
    "pointwise_strided": Geometry((1, 7, 5), (1, 1), stride=(3, 2)),
    "valid": Geometry((2, 7, 8), (3, 2), padding="VALID", bias=False),
    "dilated": Geometry((1, 11, 9), (3, 3), dilation=(2, 3), activation="RELU_N1_TO_1"),
    "filter_larger_than_image": Geometry((1, 3, 2), (5, 7)),
    "high_filter": Geometry((1, 6, 9), (5, 3)),
    "doubling": Geometry((1, 5, 3), (2, 2), stride=(2, 2)),  # halving, unless it is transposed
    "gaps": Geometry((1, 3, 5), (2, 1), (3, 2), padding="VALID", activation="RELU6"),
    "wide_rows": Geometry((1, 2, 17), (3, 5), stride=(1, 3)),
}


class Data(NamedTuple):
    """The operands of a case."""

    image: np.ndarray
    weights: np.ndarray
    bias: np.ndarray | None


def make_data(case: Any, rng: np.random.Generator) -> Data:
    """Draw numbers that half holds; a bias has one for each channel of ``case.output``."""
    image = half_exact(rng.standard_normal(case.image).astype(np.float32))
    if case.activation == "RELU_N1_TO_1":
        image /= 8  # else nearly all sums are clipped, and tolerances depend on the rest
    weights = half_exact(rng.standard_normal(case.weights).astype(np.float32))
    bias = rng.standard_normal(case.output[3]).astype(np.float32) if case.bias else None
    return Data(image, weights, bias)


def options_of(case: Any, **more: Any) -> dict[str, Any]:
    """Return the options of an operation that moves a window."""
    return {
        "padding": case.padding,
        "stride_h": case.stride[0],
        "stride_w": case.stride[1],
        "fused_activation_function": case.activation,
        **more,
    }


def dilations_of(case: Any) -> dict[str, int]:
    """Return the options of an operation whose window may be dilated."""
    return {"dilation_h_factor": case.dilation[0], "dilation_w_factor": case.dilation[1]}


def windows(
    image: Sequence[int],
    filter_size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Return the zeros before the image and the output size, for both axes."""
    result = []
    for size, extent, step, apart in zip(image, filter_size, stride, dilation):
        reach = (extent - 1) * apart + 1
        if padding == "SAME":
            out = -(-size // step)
            result.append((max(0, (out - 1) * step + reach - size) // 2, out))
        else:
            result.append((0, (size - reach) // step + 1))
    return result


def finished(sums: np.ndarray, bias: np.ndarray | None, activation: str) -> np.ndarray:
    """Return sums with the bias, after the activation."""
    return np.clip(sums if bias is None else sums + bias, *LIMITS[activation])


def convolve(
    image: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, case: Any
) -> np.ndarray:
    """The convolution in float64.

    Weights are (output channels, height, width, input channels of a group), or, where the case has
    a depth multiplier, (1, height, width, output channels).
    """
    if hasattr(case, "multiplier"):
        weights = weights.transpose(3, 1, 2, 0)  # a group for each input channel
    (top, height), (left, width) = case.windows
    image, weights = image.astype(np.float64), weights.astype(np.float64)
    outputs, filter_h, filter_w, group_in = weights.shape
    groups = image.shape[3] // group_in
    reach = [(n - 1) * d + 1 for n, d in zip((filter_h, filter_w), case.dilation)]
    padded = np.zeros(
        (
            image.shape[0],
            max(top + image.shape[1], (height - 1) * case.stride[0] + reach[0]),
            max(left + image.shape[2], (width - 1) * case.stride[1] + reach[1]),
            image.shape[3],
        )
    )
    padded[:, top : top + image.shape[1], left : left + image.shape[2]] = image
    split = padded.reshape(*padded.shape[:3], groups, group_in)
    filters = weights.reshape(groups, outputs // groups, filter_h, filter_w, group_in)
    result = np.zeros((image.shape[0], height, width, groups, outputs // groups))
    for u in range(filter_h):
        for v in range(filter_w):
            y, x = u * case.dilation[0], v * case.dilation[1]
            rows = slice(y, y + (height - 1) * case.stride[0] + 1, case.stride[0])
            columns = slice(x, x + (width - 1) * case.stride[1] + 1, case.stride[1])
            result += np.einsum("nhwgi,goi->nhwgo", split[:, rows, columns], filters[:, :, u, v])
    return finished(result.reshape(*result.shape[:3], outputs), bias, case.activation)
