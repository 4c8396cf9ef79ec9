"""NON_MAX_SUPPRESSION_V4 and V5: of overlapping boxes the best ones, or all with lower scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact
from tests.runtimes import available_runtimes

Array = Any


def model(count: int, most: int, soft: bool) -> bytes:
    m = ModelMaker()
    inputs = [m.input("boxes", (count, 4)), m.input("scores", (count,))]
    inputs.append(m.constant(np.array(most, np.int32)))
    inputs += [m.input(name, ()) for name in ("share", "least")]
    shapes: list[tuple] = [(most,), ()]
    types = [np.int32, np.int32]
    if soft:
        inputs.append(m.input("sigma", ()))
        shapes, types = [(most,), (most,), ()], [np.int32, np.float32, np.int32]
    m.output(*m.op(f"NON_MAX_SUPPRESSION_V{5 if soft else 4}", inputs, shapes, dtype=types))
    return m.build()


def scene(rng: np.random.Generator, count: int) -> list[Array]:
    centers = rng.uniform(0, 4, (max(1, count // 4), 2))[rng.integers(0, max(1, count // 4), count)]
    centers = centers + rng.normal(0, 0.1, (count, 2))
    half = rng.uniform(0.2, 0.6, (count, 2))
    corners = np.concatenate([centers - half, centers + half], 1)
    flipped = rng.random(count) < 0.3  # any two opposite corners
    corners[flipped] = corners[flipped][:, [2, 3, 0, 1]]
    scores = rng.random(count)
    return [half_exact(x.astype(np.float32)) for x in (corners, scores)]


def by_numpy(boxes: Array, scores: Array, most: int, share: float, least: float) -> list[Array]:
    """Without decay; scores differ, and no box is empty."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, 1)
    chosen: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] <= least or len(chosen) == most:
            break
        sides = np.minimum(high[i], high[chosen]) - np.maximum(low[i], low[chosen])
        common = np.prod(np.maximum(sides, 0), 1)
        if np.all(common / (areas[i] + areas[chosen] - common) < share):
            chosen.append(int(i))
    indices = np.zeros(most, np.int32)
    indices[: len(chosen)] = chosen
    return [indices, np.array(len(chosen), np.int32)]


def numbers(*values: float) -> list[Array]:
    return [np.array(value, np.float32) for value in values]


@pytest.mark.parametrize(("count", "most"), [(1, 1), (1, 3), (31, 9), (157, 200)])
def test_v4(device, precision, rng, count, most):
    boxes, scores = scene(rng, count)
    scores = half_exact((rng.permutation(count) / 256).astype(np.float32))
    inputs = [boxes, scores, *numbers(0.5, 0.125)]
    expected = by_numpy(*(x.astype(np.float64) for x in (boxes, scores)), most, 0.5, 0.125)
    content = model(count, most, False)
    check(content, inputs, expected, device=device, precision=precision)


@pytest.mark.parametrize("sigma", [0.0, 0.25, 0.5])
def test_v5(device, rng, sigma):
    inputs = [*scene(rng, 57), *numbers(0.75, 0.1, sigma)]
    check(model(57, 40, True), inputs, None, device=device, precision="fp32")


@pytest.mark.parametrize("runtime", available_runtimes())
@pytest.mark.parametrize("soft", [False, True])
def test_equal_scores_have_the_order_of_the_stock_kernel(device, rng, runtime, soft):
    boxes, _ = scene(rng, 120)
    scores = (rng.integers(0, 5, 120) / 8).astype(np.float32)
    inputs = [boxes, scores, *numbers(0.4, 0.05), *(numbers(0.5) if soft else [])]
    content = model(120, 60, soft)
    check(content, inputs, None, device=device, precision="fp32", runtime=runtime)


def test_empty_boxes_are_chosen_again_as_by_the_stock_kernel(device, rng):
    boxes, scores = scene(rng, 30)
    boxes[::3, 2] = boxes[::3, 0]
    content = model(30, 25, False)
    inputs = [boxes, scores, *numbers(0.5, 0.2)]
    check(content, inputs, None, device=device, precision="fp32")


def test_no_score_is_above_the_least(device, rng):
    inputs = [*scene(rng, 9), *numbers(0.5, 2.0)]
    expected = [np.zeros(4, np.int32), np.array(0, np.int32)]
    check(model(9, 4, False), inputs, expected, device=device, precision="fp32")


def refused(why: str, **changes: Any) -> None:
    """A model in which an operand has another type or shape."""
    m = ModelMaker()
    kinds = {
        "boxes": ((5, 4), np.float32),
        "scores": ((5,), np.float32),
        "most": (3, np.int32),
        "share": ((), np.float32),
        "least": ((), np.float32),
        "sigma": ((), np.float32),
        "indices": ((3,), np.int32),
        "values": ((3,), np.float32),
        "total": ((), np.int32),
        **changes,
    }
    inputs = []
    for name in ("boxes", "scores", "most", "share", "least", "sigma"):
        shape, dtype = kinds[name]
        if isinstance(shape, int):
            inputs.append(m.constant(np.array(shape, dtype)))
        else:
            inputs.append(m.input(name, shape, dtype))
    outputs = [kinds[name] for name in ("indices", "values", "total")]
    m.output(
        *m.op(
            "NON_MAX_SUPPRESSION_V5", inputs, [s for s, _ in outputs], dtype=[t for _, t in outputs]
        )
    )
    check_refused(m.build(), why)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"boxes": ((5, 4), np.int32)}, "the input of boxes is int32; supported: float32"),
        ({"scores": ((5,), np.int32)}, "the input of scores is int32; supported: float32"),
        ({"boxes": ((1, 5, 4), np.float32)}, "the input of boxes has rank 3; supported: 2"),
        ({"scores": ((1, 5), np.float32)}, "the input of scores has rank 2; supported: 1"),
        ({"share": ((), np.int32)}, "a threshold is int32; supported: float32"),
        ({"least": ((2,), np.float32)}, "a threshold is not a scalar"),
        ({"most": ((), np.int32)}, "the number of boxes is computed at run time"),
        ({"most": (0, np.int32)}, "the number of boxes is not a positive number"),
        ({"indices": ((3,), np.int64)}, "the output of indices is int64; supported: int32"),
        ({"values": ((3,), np.int32)}, "the output of scores is int32; supported: float32"),
        ({"total": ((), np.int64)}, "the output of the number is int64; supported: int32"),
        ({"scores": ((6,), np.float32)}, "do not fit together"),
    ],
)
def test_operands_are_refused(changes, why):
    refused(why, **changes)
