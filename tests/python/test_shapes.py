"""Shapes of a model's inputs that the caller gives, or that are guessed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.base.files import check_model
from clgpu_delegate.cli import exits
from clgpu_delegate.errors import InputError, OptionError
from clgpu_delegate.measure import comparison, turns
from clgpu_delegate.measure.guessing import guess_shapes
from clgpu_delegate.tflite import shapes
from tests.litert.compiled import needs_litert
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.test_cli import clgpu, fails
from tests.runtimes import available_runtimes, make_interpreter


def spectrum(length: int = 512) -> bytes:
    """A model of sounds of any length, of which a window needs ``length`` samples.

    Each extent is open; the shapes that the file stores, of ones, fit nothing.
    """
    m = ModelMaker()
    x = m.op("EXPAND_DIMS", [m.input("sound", (-1, -1)), m.constant(np.int32(2))], (-1, -1, 1))
    x = m.op("EXPAND_DIMS", [x, m.constant(np.int32(1))], (-1, 1, -1, 1))
    kernel = np.linspace(-1, 1, 2 * length, dtype=np.float32).reshape(2, 1, length, 1)
    operands = [x, m.constant(kernel), m.constant(np.zeros(2, np.float32))]
    m.output(m.op("CONV_2D", operands, (-1, 1, -1, 2), padding="VALID", stride_w=length // 2,
                  stride_h=1))  # fmt: skip
    return m.build()


def image(channels: int = 3) -> bytes:
    m = ModelMaker()
    x = m.input("image", (1, -1, -1, channels))
    m.output(m.op("NEG", [m.op("ABS", [x], (1, -1, -1, channels))], (1, -1, -1, channels)))
    return m.build()


def two_inputs() -> bytes:
    m = ModelMaker()
    m.output(m.op("ADD", [m.input("a", (2, 3)), m.input("b", (2, 3))], (2, 3)))
    return m.build()


def test_inputs_of_a_file():
    (sound,) = shapes.inputs_of(spectrum())
    assert (sound.name, sound.shape, sound.signature) == ("sound", (1, 1), (-1, -1))
    assert sound.is_open
    assert [each.is_open for each in shapes.inputs_of(two_inputs())] == [False, False]


@pytest.mark.parametrize("runtime", available_runtimes())
def test_model_with_other_shapes(runtime):
    content = shapes.with_shapes(spectrum(), (3, 1024))
    check_model(content, "the model")
    interpreter = make_interpreter(runtime, content)
    (detail,) = interpreter.get_input_details()
    assert tuple(detail["shape"]) == tuple(detail["shape_signature"]) == (3, 1024)
    interpreter.allocate_tensors()
    assert tuple(interpreter.get_output_details()[0]["shape"]) == (3, 1, 3, 2)


def test_shapes_by_name_and_in_order():
    for given in ([(4, 1), (4, 5)], {"b": (4, 5), "a": (4, 1)}):
        content = shapes.with_shapes(two_inputs(), given)
        assert [each.shape for each in shapes.inputs_of(content)] == [(4, 1), (4, 5)]
    assert shapes.with_shapes(two_inputs(), None) == two_inputs()
    assert shapes.with_shapes(two_inputs(), [(2, 3), (2, 3)]) == two_inputs()


def test_other_tensors_keep_their_shapes():
    """A writer may store equal numbers once, so that several tensors share them."""
    before, after = (
        make_interpreter("auto", content).get_tensor_details()
        for content in (two_inputs(), shapes.with_shapes(two_inputs(), [(4, 5), (4, 5)]))
    )
    changed = {a["name"] for a, b in zip(after, before) if tuple(a["shape"]) != tuple(b["shape"])}
    assert changed == {"a", "b"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((2, 3), "inputs are 2"),
        ({"a": (2, 3)}, "nothing for 'b'"),
        ({"a": (2, 3), "c": (2, 3)}, "no input 'c'"),
        ([(2, 3), (2, -3)], r"\(2, -3\) is not a shape for input 'b'"),
    ],
)
def test_wrong_shapes(given, message):
    with pytest.raises(InputError, match=message):
        shapes.with_shapes(two_inputs(), given)


@pytest.mark.parametrize(
    ("texts", "parsed"),
    [
        ([], None),
        (["1x224x3"], [(1, 224, 3)]),
        (["7", "scalar"], [(7,), ()]),
        (["x=1x2", "a=b=3"], {"x": (1, 2), "a=b": (3,)}),
    ],
)
def test_texts(texts, parsed):
    assert shapes.parse(texts) == parsed


@needs_litert
def test_compiled_models_have_buffers_of_the_new_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)
    path = tmp_path / "model.tflite"
    path.write_bytes(spectrum())
    for shape in ((1, 4096), np.array([5, 512])):
        result = comparison.compare(path, api="compiled", runs=1, shapes=shape)
        (output,) = result.outputs.values()
        assert output.shape == (shape[0], 1, (shape[1] - 512) // 256 + 1, 2)
        assert result.relative_l2_error < 1e-5


def test_nodes_on_the_cpu_have_the_new_shapes(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(spectrum())
    plan = clgpu_delegate.explain_model(path, shapes=[(2, 768)], exclude="CONV_2D,EXPAND_DIMS")
    assert [node.outputs for node in plan.nodes][-1] == ((2, 1, 2, 2),)
    assert plan.claimed == 0


@pytest.mark.parametrize(
    "texts", [["x=1", "x=2"], ["1xx2"], ["1,2"], ["-1x2"], ["x="], ["x=1", "2"], [""]]
)
def test_texts_that_are_no_shapes(texts):
    with pytest.raises(OptionError, match="shape"):
        shapes.parse(texts)


def test_guesses(tmp_path):
    def guess(content: bytes):
        (tmp_path / "model.tflite").write_bytes(content)
        return guess_shapes(tmp_path / "model.tflite")

    assert guess(spectrum(500)) == {"sound": (1, 512)}
    assert guess(image()) == {"image": (1, 224, 224, 3)}
    assert guess(image(5)) == {"image": (1, 128, 128, 5)}
    assert guess(two_inputs()) is None
    assert guess(shapes.with_shapes(image(), (1, 8, 8, 3))) is None


def test_model_that_runs_with_no_guess_has_none(tmp_path, capsys):
    m = ModelMaker()
    m.output(m.op("ADD", [m.input("a", (1, -1)), m.input("b", (1, 3, -1))], (1, 3, -1)))
    m.output(m.op("RESHAPE", [m.input("c", (1, -1)), m.constant(np.int32([7, 11]))], (7, 11)))
    (tmp_path / "model.tflite").write_bytes(m.build())
    assert guess_shapes(tmp_path / "model.tflite") == {}
    clgpu("explain", str(tmp_path / "model.tflite"))
    told = capsys.readouterr().err
    assert "model.tflite leaves shapes open; it runs with none of the usual ones" in told
    assert "--shape 1x224x224x3" in told


def test_bench_guesses_for_each_model(tmp_path):
    paths = [tmp_path / name for name in ("fixed.tflite", "open.tflite")]
    for path, content in zip(paths, (models.chain(), spectrum())):
        path.write_bytes(content)
    words = ["--precision", "fp32", "--runs", "1", "--rounds", "1", "--json"]
    found = json.loads(clgpu("bench", *map(str, paths), *words))["measurements"]
    assert [Path(row["model"]) for row in found] == [paths[0], paths[0], paths[1], paths[1]]
    assert [row["problem"] for row in found] == [None] * 4
    pairs = [(paths[0], (3, 5)), (paths[1], (2, 768))]
    result = clgpu_delegate.benchmark(pairs, precisions=["fp32"], runs=1, rounds=1)
    assert [row.problem for row in result.measurements] == [None] * 4
    with pytest.raises(InputError, match="does not work with these shapes"):
        clgpu_delegate.benchmark([(paths[1], (512,))], runs=1)


def test_commands_take_shapes_and_tell_of_guesses(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)
    path = tmp_path / "model.tflite"
    path.write_bytes(spectrum())
    clgpu("explain", str(path))
    told = f"clgpu: {path} leaves shapes open; assumed: --shape 1x512"
    assert told in capsys.readouterr().err
    out = str(tmp_path / "c.zip")
    for words in (["run", "--runs", "1"], ["explain"], ["bench", "--runs", "1"], ["capture", out],
                  ["tune", "--budget", "1s"], ["profile", "--runs", "1"]):  # fmt: skip
        clgpu(words[0], str(path), *words[1:], "--shape", "sound=2x768")
        assert "assumed" not in capsys.readouterr().err
    assert "'2,768' is not a shape; allowed:" in fails(
        capsys, exits.USAGE, "run", str(path), "--shape", "2,768"
    )
    clgpu("explain", str(path), "--json")
    assert "assumed" not in capsys.readouterr().err, "errors alone are there"
    np.save(tmp_path / "x.npy", np.ones((3, 1024), np.float32))
    clgpu("run", str(path), "--runs", "1", "--input", str(tmp_path / "x.npy"))
    capsys.readouterr()
    for shape, message in [("512", "does not work with these shapes"), ("1x0", "from 1 to"),
                           ("1x3000000000", "from 1 to")]:  # fmt: skip
        assert message in fails(capsys, exits.FAILED, "explain", str(path), "--shape", shape)
    plan = clgpu_delegate.explain_model(path, shapes=(2, 768))
    assert plan.nodes[-1].outputs == ((2, 1, 2, 2),)
