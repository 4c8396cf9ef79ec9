"""Sounds for pictures of the site: whistles of birds from formulas, and synthesised speech.

`tools/docs_pictures.py` gives them to the examples, so the repository has no recordings.
"""

from __future__ import annotations

import ctypes
import importlib.util
import wave
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

NOISE = 0.002  # without any, the models say something about silence
SYNTHESISER = "espeakng_loader"

# For each window of three seconds: when a whistle begins and how long it is, in seconds, and its
# frequencies at the beginning and at the end.
CUCKOO = [
    (start, seconds, first, last)
    for call in (0.3, 1.49)
    for start, seconds, first, last in ((call, 0.15, 680, 660), (call + 0.27, 0.22, 540, 530))
]
CHICKADEE = [(0.4, 0.42, 3950, 3850), (0.92, 0.45, 3450, 3400)]
PYGMY_OWL = [(0.3, 0.25, 1350, 1330), (2.15, 0.25, 1350, 1330)]
SONGS = (CUCKOO, CHICKADEE, PYGMY_OWL)


def birds(rate: int) -> Array:
    """Samples of the songs, a window of three seconds for each."""
    windows = np.zeros((len(SONGS), 3 * rate))
    for window, song in zip(windows, SONGS):
        for start, seconds, first, last in song:
            t = np.linspace(0, 1, int(rate * seconds))
            phase = 2 * np.pi * np.cumsum(first + (last - first) * t) / rate
            loudness = np.minimum(1, np.minimum(t, 1 - t) / 0.15)
            begin = int(rate * start)
            window[begin : begin + len(t)] += np.sin(phase) * loudness
    return noisy(0.3 * windows.reshape(-1))


def speech(text: str, rate: int) -> Array:
    """Samples of eSpeak NG with a second of silence before and after.

    Raises
    ------
    ImportError
        If the package with the synthesiser is not installed.
    """
    if importlib.util.find_spec(SYNTHESISER) is None:
        raise ImportError(f"{SYNTHESISER} is not installed")
    import espeakng_loader  # noqa: PLC0415

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    # 2: synchronous, and samples go to the function below.
    given_rate = library.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 0)
    parts: list[Array] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def take(samples: Any, count: int, _: int | None) -> int:
        if count > 0:
            parts.append(np.ctypeslib.as_array(samples, (count,)) / 32768)
        return 0

    library.espeak_SetSynthCallback(take)
    library.espeak_SetVoiceByName(b"en-us")
    words = text.encode()
    library.espeak_Synth(words, len(words) + 1, 0, 1, 0, 1, None, None)
    spoken = np.concatenate(parts)
    times = np.arange(int(len(spoken) * rate / given_rate)) / rate
    spoken = np.interp(times, np.arange(len(spoken)) / given_rate, spoken)
    return noisy(np.pad(spoken, rate))


def noisy(samples: Array) -> Array:
    """The samples with some noise, the same each time."""
    return samples + NOISE * np.random.default_rng(0).standard_normal(len(samples))


def save(path: str | Path, samples: Array, rate: int) -> None:
    """Write samples from -1 to 1 as a .wav file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
