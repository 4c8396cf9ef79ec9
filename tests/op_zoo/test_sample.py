"""The frame of the operation tests without TensorFlow, with models of our own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.op_zoo import __main__ as zoo
from tests.op_zoo import make, run
from tests.ops.harness import op_runtime
from tests.runtimes import run_reference

INPUT = 0  # the first tensor of each model


def small_lrn() -> ModelMaker:
    """The reference kernel sums one channel less than the default one, of a radius of 0 none."""
    m = ModelMaker()
    x = m.input("x", (1, 3, 4, 3))
    options = {"radius": 0, "bias": 0.3, "alpha": 2.0, "beta": 0.5}
    m.output(m.op("LOCAL_RESPONSE_NORMALIZATION", [x], (1, 3, 4, 3), **options))
    return m


def split_with_an_empty_part() -> ModelMaker:
    m = ModelMaker()
    x = m.input("x", (2, 4, 1))
    sizes, axis = m.constant(np.array([0, 4], np.int32)), m.constant(np.array(1, np.int32))
    m.output(*m.op("SPLIT_V", [x, sizes, axis], [(2, 0, 1), (2, 4, 1)], num_splits=2))
    return m


def gather_from_the_last_axis() -> ModelMaker:
    m = ModelMaker()
    x = m.input("x", (1, 2, 20), np.int64)
    at = m.constant(np.array([4, 0, 19, 4], np.int32))
    m.output(m.op("GATHER", [x, at], (1, 2, 4), axis=-1, dtype=np.int64))
    return m


def slice_backwards() -> ModelMaker:
    m = ModelMaker()
    x = m.input("x", (1, 4, 6))
    begin, end, strides = (
        m.constant(np.array(v, np.int32)) for v in ([0, 3, 5], [1, 0, 0], [1, -1, -2])
    )
    options = {"shrink_axis_mask": 1, "end_mask": 2}
    m.output(m.op("STRIDED_SLICE", [x, begin, end, strides], (4, 3), **options))
    return m


def unknown_operation() -> ModelMaker:
    m = ModelMaker()
    m.output(m.custom("NoSuchOperation", [m.input("x", (2, 3))], (2, 3)))
    return m


MODELS = [
    small_lrn,
    split_with_an_empty_part,
    gather_from_the_last_axis,
    slice_backwards,
    unknown_operation,
]


def write(folder: Path, number: int, made: Any, rng: np.random.Generator) -> Path:
    """A case as make.py writes it, with stock's default kernels in place of TensorFlow."""
    m = made()
    model = m.build()
    x = (rng.standard_normal(m.shape(INPUT)) * 10).astype(m.dtype(INPUT))
    arrays = {"input 0": x}
    if made is not unknown_operation and made is not split_with_an_empty_part:
        outputs = run_reference(model, [x], op_runtime(), "no_delegate")
        arrays |= {f"output {i}": y for i, y in enumerate(outputs)}
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.tflite").write_bytes(model)
    np.savez(folder / f"{number}.npz", **arrays)
    case = {"number": number, "operation": folder.name, "parameters": {}}
    with (folder / "cases.jsonl").open("a", encoding="utf-8") as file:
        for outcome in (make.STARTED, make.CONVERTED):
            file.write(json.dumps({**case, "outcome": outcome}) + "\n")
    return folder / str(number)


def test_cases_are_run_and_counted(tmp_path, device, rng, capsys):
    folder = tmp_path / "sample"
    for number, made in enumerate(MODELS):
        write(folder, number, made, rng)
    with (folder / "cases.jsonl").open("a", encoding="utf-8") as file:
        for number, outcome in enumerate((make.REFUSED, make.NOT_CONVERTED, make.STARTED), 10):
            case = {"number": number, "operation": "sample", "parameters": {}, "outcome": outcome}
            file.write(json.dumps(case) + "\n")
    assert zoo.run_all(tmp_path, device, {}, set()) == 0
    text = capsys.readouterr().out
    # Refused by TensorFlow: no case. The split is on the CPU, the unknown operation nowhere.
    assert "| sample | 7 | 5 | 4 | 3 | 4 | 4 | 0 | 0 | 0 |" in text
    assert "1 of these right as stock's default kernels compute" in text
    assert "| 1 | SPLIT_V | its result [2, 0, 1] has 0 elements;" in text
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = [json.loads(line)["outcome"] for line in lines]
    assert outcomes == [run.RIGHT] * 4 + [run.STOCK_FAILS, "", ""]


