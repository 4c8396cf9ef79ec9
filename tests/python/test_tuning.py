"""Tuning measures, keeps the winners, and forgets what has changed or does not work."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import OptionError, _core
from clgpu_delegate.cli import exits
from clgpu_delegate.measure import tuning
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.python.test_cli import clgpu, fails
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import MODEL_L2, relative_l2

GEMV = "fully_connected/gemv.cl"


def dense(depth: int = 64) -> bytes:
    """Two equal layers, nodes 0 and 1, and a SOFTMAX."""
    rng = np.random.default_rng(3)
    m = ModelMaker()
    x = m.input("x", (3, depth))
    for _ in range(2):
        weights = m.constant(models.normal(rng, depth, depth) / np.float32(8))
        x = m.op("FULLY_CONNECTED", [x, weights, None], (3, depth))
    m.output(m.op("SOFTMAX", [x], (3, depth), beta=1.0))
    return m.build()


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "dense.tflite"
    path.write_bytes(dense())
    return str(path)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache.sqlite")


def explain(model: str, runtime: str, **options: Any) -> clgpu_delegate.Explanation:
    """Load the model, check that it computes what the stock runtime does, explain."""
    delegate = clgpu_delegate.load(**options)
    content = Path(model).read_bytes()
    x = models.normal(np.random.default_rng(4), 3, 64)
    (got,) = run_interpreter(make_interpreter(runtime, content, [delegate]), [x])
    (want,) = run_reference(content, [x], runtime)
    assert relative_l2(got, want) < MODEL_L2[options.get("precision", "fp32")]
    return delegate.explain()


def records(cache: str) -> dict[str, dict[str, Any]]:
    """What the cache has of tuning, by key."""
    with sqlite3.connect(cache) as database:
        rows = database.execute("SELECT key, value FROM rows WHERE kind = 'tuning'")
        return {key: json.loads(value) for key, value in rows}


@pytest.fixture(autouse=True)
def _any_winners(monkeypatch):
    """Winners are used whatever a small model's times on a busy machine are."""
    monkeypatch.setattr(tuning, "_SLOWER", float("inf"))


@pytest.fixture
def override():
    """Replaces kernel files until the test ends."""
    files = []

    def replace(file: str, text: str) -> None:
        files.append(file)
        _core.override_kernel_source(file, text)

    yield replace
    for file in files:
        _core.override_kernel_source(file, None)


def test_every_candidate_is_measured_once_for_equal_layers(model, cache, device, precision):
    result = clgpu_delegate.tune(model, device=device, precision=precision, cache=cache)
    first, second = result.layers
    assert (first.nodes, first.op, first.outputs) == ((0, 1), "FULLY_CONNECTED", ((3, 64),))
    assert (second.nodes, second.op) == ((2,), "SOFTMAX")
    for layer in result.layers:
        assert layer.outcome == "measured"
        assert layer.problems == {}
        assert {layer.default, layer.winner} <= set(layer.seconds)
        assert layer.winner_seconds == min(layer.default_seconds, layer.winner_seconds)
        assert layer.gain >= 1
        assert all(0 < seconds < 1 for seconds in layer.seconds.values())
    assert result.before_seconds > 0
    assert result.after_seconds > 0
    assert result.notes == ()
    assert json.loads(json.dumps(result.to_dict()))["layers"][0]["winner"] == first.winner


def test_winners_are_used_by_the_next_process_unless_tuning_is_off(model, cache, runtime):
    result = clgpu_delegate.tune(model, cache=cache)
    script = """
import sys
import clgpu_delegate
from tests.runtimes import make_interpreter
model, runtime, cache = sys.argv[1:]
for tuning in "auto", "off":
    delegate = clgpu_delegate.load(cache=cache, tuning=tuning)
    interpreter = make_interpreter(runtime, open(model, "rb").read(), [delegate])
    print(*(f"{node.candidate}:{node.chosen}" for node in delegate.explain().nodes))
"""
    process = run_python(script, model, runtime, cache)
    assert_succeeds(process)
    first, second = result.layers
    tuned, standard = process.stdout.splitlines()
    assert tuned.split() == [f"{first.winner}:tuned"] * 2 + [f"{second.winner}:tuned"]
    assert standard.split() == [f"{first.default}:default"] * 2 + [f"{second.default}:default"]


