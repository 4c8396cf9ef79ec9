"""The model that the doctor runs: a small convolution, a dense layer and a softmax, in float32.

Its bytes are stored here because writing models needs packages that may not be installed;
tests/doctor/test_model.py builds the same model and compares the bytes.
"""

from __future__ import annotations

import base64
import zlib

NODES = 4
INPUT = (1, 4, 4, 2)

_BYTES = (
    "eNrtVT1LA0EQnc1dYiSHRDzCCSmCWFhYxG8LP1JZWVqmsREstLKwsEjlD/AHiKW/wC6aylIsRazFwlJEUVzf7MzFNY"
    "nYKmTh3c7szL6Zm9nbS4hoY219hmiIYipSRHmshNCITgKiOmZeCdwqUQ0YB2LV76y1o+TG6APkQZEHnyCXRC5FYC04"
    "MYQkXDwZ5eHYSTu6xOb1SSABysCSkXg7m9u7vMNoXka4nO0aOAAWVT9GDrHmEysXxy69WkvUWPU5BoCrL/98UXPIAP"
    "UXa1Mf1rNAriPvgpc3xnBF68T7DhEv1L2sV3XO6lpaW+kBfeMrC59hrgkgoqJ75pFNpDajfEa5tL5OZ37uySmUOlAG"
    "HqG3gAb3XuvM8Y8+uC5k0t5mOvLcQ2HPfvNZIBqz4pOoT+jVrZr6zWO2vbnaPnPu+Lgaj+jJlDFAerZM8vW+mdB7Z7"
    "d/lmhLY5S9XIwnB6kvvoBbL5+M59v2mZZ84nYPuvOp9OAPPA7HMyU8Re1gL56f8k1rtK/1jPCowPCOADeB+Dy/yXlr"
    "ucK0muj0stA2ILdYZjT7tr6tb/v7tksr33Peux/9ca92uU1qF3isiiXn/qc5vTtuuuwEuQa5sQKc/2dbSKF7x0/cvj"
    "e+"
)


def content() -> bytes:
    """The bytes of the .tflite file: input (1, 4, 4, 2), output (1, 5)."""
    return zlib.decompress(base64.b64decode(_BYTES))
