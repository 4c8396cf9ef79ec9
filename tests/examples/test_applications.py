"""The applications find what is in pictures and sounds that the tests draw."""

from __future__ import annotations

import json
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL", reason="Pillow is not installed (extra: examples)")

from PIL import Image, ImageDraw

import clgpu_delegate
from examples import birds, classify, detect, media, segment, wake_word
from tests.model_maker import ModelMaker

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "models" / "open"


def colours(dtype: type) -> bytes:
    """The mean of each channel as the score of a class: red, green, blue."""
    m = ModelMaker()
    if dtype == np.uint8:
        pixels = {"quantization": (1 / 255, 0)}
        x = m.input("picture", (1, 12, 8, 3), dtype, **pixels)
        axes = m.constant(np.int32([1, 2]))
        m.output(m.op("MEAN", [x, axes], (1, 3), dtype=dtype, **pixels))
    else:
        x = m.input("picture", (1, 12, 8, 3))
        m.output(m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (1, 3)))
    return m.build()


@pytest.fixture
def files(tmp_path):
    """Writes a picture of a colour, and returns its path."""

    def write(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_classes_of_a_picture(files, tmp_path, capsys, device, dtype):
    picture = tmp_path / "leaf.png"
    Image.new("RGB", (40, 30), (60, 200, 20)).save(picture)
    labels = files("labels.txt", b"red\ngreen\nblue\n")
    model = files("model.tflite", colours(dtype))
    classify.main([str(picture), model, labels, "--top", "2", "--device", device])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [name for _, name in lines] == ["green", "red"]
    if dtype == np.uint8:
        assert lines[0][0] == f"{200 / 255:.1%}"


def boxes_at(found: dict[int, tuple[float, list[float]]]) -> bytes:
    """A detector that finds the same in every picture: logit and box, by the number of the box."""
    shifts, logits = np.zeros((1, 896, 16), np.float32), np.full((1, 896, 1), -9, np.float32)
    for number, (logit, box) in found.items():
        shifts[0, number, :4], logits[0, number] = box, logit
    m = ModelMaker()
    x = m.op("MEAN", [m.input("picture", (1, 128, 128, 3)), m.constant(np.int32([1, 2, 3]))], (1,))
    nothing = m.op("MUL", [x, m.constant(np.zeros(1, np.float32))], (1,))
    m.output(*(m.op("ADD", [nothing, m.constant(v)], v.shape) for v in (shifts, logits)))
    return m.build()


def test_boxes_lie_where_the_detector_has_them(files, tmp_path, capsys, device):
    cell = 2 * (16 * 4 + 8)  # the first box of the cell in column 8, row 4, of 16 x 16
    coarse = 512 + 6 * (8 * 5 + 2)
    model = files("model.tflite", boxes_at({
        cell: (2.0, [0, 6.4, 25.6, 12.8]),  # pixels of 128: shift, width and height
        cell + 1: (1.0, [1, 6.4, 25.6, 12.8]),  # overlaps the better one
        coarse: (1.0, [0, 0, 12.8, 12.8]),
    }))  # fmt: skip
    with clgpu_delegate.Runner(model, device=device) as runner:
        (best, first), (good, second) = detect.detect(runner, Image.new("RGB", (64, 64)))
    assert (best, good) == pytest.approx((1 / (1 + np.exp(-2)), 1 / (1 + np.exp(-1))))
    x, y = 8.5 / 16, 4.5 / 16 + 0.05
    np.testing.assert_allclose(first, [x - 0.1, y - 0.05, x + 0.1, y + 0.05], atol=1e-5)
    x, y = 2.5 / 8, 5.5 / 8
    np.testing.assert_allclose(second, [x - 0.05, y - 0.05, x + 0.05, y + 0.05], atol=1e-5)
    picture, out = tmp_path / "in.png", tmp_path / "out.png"
    Image.new("RGB", (200, 100)).save(picture)
    detect.main([str(picture), "--out", str(out), "--model", model, "--device", device])
    assert capsys.readouterr().out.count("% at") == 2
    drawn = np.asarray(Image.open(out))
    assert tuple(drawn[int(100 * first[1]), int(200 * 8.5 / 16)]) == (0, 255, 0)


class Camera:
    """OpenCV as far as the examples use it: frames from a list, and a window that is a list."""

    def __init__(self, frames: list[np.ndarray], keys: str = ""):
        self.frames, self.keys, self.shown, self.opened = frames, list(keys), [], []

    def VideoCapture(self, name: int | str) -> Camera:
        self.opened.append(name)
        return self

    def read(self) -> tuple[bool, np.ndarray | None]:
        return (True, self.frames.pop(0)) if self.frames else (False, None)

    def imshow(self, _window: str, picture: np.ndarray) -> None:
        self.shown.append(picture.copy())

    def waitKey(self, _wait_ms: int) -> int:
        return ord(self.keys.pop(0)) if self.keys else -1


def blue_frames(count: int) -> list[np.ndarray]:
    """Pictures as cameras give them to OpenCV: rows, columns, and blue before green and red."""
    frame = np.zeros((96, 128, 3), np.uint8)
    frame[..., 0] = 255
    return [frame.copy() for _ in range(count)]


def test_boxes_of_a_camera_are_in_a_window(files, capsys, device, monkeypatch):
    model = files("model.tflite", boxes_at({0: (2.0, [60, 60, 64, 64])}))
    camera = Camera(blue_frames(3))
    monkeypatch.setitem(sys.modules, "cv2", camera)
    detect.main(["camera:1", "--model", model, "--device", device])
    assert camera.opened == [1]
    assert capsys.readouterr().out.count("88% at 0.25 0.25 0.75 0.75") == 3
    assert len(camera.shown) == 3
    for picture in camera.shown:
        assert picture.shape == (96, 128, 3)
        assert picture[48, 64].tolist() == [255, 0, 0], "blue, as it came"
        assert picture[24, 64].tolist() == [0, 255, 0], "the upper edge of the box"
        assert picture[6:22, 6:90, 2].max() > 100, "the frames per second, in yellow"


def test_a_camera_ends_with_its_window(files, device, monkeypatch):
    camera = Camera(blue_frames(9), keys="xq")
    monkeypatch.setitem(sys.modules, "cv2", camera)
    model = files("model.tflite", boxes_at({}))
    with pytest.raises(SystemExit) as ended:
        detect.main(["camera:0", "--model", model, "--device", device])
    assert (ended.value.code, len(camera.shown)) == (None, 2)


def test_a_video_is_a_camera(monkeypatch):
    camera = Camera(blue_frames(2))
    monkeypatch.setitem(sys.modules, "cv2", camera)
    pixels = [picture.getpixel((5, 5)) for picture in media.pictures("camera:clip.mp4")]
    assert (camera.opened, pixels) == (["clip.mp4"], [(0, 0, 255)] * 2)


def test_a_camera_that_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", Camera([]))
    with pytest.raises(SystemExit, match="camera:7 gives no pictures: is there such a camera"):
        list(media.pictures("camera:7"))
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(SystemExit, match="cameras need OpenCV; try: pip install opencv-python"):
        list(media.pictures("camera:0"))


def test_a_video_of_opencv_itself_is_read(tmp_path):
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    path = str(tmp_path / "clip.avi")
    writer = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*"MJPG"), 10, (128, 96))
    if not writer.isOpened():
        pytest.skip("this OpenCV writes no videos")
    for frame in blue_frames(4):
        writer.write(frame)
    writer.release()
    pixels = [picture.getpixel((64, 48)) for picture in media.pictures(f"camera:{path}")]
    assert len(pixels) == 4
    np.testing.assert_allclose(pixels, [(0, 0, 255)] * 4, atol=6)  # compressed


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there is no folder {SHARED}")
def test_detector_and_segmenter_of_mediapipe_find_nobody_in_an_empty_picture(device):
    picture = Image.new("RGB", (320, 240), "white")
    model = SHARED / "mp_face_detection_short_range.tflite"
    with clgpu_delegate.Runner(model, device=device) as runner:
        assert detect.detect(runner, picture) == []
    with clgpu_delegate.Runner(SHARED / "mp_selfie_segmentation.tflite", device=device) as runner:
        assert np.asarray(segment.mask(runner, picture)).mean() < 32


