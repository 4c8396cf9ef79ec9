"""Every family with this ability writes its result into a slice of another tensor, and only there.

The slice is a part of a concatenation. The adjacent parts are written before, so that they show
what a kernel writes outside of its slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.ops.harness import check, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import assert_close

IMAGE = (1, 9, 10, 8)
# Channels before and after the slice: its start and the distance of its pixels are multiples of 1,
# 4 and 8 elements, if its number of channels is such a multiple.
AROUND = [(3, 2), (4, 8), (8, 16)]


class Maker(ModelMaker):
    """Layers of random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(7)
        self.separable = False

    def draw(self, *shape: int) -> np.ndarray:
        return half_exact(self.rng.uniform(-1, 1, shape).astype(np.float32))

    def constants(self, *shapes: tuple[int, ...]) -> list[int]:
        return [self.constant(self.draw(*shape)) for shape in shapes]

    def windows(self, op: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> int:
        options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, **options}
        return self.op(op, inputs, shape, dtype=np.float32, **options)

    def conv(self, x: int, channels: int, size: int = 3, groups: int = 1, act: str = "NONE") -> int:
        *pixels, depth = self.shape(x)
        constants = self.constants((channels, size, size, depth // groups), (channels,))
        shape = (*pixels, channels)
        return self.windows("CONV_2D", [x, *constants], shape, fused_activation_function=act)

    def depthwise(self, x: int, multiplier: int = 1) -> int:
        *pixels, depth = self.shape(x)
        constants = self.constants((1, 3, 3, depth * multiplier), (depth * multiplier,))
        shape = (*pixels, depth * multiplier)
        return self.windows(
            "DEPTHWISE_CONV_2D", [x, *constants], shape, depth_multiplier=multiplier
        )

    def separable_conv(self, x: int, channels: int) -> int:
        self.separable = True
        return self.conv(self.depthwise(x), channels, 1)

    def transpose_conv(self, x: int, channels: int, stride: int = 1) -> int:
        n, height, width, depth = self.shape(x)
        shape = (n, height * stride, width * stride, channels)
        size, weights = self.constant(np.array(shape, np.int32)), (channels, 3, 3, depth)
        inputs = [size, *self.constants(weights), x]
        return self.windows("TRANSPOSE_CONV", inputs, shape, stride_h=stride, stride_w=stride)

    def dense(self, x: int, channels: int) -> int:
        *pixels, depth = self.shape(x)
        inputs = [x, *self.constants((channels, depth), (channels,))]
        shape = (*pixels, channels)
        return self.op("FULLY_CONNECTED", inputs, shape, keep_num_dims=True, version=5)

    def resize(self, x: int, name: str) -> int:
        inputs = [x, self.constant(np.array((13, 7), np.int32))]
        return self.op(name, inputs, (1, 13, 7, IMAGE[3]))

    def pad(self, x: int, name: str = "PAD", **options: str) -> int:
        paddings = np.array([[0, 0], [1, 2], [3, 0], [0, 0]], np.int32)
        return self.op(name, [x, self.constant(paddings)], (1, 12, 13, IMAGE[3]), **options)

    def pool(self, x: int, name: str, size: int) -> int:
        return self.windows(name, [x], self.shape(x), filter_height=size, filter_width=size)

    def concat(self, parts: Sequence[int], axis: int = 3) -> int:
        shape = list(self.shape(parts[0]))
        shape[axis] = sum(self.shape(part)[axis] for part in parts)
        return self.op("CONCATENATION", parts, tuple(shape), axis=axis)


Layer = Callable[[Maker, int], int]

ADDING: dict[str, Layer] = {  # those that can add something to their result
    "conv2d": lambda m, x: m.conv(x, 16),
    "conv2d_5x5": lambda m, x: m.conv(x, 12, 5, groups=2),
    "depthwise_conv2d": lambda m, x: m.depthwise(x),
    "separable_conv2d": lambda m, x: m.separable_conv(x, 12),
    "transpose_conv": lambda m, x: m.transpose_conv(x, 5),
    "fully_connected": lambda m, x: m.dense(x, 16),
}
LAYERS: dict[str, Layer] = {
    **ADDING,
    "conv2d_odd": lambda m, x: m.conv(x, 7),
    "conv2d_1x1": lambda m, x: m.conv(x, 20, 1),
    "depthwise_conv2d_by_2": lambda m, x: m.depthwise(x, 2),
    "separable_conv2d_odd": lambda m, x: m.separable_conv(x, 7),
    "transpose_conv_strided": lambda m, x: m.transpose_conv(x, 8, 2),
    "fully_connected_odd": lambda m, x: m.dense(x, 7),
    "pool": lambda m, x: m.pool(x, "MAX_POOL_2D", 2),
    "pool_large": lambda m, x: m.pool(x, "AVERAGE_POOL_2D", 7),
    "resize_bilinear": lambda m, x: m.resize(x, "RESIZE_BILINEAR"),
    "resize_nearest": lambda m, x: m.resize(x, "RESIZE_NEAREST_NEIGHBOR"),
    "pad": lambda m, x: m.pad(x),
    "pad_mirror": lambda m, x: m.pad(x, "MIRROR_PAD", mode="REFLECT"),
    "unary": lambda m, x: m.op("TANH", [x], IMAGE),
    "binary": lambda m, x: m.op("MUL", [x, *m.constants(IMAGE)], IMAGE),
    "binary_of_channels": lambda m, x: m.op("MUL", [x, *m.constants(IMAGE[3:])], IMAGE),
    "add": lambda m, x: m.op("ADD", [x, *m.constants(IMAGE)], IMAGE),
    "concatenation": lambda m, x: m.concat([x, *m.constants((*IMAGE[:3], 4))]),
}
# Nodes that a pass makes: guaranteed only on request.
SEPARABLE = [
    {"separable_conv2d": engine} for engine in ("naive", "separate", "fused_32x32", "fused_16x32")
]
if not needs.allows(128, "separable_conv2d_fused"):
    del SEPARABLE[2:]


def shape_of(layer: Layer) -> tuple[int, ...]:
    m = Maker()
    return tuple(m.shape(layer(m, m.input("x", IMAGE))))


def finish(m: Maker, result: int) -> None:
    """Make this the result, and something so large that it does not matter what else is alive."""
    height = m.shape(result)[1]
    paddings = m.constant(np.array([[0, 0], [height, height], [0, 0], [0, 0]], np.int32))
    large = m.op("PAD", [result, paddings], (1, 3 * height, *m.shape(result)[2:]))
    m.output(result, large)


def check_in_place(
    m: Maker, inputs: Sequence[int], result: int, device: str, precision: str
) -> None:
    """Check a model of this result, which a concatenation is to make without copies."""
    finish(m, result)
    model, values = m.build(), [m.draw(*m.shape(tensor)) for tensor in inputs]
    check(model, values, None, accumulation=200, device=device, precision=precision)
    want = run_reference(model, values, op_runtime())
    for engines in SEPARABLE if m.separable else [{}]:
        # Memory is shared here: the addend of a slice must not be taken for its place.
        delegate = clgpu_delegate.load(device=device, precision=precision, engines=engines)
        interpreter = make_interpreter(op_runtime(), model, [delegate])
        got = run_interpreter(interpreter, values)
        nodes = [node for node in delegate.explain().nodes if node.op == "CONCATENATION"]
        assert nodes[-1].candidate == "in_place"
        assert_close(got[0], want[0], precision, 200, f"with {engines}")


@pytest.mark.parametrize("around", AROUND, ids=str)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_channels_between_others(layer, around, device, precision):
    m = Maker()
    inputs = [m.input("x", IMAGE)]
    for i, channels in enumerate(around):
        inputs.append(m.input(f"beside{i}", (*shape_of(layer)[:3], channels)))
    before, behind = (m.op("NEG", [x], m.shape(x)) for x in inputs[1:])
    result = m.concat([before, layer(m, inputs[0]), behind])
    check_in_place(m, inputs, result, device, precision)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_rows_between_others(layer, device, precision):
    m = Maker()
    _, _, width, channels = shape_of(layer)
    inputs = [m.input("x", IMAGE)]
    for i, rows in enumerate((2, 1)):
        inputs.append(m.input(f"beside{i}", (1, rows, width, channels)))
    above, below = (m.op("NEG", [x], m.shape(x)) for x in inputs[1:])
    result = m.concat([above, layer(m, inputs[0]), below], axis=1)
    check_in_place(m, inputs, result, device, precision)


@pytest.mark.parametrize("after", [False, True], ids=["act(sum)", "act + sum"])
@pytest.mark.parametrize("layer", ADDING.values(), ids=ADDING)
def test_something_is_added_to_a_slice(layer, after, device, precision):
    m, around = Maker(), AROUND[0 if after else 2]
    x = m.input("x", IMAGE)
    act = "RELU" if after else "NONE"
    before, behind = (m.conv(x, channels, 1, act=act) for channels in around)
    middle = layer(m, x)
    if after:
        middle = m.op("RELU", [middle], m.shape(middle))
    whole = m.concat([before, middle, behind])
    addend = m.input("addend", m.shape(whole))
    act = "NONE" if after else "RELU6"
    result = m.op("ADD", [whole, addend], m.shape(whole), fused_activation_function=act)
    check_in_place(m, [x, addend], result, device, precision)


def test_tuning_measures_candidates_by_their_slice(device):
    m = Maker()
    inputs = [m.input("x", IMAGE), m.input("beside", IMAGE)]
    parts = [m.op("NEG", inputs[1:], IMAGE), m.conv(inputs[0], 16)]
    finish(m, m.concat(parts))
    model, values = m.build(), [m.draw(*IMAGE) for _ in inputs]
    delegate = clgpu_delegate.load(device=device, tuning="exhaustive", cache="off")
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    got = run_interpreter(interpreter, values)
    nodes = {node.op: node for node in delegate.explain().nodes}
    assert nodes["CONCATENATION"].candidate == "in_place"
    assert not [why for why in nodes["CONV_2D"].refused.values() if "wrong numbers" in why]
    assert_close(got[0], run_reference(model, values, op_runtime())[0], "fp32", 200, "tuned")
