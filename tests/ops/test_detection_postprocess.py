"""TFLite_Detection_PostProcess: the boxes of an SSD detector.

The stock kernel leaves places behind the last detection as they were; the delegate writes 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import clgpu_delegate
from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact, op_runtime
from tests.runtimes import (
    available_runtimes,
    make_interpreter,
    run_interpreter,
    run_reference,
)

Array = Any
OPTIONS = {
    "max_detections": 7,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}
UINT8 = {"boxes": (1 / 16, 127), "scores": (1 / 256, 0), "anchors": (1 / 200, 3)}


def model(
    count: int, columns: int, options: dict[str, Any], types: dict[str, Any] | None = None,
    codes: int = 4,
) -> bytes:  # fmt: skip
    types = types or {}
    m = ModelMaker()
    shapes = {"boxes": (1, count, codes), "scores": (1, count, columns), "anchors": (count, 4)}
    inputs = []
    for name, shape in shapes.items():
        dtype = types.get(name, np.float32)
        scale = UINT8[name] if dtype == np.uint8 else None
        inputs.append(m.input(name, shape, dtype, quantization=scale))
    places = options.get("max_detections", 1) * options.get("max_classes_per_detection", 1)
    outputs = [(1, places, 4), (1, places), (1, places), (1,)]
    content = bytes(flexbuffers.Dumps(options))
    name = "TFLite_Detection_PostProcess"
    m.output(*m.custom(name, inputs, outputs, content, dtype=np.float32))
    return m.build()


def scene(rng: np.random.Generator, count: int, columns: int, codes: int = 4) -> list[Array]:
    """Boxes around a few objects, most of which overlap some others."""
    centers = rng.uniform(0.1, 0.9, (max(1, count // 5), 2))
    anchors = np.empty((count, 4), np.float32)
    anchors[:, :2] = centers[rng.integers(0, len(centers), count)] + rng.normal(0, 0.03, (count, 2))
    anchors[:, 2:] = rng.uniform(0.1, 0.3, (count, 2))
    boxes = rng.normal(0, 1, (1, count, codes)).astype(np.float32)
    scores = rng.uniform(0, 1, (1, count, columns)).astype(np.float32)
    return [boxes, scores, anchors]


def quantized(inputs: list[Array], which: tuple[str, ...]) -> list[Array]:
    result = []
    for name, x in zip(UINT8, inputs):
        scale, zero = UINT8[name]
        stored = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
        result.append(stored if name in which else x)
    return result


def stock(
    content: bytes, inputs: list[Array], options: dict[str, Any], runtime: str | None = None
) -> list[Array]:
    """Results of the runtime's kernel, with 0 in the places that it does not write."""
    boxes, labels, values, count = run_reference(content, inputs, runtime or op_runtime())
    width = 1 if options.get("use_regular_nms") else options["max_classes_per_detection"]
    for array in (boxes, labels, values):
        array[:, int(count[0]) * width :] = 0
    return [boxes, labels, values, count]


def compare(device: str, inputs: list[Array], options: dict[str, Any], **more: Any) -> list[Array]:
    types = {name: x.dtype.type for name, x in zip(UINT8, inputs)}
    count, columns, codes = inputs[2].shape[0], inputs[1].shape[2], inputs[0].shape[2]
    content = model(count, columns, options, types, codes)
    wanted = stock(content, inputs, options)
    check(
        content, inputs, wanted, device=device, precision=more.get("precision", "fp32"),
        reference=False,
    )  # fmt: skip
    return wanted


def by_numpy(inputs: list[Array], options: dict[str, Any]) -> list[Array]:
    """Fast mode with one class for each detection."""
    boxes, scores, anchors = (x.astype(np.float64) for x in inputs)
    first = scores.shape[2] - options["num_classes"]
    centers = boxes[0, :, :2] / 10 * anchors[:, 2:] + anchors[:, :2]
    half = 0.5 * np.exp(boxes[0, :, 2:4] / 5) * anchors[:, 2:]
    corners = np.concatenate([centers - half, centers + half], 1)
    best = scores[0, :, first:].max(1)
    label = scores[0, :, first:].argmax(1)
    chosen: list[int] = []
    for i in np.argsort(-best, kind="stable"):
        if best[i] < np.float32(options["nms_score_threshold"]):
            break
        low = np.maximum(corners[i, :2], corners[chosen, :2])
        high = np.minimum(corners[i, 2:], corners[chosen, 2:])
        common = np.prod(np.maximum(high - low, 0), 1)
        areas = np.prod(corners[:, 2:] - corners[:, :2], 1)
        share = common / (areas[i] + areas[chosen] - common)
        if len(chosen) < options["max_detections"] and not np.any(
            share > options["nms_iou_threshold"]
        ):
            chosen.append(i)
    places = options["max_detections"]
    results = [np.zeros((1, places, 4)), np.zeros((1, places)), np.zeros((1, places))]
    for array, of in zip(results, (corners, label, best)):
        array[0, : len(chosen)] = of[chosen]
    return [*results, np.array([len(chosen)], np.float64)]