def test_background_is_replaced(files, tmp_path, capsys, device):
    m = ModelMaker()
    places = [m.constant(np.int32(v)) for v in ([0, 0, 0, 0], [1, 16, 16, 1])]
    m.output(m.op("SLICE", [m.input("picture", (1, 16, 16, 3)), *places], (1, 16, 16, 1)))
    picture, out = tmp_path / "in.png", tmp_path / "out.png"
    drawing = Image.new("RGB", (64, 64), "blue")
    ImageDraw.Draw(drawing).rectangle((32, 0, 63, 63), fill="red")  # what is red is the person
    drawing.save(picture)
    segment.main([str(picture), str(out), "--background", "yellow", "--model",
                  files("model.tflite", m.build()), "--device", device])  # fmt: skip
    result = Image.open(out)
    assert result.getpixel((8, 32)) == (255, 255, 0)
    assert result.getpixel((56, 32)) == (255, 0, 0)
    assert capsys.readouterr().out.startswith("50% of the picture")


def write_sound(path: Path, samples: np.ndarray, rate: int) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        both = np.stack([samples, np.zeros_like(samples)], 1)
        file.writeframes((both * 32767).astype("<i2").tobytes())
    return str(path)


def test_species_of_each_window(files, tmp_path, capsys, device):
    size = 480
    songs = np.stack([np.sin(2 * np.pi * f * np.arange(size) / size) for f in (5, 9, 14)])
    m = ModelMaker()
    x = m.input("sound", (1, size))
    scores = m.op("FULLY_CONNECTED", [x, m.constant(songs.astype(np.float32)), -1], (1, 3))
    shift = m.constant(np.float32([-6.0]))
    m.output(m.op("ADD", [m.op("MUL", [scores, m.constant(np.float32([0.1]))], (1, 3)), shift],
                  (1, 3)))  # fmt: skip
    sound = write_sound(tmp_path / "s.wav", np.concatenate([songs[2], songs[0], songs[1][:400]]),
                        birds.RATE)  # fmt: skip
    birds.main([sound, "--model", files("model.tflite", m.build()), "--device", device,
                "--labels", files("labels.txt", b"wren\ntit\nowl\n")])  # fmt: skip
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(start, name) for start, _, _, name in lines] == [
        ("0.0", "owl"), ("3.0", "wren"), ("6.0", "tit"),
    ]  # fmt: skip


