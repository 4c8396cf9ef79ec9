"""Squeeze-and-excitation: one node, made of the operations that converters write."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check, half_exact
from tests.runtimes import make_interpreter, run_interpreter


class Case(NamedTuple):
    """Sizes meet the edges of vectors, chunks, lanes and work-groups."""

    image: tuple[int, int, int, int]
    hidden: int = 8
    pool: bool = False
    dense: bool = False
    hidden_act: str = "RELU"
    gate: str = "LOGISTIC"
    biases: bool = True
    activation: str = ""
    residual: bool = False
    addend: bool = False
    second: bool = True
    gate_first: bool = False


CASES = {
    "mean": Case((1, 9, 7, 16)),
    "pool": Case((1, 6, 5, 24), pool=True),
    "odd": Case((2, 5, 3, 7), hidden=3),
    "dense": Case((1, 4, 6, 32), dense=True, hidden=12),
    "dense_batch": Case((3, 4, 6, 20), dense=True, hidden=5),
    "batch": Case((3, 8, 8, 12), pool=True, gate_first=True),
    "swish": Case((1, 7, 7, 48), hidden=4, hidden_act="SWISH"),
    "hard": Case((1, 7, 7, 40), hidden=16, gate="HARD"),
    "hard_divided": Case((1, 7, 7, 16), hidden=6, gate="HARD_DIV"),
    "hard_apart": Case((1, 3, 7, 16), hidden=6, gate="HARD_APART"),
    "hard_swish": Case((2, 5, 5, 8), hidden_act="HARD_SWISH", gate="TANH"),
    "plain": Case((1, 3, 3, 4), hidden=4, biases=False, hidden_act="", dense=True),
    "activation": Case((1, 9, 7, 16), activation="LEAKY_RELU"),
    "residual": Case((1, 9, 7, 16), residual=True),
    "residual_batch": Case((2, 5, 3, 6), residual=True, activation="RELU"),
    "addend": Case((1, 12, 9, 24), addend=True, residual=True),
    "addend_odd": Case((2, 3, 5, 5), addend=True),
    "one_product": Case((1, 6, 5, 16), second=False),
    "one_product_dense": Case((1, 6, 5, 12), second=False, dense=True),
    "large": Case((1, 33, 29, 72), hidden=24, pool=True),
    "one_pixel": Case((1, 1, 1, 16)),
    "many_channels": Case((1, 3, 2, 400), hidden=20),
}


class Model:
    """The nodes of a case, and what they compute in float64."""

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self.case, self.m = case, ModelMaker()
        self.inputs: list[np.ndarray] = []
        self.rng = rng
        self.accumulation = int(np.prod(case.image[1:3])) + case.image[3] + case.hidden
        x, xv = self.tensor("x")
        source, sv = x, xv
        if case.addend:
            other, ov = self.tensor("other")
            source, sv = self.m.op("ADD", [x, other], case.image), xv + ov
        n, h, w, c = case.image
        sizes = (n, c) if case.dense else (n, 1, 1, c)
        if case.pool:
            sizes = (n, 1, 1, c)
            mean = self.m.op(
                "AVERAGE_POOL_2D", [source], sizes, filter_height=h, filter_width=w,
                stride_h=h, stride_w=w, padding="VALID",
            )  # fmt: skip
        else:
            axes = self.m.constant(np.array([1, 2], np.int32))
            mean = self.m.op("MEAN", [source, axes], sizes, keep_dims=not case.dense)
        value = sv.mean((1, 2))
        if case.second:
            mean, value = self.product(mean, value, case.hidden, case.hidden_act)
        gate, value = self.product(mean, value, c, case.gate)
        if case.dense:
            shape = self.m.constant(np.array([n, 1, 1, c], np.int32))
            gate = self.m.op("RESHAPE", [gate, shape], (n, 1, 1, c))
        value = value.reshape(n, 1, 1, c) * xv
        y = self.m.op("MUL", [gate, x] if case.gate_first else [x, gate], case.image)
        if case.residual:
            residual, rv = self.tensor("residual")
            y, value = self.m.op("ADD", [y, residual], case.image), value + rv
        if case.activation:
            y, value = self.activation(y, value, case.activation)
        self.m.output(y)
        self.want = value

    def tensor(self, name: str) -> tuple[int, np.ndarray]:
        value = half_exact(self.rng.standard_normal(self.case.image).astype(np.float32) + 0.3)
        self.inputs.append(value)
        return self.m.input(name, self.case.image), value.astype(np.float64)

    def product(
        self, x: int, value: np.ndarray, channels: int, activation: str
    ) -> tuple[int, np.ndarray]:
        depth = value.shape[-1]
        draw = self.rng.standard_normal((channels, depth)) / np.sqrt(depth)
        weights = half_exact(draw.astype(np.float32))
        bias = half_exact(self.rng.standard_normal(channels).astype(np.float32))
        shape = (*self.m.shape(x)[:-1], channels)
        operands = [x, self.m.constant(weights if self.case.dense else weights[:, None, None, :])]
        if self.case.biases:
            operands.append(self.m.constant(bias))
        if self.case.dense:
            y = self.m.op("FULLY_CONNECTED", operands, shape)
        else:
            y = self.m.op("CONV_2D", operands, shape, padding="SAME", stride_h=1, stride_w=1)
        value = value @ weights.astype(np.float64).T + (bias if self.case.biases else 0)
        return self.activation(y, value, activation)

    def op(self, kind: str, *operands: int, **options: Any) -> int:
        shapes = [self.m.shape(operand) for operand in operands]
        return self.m.op(kind, operands, np.broadcast_shapes(*shapes), **options)

    def number(self, value: float) -> int:
        return self.m.constant(np.array(value, np.float32))

    def hard_sigmoid(self, x: int, name: str) -> int:
        """Relu6(x + 3) / 6, as converters spell it."""
        if name == "HARD":
            y = self.op("ADD", x, self.number(3), fused_activation_function="RELU6")
            return self.op("MUL", y, self.number(1 / 6))
        if name == "HARD_DIV":
            y = self.op("ADD", self.number(3), x, fused_activation_function="RELU6")
            return self.op("DIV", y, self.number(6))
        return self.op(
            "MUL", self.number(1 / 6), self.op("RELU6", self.op("ADD", x, self.number(3)))
        )

    def activation(self, x: int, value: np.ndarray, name: str) -> tuple[int, np.ndarray]:
        hard = np.clip(value + 3, 0, 6) / 6
        if name.startswith("HARD") and name != "HARD_SWISH":
            return self.hard_sigmoid(x, name), hard
        values: dict[str, Any] = {
            "": value,
            "RELU": np.maximum(value, 0),
            "LEAKY_RELU": np.where(value > 0, value, np.float32(0.2) * value),
            "LOGISTIC": 1 / (1 + np.exp(-value)),
            "TANH": np.tanh(value),
            "SWISH": value / (1 + np.exp(-value)),
            "HARD_SWISH": value * hard,
        }
        if name == "SWISH":
            x = self.op("MUL", x, self.op("LOGISTIC", x))
        elif name:
            x = self.op(name, x, **({"alpha": 0.2} if name == "LEAKY_RELU" else {}))
        return x, values[name]

    def build(self) -> bytes:
        return self.m.build()


def launches_of(model: bytes, **options: Any) -> int:
    delegate = clgpu_delegate.load(warm_up=False, **options)
    make_interpreter("auto", model, [delegate]).allocate_tensors()
    explanation = delegate.explain()
    assert explanation.claimed == explanation.total
    return explanation.partitions[0].launches


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_candidate(case, device, precision, rng):
    model = Model(case, rng)
    assert launches_of(model.build(), device=device) == 2
    check(
        model.build(), model.inputs, [model.want], device=device, precision=precision,
        accumulation=model.accumulation,
    )  # fmt: skip


@pytest.mark.parametrize("case", ["hard", "hard_divided", "mean"])
def test_nan_in_the_image_is_in_all_of_it(case, device, rng):
    """Its channel's mean, so all gates; a bound of a gate does not hide it."""
    model = Model(CASES[case], rng)
    model.inputs[0][0, 2, 3, 1] = np.nan
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter("auto", model.build(), [delegate], resolver="no_delegate")
    (got,) = run_interpreter(interpreter, model.inputs)
    assert delegate.explain().partitions[0].launches == 2
    assert np.isnan(got).all()


