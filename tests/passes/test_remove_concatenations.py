"""Inputs of concatenations are written in place, or the readers become sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.models.comparison import run_delegated
from tests.ops.harness import check, half_exact

IMAGE = (2, 5, 6, 8)
IN_PLACE, ROWS = "in_place", "rows"  # candidates of a concatenation
SPLIT = {"engines": {"concatenation": "split|auto"}}


class Maker:
    """Layers of fixed sizes on a `ModelMaker`."""

    def __init__(self) -> None:
        self.m = ModelMaker()
        self.rng = np.random.default_rng(4)
        self.outputs: list[int] = []

    def input(self, shape: Sequence[int] = IMAGE) -> int:
        return self.m.input("x", tuple(shape))

    def constant(self, *shape: int) -> int:
        values = self.rng.standard_normal(shape) * 0.25
        return self.m.constant(half_exact(values.astype(np.float32)))

    def conv(self, x: int, channels: int = 5, activation: str = "NONE", **options: Any) -> int:
        size = options.pop("size", 3)
        weights = self.constant(channels, size, size, self.m.shape(x)[3])
        shape = (*self.m.shape(x)[:3], channels)
        return self.m.op(
            "CONV_2D", [x, weights, self.constant(channels)], shape, padding="SAME", stride_w=1,
            stride_h=1, fused_activation_function=activation,
        )  # fmt: skip

    def depthwise(self, x: int) -> int:
        channels = self.m.shape(x)[3]
        return self.m.op(
            "DEPTHWISE_CONV_2D", [x, self.constant(1, 3, 3, channels), self.constant(channels)],
            self.m.shape(x), padding="SAME", stride_w=1, stride_h=1, depth_multiplier=1,
        )  # fmt: skip

    def transpose_conv(self, x: int) -> int:
        shape = (*self.m.shape(x)[:3], 7)
        inputs = [self.m.constant(np.array(shape, np.int32))]
        inputs += [self.constant(7, 3, 3, self.m.shape(x)[3]), x, self.constant(7)]
        return self.m.op(
            "TRANSPOSE_CONV", inputs, shape, padding="SAME", stride_w=1, stride_h=1, version=3,
            dtype=np.float32,
        )  # fmt: skip

    def dense(self, x: int) -> int:
        weights, shape = self.constant(6, self.m.shape(x)[3]), (*self.m.shape(x)[:3], 6)
        inputs = [x, weights, self.constant(6)]
        return self.m.op("FULLY_CONNECTED", inputs, shape, keep_num_dims=True, version=5)

    def pool(self, x: int, op: str = "MAX_POOL_2D") -> int:
        return self.m.op(
            op, [x], self.m.shape(x), padding="SAME", stride_w=1, stride_h=1, filter_width=3,
            filter_height=3,
        )  # fmt: skip

    def negative(self, x: int) -> int:
        return self.m.op("NEG", [x], self.m.shape(x))

    def add(self, a: int, b: int, activation: str = "NONE") -> int:
        return self.m.op("ADD", [a, b], self.m.shape(a), fused_activation_function=activation)

    def double(self, x: int) -> int:
        return self.add(x, x)

    def reshape(self, x: int, *shape: int) -> int:
        return self.m.op("RESHAPE", [x, self.m.constant(np.array(shape, np.int32))], shape)

    def concat(self, *parts: int, axis: int = -1) -> int:
        shape = list(self.m.shape(parts[0]))
        shape[axis] = sum(self.m.shape(part)[axis] for part in parts)
        return self.m.op("CONCATENATION", list(parts), tuple(shape), axis=axis)

    def build(self, *outputs: int) -> bytes:
        self.m.output(*outputs)
        return self.m.build()


def nodes_of(model: bytes, inputs: Sequence[np.ndarray], **options: Any) -> list[dict[str, Any]]:
    return run_delegated("auto", model, inputs, **options)[1]["nodes"]


def kinds_of(model: bytes, inputs: Sequence[np.ndarray], **options: Any) -> list[str]:
    """How each concatenation of a model is computed."""
    nodes = nodes_of(model, inputs, **options)
    return [node["candidate"] for node in nodes if node["op"] in ("CONCATENATION", "PACK")]


def sample(rng: np.random.Generator, shape: Sequence[int] = IMAGE) -> np.ndarray:
    return half_exact(rng.standard_normal(tuple(shape)).astype(np.float32))


Layer = Callable[[Maker, int], int]
LAYERS: dict[str, Layer] = {
    "conv": Maker.conv,
    "depthwise": Maker.depthwise,
    "transpose_conv": Maker.transpose_conv,
    "dense": Maker.dense,
    "max_pool": Maker.pool,
    "average_pool": lambda m, x: m.pool(x, "AVERAGE_POOL_2D"),
    "unary": Maker.negative,
    "add": lambda m, x: m.add(x, m.constant(8)),
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_layers_write_their_part(layer, device, precision, rng):
    """And what lies between other nodes has the storage of the whole."""
    m = Maker()
    x = m.input()
    model = m.build(m.negative(m.concat(layer(m, x), m.conv(x, 3), layer(m, x))))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_many_parts_of_odd_and_even_widths(device, precision, rng):
    m = Maker()
    x = m.input()
    model = m.build(m.concat(*(m.conv(x, width, "RELU") for width in (1, 4, 16, 3, 8, 67))))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_large_parts_are_half_and_small_ones_follow(device, rng):
    """The whole is half as of 4096 elements, the smaller part alone would be float."""
    shape = (1, 16, 20, 8)
    m = Maker()
    x = m.input(shape)
    model = m.build(m.negative(m.concat(m.conv(x, 2), m.conv(x, 30))))
    inputs = [sample(rng, shape)]
    assert kinds_of(model, inputs, precision="fp16") == [IN_PLACE]
    check(model, inputs, None, device=device, precision="fp16", accumulation=73, half_io=False)


def test_parts_of_parts(device, precision, rng):
    m = Maker()
    x = m.input()
    inner = m.concat(m.conv(x, 3), m.concat(m.conv(x, 5), m.conv(x, 2)))
    model = m.build(m.concat(m.negative(x), inner, m.conv(x, 1)))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE] * 3
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_channels_inside_of_rows(device, precision, rng):
    """Of one image, rows of joined channels are a place, too; of two they are not."""
    for batch, kinds in ((1, [IN_PLACE] * 3), (2, [IN_PLACE, IN_PLACE, ROWS])):
        shape = (batch, 3, 4, 8)
        m = Maker()
        x = m.input(shape)
        upper = m.concat(m.conv(x, 3), m.conv(x, 5))
        lower = m.concat(m.conv(x, 6), m.conv(x, 2))
        model = m.build(m.concat(upper, lower, axis=1))
        inputs = [sample(rng, shape)]
        assert kinds_of(model, inputs) == kinds
        check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_rows_inside_of_channels(device, precision, rng):
    shape = (1, 3, 4, 8)
    m = Maker()
    x = m.input(shape)
    left = m.concat(m.conv(x, 5), m.conv(x, 5), axis=1)
    right = m.concat(m.conv(x, 2), m.conv(x, 2), axis=1)
    model = m.build(m.concat(left, right))
    inputs = [sample(rng, shape)]
    assert kinds_of(model, inputs) == [IN_PLACE] * 3
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_heads_of_a_detector(device, precision, rng):
    """Predictions of several scales, reshaped and concatenated."""
    for batch, kind in ((1, IN_PLACE), (2, ROWS)):
        shapes = [(batch, 4, 4, 8), (batch, 2, 2, 8)]
        m = Maker()
        boxes = []
        for i, shape in enumerate(shapes):
            anchors = shape[1] * shape[2] * 3
            head = m.conv(m.m.input(f"x{i}", shape), 12, "NONE")
            boxes.append(m.reshape(head, batch, anchors, 4))
        model = m.build(m.concat(*boxes, axis=1))
        inputs = [sample(rng, shape) for shape in shapes]
        assert kinds_of(model, inputs) == [kind]
        check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_pack_of_results(device, precision, rng):
    m = Maker()
    x = m.input()
    parts = [m.conv(x, 5), m.conv(x, 5)]
    model = m.build(m.m.op("PACK", parts, (2, *IMAGE[:3], 5), values_count=2, axis=0))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_view_of_the_whole(device, precision, rng):
    m = Maker()
    x = m.input()
    whole = m.concat(m.conv(x, 3), m.conv(x, 5))
    model = m.build(m.negative(m.reshape(whole, 60, 8)), m.negative(whole))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_addition_writes_its_part(device, precision, rng):
    m = Maker()
    x = m.input()
    model = m.build(m.concat(m.add(m.negative(x), x, "RELU"), m.conv(x, 13)))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [IN_PLACE]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


# What cannot be in place, and what stands beside it still is.
COPIED: dict[str, Callable[[Maker, int], Sequence[int]]] = {
    "graph_input": lambda _, x: [x],
    "constant": lambda m, _: [m.constant(*IMAGE[:3], 2)],
    "residual": lambda m, x: [m.add(m.conv(x, 8), x)],
}


@pytest.mark.parametrize("other", COPIED.values(), ids=COPIED)
def test_others_are_copied(other, device, precision, rng):
    m = Maker()
    x = m.input()
    model = m.build(m.concat(m.conv(x, 5), *other(m, x), m.conv(x, 2)))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [ROWS]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_part_that_is_an_output_or_has_another_reader_is_copied(device, precision, rng):
    m = Maker()
    x = m.input()
    output, shared = m.conv(x, 3), m.conv(x, 8)
    model = m.build(output, m.concat(output, shared, m.conv(x, 2)), m.negative(shared))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [ROWS]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_twice_the_same_part_and_a_part_of_two(device, precision, rng):
    m = Maker()
    x = m.input()
    part = m.conv(x, 3)
    twice = m.concat(part, part)
    other = m.conv(x, 5)
    model = m.build(twice, m.concat(other, m.conv(x, 1)), m.concat(m.conv(x, 2), other))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [ROWS] * 3
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_part_of_early_days_is_copied(device, precision, rng):
    """In place it would keep the memory of the whole busy through the widest layers."""
    m = Maker()
    x = m.input()
    early = m.conv(x, 4)
    wide = m.conv(m.conv(m.conv(x, 40), 40), 3)
    model = m.build(m.concat(early, m.conv(wide, 28)))
    inputs = [sample(rng)]
    assert kinds_of(model, inputs) == [ROWS]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_other_sizes_after_loading(device, rng):
    """Two images instead of one: rows cannot be written in place any more."""
    m = Maker()
    x = m.input((1, 3, 4, 8))
    channels = m.concat(m.conv(x, 3), m.conv(x, 5))
    model = m.build(m.concat(channels, m.conv(x, 8), axis=1))
    larger = (2, 5, 3, 8)
    check(
        model, [sample(rng, larger)], None, device=device, precision="fp32", accumulation=73,
        resize={0: larger},
    )  # fmt: skip


@pytest.mark.parametrize("activations", [("NONE", "NONE"), ("RELU", "NONE"), ("NONE", "RELU6")])
def test_addition_moves_before_the_concatenation(activations, device, precision, rng):
    before, behind = activations
    m = Maker()
    x = m.input()
    whole = m.concat(m.conv(x, 3, before), m.conv(x, 5, before))
    model = m.build(m.negative(m.add(whole, x, behind)))
    inputs = [sample(rng)]
    nodes = nodes_of(model, inputs)
    assert nodes[2]["candidate"] == IN_PLACE
    assert nodes[3]["reason"] == "fused into node 1"
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_addition_in_a_row(device, precision, rng):
    """The sum is read by the next layers and added again."""
    m = Maker()
    x = m.input()
    for _ in range(3):
        x = m.add(m.concat(m.conv(x, 3, "RELU6"), m.conv(x, 5)), x)
    model = m.build(x)
    inputs = [sample(rng)]
    nodes = nodes_of(model, inputs)
    assert [node["reason"] for node in nodes[3::4]] == [f"fused into node {i}" for i in (1, 5, 9)]
    check(model, inputs, None, device=device, precision=precision, accumulation=2000)


STAYING: dict[str, Callable[[Maker, int], int]] = {
    "two_activations": lambda m, x: m.add(m.concat(m.conv(x, 3, "RELU"), m.conv(x)), x, "RELU"),
    "pooling": lambda m, x: m.add(m.concat(m.conv(x, 3, "RELU"), m.pool(m.conv(x))), x),
    "copied": lambda m, x: m.add(m.concat(m.m.op("SOFTMAX", [x], IMAGE, beta=1.0)), x),
    "broadcast": lambda m, x: m.add(m.concat(m.conv(x, 3), m.conv(x)), m.constant(8)),
    "itself": lambda m, x: m.double(m.concat(m.conv(x, 3), m.conv(x))),
    "late": lambda m, x: m.add(m.concat(m.conv(x, 3), m.conv(x)), m.pool(m.negative(x))),
    "part": lambda m, x: m.concat(m.add(m.concat(m.conv(x, 3), m.conv(x)), x), m.conv(x)),
}


@pytest.mark.parametrize("sums", STAYING.values(), ids=STAYING)
def test_addition_stays(sums, device, precision, rng):
    m = Maker()
    model = m.build(sums(m, m.input()))
    inputs = [sample(rng)]
    nodes = nodes_of(model, inputs)
    assert not any(node["fused_into"] is not None for node in nodes if node["op"] == "ADD")
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_whole_that_others_read_stays(device, precision, rng):
    m = Maker()
    x = m.input()
    whole = m.concat(m.conv(x, 3), m.conv(x))
    model = m.build(m.add(whole, x), m.negative(whole))
    inputs = [sample(rng)]
    assert nodes_of(model, inputs)[3]["candidate"]
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_convolutions_of_a_skip_connection_are_split(device, precision, rng):
    m = Maker()
    x = m.input()
    skip = m.conv(x, 7, "RELU")
    up = m.conv(m.pool(skip), 5)
    whole = m.concat(skip, up)
    model = m.build(m.conv(whole, 6, "RELU"), m.conv(whole, 9, "RELU6", size=5))
    inputs = [sample(rng)]
    nodes = nodes_of(model, inputs, **SPLIT)
    assert nodes[3]["reason"] == "fused into node 5"
    check(model, inputs, None, device=device, precision=precision, accumulation=600, **SPLIT)


def test_split_keeps_what_is_in_place(device, precision, rng):
    """Of five inputs, two of them inside of another concatenation, three are in place."""
    m = Maker()
    x = m.input()
    skip = m.conv(x, 7, "RELU")
    early = m.pool(skip)
    inner = m.concat(m.conv(early, 2), m.depthwise(early), skip)
    whole = m.concat(early, inner, m.conv(early, 4))
    model = m.build(m.conv(whole, 6, "RELU"))
    inputs = [sample(rng)]
    nodes = nodes_of(model, inputs, **SPLIT)
    assert nodes[4]["reason"] == "fused into node 6"
    assert nodes[6]["candidate"] == IN_PLACE
    check(model, inputs, None, device=device, precision=precision, accumulation=600, **SPLIT)


def test_split_convolution_with_an_addend(device, precision, rng):
    m = Maker()
    x = m.input()
    skip = m.conv(x, 7)
    whole = m.concat(skip, m.negative(skip))
    model = m.build(m.negative(m.add(m.conv(whole, 8), x, "RELU")))
    inputs = [sample(rng)]
    assert nodes_of(model, inputs, **SPLIT)[2]["fused_into"] is not None
    check(model, inputs, None, device=device, precision=precision, accumulation=200, **SPLIT)


def test_split_of_half_weights(device, precision, rng):
    m = Maker()
    x = m.input()
    skip = m.negative(x)
    whole = m.concat(skip, m.pool(skip))
    half = m.m.constant(rng.standard_normal((6, 3, 3, 16)).astype(np.float16))
    weights = m.m.op("DEQUANTIZE", [half], (6, 3, 3, 16), dtype=np.float32)
    model = m.build(
        m.m.op("CONV_2D", [whole, weights, m.constant(6)], (*IMAGE[:3], 6), padding="SAME",
               stride_w=1, stride_h=1)
    )  # fmt: skip
    inputs = [sample(rng)]
    assert nodes_of(model, inputs, **SPLIT)[2]["fused_into"] is not None
    check(model, inputs, None, device=device, precision=precision, accumulation=200, **SPLIT)


NOT_SPLIT: dict[str, Callable[[Maker, int], list[int]]] = {
    "another_reader": lambda m, y: [m.conv(y), m.negative(y)],
    "output": lambda m, y: [m.conv(y), y],
    "addend": lambda m, y: [m.add(m.conv(y, 16), y)],
    "depthwise": lambda m, y: [m.depthwise(y)],
    "part": lambda m, y: [m.concat(m.conv(y, 3), m.conv(y, 4))],
}


@pytest.mark.parametrize("readers", NOT_SPLIT.values(), ids=NOT_SPLIT)
def test_other_readers_need_the_whole(readers, device, precision, rng):
    m = Maker()
    x = m.input()
    skip = m.negative(x)
    model = m.build(*readers(m, m.concat(skip, m.pool(skip))))
    inputs = [sample(rng)]
    assert nodes_of(model, inputs, **SPLIT)[2]["candidate"] == ROWS
    check(model, inputs, None, device=device, precision=precision, accumulation=200, **SPLIT)


def test_everything_can_be_copied(device, precision, rng):
    m = Maker()
    x = m.input()
    model = m.build(m.add(m.concat(m.conv(x, 3), m.conv(x)), x))
    inputs = [sample(rng)]
    engines = {"concatenation": ROWS}
    assert kinds_of(model, inputs, engines=engines) == [ROWS]
    check(model, inputs, None, device=device, precision=precision, accumulation=73, engines=engines)
