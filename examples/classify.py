"""What is in a picture: ``python -m examples.classify picture.jpg model.tflite labels.txt``.

The model takes one picture, as floats or integers, and gives one score per line of the labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import clgpu_delegate
from examples import media


def classify(runner: clgpu_delegate.Runner, picture: media.Image.Image) -> media.Array:
    """The score of each class, from 0 to 1 if the model ends with a softmax."""
    (image,), (scores,) = runner.inputs, runner.outputs
    _, height, width, _ = image.shape
    if image.dtype == np.uint8:
        pixels = media.scaled(picture, height, width, 0, 255).round().astype(np.uint8)
    elif image.scale:  # integers that stand for numbers from -1 to 1
        pixels = media.scaled(picture, height, width, -1, 1) / image.scale + image.zero_point
        limits = np.iinfo(image.dtype)
        pixels = pixels.round().clip(limits.min, limits.max).astype(image.dtype)
    else:
        pixels = media.scaled(picture, height, width, -1, 1)
    found = np.asarray(runner.run(pixels), np.float32).reshape(-1)
    return (found - scores.zero_point) * scores.scale if scores.scale else found


def main(arguments: list[str] | None = None) -> None:
    """Print the best classes of a picture."""
    parser = argparse.ArgumentParser(prog="python -m examples.classify")
    parser.add_argument("picture", help="a file, camera:0, or camera:clip.mp4")
    parser.add_argument("model", help="a .tflite file")
    parser.add_argument("labels", help="a text file with a class on each line")
    parser.add_argument("--top", type=int, default=5, help="how many classes to print")
    parser.add_argument("--device", default="", help="part of a device's name, or its index")
    asked = parser.parse_args(arguments)
    labels = Path(asked.labels).read_text(encoding="utf-8").splitlines()
    with clgpu_delegate.Runner(asked.model, device=asked.device) as runner:
        for picture in media.pictures(asked.picture):
            scores = classify(runner, picture)
            if len(labels) != len(scores):
                have = f"{asked.labels} has {len(labels)} lines"
                raise ValueError(f"{have} for the model's {len(scores)} classes")
            for index in np.argsort(-scores)[: asked.top]:
                print(f"{scores[index]:6.1%}  {labels[index]}")


if __name__ == "__main__":
    media.end(main)
