"""However a converter spells instance or layer normalisation, it becomes one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check, half_exact
from tests.runtimes import make_interpreter

SHAPE = (2, 5, 6, 8)


class Norm(NamedTuple):
    """A kind of normalisation.

    Attributes
    ----------
    axes
        Over which means and variances are.
    kept
        The shape of these.
    launches
        Of the node that it becomes.
    accumulation
        As `check` takes it.
    other_axes
        Some over which it is another normalisation.
    """

    axes: tuple[int, ...]
    kept: tuple[int, ...]
    launches: int
    accumulation: int
    other_axes: tuple[int, ...]


INSTANCE = Norm((1, 2), (2, 1, 1, 8), 3, 60, (1,))
LAYER = Norm((-1,), (2, 5, 6, 1), 1, 8, (2, 3))


@pytest.fixture(params=[INSTANCE, LAYER], ids=["instance", "layer"])
def norm(request: pytest.FixtureRequest) -> Norm:
    return request.param


class Maker:
    """The elementary operations on a tensor and on what is kept of it."""

    def __init__(self, norm: Norm, epsilon: float = 1e-3) -> None:
        self.norm = norm
        self.m = ModelMaker()
        rng = np.random.default_rng(5)
        self.scale = self.m.constant(rng.uniform(0.5, 1.5, 8).astype(np.float32))
        self.bias = self.m.constant(rng.standard_normal((1, 1, 1, 8)).astype(np.float32))
        self.axes = self.m.constant(np.array(norm.axes, np.int32))
        self.epsilon = self.m.constant(np.array([epsilon], np.float32))
        self.x = self.m.input("x", SHAPE)

    def __getattr__(self, name: str) -> Callable[..., int]:
        def op(*operands: int, **options: Any) -> int:
            shapes = [self.m.shape(operand) for operand in operands]
            return self.m.op(name.upper(), operands, np.broadcast_shapes(*shapes), **options)

        return op

    def number(self, value: float) -> int:
        return self.m.constant(np.array(value, np.float32))

    def mean_of(self, x: int) -> int:
        return self.m.op("MEAN", [x, self.axes], self.norm.kept, keep_dims=True)

    def moments(self) -> tuple[int, int]:
        mean = self.mean_of(self.x)
        return mean, self.mean_of(self.squared_difference(self.x, mean))

    def build(self, *outputs: int) -> bytes:
        self.m.output(*outputs)
        return self.m.build()


def plain(m: Maker) -> int:
    mean, variance = m.moments()
    inverse = m.rsqrt(m.add(variance, m.epsilon))
    return m.add(m.mul(m.mul(m.sub(m.x, mean), inverse), m.scale), m.bias)


def other_operands_first(m: Maker) -> int:
    mean = m.mean_of(m.x)
    variance = m.mean_of(m.squared_difference(mean, m.x))
    inverse = m.rsqrt(m.add(m.epsilon, variance))
    return m.add(m.bias, m.mul(m.scale, m.mul(inverse, m.sub(m.x, mean))))


def scale_in_the_factor(m: Maker) -> int:
    mean, variance = m.moments()
    factor = m.mul(m.rsqrt(m.add(variance, m.epsilon)), m.scale)
    return m.add(m.mul(m.sub(m.x, mean), factor), m.bias)


def as_batch_normalization(m: Maker) -> int:
    mean, variance = m.moments()
    factor = m.mul(m.rsqrt(m.add(variance, m.epsilon)), m.scale)
    return m.add(m.mul(m.x, factor), m.sub(m.bias, m.mul(mean, factor)))


def without_bias(m: Maker) -> int:
    mean, variance = m.moments()
    factor = m.rsqrt(m.add(variance, m.epsilon))
    return m.sub(m.mul(m.x, factor), m.mul(mean, factor))


def by_division(m: Maker) -> int:
    mean, variance = m.moments()
    deviation = m.sqrt(m.add(variance, m.epsilon))
    return m.add(m.mul(m.div(m.sub(m.x, mean), deviation), m.scale), m.bias)


def by_square(m: Maker) -> int:
    centred = m.sub(m.x, m.mean_of(m.x))
    variance = m.mean_of(m.square(centred))
    return m.mul(centred, m.rsqrt(m.add(variance, m.epsilon)))


def by_product(m: Maker) -> int:
    centred = m.sub(m.x, m.mean_of(m.x))
    variance = m.mean_of(m.mul(centred, centred))
    return m.add(m.mul(centred, m.rsqrt(m.add(variance, m.epsilon))), m.bias)


def by_powers(m: Maker) -> int:
    centred = m.sub(m.x, m.mean_of(m.x))
    variance = m.mean_of(m.pow(centred, m.number(2)))
    return m.mul(m.mul(centred, m.pow(m.add(variance, m.epsilon), m.number(-0.5))), m.scale)


def by_the_power_of_a_root(m: Maker) -> int:
    centred = m.sub(m.x, m.mean_of(m.x))
    variance = m.mean_of(m.pow(centred, m.number(2)))
    return m.div(centred, m.pow(m.add(variance, m.epsilon), m.number(0.5)))


SPELLINGS = {
    f.__name__: f
    for f in (
        plain, other_operands_first, scale_in_the_factor, as_batch_normalization, without_bias,
        by_division, by_square, by_product, by_powers, by_the_power_of_a_root,
    )
}  # fmt: skip


def launches_of(model: bytes) -> tuple[int, list[str]]:
    """Kernel launches, and what became of each node."""
    delegate = clgpu_delegate.load(warm_up=False)
    make_interpreter("auto", model, [delegate]).allocate_tensors()
    explanation = delegate.explain()
    assert explanation.claimed == explanation.total
    return explanation.partitions[0].launches, [node.reason for node in explanation.nodes]


def sample(rng: np.random.Generator) -> np.ndarray:
    return half_exact(rng.standard_normal(SHAPE).astype(np.float32) + 0.5)


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("activation", ["", "RELU", "TANH"])
def test_spelling_becomes_one_node(spelling, activation, norm, device, precision, rng):
    m = Maker(norm)
    y = spelling(m)
    if activation:
        y = getattr(m, activation)(y)
    model = m.build(y)
    launches, reasons = launches_of(model)
    assert launches == norm.launches
    assert all("fused" in reason for reason in reasons[: -2 if activation else -1])
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


def test_activation_of_the_last_addition_is_kept(norm, device, precision, rng):
    m = Maker(norm)
    mean, variance = m.moments()
    y = m.mul(m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon)))
    model = m.build(m.add(y, m.bias, fused_activation_function="RELU6"))
    assert launches_of(model)[0] == norm.launches
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


def test_activation_between_ends_the_normalisation(norm, device, precision, rng):
    m = Maker(norm)
    mean, variance = m.moments()
    inverse = m.rsqrt(m.add(variance, m.epsilon))
    y = m.mul(m.sub(m.x, mean), inverse, fused_activation_function="RELU")
    model = m.build(m.add(y, m.bias))
    assert launches_of(model)[0] == norm.launches + 1
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


def test_result_read_twice_is_computed_once(norm, device, precision, rng):
    """What scales it is an operation of its own, then."""
    m = Maker(norm)
    mean, variance = m.moments()
    y = m.mul(m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon)))
    model = m.build(m.neg(y), m.mul(y, m.scale))
    assert launches_of(model)[0] == norm.launches + 2
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


def test_mean_and_variance_that_others_read_stay(norm, device, precision, rng):
    m = Maker(norm)
    mean, variance = m.moments()
    y = m.mul(m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon)))
    model = m.build(m.add(y, m.bias), mean, m.neg(variance))
    assert launches_of(model)[0] == norm.launches + 4
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=2 * norm.accumulation,
    )


def test_two_scales_of_one_tensor(norm, device, precision, rng):
    m = Maker(norm)
    mean, variance = m.moments()
    centred, inverse = m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon))
    a = m.add(m.mul(m.mul(centred, inverse), m.scale), m.bias)
    b = m.mul(centred, m.mul(inverse, m.scale))
    model = m.build(a, b)
    assert launches_of(model)[0] == 2 * norm.launches
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


def test_addition_of_another_tensor_and_an_activation_are_fused(norm, device, precision, rng):
    m = Maker(norm)
    other = m.m.input("other", SHAPE)
    model = m.build(m.leaky_relu(m.add(other, plain(m)), alpha=0.2))
    assert launches_of(model)[0] == norm.launches
    inputs = [sample(rng), sample(rng)]
    check(model, inputs, None, device=device, precision=precision, accumulation=norm.accumulation)


def over_other_axes(m: Maker) -> int:
    axes = m.norm.other_axes
    m.axes = m.m.constant(np.array(axes, np.int32))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(SHAPE))
    mean = m.m.op("MEAN", [m.x, m.axes], kept, keep_dims=True)
    squares = m.squared_difference(m.x, mean)
    variance = m.m.op("MEAN", [squares, m.axes], kept, keep_dims=True)
    return m.mul(m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon)))


def without_epsilon(m: Maker) -> int:
    mean, variance = m.moments()
    return m.mul(m.sub(m.x, mean), m.rsqrt(variance))


def of_another_mean(m: Maker) -> int:
    other = m.m.input("other", SHAPE)
    _, variance = m.moments()
    return m.mul(m.sub(m.x, m.mean_of(other)), m.rsqrt(m.add(variance, m.epsilon)))


def by_another_power(m: Maker) -> int:
    centred = m.sub(m.x, m.mean_of(m.x))
    variance = m.mean_of(m.square(centred))
    return m.mul(centred, m.pow(m.add(variance, m.epsilon), m.number(-1)))


def root_without_inverse(m: Maker) -> int:
    mean, variance = m.moments()
    return m.mul(m.sub(m.x, mean), m.sqrt(m.add(variance, m.epsilon)))


@pytest.mark.parametrize(
    "other",
    [over_other_axes, without_epsilon, of_another_mean, root_without_inverse, by_another_power],
)
def test_other_formulas_stay(other, norm, device, precision, rng):
    m = Maker(norm)
    model = m.build(other(m))
    reasons = launches_of(model)[1]
    assert not any("fused" in reason for reason in reasons)
    inputs = [sample(rng), sample(rng)][: 2 if other is of_another_mean else 1]
    check(model, inputs, None, device=device, precision=precision, accumulation=norm.accumulation)


def test_constants_of_other_shapes_stay_outside(norm, device, precision, rng):
    """A number, and a number per row."""
    m = Maker(norm)
    mean, variance = m.moments()
    y = m.mul(m.sub(m.x, mean), m.rsqrt(m.add(variance, m.epsilon)))
    y = m.mul(y, m.m.constant(np.float32(1.5)))
    rows = half_exact(rng.standard_normal((5, 1, 1)).astype(np.float32))
    model = m.build(m.add(y, m.m.constant(rows)))
    assert launches_of(model)[0] == norm.launches + 2
    check(
        model,
        [sample(rng)],
        None,
        device=device,
        precision=precision,
        accumulation=norm.accumulation,
    )


@pytest.mark.parametrize("which", ["scale", "bias", "epsilon", "exponent"])
def test_constant_of_more_axes_gives_rows_more_axes(which, device, precision, rng):
    m = Maker(LAYER)
    m.x = m.m.input("rows", (4, 8))
    mean = m.m.op("MEAN", [m.x, m.axes], (4, 1), keep_dims=True)
    centred = m.sub(m.x, mean)
    variance = m.m.op("MEAN", [m.square(centred), m.axes], (4, 1), keep_dims=True)

    def constant(name: str, value: float | np.ndarray, size: int) -> int:
        shape = (1, 1, size) if name == which else (size,)
        return m.m.constant(np.full(shape, value, np.float32))

    values = rng.uniform(0.5, 1.5, 8).astype(np.float32)
    moved = m.add(variance, constant("epsilon", 1e-3, 1))
    y = m.mul(centred, m.pow(moved, constant("exponent", -0.5, 1)))
    y = m.mul(y, constant("scale", values, 8))
    y = m.add(y, constant("bias", values, 8))
    assert m.m.shape(y) == (1, 4, 8)
    check(
        m.build(y), [sample(rng), sample(rng)[0, :4, 0]], None, device=device,
        precision=precision, accumulation=8,
    )  # fmt: skip


@pytest.mark.parametrize("which", ["scale", "bias", "epsilon"])
def test_constant_of_more_axes_gives_images_more_axes(which, device, precision, rng):
    m = Maker(INSTANCE)
    mean, variance = m.moments()

    def constant(name: str, value: float | np.ndarray, size: int) -> int:
        shape = (1, 1, 1, 1, size) if name == which else (size,)
        return m.m.constant(np.full(shape, value, np.float32))

    values = rng.uniform(0.5, 1.5, 8).astype(np.float32)
    inverse = m.rsqrt(m.add(variance, constant("epsilon", 1e-3, 1)))
    y = m.mul(m.mul(m.sub(m.x, mean), inverse), constant("scale", values, 8))
    y = m.add(y, constant("bias", values, 8))
    assert m.m.shape(y) == (1, *SHAPE)
    x = half_exact(rng.standard_normal(SHAPE).astype(np.float32) + 0.5)
    check(m.build(y), [x], None, device=device, precision=precision, accumulation=30)