def test_sound_of_another_rate_is_told(tmp_path):
    sound = write_sound(tmp_path / "s.wav", np.zeros(80), 8000)
    with pytest.raises(SystemExit, match="has 8000 Hz and 16 bits; needed are 48000 Hz"):
        media.sound(sound, 48_000)


def test_wake_word_is_heard_where_it_is_said(files, tmp_path, capsys, device, monkeypatch):
    m = ModelMaker()
    x = m.input("rows", (1, 3, 2), np.int8, quantization=(0.5, 0))
    axes = m.constant(np.int32([1, 2]))
    mean = m.op("MEAN", [x, axes], (1,), dtype=np.int8, quantization=(0.5, 0))
    score = m.op("LOGISTIC", [mean], (1,), dtype=np.int8, quantization=(1 / 256, -128))
    m.output(score)
    model = files("hello.tflite", m.build())
    settings = {
        "wake_word": "Hello",
        "micro": {"probability_cutoff": 0.9, "sliding_window_size": 2},
    }
    files("hello.json", json.dumps(settings).encode())
    silence = [[-9.0, -9.0]] * 30
    said = [*silence, *[[9.0, 9.0]] * 27, *silence, *[[9.0, 9.0]] * 9, *silence]
    monkeypatch.setattr(wake_word, "features", lambda _: iter(said))
    sound = write_sound(tmp_path / "s.wav", np.zeros(160), wake_word.RATE)
    wake_word.main([sound, "--model", model, "--device", device])
    # Twice, the first time for long: the model's score stays high for a while.
    assert capsys.readouterr().out == "  0.33 s  Hello: 100%\n  0.90 s  Hello: 100%\n"


def test_package_that_is_missing_is_told():
    with pytest.raises(SystemExit, match=r"x\.tflite of no_such_package is not installed; try"):
        media.packaged("no_such_package", "x.tflite", "no_such_package")
