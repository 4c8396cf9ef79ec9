"""Layers with seeded random weights, so that a network file reads like its paper's table.

Batch normalization counts as folded into the preceding weights and biases, as converters do it.
All images are NHWC, batch first; all weights are float32, or float16 followed by a DEQUANTIZE.
Weights are drawn so that the result has mean square ``gain``, by default 1 (He et al. 2015,
generalized: see `bench.networks.signal`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from bench.networks.signal import FUSED, Signal, mix
from tests.model_maker import ModelMaker

Size = Union[int, tuple[int, int]]  # one number for both, or (height, width)

_INPUT_POWER = 0.09  # mean square of the sample images
_BIAS_SCALE = 0.1
_LEAKY_SLOPE = 0.2

# In rectified layers the positive mean, which all images share, grows relative to the differences
# between images, until every image has the same top class. Subtracting a part of the mean weight of
# each filter prevents that. Subtracting all of it would make the network chaotic, and it would
# amplify rounding errors, too.
_CENTERED = 0.35


class Net:
    """A network under construction: a `ModelMaker` with layers for methods.

    Tensors are the integer ids of the `ModelMaker`.

    Parameters
    ----------
    seed
        Of the weights.
    float16_weights
        Store constants as float16 with DEQUANTIZE nodes, as the converter's float16 mode does.

    Attributes
    ----------
    macs
        Multiply-accumulates per run, of convolutions and matrix products so far.
    drawn
        The float constants so far, in the order of the layers that use them.
    """

    def __init__(self, seed: int = 0, *, float16_weights: bool = False) -> None:
        self.macs = 0
        self.drawn: list[np.ndarray] = []
        self._maker = ModelMaker()
        self._random = np.random.default_rng(seed)
        self._float16_weights = float16_weights
        self._signals: dict[int, Signal] = {}

    # ------------------------------------------------------------------ ends of the network

    def input(self, name: str, shape: tuple[int, ...], dtype: Any = np.float32) -> int:
        """Add an input that `bench.networks.samples` can draw."""
        x = self._maker.input(name, shape, dtype)
        self._signals[x] = Signal(_INPUT_POWER)
        return x

    def output(self, *tensors: int) -> None:
        """Declare outputs, in order."""
        self._maker.output(*tensors)

    def build(self) -> bytes:
        """Return the bytes of the .tflite file."""
        return self._maker.build()

    def shape(self, x: int) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self._maker.shape(x)

    # ------------------------------------------------------------------ layers with weights

    def conv(
        self,
        x: int,
        filters: int,
        kernel: Size,
        stride: int = 1,
        *,
        padding: str = "SAME",
        activation: str | None = "RELU",
        groups: int = 1,
        gain: float = 1.0,
    ) -> int:
        """Convolve; ``groups`` above 1 gives a CONV_2D whose filters see a share of the channels.

        Parameters
        ----------
        x
            ``(n, h, w, c)``.
        filters, kernel, stride, padding, groups
            Of the convolution.
        activation
            Fused where the runtime can, else a separate node; None for none.
        gain
            Mean square of what enters the activation.
        """
        (kh, kw), (n, h, w, c) = _pair(kernel), self.shape(x)
        fan_in = kh * kw * c // groups
        weights = self._filters((filters, kh, kw, c // groups), fan_in, x, gain, (1, 2, 3))
        oh, ow = (_extent(size, k, stride, padding) for size, k in ((h, kh), (w, kw)))
        self.macs += n * oh * ow * filters * fan_in
        return self._fusing(
            "CONV_2D", [x, weights, self._bias(filters, gain)], (n, oh, ow, filters), gain,
            activation, padding=padding, stride_h=stride, stride_w=stride,
            version=6 if groups > 1 else 1,
        )  # fmt: skip

    def depthwise(
        self, x: int, kernel: Size, stride: int = 1, *, activation: str | None = "RELU"
    ) -> int:
        """Convolve each channel of ``(n, h, w, c)`` with its own filter, zero padded."""
        (kh, kw), (n, h, w, c) = _pair(kernel), self.shape(x)
        weights = self._filters((1, kh, kw, c), kh * kw, x, 1.0)
        shape = (n, _extent(h, kh, stride), _extent(w, kw, stride), c)
        self.macs += math.prod(shape) * kh * kw
        return self._fusing(
            "DEPTHWISE_CONV_2D", [x, weights, self._bias(c, 1.0)], shape, 1.0, activation,
            padding="SAME", stride_h=stride, stride_w=stride, depth_multiplier=1,
        )  # fmt: skip

    def transpose_conv(self, x: int, filters: int, kernel: int, stride: int) -> int:
        """Enlarge ``(n, h, w, c)`` by ``stride`` with learned interpolation; linear."""
        n, h, w, c = self.shape(x)
        fan_in = max(1, kernel * kernel * c // stride**2)  # inputs of one output pixel
        weights = self._filters((filters, kernel, kernel, c), fan_in, x, 1.0, (1, 2, 3))
        shape = (n, h * stride, w * stride, filters)
        self.macs += n * h * w * c * filters * kernel * kernel
        return self._emit(
            "TRANSPOSE_CONV", [self._ints(shape), weights, x, self._bias(filters, 1.0)], shape,
            Signal(1.0), padding="SAME", stride_h=stride, stride_w=stride, version=3,
        )  # fmt: skip

    def dense(
        self,
        x: int,
        units: int,
        *,
        activation: str | None = None,
        gain: float = 1.0,
        transposed: bool = False,
    ) -> int:
        """Multiply the last axis of ``(..., c)`` by a matrix.

        ``transposed`` stores the matrix as ``(c, units)`` and adds a TRANSPOSE node before
        FULLY_CONNECTED, as exporters of other frameworks do.
        """
        *rows, c = self.shape(x)
        shape = (c, units) if transposed else (units, c)
        weights = self._filters(shape, c, x, gain, (0,) if transposed else (1,))
        if transposed:
            self._signals[weights] = Signal(gain / c)
            weights = self.transpose(weights, (1, 0))
        self.macs += math.prod(rows) * c * units
        keep = len(rows) > 1
        return self._fusing(
            "FULLY_CONNECTED", [x, weights, self._bias(units, gain)], (*rows, units), gain,
            activation, keep_num_dims=keep, version=5 if keep else 1,
        )  # fmt: skip

    def embed(self, ids: int, rows: int, width: int) -> int:
        """Look integer ``ids`` of any shape up in a ``(rows, width)`` table."""
        table = self.weights(self._normal((rows, width)))
        return self._emit("GATHER", [table, ids], (*self.shape(ids), width), Signal(1.0), axis=0)

    def normalize(
        self, x: int, axes: tuple[int, ...], *, scale: float = 1.0, shift: float = 0.1
    ) -> int:
        """Bring ``x`` to mean 0 and variance 1 over ``axes``, then scale and shift its channels.

        It uses elementary ops, as converters do for layer and instance normalization. ``scale``
        and ``shift`` are the typical factor of a channel and the typical number added to it.
        """
        shape = self.shape(x)
        kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        over = self._ints(axes)
        unit = Signal(1.0)
        mean = self._emit("MEAN", [x, over], kept, unit, keep_dims=True)
        squares = self._emit("SQUARED_DIFFERENCE", [x, mean], shape, unit)
        variance = self._emit("MEAN", [squares, over], kept, unit, keep_dims=True)
        variance = self._emit("ADD", [variance, self.weights(np.float32(1e-3))], kept, unit)
        inverse = self._emit("RSQRT", [variance], kept, unit)
        centred = self._emit("SUB", [x, mean], shape, unit)
        unscaled = self._emit("MUL", [centred, inverse], shape, unit)
        factors = self.weights(scale * self._random.uniform(0.8, 1.2, shape[-1]))
        scaled = self._emit("MUL", [unscaled, factors], shape, Signal(scale**2))
        shifts = self.weights(self._normal((shape[-1],), shift))
        return self._emit("ADD", [scaled, shifts], shape, Signal(scale**2 + shift**2))

    # ------------------------------------------------------------------ layers without

    def max_pool(self, x: int, size: int, stride: int, padding: str = "VALID") -> int:
        """Take the maximum of windows of ``(n, h, w, c)``."""
        signal = self._signals[x].maximum()
        return self._pool("MAX_POOL_2D", x, size, stride, padding, signal)

    def avg_pool(self, x: int, size: int, stride: int, padding: str = "VALID") -> int:
        """Take the mean of windows of ``(n, h, w, c)``."""
        signal = self._signals[x].averaged("window" if size < self.shape(x)[1] else "image")
        return self._pool("AVERAGE_POOL_2D", x, size, stride, padding, signal)

    def global_pool(self, x: int) -> int:
        """Average ``(n, ..., c)`` over all but its first and last axes."""
        shape = self.shape(x)
        axes = self._ints(range(1, len(shape) - 1))
        signal = self._signals[x].averaged("image")
        return self._emit("MEAN", [x, axes], (shape[0], shape[-1]), signal, keep_dims=False)

    def local_response_norm(self, x: int) -> int:
        """Divide by the activity of two channels to either side (Krizhevsky et al. 2012, 3.3)."""
        bias, beta = 2.0, 0.75
        return self._emit(
            "LOCAL_RESPONSE_NORMALIZATION", [x], self.shape(x),
            self._signals[x].scaled(bias**-beta), radius=2, bias=bias, alpha=1e-4, beta=beta,
        )  # fmt: skip

    def activate(self, x: int, activation: str) -> int:
        """Apply an activation as a separate node."""
        options = {"alpha": _LEAKY_SLOPE} if activation == "LEAKY_RELU" else {}
        signal = self._signals[x].after(activation)
        return self._emit(activation, [x], self.shape(x), signal, **options)

    def add(self, x: int, y: int, activation: str | None = None) -> int:
        """Add two tensors of one shape; ``activation`` may be one that fuses."""
        terms = [self._signals[t].after(activation) for t in (x, y)]
        mean = mix(terms, (1, 1))
        signal = Signal(2 * mean.power, mean.common)
        return self._emit(
            "ADD", [x, y], self.shape(x), signal, fused_activation_function=activation or "NONE"
        )

    def add_weights(self, x: int, shape: tuple[int, ...]) -> int:
        """Add a learned tensor that is broadcast to ``x``."""
        weights = self.weights(self._normal(shape, 0.5))
        signal = Signal(self._signals[x].power + 0.25)
        return self._emit("ADD", [x, weights], self.shape(x), signal)

    def scale(self, x: int, factor: float) -> int:
        """Multiply by a number."""
        signal = self._signals[x].scaled(factor)
        return self._emit("MUL", [x, self.weights(np.float32(factor))], self.shape(x), signal)

    def offset(self, x: int, summand: float) -> int:
        """Add a number."""
        signal = Signal(self._signals[x].power + summand**2)
        return self._emit("ADD", [x, self.weights(np.float32(summand))], self.shape(x), signal)

    def concat(self, *parts: int) -> int:
        """Join along the last axis."""
        widths = [self.shape(p)[-1] for p in parts]
        signal = mix([self._signals[p] for p in parts], widths)
        shape = (*self.shape(parts[0])[:-1], sum(widths))
        return self._emit("CONCATENATION", parts, shape, signal, axis=len(shape) - 1)

    def matmul(self, x: int, y: int, *, adj_y: bool = False) -> int:
        """Multiply ``(..., m, k)`` by ``(..., k, n)``, or by ``(..., n, k)`` if ``adj_y``."""
        *outer, m, k = self.shape(x)
        n = self.shape(y)[-2 if adj_y else -1]
        self.macs += math.prod(outer) * m * k * n
        signal = Signal(k * self._signals[x].power * self._signals[y].power)
        return self._emit("BATCH_MATMUL", [x, y], (*outer, m, n), signal, adj_y=adj_y)

    def softmax(self, x: int) -> int:
        """Turn the last axis into probabilities."""
        shape = self.shape(x)
        return self._emit("SOFTMAX", [x], shape, Signal(1 / shape[-1]), beta=1.0)

    def reshape(self, x: int, shape: tuple[int, ...]) -> int:
        """Give the elements another shape."""
        inputs = [x, self._ints(shape)]
        return self._emit("RESHAPE", inputs, shape, self._signals[x], new_shape=shape)

    def flatten(self, x: int) -> int:
        """Join all axes but the first."""
        n, *rest = self.shape(x)
        return self.reshape(x, (n, math.prod(rest)))

    def transpose(self, x: int, order: Sequence[int]) -> int:
        """Permute the axes."""
        shape = tuple(self.shape(x)[axis] for axis in order)
        return self._emit("TRANSPOSE", [x, self._ints(order)], shape, self._signals[x])

    def pad(self, x: int, amount: int, *, reflect: bool = False) -> int:
        """Frame ``(n, h, w, c)`` on four sides with zeros, or with its mirror image."""
        n, h, w, c = self.shape(x)
        amounts = self._ints([[0, 0], [amount, amount], [amount, amount], [0, 0]])
        shape, signal = (n, h + 2 * amount, w + 2 * amount, c), self._signals[x]
        if reflect:
            return self._emit("MIRROR_PAD", [x, amounts], shape, signal, mode="REFLECT")
        return self._emit("PAD", [x, amounts], shape, signal)

    def resize_bilinear(self, x: int, factor: int) -> int:
        """Enlarge ``(n, h, w, c)``; corner pixels map to corner pixels."""
        n, h, w, c = self.shape(x)
        size = (h * factor, w * factor)
        signal = self._signals[x].averaged("window")
        return self._emit(
            "RESIZE_BILINEAR", [x, self._ints(size)], (n, *size, c), signal, align_corners=True
        )

    def depth_to_space(self, x: int, block: int) -> int:
        """Spread channels over ``block`` x ``block`` pixels."""
        n, h, w, c = self.shape(x)
        shape = (n, h * block, w * block, c // block**2)
        return self._emit("DEPTH_TO_SPACE", [x], shape, self._signals[x], block_size=block)

    # ------------------------------------------------------------------ mixtures of experts

    def top(self, x: int, k: int) -> tuple[int, int]:
        """Return probabilities of the ``k`` largest of a row, with sum 1, and their indices."""
        n = self.shape(x)[0]
        inputs = [self.softmax(x), self._ints(k)]
        values, indices = self._maker.op(
            "TOPK_V2", inputs, [(n, k), (n, k)], dtype=[np.float32, np.int32]
        )
        self._signals[values] = Signal(1 / k**2)
        total = self.sum(values, 1)
        return self._emit("DIV", [values, total], (n, k), Signal(1 / k**2)), indices

    def top_gates(self, x: int, k: int) -> int:
        """Return ``(n, e)`` of which only the ``k`` largest of a row of ``x`` are not zero."""
        (n, e), (values, indices) = self.shape(x), self.top(x, k)
        numbers = [self._ints(e)]
        numbers += [self._maker.constant(np.float32(value)) for value in (1, 0)]
        hot = self._emit("ONE_HOT", [indices, *numbers], (n, k, e), Signal(1 / e), axis=-1)
        weighted = self.gate(hot, self.reshape(values, (n, k, 1)))
        return self.reshape(self.sum(weighted, 1), (n, e))

    def split(self, x: int, parts: int) -> tuple[int, ...]:
        """Divide the last axis into equal parts."""
        *outer, c = self.shape(x)
        shapes = [(*outer, c // parts)] * parts
        inputs = [self._ints(len(outer)), x]
        results = self._maker.op(
            "SPLIT", inputs, shapes, dtype=[np.float32] * parts, num_splits=parts
        )
        self._signals.update(dict.fromkeys(results, self._signals[x]))
        return results

    def gate(self, x: int, gate: int) -> int:
        """Multiply by a tensor that is broadcast; the gates of a sample have the sum 1."""
        return self._emit("MUL", [x, gate], self.shape(x), self._signals[x])

    def any_positive(self, x: int) -> int:
        """Return whether an element is above zero: a bool without axes."""
        zero = self._maker.constant(np.float32(0))
        above = self._maker.op("GREATER", [x, zero], self.shape(x), dtype=np.bool_)
        axes = self._ints(list(range(len(self.shape(x)))))
        return self._maker.op("REDUCE_ANY", [above, axes], (), dtype=np.bool_, keep_dims=False)

    def only_if(
        self, condition: int, operands: Sequence[int], layers: Callable[[Net, list[int]], int]
    ) -> int:
        """Compute layers if a condition is true, otherwise give zeros of the same shape: an IF.

        ``layers`` gets a network, to which it adds them, and the operands there.
        """
        graphs, shape, result = [], (), Signal(1.0)
        for runs in (True, False):
            inner = copy.copy(self)
            inner._maker, inner._signals = self._maker.subgraph(), {}
            graphs.append(len(self._maker._subgraphs))
            inputs = [inner.input(f"x{i}", self.shape(x)) for i, x in enumerate(operands)]
            inner._signals.update(zip(inputs, (self._signals[x] for x in operands)))
            if runs:
                y = layers(inner, inputs)
                shape, result, self.macs = inner.shape(y), inner._signals[y], inner.macs
            else:
                y = inner._maker.constant(np.zeros(shape, np.float32))
            inner.output(y)
        first, second = graphs
        (y,) = self._maker.op(
            "IF", [condition, *operands], [shape], dtype=[np.float32],
            then_subgraph_index=first, else_subgraph_index=second,
        )  # fmt: skip
        self._signals[y] = result
        return y

    def multiply(self, x: int, y: int) -> int:
        """Multiply two tensors of one shape."""
        power = self._signals[x].power * self._signals[y].power
        return self._emit("MUL", [x, y], self.shape(x), Signal(power))

    def sum(self, x: int, axis: int) -> int:
        """Add along an axis, which stays with one element."""
        shape = tuple(1 if i == axis else size for i, size in enumerate(self.shape(x)))
        return self._emit("SUM", [x, self._ints([axis])], shape, self._signals[x], keep_dims=True)

    def silu(self, x: int) -> int:
        """Multiply each number by its logistic function."""
        return self.multiply(x, self.activate(x, "LOGISTIC"))

    def stack(self, count: int, units: int, depth: int, x: int) -> np.ndarray:
        """Draw ``count`` matrices ``(units, depth)`` that keep the power of ``x``."""
        return self._normal((count, units, depth), math.sqrt(1 / (depth * self._signals[x].power)))

    def product(self, x: int, matrix: np.ndarray) -> int:
        """Multiply ``(n, depth)`` by a matrix ``(units, depth)``, without a bias."""
        n = self.shape(x)[0]
        self.macs += n * matrix.size
        inputs = [x, self.weights(matrix), None]
        return self._emit("FULLY_CONNECTED", inputs, (n, len(matrix)), Signal(1.0))

    def gathered_product(self, x: int, stack: int, indices: int) -> int:
        """Multiply ``(n, 1 or k, 1, depth)`` by the matrices that ``indices`` ``(n, k)`` chooses.

        ``stack`` is a tensor ``(count, units, depth)``; the result is ``(n, k, 1, units)``.
        """
        (n, k), (_, units, depth) = self.shape(indices), self.shape(stack)
        self.macs += n * k * units * depth
        chosen = self._emit(
            "GATHER", [stack, indices], (n, k, units, depth), Signal(1 / depth), axis=0
        )
        return self._emit("BATCH_MATMUL", [x, chosen], (n, k, 1, units), Signal(1.0), adj_y=True)

    # ------------------------------------------------------------------ plumbing

    def weights(self, values: npt.ArrayLike) -> int:
        """Add constants, stored as the network's options say, and return them as float32."""
        array = np.asarray(values, np.float32)
        self.drawn.append(array)
        if not self._float16_weights:
            return self._maker.constant(array)
        stored = self._maker.constant(array.astype(np.float16))
        return self._maker.op("DEQUANTIZE", [stored], array.shape, dtype=np.float32)

    def _filters(
        self,
        shape: tuple[int, ...],
        fan_in: int,
        x: int,
        gain: float,
        axes: tuple[int, ...] = (),
    ) -> int:
        """Draw weights that turn ``x`` into a signal of power ``gain``.

        ``axes`` are those that one output sums over; left empty, the filters are not centred.
        """
        power, common = self._signals[x]
        lost = (1 - (1 - _CENTERED) ** 2) * common if axes else 0.0
        std = math.sqrt(gain / (fan_in * power * (1 - lost)))
        values = self._normal(shape, std)
        if lost:
            values -= _CENTERED * values.mean(axis=axes, keepdims=True)
        return self.weights(values)

    def _bias(self, channels: int, gain: float) -> int:
        return self.weights(self._normal((channels,), _BIAS_SCALE * math.sqrt(gain)))

    def _normal(self, shape: tuple[int, ...], std: float = 1.0) -> np.ndarray:
        values = self._random.standard_normal(shape, np.float32)
        values *= np.float32(std)
        return values

    def _ints(self, values: Any) -> int:
        return self._maker.constant(np.array(values, np.int32))

    def _pool(self, op: str, x: int, size: int, stride: int, padding: str, signal: Signal) -> int:
        n, h, w, c = self.shape(x)
        oh, ow = (_extent(extent, size, stride, padding) for extent in (h, w))
        return self._emit(
            op, [x], (n, oh, ow, c), signal, padding=padding, stride_h=stride, stride_w=stride,
            filter_height=size, filter_width=size,
        )  # fmt: skip

    def _fusing(
        self,
        op: str,
        inputs: Sequence[int],
        shape: tuple[int, ...],
        gain: float,
        activation: str | None,
        **options: Any,
    ) -> int:
        """Add an op and its activation, in one node where the runtimes can."""
        if activation is None or activation in FUSED:
            fused = activation or "NONE"
            signal = Signal(gain).after(activation)
            return self._emit(op, inputs, shape, signal, fused_activation_function=fused, **options)
        return self.activate(self._emit(op, inputs, shape, Signal(gain), **options), activation)

    def _emit(
        self,
        op: str,
        inputs: Sequence[int | None],
        shape: tuple[int, ...],
        signal: Signal,
        **options: Any,
    ) -> int:
        y = self._maker.op(op, inputs, shape, dtype=np.float32, **options)
        self._signals[y] = signal
        return y


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def _extent(size: int, kernel: int, stride: int, padding: str = "SAME") -> int:
    """Return the extent of the output of a window over ``size`` pixels."""
    return -(-size // stride) if padding == "SAME" else (size - kernel) // stride + 1