def test_winners_that_are_slower_together_are_not_used(model, cache, runtime, monkeypatch):
    times = iter([(1.0, 2.0), (1.0, 0.9), (1.0, 2.0), (1.0, 2.0), (1.0, 1.0)])
    monkeypatch.setattr(tuning, "device_times", lambda *_: next(times))
    monkeypatch.setattr(tuning, "_SLOWER", 1.05)
    assert clgpu_delegate.tune(model, cache=cache).used  # the second measurement counts
    chosen = {node.chosen for node in explain(model, runtime, cache=cache).nodes}
    assert chosen == {"tuned"}
    result = clgpu_delegate.tune(model, cache=cache)
    assert (result.used, result.before_seconds, result.after_seconds) == (False, 1.0, 2.0)
    assert ("the default kernels stay in use" in str(result)) == (result.changed > 0)
    plan = explain(model, runtime, cache=cache)
    assert {node.chosen for node in plan.nodes} == {"default"}
    assert [n.candidate for n in plan.nodes] == [result.layers[0].default] * 2 + [
        result.layers[1].default
    ]
    result = clgpu_delegate.tune(model, cache=cache)
    assert not result.used
    assert {layer.outcome for layer in result.layers} == {"kept"}


def test_what_was_measured_is_kept_unless_asked_again(model, cache):
    before = clgpu_delegate.tune(model, cache=cache)
    steps: list[tuple[int, int, str, str]] = []
    after = clgpu_delegate.tune(model, cache=cache, progress=lambda *step: steps.append(step))
    assert [layer.outcome for layer in after.layers] == ["kept", "kept"]
    assert steps == []
    for old, new in zip(before.layers, after.layers):
        assert new.winner == old.winner
        assert new.seconds == pytest.approx(old.seconds, rel=1e-2)
    again = clgpu_delegate.tune(
        model, cache=cache, again=True, progress=lambda *step: steps.append(step)
    )
    assert [layer.outcome for layer in again.layers] == ["measured", "measured"]
    assert {(op, candidate) for _, _, op, candidate in steps} == {
        (layer.op, candidate) for layer in again.layers for candidate in layer.seconds
    }
    assert {step[:2] for step in steps} == {(0, 2), (1, 2)}


def test_another_precision_shape_or_kernel_text_is_measured_anew(
    model, cache, runtime, override, tmp_path
):
    def chosen(path: str = model, **options: Any) -> set[str]:
        delegate = clgpu_delegate.load(cache=cache, **options)
        interpreter = make_interpreter(runtime, Path(path).read_bytes(), [delegate])
        nodes = delegate.explain().nodes
        del interpreter
        return {node.chosen for node in nodes if node.op == "FULLY_CONNECTED"}

    clgpu_delegate.tune(model, cache=cache)
    other = tmp_path / "other.tflite"
    other.write_bytes(dense(depth=48))
    assert chosen() == {"tuned"}
    assert chosen(precision="fp16") == {"default"}
    assert chosen(str(other)) == {"default"}
    override(GEMV, _core.kernel_sources()[GEMV] + "// changed\n")
    assert chosen() == {"default"}
    _core.override_kernel_source(GEMV, None)
    assert chosen() == {"tuned"}


def test_kernel_that_does_not_build_is_reported_and_not_chosen(model, cache, override):
    override(GEMV, "#error broken on purpose\n")
    result = clgpu_delegate.tune(model, cache=cache)
    layer = result.layers[0]
    assert layer.outcome == "measured"
    assert layer.winner != "gemv"
    assert "gemv" not in layer.seconds
    assert "broken on purpose" in layer.problems["gemv"]
    assert any("fully_connected/gemv does not work" in note for note in result.notes)


