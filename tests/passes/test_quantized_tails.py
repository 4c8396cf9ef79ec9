"""Additions move into the preceding node of integers; results still equal the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.models.comparison import run_delegated
from tests.ops.harness import op_runtime
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)


class Maker:
    """Layers of integers that keep the shape of what they read, on a `ModelMaker`."""

    def __init__(self, dtype: Any, rng: np.random.Generator, channels: int = 16) -> None:
        self.m = ModelMaker()
        self.channels, self.shape = channels, (1, 5, 6, channels)
        self.dtype, self.rng = dtype, rng
        self.quantizations: dict[int, Any] = {}

    def input(self) -> int:
        quantization = random_quantization(self.rng, self.dtype)
        x = self.m.input("x", self.shape, self.dtype, quantization=quantization)
        self.quantizations[x] = quantization
        return x

    def product(self, op: str, x: int, activation: str = "NONE") -> int:
        n = self.channels
        shapes = {
            "CONV_2D": (n, 3, 3, n),
            "DEPTHWISE_CONV_2D": (1, 3, 3, n),
            "TRANSPOSE_CONV": (n, 3, 3, n),
            "FULLY_CONNECTED": (n, n),
        }
        options = {
            "CONV_2D": {"padding": "SAME", "stride_w": 1, "stride_h": 1},
            "DEPTHWISE_CONV_2D": {
                "padding": "SAME",
                "stride_w": 1,
                "stride_h": 1,
                "depth_multiplier": 1,
            },
            "TRANSPOSE_CONV": {"padding": "SAME", "stride_w": 1, "stride_h": 1, "version": 3},
            "FULLY_CONNECTED": {"keep_num_dims": True, "version": 5},
        }
        src = self.quantizations[x]
        wide = np.uint8 if self.dtype == np.uint8 else np.int8
        weights = weights_quantization(self.rng, wide, n, 0, per_channel=False)
        values = random_integers(self.rng, shapes[op], wide)
        w = self.m.constant(
            np.maximum(values, -127) if wide == np.int8 else values, quantization=weights
        )
        bias = add_bias(self.m, self.rng, self.dtype, src, weights, n)
        depth = int(np.prod(shapes[op][1:])) // (n if op == "DEPTHWISE_CONV_2D" else 1)
        dst = output_quantization(self.rng, self.dtype, src, weights, depth)
        inputs = [x, w, bias]
        if op == "TRANSPOSE_CONV":
            inputs = [self.m.constant(np.array(self.shape, np.int32)), w, x, bias]
        y = self.m.op(
            op,
            inputs,
            self.shape,
            dtype=self.dtype,
            quantization=dst,
            fused_activation_function=activation,
            **options[op],
        )
        self.quantizations[y] = dst
        return y

    def add(self, a: int, b: int, activation: str = "NONE") -> int:
        quantization = self.quantizations[a]._replace(
            scales=float(np.float32(self.quantizations[a].scales * 1.3))
        )
        y = self.m.op(
            "ADD",
            [a, b],
            self.shape,
            fused_activation_function=activation,
            quantization=quantization,
        )
        self.quantizations[y] = quantization
        return y

    def check(self, result: int, fused: list[bool], device: str) -> None:
        self.m.output(result)
        model = self.m.build()
        x = random_integers(self.rng, self.shape, self.dtype)
        nodes = run_delegated(op_runtime(), model, [x], device=device, warm_up=False)[1]["nodes"]
        assert [n["fused_into"] is not None for n in nodes] == fused
        check_exact(model, [x], device=device)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize(
    "op", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"]
)
def test_addition_is_made_of_the_rounded_product(op, dtype, device, rng):
    maker = Maker(dtype, rng)
    x = maker.input()
    y = maker.product(op, x)
    maker.check(maker.add(y, x, "RELU"), [False, True], device)


def test_bounds_before_the_addition_stay(device, rng):
    maker = Maker(np.int8, rng)
    x = maker.input()
    y = maker.product("CONV_2D", x, "RELU6")
    maker.check(maker.add(x, y), [False, True], device)


def test_addition_of_two_products(device, rng):
    maker = Maker(np.int8, rng)
    x = maker.input()
    a, b = maker.product("CONV_2D", x), maker.product("DEPTHWISE_CONV_2D", x)
    maker.check(maker.add(a, b), [False, False, True], device)


@pytest.mark.parametrize("op", ["CONV_2D", "FULLY_CONNECTED"])
def test_channels_that_fill_no_vector(op, device, rng):
    maker = Maker(np.int8, rng, channels=7)
    x = maker.input()
    maker.check(maker.add(maker.product(op, x), x), [False, True], device)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("order", ["product", "before_addition", "behind_addition"])
def test_function_becomes_a_table(order, dtype, device, rng):
    maker = Maker(dtype, rng)
    x = maker.input()
    y = maker.product("CONV_2D", x)
    if order == "behind_addition":
        y = maker.add(y, x)
    logistic = Quantization(1 / 256, -128 if dtype == np.int8 else 0)
    y = maker.m.op("LOGISTIC", [y], maker.shape, quantization=logistic)
    maker.quantizations[y] = logistic
    if order == "before_addition":
        y = maker.add(y, x)
    maker.check(y, [False, True] if order == "product" else [False, True, True], device)