def test_wrong_results_and_errors_are_told(tmp_path, device, rng, monkeypatch):
    path = write(tmp_path / "sample", 0, gather_from_the_last_axis, rng)
    item = json.dumps({"case": str(path), "ours": True, "device": device})
    assert run.run_case(item)[0] == run.RIGHT
    run_stock = run.Case.run_stock

    def off_by_one(case: run.Case) -> None:
        run_stock(case)
        case.wanted[1]["output_0"][0, 1, 2] += 1
        case.tensorflow["output_0"][0, 1, 2] += tensorflow_off

    monkeypatch.setattr(run.Case, "run_stock", off_by_one)
    monkeypatch.setattr(run, "same", lambda *_arrays: True)
    tensorflow_off = 0
    assert run.run_case(item)[0] == run.AS_TENSORFLOW
    tensorflow_off = 2
    outcome, text = run.run_case(item)
    assert outcome == run.WRONG
    assert "inference 1, output_0: 1 of 8 differ, at (0, 1, 2)" in json.loads(text)["why"]
    monkeypatch.undo()

    def fails(**_options: Any) -> None:
        raise RuntimeError("as a driver would")

    monkeypatch.setattr(run.clgpu_delegate, "load", fails)
    outcome, text = run.run_case(item)
    assert (outcome, json.loads(text)["why"]) == (run.FAILED, "RuntimeError: as a driver would")


def test_differences():
    want = np.array([1.0, -2.0, np.nan, np.inf], np.float32)
    assert run.difference(want.copy(), want, "fp32", 1.0) == ""
    for at, value in ((0, 1.001), (2, 0.0), (3, -np.inf), (1, np.nan)):
        got = want.copy()
        got[at] = value
        assert run.difference(got, want, "fp32", 1.0) != "", (at, value)
    got = want + np.float32(0.25)
    assert run.difference(got, want, "fp32", 1.0, step=0.25) == ""
    assert run.difference(got, want, "fp32", 1.0, step=0.24) != ""
    assert "instead of float32[2, 2]" in run.difference(want, want.reshape(2, 2), "fp32", 1.0)


def test_parameters_are_drawn_once(tmp_path, monkeypatch):
    """Those that TensorFlow refuses do not count; where the process ended, it goes on behind."""
    grids = [{"a": range(7), "b": "xyz"}, {"a": [7], "c": [None]}]
    sizes = [21, 1]
    drawn = [make.chosen(grids, sizes, i) for i in range(22)]
    assert drawn[5] == {"a": 1, "b": "z"}
    assert drawn[21] == {"a": 7, "c": None}
    built = []

    def build(_name: str, _seed: int, parameters: dict[str, Any], *_more: Any) -> dict[str, Any]:
        built.append(str(parameters))
        if len(built) == 4:
            raise KeyboardInterrupt  # ends the process
        return {"outcome": make.REFUSED if parameters["a"] % 2 else make.CONVERTED}

    def make_cases() -> None:
        maker = make.Maker(tmp_path / "op", cases=6, seed=0)
        maker.make_zip_of_tests(make.Options(), grids, print, print)

    monkeypatch.setattr(make, "build", build)
    with pytest.raises(KeyboardInterrupt):
        make_cases()
    make_cases()
    assert len(built) == len(set(built))
    outcomes = [case["outcome"] for case in make.read_cases(tmp_path / "op")]
    assert outcomes[3] == make.STARTED
    assert len(outcomes) - outcomes.count(make.REFUSED) == 6
    count = len(built)
    make_cases()
    assert len(built) == count


def test_a_python_without_tensorflow_is_an_error(tmp_path):
    (tmp_path / make.GENERATORS).mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "No module named tensorflow" >&2; exit 1\n')
    python.chmod(0o755)
    with pytest.raises(SystemExit, match=r"cannot import TensorFlow.*--python"):
        zoo.make_all(tmp_path, tmp_path / "out", str(python), [])


def test_a_folder_that_is_no_checkout_is_an_error(tmp_path):
    script = Path(make.__file__)
    for command in (["-m", "tests.op_zoo"], [str(script)]):
        ended = subprocess.run(
            [sys.executable, *command, str(tmp_path), str(tmp_path / "out")],
            check=False, capture_output=True, text=True, cwd=script.parents[2],
        )  # fmt: skip
        assert ended.returncode == 2
        assert "checkout of LiteRT" in ended.stderr
