"""quantize() refuses with one sentence, and then writes nothing."""

from __future__ import annotations

import os

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import (
    ClgpuError,
    DependencyError,
    FileError,
    ModelError,
    OptionError,
    QuantizationError,
)
from clgpu_delegate.tflite import schema
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.test_quantize_graphs import dense

SHAPE = (2, 6)
GOOD = np.ones(SHAPE, np.float32)


def one_input() -> bytes:
    m = ModelMaker()
    m.output(dense(m, m.input("x", SHAPE)))
    return m.build()


def two_inputs() -> bytes:
    m = ModelMaker()
    m.output(m.op("ADD", [m.input("x", SHAPE), m.input("y", (6,))], SHAPE))
    return m.build()


def refused(kind: type[Exception], tmp_path, model=None, calibration=(GOOD,), **options) -> str:
    out = tmp_path / "out.tflite"
    with pytest.raises(kind) as info:
        clgpu_delegate.quantize(model or one_input(), calibration, out, **options)
    assert isinstance(info.value, ClgpuError)
    assert isinstance(info.value, (ValueError, ImportError)) or kind in (ClgpuError, FileError)
    assert list(tmp_path.iterdir()) == []
    return str(info.value)


@pytest.mark.parametrize(
    ("sample", "part"),
    [
        (np.ones((2, 7), np.float32), "of shape (2, 7); the model takes (2, 6)"),
        (np.ones(6, np.float32), "of shape (6,); the model takes (2, 6)"),
        (np.ones((2, 6, 1), np.float32), "of shape (2, 6, 1)"),
        (np.ones(SHAPE, np.int32), "of type int32; the model takes float32"),
        (np.full(SHAPE, "a"), "of type <U1"),
        (np.full(SHAPE, np.nan, np.float32), "NaN or infinity"),
        (np.full(SHAPE, np.inf), "NaN or infinity"),
        (np.full(SHAPE, 1e300), "NaN or infinity"),
        ((GOOD, GOOD), "has 2 arrays; the model has 1 inputs (x)"),
        ({"z": GOOD}, "has arrays for z; the model's inputs are x"),
        ([[1.0], [1.0, 2.0]], "has 2 arrays"),
    ],
)
def test_sample_that_does_not_fit(sample, part, tmp_path):
    message = refused(QuantizationError, tmp_path, calibration=[GOOD, sample])
    assert message.startswith("calibration sample 1")
    assert part in message


def test_sets_of_samples_that_do_not_fit(tmp_path):
    assert "is empty" in refused(QuantizationError, tmp_path, calibration=[])
    assert "needs calibration" in refused(QuantizationError, tmp_path, calibration=None)
    assert "is a int" in refused(QuantizationError, tmp_path, calibration=3)
    both = {"x": np.ones((3, *SHAPE)), "y": np.ones((4, 6))}
    message = refused(QuantizationError, tmp_path, two_inputs(), both)
    assert "different numbers of samples per input (x: 3, y: 4)" in message


def test_files_of_samples_that_do_not_fit(tmp_path):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "text.npy").write_text("no numbers")
    np.save(folder / "one.npy", np.ones((3, *SHAPE)))
    np.savez(folder / "other.npz", z=np.ones((3, *SHAPE)))
    for error, name, part in [
        (FileError, "gone.npy", "No such file"),
        (FileError, "text.npy", "not a .npy or .npz file of numbers"),
        (QuantizationError, "one.npy", "1 arrays; the model has 2 inputs"),
        (QuantizationError, "other.npz", "has arrays for z"),
    ]:
        assert part in refused(error, out, two_inputs(), folder / name)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"scheme": "int4"}, "scheme is 'int4'; allowed: int8, int16x8, fp16, dynamic"),
        ({"observer": "best"}, "observer is 'best'; allowed: minmax, moving_average"),
        ({"mode": "fake"}, "mode is 'fake'; allowed: integer, pseudo"),
        ({"io": "int16"}, "io is 'int16'; allowed with scheme 'int8': float, int8, uint8"),
        ({"io": "int8", "scheme": "fp16"}, "allowed with scheme 'fp16': float"),
        ({"mode": "pseudo", "scheme": "dynamic"}, "allowed with mode 'pseudo': int8, int16x8"),
        ({"skip": ["CONV_3D"]}, "skip names 'CONV_3D', which is neither"),
        ({"skip": [7]}, "skip names 7"),
    ],
)
def test_options(options, part, tmp_path):
    assert part in refused(OptionError, tmp_path, **options)


def test_models_that_are_no_float_models(tmp_path):
    for error, content, part in [
        (QuantizationError, models.quantized(), "is quantised already: tensor 'x' is int8"),
        (ModelError, b"no model at all", "lacks the mark TFL3"),
        (ModelError, one_input()[:80], "is not a complete .tflite model"),
    ]:
        assert part in refused(error, tmp_path, content)
    m = ModelMaker()
    m.output(m.op("SIN", [m.input("x", SHAPE)], SHAPE))
    assert "no node of the model can be" in refused(QuantizationError, tmp_path, m.build())
    assert "no weights" in refused(QuantizationError, tmp_path, m.build(), None, scheme="fp16")
    assert "cannot read the model" in refused(ClgpuError, tmp_path, tmp_path / "gone.tflite")


def test_numbers_that_are_not_finite_in_the_model(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    m.output(dense(m, m.op("LOG", [m.op("SUB", [x, x], SHAPE)], SHAPE)))
    message = refused(QuantizationError, tmp_path, m.build())
    assert "NaN or infinity in tensor" in message
    assert "skip" in message
    m = ModelMaker()
    m.output(dense(m, m.input("x", SHAPE), weights=m.constant(np.full((6, 6), np.nan, np.float32))))
    assert "NaN or infinity" in refused(QuantizationError, tmp_path, m.build(), scheme="dynamic")


def test_places_that_cannot_be_written(tmp_path):
    for out, part in [(tmp_path, "it is a folder"), (tmp_path / "a" / "b", "there is no folder")]:
        with pytest.raises(FileError, match=part):
            clgpu_delegate.quantize(one_input(), [GOOD], out)


def test_old_file_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    out = tmp_path / "out.tflite"
    out.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(ClgpuError, match=r"cannot write .*disk full"):
        clgpu_delegate.quantize(one_input(), [GOOD], out)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


def test_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    schema.module.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "tflite", None)
    message = refused(DependencyError, tmp_path)
    schema.module.cache_clear()
    assert "tflite" in message
    assert "pip install 'clgpu_delegate[quantize]'" in message
