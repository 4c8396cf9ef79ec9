"""MediaPipe's TransformTensorBilinear: the part of an image that a matrix selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

Array = Any
SHAPES = [((5, 7, 3), (4, 6)), ((9, 6, 8), (1, 11)), ((1, 1, 4), (3, 2))]


def model(
    shape: tuple, options: dict[str, Any], matrix: tuple = (1, 4, 4), batch: int = 1
) -> bytes:
    m = ModelMaker()
    src, places = m.input("x", (batch, *shape)), m.input("matrix", matrix)
    content = bytes(flexbuffers.Dumps(options))
    dst = (1, *options.get("output_size", (3, 2)), shape[2])
    m.output(m.custom("TransformTensorBilinear", [src, places], dst, content, version=2))
    return m.build()


def options_of(size: tuple[int, int], version: int) -> dict[str, Any]:
    if version == 1:
        return {"mode": "bilinear", "output_size": list(size)}
    return {"output_height": size[0], "output_width": size[1]}


def reference(x: Array, matrix: Array, size: tuple[int, int], version: int) -> Array:
    """Positions in float32, as in MediaPipe, because its result is 0 beyond the last pixel."""
    rows = matrix.reshape(4, 4)[:2].astype(np.float32)
    shift = rows[:, 3]
    if version == 2:
        half = np.float32(0.5)
        shift = shift + (rows[:, 0] * half + rows[:, 1] * half - half)
    dst = np.zeros((*size, x.shape[2]))
    padded = np.pad(x.astype(np.float64), ((0, 1), (0, 1), (0, 0)))
    for i, j in np.ndindex(*size):
        px, py = rows[:, 0] * np.float32(j) + rows[:, 1] * np.float32(i) + shift
        if not (0 <= px <= x.shape[1] - 1 and 0 <= py <= x.shape[0] - 1):
            continue
        left, top = int(px), int(py)
        right, down = float(px) - left, float(py) - top
        upper = (1 - right) * padded[top, left] + right * padded[top, left + 1]
        lower = (1 - right) * padded[top + 1, left] + right * padded[top + 1, left + 1]
        dst[i, j] = (1 - down) * upper + down * lower
    return dst[None]


def random_matrix(rng: np.random.Generator, shape: tuple, size: tuple) -> Array:
    """A turned and scaled crop, most of which lies within the image."""
    angle, scale = rng.uniform(-0.5, 0.5), np.array(shape[1::-1]) / np.array(size[::-1]) * 0.9
    matrix = np.eye(4)
    matrix[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] * scale
    matrix[:2, 3] = rng.uniform(-0.5, 1.5, 2)
    return half_exact(matrix.astype(np.float32))[None]


@pytest.mark.parametrize("version", [1, 2])
def test_pixels_are_interpolated_where_the_matrix_says(version, device, precision, rng):
    for shape, size in SHAPES:
        x = half_exact(rng.standard_normal(shape).astype(np.float32))
        matrix = random_matrix(rng, shape, size)
        expected = reference(x, matrix, size, version)
        assert (expected != 0).any() or shape[:2] == (1, 1)
        check(
            model(shape, options_of(size, version)), [x[None], matrix], [expected],
            device=device, precision=precision, accumulation=16, reference=False,
        )  # fmt: skip


def test_the_last_pixel_counts_and_what_is_beyond_it_is_zero(device, precision):
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4, 1)
    matrix = np.eye(4, dtype=np.float32)[None]
    matrix[0, :2, 3] = 1, 0.5
    for version in (1, 2):
        got = reference(x, matrix, (3, 4), version)[0, :, :, 0]
        np.testing.assert_array_equal(got, [[4, 5, 6, 0], [8, 9, 10, 0], [0, 0, 0, 0]])
        check(
            model((3, 4, 1), options_of((3, 4), version)), [x[None], matrix],
            [got[None, :, :, None]], device=device, precision=precision, reference=False,
        )  # fmt: skip


def test_a_matrix_that_is_no_number_gives_zero(device):
    x = np.ones((2, 3, 1), np.float32)
    matrix = np.full((1, 4, 4), np.nan, np.float32)
    check(
        model((2, 3, 1), options_of((3, 2), 2)), [x[None], matrix], [np.zeros((1, 3, 2, 1))],
        device=device, precision="fp32", reference=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"output_width": 2}, "a side of the output is 0; supported: 1 to 32768"),
        ({"output_size": [2]}, "the option output_size is not a height and a width"),
        ({"output_size": [2, 2], "mode": "nearest"}, "the option mode is not bilinear"),
    ],
)
def test_damaged_options_are_refused(options, reason):
    check_refused(model((2, 3, 1), {"output_height": 0, **options}), reason)


def test_what_no_crop_has_is_refused():
    options = options_of((3, 2), 2)
    check_refused(model((2, 3, 1), options, batch=2), "the batch of the input is not 1")
    check_refused(model((2, 3, 1), options, matrix=(3, 4)), "the matrix [3, 4] is not 4 x 4")
    for shape, reason in {
        (2, 3, 1): "input has rank 3; supported: 4",
        (1, 2, 3, 1): "its custom options are not a FlexBuffers map",
    }.items():
        m = ModelMaker()
        operands = [m.input("x", shape), m.input("m", (1, 4, 4))]
        m.output(m.custom("TransformTensorBilinear", operands, (1, 3, 2, 1), b"??"))
        check_refused(m.build(), reason)
