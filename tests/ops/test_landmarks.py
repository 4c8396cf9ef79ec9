"""MediaPipe's custom operations Landmarks2TransformMatrix and TransformLandmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

Array = Any
CROP = {
    "subset_idxs": [1, 4, 6, 3, 9],
    "left_rotation_idx": 1,
    "right_rotation_idx": 4,
    "target_rotation_radians": 0.3,
    "output_height": 12,
    "output_width": 16,
    "scale_x": 1.5,
    "scale_y": 1.25,
}
RELATIVE_CROP = {
    "subset": [1, 4, 6, 3, 9],
    "left_rotation_idx": 1,
    "right_rotation_idx": 4,
    "dimensions": 3,
    "landmarks_range": 192,
    "bbox_size_multiplier": 1.5,
    "input_hw": [48, 40],
    "output_hw": [12, 16],
}


def turn(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def box_of(points: Array, angle: float) -> tuple[Array, Array]:
    """Size of the box around the turned points, and its centre turned back."""
    turned = points @ turn(angle).T
    least, most = turned.min(0), turned.max(0)
    return most - least, turn(-angle) @ ((least + most) / 2)


def crop_matrix(src: Array, options: dict[str, Any]) -> Array:
    """Matrices of 3 x 3 that act on (x, y, 1), multiplied as the definition lists them."""
    points = src.reshape(-1, 3)[:, :2].astype(np.float64)
    x, y = points[options["right_rotation_idx"]] - points[options["left_rotation_idx"]]

    def matrix(linear: Array, shift: Any = (0, 0)) -> Array:
        return np.block([[linear, np.reshape(shift, (2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])

    if "subset" in options:
        angle = -np.arctan(y / x)
        size, center = box_of(points[options["subset"]], angle)
        reach = options["landmarks_range"]
        source, result = (np.array(options[k][::-1]) - 1 for k in ("input_hw", "output_hw"))
        size = size * options["bbox_size_multiplier"]
        whole = (
            matrix(np.diag(source / 2), source / 2)
            @ matrix(turn(-angle), center / reach * 2 - 1)
            @ matrix(np.diag(size / reach))
            @ matrix(np.diag(2 / result), (-1, -1))
        )
    else:
        angle = options["target_rotation_radians"] - np.arctan2(y, x)
        size, center = box_of(points[options["subset_idxs"]], angle)
        result = np.array([options["output_width"], options["output_height"]])
        size = size * [options["scale_x"], options["scale_y"]]
        whole = (
            matrix(np.eye(2), center)
            @ matrix(turn(-angle))
            @ matrix(np.diag(size / result))
            @ matrix(np.eye(2), -result / 2)
        )
    dst = np.eye(4)
    dst[np.ix_([0, 1], [0, 1, 3])] = whole[:2]
    return dst[None]


def matrix_model(options: dict[str, Any], shape: tuple | None = None) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape or ((1, 1, 1, 30) if "subset" in options else (1, 10, 3)))
    content = bytes(flexbuffers.Dumps(options))
    m.output(m.custom("Landmarks2TransformMatrix", [x], (1, 4, 4), content, version=2))
    return m.build()


def landmarks_of(rng: np.random.Generator, shape: tuple) -> Array:
    return half_exact(rng.uniform(20, 180, shape).astype(np.float32))


@pytest.mark.parametrize("options", [CROP, RELATIVE_CROP], ids=["pixels", "relative"])
def test_the_matrix_of_a_crop(options, device, precision, rng):
    shape = (1, 1, 1, 30) if "subset" in options else (1, 10, 3)
    src = landmarks_of(rng, shape)
    check(
        matrix_model(options), [src], [crop_matrix(src, options)],
        device=device, precision=precision, accumulation=64, reference=False,
    )  # fmt: skip


def test_more_landmarks_than_a_work_group_has_work_items(device, rng):
    chosen = rng.permutation(200)[:171].tolist()
    options = {**CROP, "subset_idxs": chosen, "left_rotation_idx": 199, "right_rotation_idx": 0}
    src = landmarks_of(rng, (1, 200, 3))
    check(
        matrix_model(options, (1, 200, 3)), [src], [crop_matrix(src, options)],
        device=device, precision="fp32", accumulation=64, reference=False,
    )  # fmt: skip


@pytest.mark.parametrize("angle", [0.5, 2.5, -2.5, -0.5, np.pi / 2])
def test_the_direction_of_the_line_counts(angle, device):
    """The second version keeps left and right apart, which the slope alone does not."""
    src = np.zeros((1, 10, 3), np.float32)
    src[0, :, :2] = 100 + 50 * np.array([[np.cos(a), np.sin(a)] for a in np.arange(10) * 1.3])
    src[0, 4, :2] = src[0, 1, :2] + 40 * np.array([np.cos(angle), np.sin(angle)])
    check(
        matrix_model(CROP), [src], [crop_matrix(src, CROP)],
        device=device, precision="fp32", accumulation=64, reference=False,
    )  # fmt: skip


def moved(src: Array, matrix: Array, size: int, scale: float = 1) -> Array:
    dst = src.astype(np.float64).reshape(-1, size)
    rows = matrix.reshape(4, 4)[:2].astype(np.float64)
    dst[:, :2] = dst[:, :2] @ rows[:, :2].T + rows[:, 3] * scale
    return dst.reshape(src.shape)


def transform_model(
    shape: tuple, options: dict[str, Any] | None, matrix: tuple = (1, 4, 4)
) -> bytes:
    m = ModelMaker()
    content = b"" if options is None else bytes(flexbuffers.Dumps(options))
    operands = [m.input("x", shape), m.input("matrix", matrix)]
    m.output(m.custom("TransformLandmarks", operands, shape, content, version=2))
    return m.build()


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 71, 2), None),
        ((1, 5, 3), None),
        ((1, 2, 3, 12), {}),
        ((1, 1, 1, 14), {"dimensions": 2, "scale": 0.25}),
    ],
)
def test_landmarks_are_moved(shape, options, device, precision, rng):
    size = shape[2] if options is None else options.get("dimensions", 3)
    src = landmarks_of(rng, shape)
    matrix = half_exact(rng.standard_normal((1, 4, 4)).astype(np.float32))
    expected = moved(src, matrix, size, (options or {}).get("scale", 1))
    check(
        transform_model(shape, options), [src, matrix], [expected],
        device=device, precision=precision, accumulation=3, reference=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subset_idxs": []}, "the option subset_idxs is not a list of integers"),
        ({"subset_idxs": [1, -1]}, "the option subset_idxs is -1; supported: 0 to 1048576"),
        ({"left_rotation_idx": -1}, "the option left_rotation_idx is -1; supported: 0 to 1048576"),
        ({"output_width": 0}, "the option output_width is 0; supported: 1 to 1048576"),
        ({"scale_y": 0.0}, "the option scale_y is not above 0"),
        ({"subset_idxs": [10]}, "landmark 10 is not among landmarks [1, 10, 3]"),
    ],
)
def test_damaged_options_of_a_crop_are_refused(change, reason):
    check_refused(matrix_model({**CROP, **change}), reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dimensions": 2}, "the option dimensions is not 3"),
        ({"landmarks_range": 0}, "the option landmarks_range is 0; supported: 1 to 1048576"),
        ({"input_hw": [3]}, "the option input_hw is not a height and a width"),
        ({"output_hw": [1, 4]}, "a side of the output is below 2"),
    ],
)
def test_damaged_options_of_the_first_version_are_refused(change, reason):
    check_refused(matrix_model({**RELATIVE_CROP, **change}), reason)


def test_what_are_no_landmarks_is_refused():
    check_refused(matrix_model(CROP, (2, 10, 3)), "the batch of the landmarks is not 1")
    check_refused(matrix_model(CROP, (1, 10, 4)), "landmarks [1, 10, 4] are not of 3 numbers each")
    check_refused(
        transform_model((1, 5, 4), None), "the numbers of a landmark is 4; supported: 2, 3"
    )
    check_refused(
        transform_model((1, 1, 1, 9), {"dimensions": 4}),
        "the option dimensions is 4; supported: 2, 3",
    )
    check_refused(transform_model((1, 1, 1, 9), {"scale": 0.0}), "the option scale is 0")
    check_refused(transform_model((1, 5, 3), None, (3, 4)), "the matrix [3, 4] is not 4 x 4")
    check_refused(matrix_model(CROP, (10, 3)), "input has rank 2; supported: 3 to 4")
    m = ModelMaker()
    x = m.input("x", (1, 5, 3), np.int32)
    m.output(m.custom("TransformLandmarks", [x, m.input("m", (1, 4, 4))], (1, 5, 3)))
    check_refused(m.build(), "input is int32; supported: float32")
