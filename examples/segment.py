"""A person without the background: ``python -m examples.segment picture.jpg out.png``.

The model is the selfie segmenter of ``pip install --no-deps mediapipe==0.10.14``.
"""

from __future__ import annotations

import argparse

import numpy as np
from PIL import Image

import clgpu_delegate
from examples import media

MODEL = ("mediapipe", "modules/selfie_segmentation/selfie_segmentation.tflite",
         "--no-deps mediapipe==0.10.14")  # fmt: skip


def mask(runner: clgpu_delegate.Runner, picture: Image.Image) -> Image.Image:
    """A grey picture of the same size: white where the person is."""
    (image,) = runner.inputs
    _, height, width, _ = image.shape
    person = runner.run(media.scaled(picture, height, width, 0, 1)).reshape(height, width)
    grey = Image.fromarray((person.clip(0, 1) * 255).round().astype(np.uint8))
    return grey.resize(picture.size, Image.Resampling.BILINEAR)


def main(arguments: list[str] | None = None) -> None:
    """Put the person of a picture before a plain background."""
    parser = argparse.ArgumentParser(prog="python -m examples.segment")
    parser.add_argument("picture")
    parser.add_argument("out", help="the picture to write")
    parser.add_argument("--background", default="seagreen", help="a colour's name or #rrggbb")
    parser.add_argument("--model", help="the segmenter's .tflite file")
    parser.add_argument("--device", default="", help="part of a device's name, or its index")
    asked = parser.parse_args(arguments)
    (picture,) = media.pictures(asked.picture)
    model = asked.model or media.packaged(*MODEL)
    with clgpu_delegate.Runner(model, device=asked.device) as runner:
        person = mask(runner, picture)
    plain = Image.new("RGB", picture.size, asked.background)
    Image.composite(picture, plain, person).save(asked.out)
    print(f"{np.asarray(person).mean() / 255:.0%} of the picture is the person: {asked.out}")


if __name__ == "__main__":
    media.end(main)