@pytest.mark.parametrize("count", [1, 13, 301])
@pytest.mark.parametrize("columns", [3, 4])
def test_fast(device, precision, rng, count, columns):
    inputs = [half_exact(x) for x in scene(rng, count, columns)]
    wanted = compare(device, inputs, OPTIONS, precision=precision)
    for got, want in zip(wanted, by_numpy(inputs, OPTIONS)):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("width", [2, 3, 5])
def test_several_classes_of_a_detection(device, rng, width):
    options = {**OPTIONS, "max_classes_per_detection": width, "num_classes": 11}
    compare(device, scene(rng, 40, 12), options)


@pytest.mark.parametrize("width", [1, 2, 7, 10])
@pytest.mark.parametrize("runtime", available_runtimes())
def test_equal_scores_have_the_order_of_the_stock_kernel(device, rng, width, runtime):
    options = {**OPTIONS, "max_classes_per_detection": width, "num_classes": 10}
    inputs = scene(rng, 50, 11)
    inputs[1] = (rng.integers(0, 4, inputs[1].shape) / 4).astype(np.float32)
    content = model(50, 11, options)
    wanted = stock(content, inputs, options, runtime)
    check(content, inputs, wanted, device=device, precision="fp32", reference=False)


@pytest.mark.parametrize("per_class", [None, 2, 50])
def test_regular(device, precision, rng, per_class):
    options = {**OPTIONS, "use_regular_nms": True, "num_classes": 5}
    if per_class is not None:
        options["detections_per_class"] = per_class
    inputs = [half_exact(x) for x in scene(rng, 67, 6)]
    compare(device, inputs, options, precision=precision)


def test_regular_with_equal_scores(device, rng):
    options = {**OPTIONS, "use_regular_nms": True, "num_classes": 5, "max_detections": 40}
    inputs = scene(rng, 67, 5)
    inputs[1] = (rng.integers(0, 4, inputs[1].shape) / 4).astype(np.float32)
    compare(device, inputs, options)


@pytest.mark.parametrize("regular", [False, True])
def test_nothing_is_good_enough(device, rng, regular):
    options = {**OPTIONS, "use_regular_nms": regular, "nms_score_threshold": 2.0}
    *_, count = compare(device, scene(rng, 9, 4), options)
    assert count[0] == 0


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize(
    "which", [("scores",), ("boxes", "anchors"), ("boxes", "scores", "anchors")]
)
def test_quantized_inputs(device, rng, regular, which):
    options = {**OPTIONS, "use_regular_nms": regular, "max_classes_per_detection": 2}
    compare(device, quantized(scene(rng, 53, 4), which), options)


def test_boxes_with_key_points(device, rng):
    compare(device, scene(rng, 21, 4, codes=7), OPTIONS)


def test_large_and_small_boxes(device, rng):
    inputs = scene(rng, 60, 4)
    inputs[0][0, :, 2:] *= 40
    inputs[2][::7, 2:] = 0
    compare(device, inputs, OPTIONS)


def test_share_of_one_keeps_all(device, rng):
    inputs = scene(rng, 12, 4)
    inputs[0][:], inputs[2][:] = 0, (0.5, 0.5, 0.25, 0.25)
    options = {**OPTIONS, "nms_iou_threshold": 1.0, "nms_score_threshold": 0.0}
    *_, count = compare(device, inputs, options)
    assert count[0] == options["max_detections"]


def refused(why: str, options: dict[str, Any] | None = None, **types: Any) -> None:
    check_refused(model(5, 4, OPTIONS if options is None else options, types), why)


@pytest.mark.parametrize("name", ["max_detections", "max_classes_per_detection", "num_classes"])
def test_counts_out_of_range_are_refused(name):
    refused(f"the option {name} is 0; supported: 1 to 1048576", {**OPTIONS, name: 0})


def test_detections_of_a_class_out_of_range_are_refused():
    options = {**OPTIONS, "use_regular_nms": True, "detections_per_class": -1}
    refused("the option detections_per_class is -1; supported: 1 to 1048576", options)


def test_too_many_places_are_refused():
    options = {**OPTIONS, "max_detections": 2**11, "max_classes_per_detection": 2**10}
    m = ModelMaker()
    inputs = [m.input("b", (1, 5, 4)), m.input("s", (1, 5, 4)), m.input("a", (5, 4))]
    content = bytes(flexbuffers.Dumps(options))
    outputs = [(1, 4, 4), (1, 4), (1, 4), (1,)]
    m.output(*m.custom("TFLite_Detection_PostProcess", inputs, outputs, content, dtype=np.float32))
    check_refused(m.build(), "the number of detections times that of their classes is over 1048576")


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_shares_out_of_range_are_refused(share):
    options = {**OPTIONS, "nms_iou_threshold": share}
    refused("the option nms_iou_threshold is not above 0 and at most 1", options)


def test_absent_scales_are_refused():
    options = {name: value for name, value in OPTIONS.items() if name != "w_scale"}
    refused("a scale of the boxes is 0 or absent", options)


