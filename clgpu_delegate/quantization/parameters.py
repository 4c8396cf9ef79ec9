"""Scales and zero points: of ranges, of weights, of biases."""

from __future__ import annotations

import numpy as np

from clgpu_delegate.tflite.graph import Affine, Array

LIMITS = {"int8": (-128, 127), "int16": (-32768, 32767)}
WEIGHTS_LIMIT = 127  # weights are symmetric: -128 is not used
_BIAS_LIMITS = {"int32": 2.0**31 - 1, "int64": 2.0**40}  # int64: what the kernels can rescale
_TINY = 1e-20  # a smaller scale would vanish in products of two
_OF_ZEROS = 0.001  # scale of a tensor without other values; neither far above nor below others


def of_range(low: float, high: float, dtype: str) -> Affine:
    """Parameters with which a type spans a range and hits zero exactly.

    Parameters
    ----------
    low, high
        The smallest and the largest value.
    dtype
        ``"int8"``: any zero point; ``"int16"``: zero point 0.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    first, last = LIMITS[dtype]
    if dtype == "int16":
        return Affine((_scale(max(-low, high) / last),), (0,))
    scale = _scale((high - low) / (last - first))
    zero_point = round(first - low / scale)
    return Affine((scale,), (min(max(zero_point, first), last),))


def of_scale(scale: float, zero_point: int) -> Affine:
    """Parameters from numbers."""
    return Affine((float(np.float32(scale)),), (zero_point,))


def of_weights(weights: Array, axis: int | None) -> Affine:
    """Symmetric parameters of int8 weights.

    Parameters
    ----------
    weights
        Float32.
    axis
        Axis with one scale per index; None for one scale of all.
    """
    if axis is None:
        largest = np.abs(weights).max(initial=0.0).reshape(1)
    else:
        others = tuple(a for a in range(weights.ndim) if a != axis)
        largest = np.abs(weights).max(axis=others, initial=0.0)
    scales = largest.astype(np.float64) / WEIGHTS_LIMIT
    scales[scales < _TINY] = scales.max(initial=0.0) or 1.0  # channels of zeros
    return Affine(_tuple(scales), (0,) * scales.size, axis or 0)


def with_room_for(weights: Affine, bias: Array, source: Affine, bias_type: str) -> Affine:
    """The weights' parameters, with scales raised where the bias would not fit into its type."""
    least = np.abs(bias.astype(np.float64)) / (_BIAS_LIMITS[bias_type] / 2 * source.scale)
    scales = np.array(weights.scales)
    scales = np.maximum(scales, least if scales.size > 1 else least.max(initial=0.0))
    return Affine(_tuple(scales), weights.zero_points, weights.axis)


def of_bias(source: Affine, weights: Affine) -> Affine:
    """Parameters of a bias: the products of the scales."""
    scales = np.array(weights.scales, np.float32) * np.float32(source.scale)
    return Affine(_tuple(scales), (0,) * scales.size)


def quantize(values: Array, affine: Affine, dtype: str) -> Array:
    """Round to the nearest integers, ties to even, and saturate.

    Parameters
    ----------
    values
        Float32.
    affine
        With as many scales as ``values`` has indices on its axis, or one.
    dtype
        Of the result. int8 of more than one scale, or of zero point 0 in a product, is kept
        within -127..127 by its scales.
    """
    scales, zero_points = _broadcast(affine, values.ndim)
    info = np.iinfo(dtype)
    stored = np.rint(values.astype(np.float64) / scales) + zero_points
    clipped: Array = np.clip(stored, info.min, info.max).astype(dtype)
    return clipped


def dequantize(stored: Array, affine: Affine) -> Array:
    """The float32 values of stored integers."""
    scales, zero_points = _broadcast(affine, stored.ndim)
    return ((stored.astype(np.float64) - zero_points) * scales).astype(np.float32)


def _broadcast(affine: Affine, rank: int) -> tuple[Array, Array]:
    shape = [1] * rank
    if len(affine.scales) > 1:
        shape[affine.axis] = -1
    scales, zero_points = np.array(affine.scales), np.array(affine.zero_points)
    return scales.reshape(shape), zero_points.reshape(shape)


def _scale(value: float) -> float:
    return float(np.float32(value)) if value > _TINY else _OF_ZEROS


def _tuple(scales: Array) -> tuple[float, ...]:
    return tuple(float(s) for s in scales.astype(np.float32))


def zeros(count: int) -> Array:
    """So many zeros, float32."""
    return np.zeros(count, np.float32)