def test_gate_of_one_image_multiplies_another(device, precision, rng):
    m = ModelMaker()
    a, b = m.input("a", (1, 6, 5, 12)), m.input("b", (1, 4, 9, 20))
    axes = m.constant(np.array([1, 2], np.int32))
    mean = m.op("MEAN", [a, axes], (1, 1, 1, 12), keep_dims=True)
    weights = half_exact(rng.standard_normal((20, 1, 1, 12)).astype(np.float32))
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    bias = m.constant(np.zeros(20, np.float32))
    gate = m.op("CONV_2D", [mean, m.constant(weights), bias], (1, 1, 1, 20), **options)
    m.output(m.op("MUL", [m.op("LOGISTIC", [gate], (1, 1, 1, 20)), b], (1, 4, 9, 20)))
    assert launches_of(m.build(), device=device) == 2
    inputs = [half_exact(rng.standard_normal(s).astype(np.float32)) for s in
              ((1, 6, 5, 12), (1, 4, 9, 20))]  # fmt: skip
    x, y = (i.astype(np.float64) for i in inputs)
    want = (
        y / (1 + np.exp(-(x.mean((1, 2)) @ weights[:, 0, 0].astype(np.float64).T)))[:, None, None]
    )
    check(m.build(), inputs, [want], device=device, precision=precision, accumulation=42)


