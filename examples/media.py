"""What the applications share: models that other packages ship, pictures and sounds."""

from __future__ import annotations

import importlib.util
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from clgpu_delegate import ClgpuError

Array = np.ndarray[Any, Any]


def packaged(package: str, path: str, install: str) -> Path:
    """A file of an installed package, which is not imported for that."""
    found = importlib.util.find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        if (file := Path(folder, path)).is_file():
            return file
    raise SystemExit(f"{path} of {package} is not installed; try: pip install {install}")


def pictures(source: str) -> Iterator[Image.Image]:
    """The picture of a file, or those of a camera (``camera:0``) or a video (``camera:clip.mp4``).

    Raises
    ------
    SystemExit
        If the camera gives no picture, or OpenCV, which cameras alone need, is not installed.
    """
    kind, _, name = source.partition(":")
    if kind != "camera":
        yield ImageOps.exif_transpose(Image.open(source)).convert("RGB")  # as it was taken
        return
    try:
        import cv2  # noqa: PLC0415
    except ImportError:
        raise SystemExit("cameras need OpenCV; try: pip install opencv-python") from None

    camera = cv2.VideoCapture(int(name or 0) if not name or name.isdigit() else name)
    is_good, picture = camera.read()
    if not is_good:
        raise SystemExit(f"{source} gives no pictures: is there such a camera, and is it free?")
    while is_good:
        yield Image.fromarray(picture[..., ::-1])
        is_good, picture = camera.read()


def scaled(picture: Image.Image, height: int, width: int, low: float, high: float) -> Array:
    """A picture as (1, height, width, 3) floats; black becomes ``low``, white ``high``."""
    pixels = np.asarray(picture.resize((width, height)), np.float32) / 255
    return (low + (high - low) * pixels)[None]


def sound(path: str, rate: int) -> Array:
    """The first channel of a 16-bit .wav file of this rate, as samples from -1 to 1.

    Raises
    ------
    SystemExit
        If the file has another rate or width.
    """
    with wave.open(path, "rb") as file:
        if (file.getframerate(), file.getsampwidth()) != (rate, 2):
            raise SystemExit(
                f"{path} has {file.getframerate()} Hz and {8 * file.getsampwidth()} bits; needed "
                f"are {rate} Hz and 16 bits: ffmpeg -i {path} -ar {rate} -sample_fmt s16 out.wav"
            )
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples[:: file.getnchannels()].astype(np.float32) / 32768


def end(main: Callable[[], None]) -> None:
    """Run a program; its errors are one line."""
    try:
        main()
    except (ClgpuError, OSError, ValueError, ImportError, wave.Error) as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None
