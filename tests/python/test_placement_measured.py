"""placement="measured": an equal interpreter finds the stored measurement."""

from __future__ import annotations

import threading

import pytest

import clgpu_delegate
from clgpu_delegate import _core, cache
from clgpu_delegate.placement import contest
from clgpu_delegate.placement.verdict import Timing, Verdict
from tests.python import models
from tests.runtimes import available_runtimes, interpreter_module, make_interpreter, run_interpreter


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "cache.sqlite")


@pytest.fixture
def measured(monkeypatch):
    """Replaces the measuring: the fastest is what `winner` says; lists what was measured."""
    calls = []

    def measure(make, options, runtime, threads, _progress):
        delegate = clgpu_delegate.load(device=options.device)
        interpreter = make([delegate])
        nodes = delegate.explain().nodes
        del interpreter
        calls.append((runtime.split(" ", maxsplit=1)[0], threads))
        claimed = {"cpu": [], "all": [n.index for n in nodes], "core": [0]}[measure.winner]
        ms = {"cpu": 2.0, "all": 3.0, "core": 4.0, measure.winner: 1.0}
        return Verdict(
            choice=measure.winner,
            left=tuple(n.index for n in nodes if n.index not in claimed),
            ops=tuple(n.op for n in nodes),
            timings=tuple(Timing(name, value, 1) for name, value in ms.items()),
            device="a device",
            precision="fp32",
            runtime=runtime,
            threads=threads,
        )

    measure.winner = "cpu"
    measure.calls = calls
    monkeypatch.setattr(contest, "measure", measure)
    return measure


def _placed(runtime, model, store, device="", threads=1, **options):
    delegate = clgpu_delegate.load(device=device, placement="measured", cache=store, **options)
    interpreter = make_interpreter(runtime, model, [delegate], threads=threads)
    return interpreter, delegate.explain()


@pytest.mark.usefixtures("measured")
def test_the_cpus_verdict_claims_nothing_and_gives_the_times(store, runtime):
    _, explanation = _placed(runtime, models.image(), store)
    assert explanation.claimed == 0
    assert {n.reason for n in explanation.nodes} == {
        "measured: CPU alone 1 ms, all on the device 3 ms"
    }
    placement = explanation.to_dict()["placement"]
    assert placement["mode"] == "measured"
    assert placement["choice"] == "cpu"
    assert placement["source"] == "measured now"
    assert {"name": "all", "ms": 3.0} in placement["candidates"]
    assert placement["runtime"].startswith(runtime)
    assert not explanation.notes
    assert "placement: cpu (measured now), cpu 1 ms, all 3 ms" in str(explanation)


def test_a_part_of_the_nodes_goes_to_the_device(measured, store, runtime):
    measured.winner = "core"
    _, explanation = _placed(runtime, models.image(), store)
    assert [n.claimed for n in explanation.nodes] == [True, False, False]
    assert explanation.nodes[1].reason.startswith("measured: the core operations on the device 1 ")
    measured.winner = "all"
    _, explanation = _placed(runtime, models.image((2, 7, 6, 3)), store)
    assert explanation.claimed == explanation.total


def test_a_verdict_is_kept_and_found_by_path_content_and_function(measured, store, tmp_path):
    model = models.image()
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    for runtime in available_runtimes():
        measured.calls.clear()
        module = interpreter_module(runtime)
        first = clgpu_delegate.measure_placement(path, runtime=runtime, cache=store)
        assert (first.choice, first.source) == ("cpu", "measured now")
        assert first.to_dict()["candidates"][0]["name"] == "cpu"
        assert "chosen" in str(first)
        for arguments in ({"model_path": str(path)}, {"model_content": model}):
            delegate = clgpu_delegate.load(placement="measured", cache=store)
            module.Interpreter(**arguments, experimental_delegates=[delegate])
            assert delegate.explain().to_dict()["placement"]["source"] == "kept"
        assert (
            clgpu_delegate.measure_placement(model, runtime=runtime, cache=store).source == "kept"
        )
        assert measured.calls == [(runtime, 1)]
        clgpu_delegate.measure_placement(model, runtime=runtime, cache=store, again=True)
        assert len(measured.calls) == 2