def test_other_sizes_after_loading(device):
    image = (2, 11, 10, 16)
    model = Model(CASES["mean"], np.random.default_rng(3)).build()
    larger = Model(CASES["mean"]._replace(image=image), np.random.default_rng(3))
    check(
        model, larger.inputs, None, device=device, precision="fp32",
        accumulation=larger.accumulation, resize={0: image},
    )  # fmt: skip


def test_engines_of_parts_keep_them_apart(device, rng):
    model = Model(CASES["pool"], rng).build()
    assert launches_of(model, device=device, engines="pool=naive") == 4


def test_memory_budget_keeps_parts_apart(device, rng):
    model = Model(CASES["pool"], rng).build()
    assert launches_of(model, device=device, memory_budget="1 GiB") == 4


def two_readers_of_the_gate(model: Model, gate: int, x: int) -> int:
    m = model.m
    return m.op("MAXIMUM", [m.op("MUL", [x, gate], m.shape(x)), gate], m.shape(x))


def not_a_product(model: Model, gate: int, x: int) -> int:
    return model.m.op("SUB", [x, gate], model.m.shape(x))


def leaky_gate(model: Model, gate: int, x: int) -> int:
    m = model.m
    return m.op("MUL", [x, m.op("LEAKY_RELU", [gate], m.shape(gate), alpha=0.1)], m.shape(x))


def of_rows_alone(model: Model, gate: int, x: int) -> int:
    m = model.m
    rows = m.op("MEAN", [x, m.constant(np.array([1], np.int32))], (1, 1, 7, 16), keep_dims=True)
    gate, _ = model.product(rows, np.zeros((1, 1, 7, 16)), 16, "LOGISTIC")
    return m.op("MUL", [x, gate], m.shape(x))


@pytest.mark.parametrize(
    "other", [two_readers_of_the_gate, not_a_product, leaky_gate, of_rows_alone]
)
def test_other_formulas_stay(other, device, precision, rng):
    model = Model(CASES["mean"], rng)
    model.m = m = ModelMaker()
    x = m.input("x", (1, 9, 7, 16))
    mean = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 1, 1, 16), keep_dims=True)
    gate, _ = model.product(mean, np.zeros((1, 16)), 16, "")
    m.output(other(model, gate, x))
    delegate = clgpu_delegate.load(warm_up=False, device=device)
    make_interpreter("auto", m.build(), [delegate]).allocate_tensors()
    steps = [step.pass_name for step in delegate.explain().steps if step.outcome == "applied"]
    assert "fuse_squeeze_excite" not in steps
    check(m.build(), model.inputs, None, device=device, precision=precision, accumulation=80)
