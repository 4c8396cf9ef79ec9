"""``clgpu quickstart``: its model, what it tells, and what it writes."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import DeviceError, FileError
from clgpu_delegate.base.rendering import as_text
from clgpu_delegate.measure import sample
from clgpu_delegate.runtimes import find_runtime
from clgpu_delegate.tflite.inference import run_once
from tests.model_maker import ModelMaker
from tests.python.test_cli import clgpu


def _pattern(*shape: int, fan_in: int) -> np.ndarray:
    """Weights that look random and compress well, scaled so that no layer's results vanish."""
    values = (np.arange(np.prod(shape)) * 37 % 101 - 50) / 50 * np.sqrt(6 / fan_in)
    return values.astype(np.float32).reshape(shape)


def made() -> bytes:
    m = ModelMaker()
    x, side, channels = m.input("image", (1, 256, 256, 3)), 128, 32
    x = m.op(
        "CONV_2D", [x, m.constant(_pattern(32, 3, 3, 3, fan_in=27)),
                    m.constant(np.zeros(32, np.float32))],
        (1, side, side, channels), padding="SAME", stride_w=2, stride_h=2,
        fused_activation_function="RELU6",
    )  # fmt: skip
    for stride, outputs in ((1, 64), (2, 128), (2, 256)):
        side //= stride
        x = m.op(
            "DEPTHWISE_CONV_2D", [x, m.constant(_pattern(1, 3, 3, channels, fan_in=9)),
                                  m.constant(np.zeros(channels, np.float32))],
            (1, side, side, channels), padding="SAME", stride_w=stride, stride_h=stride,
            depth_multiplier=1, fused_activation_function="RELU6",
        )  # fmt: skip
        x = m.op(
            "CONV_2D", [x, m.constant(_pattern(outputs, 1, 1, channels, fan_in=channels)),
                        m.constant(np.zeros(outputs, np.float32))],
            (1, side, side, outputs), padding="SAME", stride_w=1, stride_h=1,
            fused_activation_function="RELU6",
        )  # fmt: skip
        channels = outputs
    x = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, channels))
    x = m.op("FAKE_QUANT", [x], (1, channels), min=0.0, max=6.0, num_bits=16)
    x = m.op("FULLY_CONNECTED", [x, m.constant(_pattern(10, channels, fan_in=channels))], (1, 10))
    m.output(m.op("SOFTMAX", [x], (1, 10), beta=1.0))
    return m.build()


def test_embedded_model_is_the_one_described_here():
    text = base64.b64encode(zlib.compress(made(), 9)).decode()
    assert sample.content() == made(), text


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """What the function has found and written."""
    return clgpu_delegate.quickstart(tmp_path_factory.mktemp("tour") / "new" / "folder", runs=2)


def test_the_model_runs_on_a_device_and_one_node_of_it_on_the_cpu(tour):
    comparison = tour.comparison
    assert (comparison.explanation.claimed, comparison.explanation.total) == (10, 11)
    assert comparison.device in tour.devices
    assert comparison.relative_l2_error < 1e-5
    assert not comparison.undone
    assert min(comparison.stock_ms, comparison.delegate_ms) > 0
    (left,) = [node for node in comparison.explanation.nodes if not node.claimed]
    assert tour.refused == left
    assert (left.op, left.reason) == ("FAKE_QUANT", "operation FAKE_QUANT has no kernels")
    assert "remove it" in left.hint


def test_results_depend_on_the_input(tour):
    """A network that answers the same to everything would agree with any kernel."""
    interpreter = find_runtime().module.Interpreter(model_path=str(tour.model))
    interpreter.allocate_tensors()
    rng = np.random.default_rng(3)
    bright, dark = (
        run_once(interpreter, [rng.random((1, 256, 256, 3), np.float32) * scale])[0]
        for scale in (1.0, 0.1)
    )
    assert np.abs(bright - dark).max() > 1e-2
    assert bright.std() > 1e-3


def test_model_and_page_are_files_to_go_on_with(tour):
    assert tour.model.read_bytes() == sample.content()
    page = tour.page.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "FAKE_QUANT" in page
    assert tour.profile.inferences == 2
    assert sorted(path.name for path in tour.page.parent.iterdir()) == [
        "model.tflite",
        "profile.html",
    ]


def test_each_step_is_told(tour):
    text = str(tour)
    for words in (
        "1. A device", "2. A model", "3. A node", "4. Where the time goes", "Next",
        tour.comparison.device.name, "10 of 11 on the device, in 2 partitions", "stock TFLite",
        "FAKE_QUANT: operation FAKE_QUANT has no kernels", "hint: it is for training",
        str(tour.page), "clgpu explain MODEL",
    ):  # fmt: skip
        assert words in text
    for other in tour.devices:
        assert f"{other.index} = {other.name}" in text or other == tour.comparison.device


def test_narrow_terminals_lose_nothing(tour):
    wide, narrow = as_text(tour), as_text(tour, 50)
    assert max(map(len, narrow.splitlines())) <= max(50, len(str(tour.page)))
    headings = {"op", "engine"}  # of cells that tell it themselves
    assert _words(wide) - _words(narrow) <= headings


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z][\w-]*", text))


def test_command_prints_it_or_json(tmp_path, runtime):
    folder = str(tmp_path / "tour")
    text = clgpu("quickstart", folder, "--runs", "1", "--runtime", runtime)
    assert "3. A node that stays on the CPU" in text
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    data = json.loads(clgpu("quickstart", folder, "--runs", "1", "--runtime", runtime, "--json"))
    assert data["refused"]["op"] == "FAKE_QUANT"
    assert data["model"] == str(tmp_path / "tour" / "model.tflite")
    assert len(data["devices"]) == len(clgpu_delegate.devices())
    assert data["comparison"]["claimed"] == 10
    assert len(data["profile"]["nodes"]) == 10


def test_device_is_chosen(tmp_path, device):
    tour = clgpu_delegate.quickstart(tmp_path, device=device, precision="fp16", runs=1)
    assert tour.comparison.device.index == int(device)
    assert tour.profile.precision == "fp16"


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"cannot make the folder .*file/tour: Not a directory"):
        clgpu_delegate.quickstart(tmp_path / "file" / "tour")
    with pytest.raises(FileError, match=r"cannot make the folder .*file: File exists"):
        clgpu_delegate.quickstart(tmp_path / "file")


def test_absent_device_leaves_no_page(tmp_path):
    with pytest.raises(DeviceError, match="no OpenCL device has 'abacus' in its name"):
        clgpu_delegate.quickstart(tmp_path, device="abacus")
    assert not (tmp_path / "profile.html").exists()