def test_another_model_precision_or_number_of_threads_is_measured_anew(measured, store, runtime):
    _placed(runtime, models.image(), store)
    _placed(runtime, models.image(), store)
    assert len(measured.calls) == 1
    _placed(runtime, models.image((2, 7, 6, 3)), store)
    _placed(runtime, models.image(), store, precision="fp16")
    _placed(runtime, models.image(), store, threads=2)
    assert measured.calls == [(runtime, 1)] * 3 + [(runtime, 2)]
    _placed(runtime, models.image(), store, profile=True)  # changes nothing that runs
    assert len(measured.calls) == 4


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b"\xff", b'{"timings": [], "left": 3}'])
def test_a_row_that_makes_no_sense_is_measured_anew(measured, store, runtime, value):
    _placed(runtime, models.image(), store)
    (entry,) = [entry for entry in cache.entries(store) if entry.kind == "placement"]
    _core.Store(store).put("placement", entry.key, value)
    _placed(runtime, models.image(), store)
    assert len(measured.calls) == 2


def test_without_a_store_the_process_remembers(measured, runtime):
    for _ in range(2):
        _placed(runtime, models.image((3, 7, 6, 3)), "off")
    assert len(measured.calls) == 1


@pytest.mark.usefixtures("measured")
def test_subclasses_of_an_interpreter_are_known(store, runtime):
    class Mine(interpreter_module(runtime).Interpreter):
        def __init__(self, model, delegate):
            super().__init__(model_content=model, experimental_delegates=[delegate])

    delegate = clgpu_delegate.load(placement="measured", cache=store)
    Mine(models.image(), delegate)
    assert delegate.explain().to_dict()["placement"]["choice"] == "cpu"


def test_other_callers_get_the_cost_model_and_a_note(measured, store, runtime):
    delegate = clgpu_delegate.load(placement="measured", cache=store)

    class Handle:
        """Hides the delegate like a third-party wrapper."""

        def _get_native_delegate_pointer(self):
            return delegate._get_native_delegate_pointer()

    make_interpreter(runtime, models.image(), [Handle()])
    explanation = delegate.explain()
    placement = explanation.to_dict()["placement"]
    assert (placement["mode"], placement["source"]) == ("measured", "cost model")
    assert any("measure_placement" in note for note in explanation.notes)
    assert not measured.calls


def test_a_host_without_python_gets_the_cost_model(runtime, rng):
    options = {"placement": "measured", "cache": "off"}
    delegate = interpreter_module(runtime).load_delegate(clgpu_delegate.plugin_path(), options)
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    operations = {op["op_name"] for op in interpreter._get_ops_details()}
    assert operations == {"CONV_2D", "MAX_POOL_2D", "MEAN"}  # too small to gain
    run_interpreter(interpreter, [models.normal(rng, 1, 7, 6, 3)])


def test_a_measurement_that_fails_leaves_it_to_the_cost_model(monkeypatch, store, runtime, rng):
    def fail(*_):
        raise RuntimeError("no luck\ntoday")

    monkeypatch.setattr(contest, "measure", fail)
    interpreter, explanation = _placed(runtime, models.image(), store)
    assert any("no luck today" in note for note in explanation.notes)
    assert explanation.to_dict()["placement"]["source"] == "cost model"
    run_interpreter(interpreter, [models.normal(rng, 1, 7, 6, 3)])


def test_one_delegate_serves_interpreters_of_several_models_at_once(measured, store, runtime):
    delegate = clgpu_delegate.load(placement="measured", cache=store)
    small, large = models.image(), models.image((2, 7, 6, 3))
    for model, winner in ((small, "cpu"), (large, "all")):
        measured.winner = winner
        clgpu_delegate.measure_placement(model, runtime=runtime, cache=store)
    outputs, problems = {}, []

    def serve(name, model):
        try:
            for _ in range(4):
                interpreter = make_interpreter(runtime, model, [delegate])
                operations = {op["op_name"] for op in interpreter._get_ops_details()}
                ours = operations - {"CONV_2D", "MAX_POOL_2D", "MEAN"}
                outputs.setdefault(name, set()).add(bool(ours))
        except Exception as error:
            problems.append(error)

    threads = [
        threading.Thread(target=serve, args=("small", small)),
        threading.Thread(target=serve, args=("large", large)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert outputs == {"small": {False}, "large": {True}}
    assert len(measured.calls) == 2


@pytest.mark.usefixtures("measured")
def test_a_verdict_of_another_model_is_not_followed(store, runtime):
    delegate = clgpu_delegate.load(placement="measured", cache=store)
    make_interpreter(runtime, models.image(), [delegate])
    pointer = delegate._native.pointer  # keeps the verdict of this thread

    class Handle:
        def _get_native_delegate_pointer(self):
            return pointer

    make_interpreter(runtime, models.chain(), [Handle()])
    assert delegate.explain().to_dict()["placement"]["source"] == "cost model"
