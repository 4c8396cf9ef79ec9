"""Wake words in a sound: ``python -m examples.wake_word speech.wav --word okay_nabu``.

Models and features are those of ``pip install pymicro-wakeword``. The model keeps its state from
one inference to the next, so each step takes 30 ms of sound only.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import clgpu_delegate
from examples import media

RATE, CHUNK = 16_000, 160  # 10 ms give one row of features


def features(samples: media.Array) -> Iterator[list[float]]:
    """A row for each 10 ms of 16-bit samples."""
    from pymicro_features import MicroFrontend  # noqa: PLC0415  # comes with the models

    frontend = MicroFrontend()
    for start in range(0, len(samples) - CHUNK + 1, CHUNK):
        row = frontend.process_samples(samples[start : start + CHUNK].tobytes()).features
        if len(row):
            yield row


def scores(runner: clgpu_delegate.Runner, rows: Iterator[list[float]]) -> Iterator[float]:
    """The model's score after each of its steps, which take three rows."""
    (taken,), (given,) = runner.inputs, runner.outputs
    steps, bins = taken.shape[1:]
    waiting: list[list[float]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == steps:
            codes = np.round(np.array(waiting) / taken.scale + taken.zero_point).clip(-128, 127)
            code = runner.run(codes.astype(taken.dtype).reshape(1, steps, bins))
            waiting = []
            yield (float(np.reshape(code, -1)[0]) - given.zero_point) * given.scale


def main(arguments: list[str] | None = None) -> None:
    """Print when a wake word was said."""
    parser = argparse.ArgumentParser(prog="python -m examples.wake_word")
    parser.add_argument("sound", help="a .wav file of 16 kHz and 16 bits")
    parser.add_argument("--word", default="okay_nabu", help="the name of a model")
    parser.add_argument("--model", help="a .tflite file; its settings are beside it, as .json")
    parser.add_argument("--device", default="", help="part of a device's name, or its index")
    asked = parser.parse_args(arguments)
    file = f"models/{asked.word}.tflite"
    model = Path(asked.model or media.packaged("pymicro_wakeword", file, "pymicro-wakeword"))
    settings = json.loads(model.with_suffix(".json").read_text(encoding="utf-8"))
    cutoff = settings["micro"]["probability_cutoff"]
    recent: collections.deque[float] = collections.deque(
        maxlen=settings["micro"]["sliding_window_size"]
    )
    was_heard = False
    samples = (media.sound(asked.sound, RATE) * 32768).astype(np.int16)
    with clgpu_delegate.Runner(model, device=asked.device) as runner:
        for number, score in enumerate(scores(runner, features(samples))):
            recent.append(score)
            mean = statistics.fmean(recent)
            is_heard = len(recent) == recent.maxlen and mean > cutoff
            if is_heard and not was_heard:
                print(f"{number * 0.03:6.2f} s  {settings['wake_word']}: {mean:.0%}")
            was_heard = is_heard


if __name__ == "__main__":
    media.end(main)