def test_kernel_that_computes_wrong_numbers_is_reported_and_not_chosen(
    model, cache, runtime, override
):
    text = _core.kernel_sources()[GEMV]
    override(GEMV, text.replace("CHANNEL_AT(n), at", "CHANNEL_AT(n) + 0.01f, at"))
    assert _core.kernel_sources()[GEMV] != text
    result = clgpu_delegate.tune(model, cache=cache)
    layer = result.layers[0]
    assert layer.winner != "gemv"
    assert "computes wrong numbers" in layer.problems["gemv"]
    assert "from naive for node 0" in layer.problems["gemv"]
    (note,) = result.notes
    assert "fully_connected/gemv does not work on this device: computes wrong numbers" in note
    assert explain(model, runtime, cache=cache).nodes[0].candidate == layer.winner


@pytest.mark.parametrize("value", ['{"winner":"none","nanoseconds":{}}', "{", "", "\x00\xff"])
def test_record_that_means_nothing_is_dropped(model, cache, runtime, value):
    clgpu_delegate.tune(model, cache=cache)
    keys = list(records(cache))
    store = _core.Store(cache)
    for key in keys:
        store.put("tuning", key, value.encode("latin-1"))
    plan = explain(model, runtime, cache=cache)
    assert {node.chosen for node in plan.nodes} == {"default"}
    if "none" in value:
        assert [store.get("tuning", key) for key in keys] == [None] * len(keys)
        assert any(
            "fully_connected/none, tuned for node 0, no longer works" in n for n in plan.notes
        )
    result = clgpu_delegate.tune(model, cache=cache)
    assert [layer.outcome for layer in result.layers] == ["measured", "measured"]


def test_tuned_kernel_that_does_not_build_any_more_is_dropped(model, cache, runtime, override):
    # A broken kernel under its old key: as a driver would have it that has got worse.
    override(GEMV, "#error broken on purpose\n")
    clgpu_delegate.tune(model, cache=cache)
    store = _core.Store(cache)
    for key in records(cache):
        store.put("tuning", key, b'{"winner":"gemv","nanoseconds":{"gemv":1}}')
    plan = explain(model, runtime, cache=cache)
    assert [node.chosen for node in plan.nodes] == ["default"] * 3
    assert "gemv" in plan.nodes[0].refused
    assert any("fully_connected/gemv, tuned for node" in note for note in plan.notes)
    assert records(cache) == {}


def test_budget_that_is_spent_leaves_the_defaults_and_says_so(model, cache, runtime):
    result = clgpu_delegate.tune(model, cache=cache, budget=1e-9)
    assert [layer.outcome for layer in result.layers] == ["left", "left"]
    assert [layer.winner for layer in result.layers] == [layer.default for layer in result.layers]
    assert "spent before 2 of 2 layers were measured" in " ".join(str(result).split())
    assert {node.chosen for node in explain(model, runtime, cache=cache).nodes} == {"default"}
    assert result.left == 2
    for wrong, said in ((0, "0"), ("0s", "'0s'"), ("soon", "'soon'"), ("5 d", "'5 d'")):
        with pytest.raises(OptionError, match=f"budget is {said}; allowed"):
            clgpu_delegate.tune(model, cache=cache, budget=wrong)


def test_budget_may_be_a_text(model, cache):
    result = clgpu_delegate.tune(model, cache=cache, budget=" 1.5 m")
    assert result.left == 0