def test_types_are_refused():
    refused("the input of boxes is int8; supported: float32, uint8", boxes=np.int8)
    refused("the input of scores is int8; supported: float32, uint8", scores=np.int8)
    refused("the input of anchors is float32; supported: uint8", boxes=np.uint8)


def broken(content: bytes, outputs: Any = np.float32, scores: Any = None) -> bytes:
    m = ModelMaker()
    quantization = ((0.5, 0.25, 0.125, 1.0), 0, 2) if scores is not None else None
    inputs = [
        m.input("b", (1, 5, 4)),
        m.input("s", (1, 5, 4), scores or np.float32, quantization=quantization),
        m.input("a", (5, 4)),
    ]
    shapes = [(1, 7, 4), (1, 7), (1, 7), (1,)]
    m.output(*m.custom("TFLite_Detection_PostProcess", inputs, shapes, content, dtype=outputs))
    return m.build()


def test_other_operands_are_refused():
    content = bytes(flexbuffers.Dumps(OPTIONS))
    check_refused(broken(content, np.int32), "an output is int32; supported: float32")
    check_refused(broken(content, scores=np.uint8), "a quantised input has 4 scales")


@pytest.mark.parametrize(
    ("which", "shape", "supported"),
    [
        ("boxes", (5, 4), "the input of boxes has rank 2; supported: 3"),
        ("scores", (5, 4), "the input of scores has rank 2; supported: 3"),
        ("anchors", (1, 5, 4), "the input of anchors has rank 3; supported: 2"),
    ],
)
def test_ranks_are_refused(which, shape, supported):
    m = ModelMaker()
    shapes = {"boxes": (1, 5, 4), "scores": (1, 5, 4), "anchors": (5, 4), which: shape}
    inputs = [m.input(name, s) for name, s in shapes.items()]
    content = bytes(flexbuffers.Dumps(OPTIONS))
    outputs = [(1, 7, 4), (1, 7), (1, 7), (1,)]
    m.output(*m.custom("TFLite_Detection_PostProcess", inputs, outputs, content, dtype=np.float32))
    check_refused(m.build(), supported)


@pytest.mark.parametrize(
    ("shapes", "why"),
    [
        ([(2, 5, 4), (2, 5, 4), (5, 4)], "the batch of detections is not 1"),
        ([(1, 5, 4), (1, 6, 4), (5, 4)], "do not fit together"),
        ([(1, 5, 4), (1, 5, 9), (5, 4)], "are not of 3 classes, with or without a background"),
    ],
)
def test_shapes_are_refused(shapes, why):
    m = ModelMaker()
    inputs = [m.input(name, s) for name, s in zip("bsa", shapes)]
    content = bytes(flexbuffers.Dumps(OPTIONS))
    outputs = [(1, 7, 4), (1, 7), (1, 7), (1,)]
    m.output(*m.custom("TFLite_Detection_PostProcess", inputs, outputs, content, dtype=np.float32))
    check_refused(m.build(), why)


def test_options_that_are_no_map_are_refused():
    # The stock kernel reads this as a map without entries; it crashes on damaged bytes.
    content = bytes(flexbuffers.Dumps([1, 2]))
    check_refused(broken(content), "its custom options are not a FlexBuffers map")


def test_a_detector_is_one_partition(device, rng):
    """Two heads on a feature map, scores, boxes: as SSD models end."""
    m = ModelMaker()
    x = m.input("image", (1, 6, 6, 8))
    heads = []
    for channels in (3 * 4, 3 * 5):  # three anchors at each place, four classes and a background
        weights = m.constant(rng.standard_normal((channels, 3, 3, 8)).astype(np.float32) / 8)
        bias = m.constant(np.zeros(channels, np.float32))
        y = m.op(
            "CONV_2D", [x, weights, bias], (1, 6, 6, channels), padding="SAME", stride_w=1,
            stride_h=1,
        )  # fmt: skip
        to = (1, 108, channels // 3)
        heads.append(m.op("RESHAPE", [y, m.constant(np.array(to, np.int32))], to))
    scores = m.op("LOGISTIC", [heads[1]], (1, 108, 5))
    anchors = m.constant(scene(rng, 108, 5)[2])
    options = {**OPTIONS, "num_classes": 4}
    m.output(
        *m.custom(
            "TFLite_Detection_PostProcess", [heads[0], scores, anchors],
            [(1, 7, 4), (1, 7), (1, 7), (1,)], bytes(flexbuffers.Dumps(options)), dtype=np.float32,
        )
    )  # fmt: skip
    content = m.build()
    image = rng.standard_normal((1, 6, 6, 8)).astype(np.float32)
    wanted = stock(content, [image], options)
    assert wanted[3][0] > 2
    delegate = clgpu_delegate.load(device=device, verify="first", cache="off")
    interpreter = make_interpreter(op_runtime(), content, [delegate])
    for got, want in zip(run_interpreter(interpreter, [image]), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    plan = delegate.explain()
    assert (plan.claimed, len(plan.partitions)) == (plan.total, 1)
    if needs.allows(64, "detection_postprocess_choose"):
        assert not plan.notes, plan.notes
