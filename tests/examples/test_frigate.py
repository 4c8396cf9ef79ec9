"""What Frigate's detector teflon_tfl does with the library that the container puts in its place.

It loads a delegate from a fixed path, without options, and reads boxes, classes, scores and their
number from the outputs of a model that ends in a TFLite_Detection_PostProcess.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from flatbuffers import flexbuffers

import clgpu_delegate
from clgpu_delegate.runtimes import find_runtime
from tests.model_maker import ModelMaker

SIDE, CELLS = 320, 10  # pixels of a frame, cells of the detector
OPTIONS = {
    "max_detections": 20, "max_classes_per_detection": 1, "nms_score_threshold": 0.1,
    "nms_iou_threshold": 0.6, "num_classes": 1,
    "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
}  # fmt: skip


def bright_spots() -> bytes:
    """A detector whose objects are the bright cells of a frame, with their brightness as score."""
    m, cell, count = ModelMaker(), SIDE // CELLS, CELLS * CELLS
    frame = m.input("frame", (1, SIDE, SIDE, 3), np.uint8, quantization=(1 / 255, 0))
    x = m.op("DEQUANTIZE", [frame], (1, SIDE, SIDE, 3), dtype=np.float32)
    x = m.op(
        "AVERAGE_POOL_2D", [x], (1, CELLS, CELLS, 3),
        padding="VALID", stride_w=cell, stride_h=cell, filter_width=cell, filter_height=cell,
    )  # fmt: skip
    x = m.op("MEAN", [x, m.constant(np.int32([3]))], (1, CELLS, CELLS))
    x = m.op("RESHAPE", [x, m.constant(np.int32([1, count, 1]))], (1, count, 1),
             new_shape=[1, count, 1])  # fmt: skip
    nothing = m.constant(np.zeros((1, count, 1), np.float32))  # the score of the background
    scores = m.op("CONCATENATION", [nothing, x], (1, count, 2), axis=2, dtype=np.float32)
    middle = (np.mgrid[:CELLS, :CELLS].reshape(2, -1).T + 0.5) / CELLS
    anchors = np.concatenate([middle, np.full_like(middle, 1 / CELLS)], 1).astype(np.float32)
    boxes = m.constant(np.zeros((1, count, 4), np.float32))
    outputs = [(1, 20, 4), (1, 20), (1, 20), (1,)]
    content = bytes(flexbuffers.Dumps(OPTIONS))
    name = "TFLite_Detection_PostProcess"
    inputs = [boxes, scores, m.constant(anchors)]
    m.output(*m.custom(name, inputs, outputs, content, dtype=np.float32))
    return m.build()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "bright.tflite"
    path.write_bytes(bright_spots())
    return path


def test_a_frame_through_the_library_at_its_place(model, tmp_path, runtime):
    library = tmp_path / "usr" / "lib" / "teflon" / "libteflon.so"
    library.parent.mkdir(parents=True)
    shutil.copy(clgpu_delegate.plugin_path(), library)
    module = find_runtime(runtime).module
    delegate = module.load_delegate(str(library), {})
    interpreter = module.Interpreter(model_path=str(model), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    frame = np.zeros((1, SIDE, SIDE, 3), np.uint8)
    frame[0, 64:96, 224:256] = 230  # row 2, column 7 of the cells
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], frame)
    interpreter.invoke()
    boxes, classes, scores, count = (
        interpreter.get_tensor(detail["index"])[0] for detail in interpreter.get_output_details()
    )
    assert int(count) == 1
    assert classes[0] == 0
    assert scores[0] == pytest.approx(230 / 255, abs=1e-3)
    np.testing.assert_allclose(boxes[0], [0.2, 0.7, 0.3, 0.8], atol=1e-3)


def test_the_whole_detector_is_on_the_device(model):
    explanation = clgpu_delegate.explain_model(model)
    assert explanation.claimed == explanation.total
    assert len(explanation.partitions) == 1