def test_tuning_that_is_interrupted_keeps_what_it_has_found(model, cache):
    def stop(done: int, _count: int, _op: str, _candidate: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clgpu_delegate.tune(model, cache=cache, progress=stop)
    outcomes = [layer.outcome for layer in clgpu_delegate.tune(model, cache=cache).layers]
    assert sorted(outcomes) == ["kept", "measured"]


def test_exhaustive_tuning_measures_while_loading(model, cache, runtime):
    plan = explain(model, runtime, cache=cache, tuning="exhaustive")
    assert [node.chosen for node in plan.nodes] == ["tuned"] * 3
    assert len(records(cache)) == 2
    off = explain(model, runtime, cache="off", tuning="exhaustive")
    assert [node.chosen for node in off.nodes] == ["tuned"] * 3
    assert str(plan).count("(tuned)") == 3


def test_constants_that_are_computed_stay_constants(tmp_path, cache, runtime):
    # The weights of the layer come out of a chain that runs at load time.
    rng = np.random.default_rng(8)
    m = ModelMaker()
    x = m.input("x", (3, 64))
    halves = m.constant(models.normal(rng, 64, 64).astype(np.float16))
    weights = m.op("DEQUANTIZE", [halves], (64, 64), dtype=np.float32)
    weights = m.op("TRANSPOSE", [weights, m.constant(np.array([1, 0], np.int32))], (64, 64))
    m.output(m.op("FULLY_CONNECTED", [x, weights, None], (3, 64)))
    path = tmp_path / "chain.tflite"
    path.write_bytes(m.build())
    result = clgpu_delegate.tune(path, cache=cache)
    assert [layer.op for layer in result.layers] == ["FULLY_CONNECTED"]
    assert result.layers[0].problems == {}
    plan = explain(str(path), runtime, cache=cache)
    assert plan.nodes[-1].candidate == result.layers[0].winner
    assert plan.partitions[0].launches == 1


def test_forced_engines_are_not_tuned(model, cache):
    result = clgpu_delegate.tune(model, cache=cache, engines={"fully_connected": "naive"})
    assert [layer.op for layer in result.layers] == ["SOFTMAX"]


def test_tuning_that_is_off_is_an_error(model):
    with pytest.raises(OptionError, match="'tuning' is 'off'; to tune, allowed: auto, exhaustive"):
        clgpu_delegate.tune(model, tuning="off")


def test_no_gain_is_told_where_each_layer_keeps_its_kernel():
    shown = {"nodes": (0,), "op": "TANH", "outputs": ((1, 4),), "default": "naive"}
    left = tuning.TunedLayer(**shown, winner="naive", outcome="left", seconds={}, problems={})
    facts = {"model": "m", "device": "d", "precision": "fp32", "used": False, "notes": ()}
    times = {"before_seconds": 3e-3, "after_seconds": 2e-3}  # of the same kernels: noise
    result = tuning.Tuning(layers=(left,), **facts, **times)
    assert (result.changed, result.gain) == (0, 1.0)
    assert str(result).endswith("d, fp32: 3.000 ms, with the default kernels")
    assert "1.00x" not in str(result), "what was not measured has no gain"
    won = dataclasses.replace(left, winner="vec4", outcome="measured")
    result = tuning.Tuning(layers=(left, won), **{**facts, "used": True}, **times)
    assert (result.changed, result.gain) == (1, pytest.approx(1.5))
    assert str(result).endswith("3.000 ms before, 2.000 ms after, 1.50x")


def test_model_with_nothing_on_the_device_is_an_error(tmp_path):
    path = tmp_path / "unclaimed.tflite"
    path.write_bytes(models.unclaimed())
    with pytest.raises(clgpu_delegate.ClgpuError, match="nothing to tune"):
        clgpu_delegate.tune(path)


def test_command_prints_a_table_or_json(model, cache, monkeypatch, capsys):
    monkeypatch.setenv("CLGPU_CACHE", cache)
    data = json.loads(clgpu("tune", model, "--json", "--budget", "30s"))
    assert [layer["outcome"] for layer in data["layers"]] == ["measured", "measured"]
    assert {"default_seconds", "winner_seconds", "gain"} <= set(data["layers"][0])
    text = clgpu("tune", model)
    assert "0 and 1 alike" in text
    changed = any(layer["winner"] != layer["default"] for layer in data["layers"])
    assert (" before, " if changed else " ms, with the default kernels") in text
    said = fails(capsys, exits.USAGE, "tune", model, "--budget", "soon")
    assert "budget is 'soon'; allowed" in said
