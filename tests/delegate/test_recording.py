"""The recordings of inferences, and their cost."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

SHAPE = (1, 7, 6, 3)
MOMENTS = ("queued", "submitted", "start", "end")


def prepared(model, **options):
    delegate = clgpu_delegate.load(**options)
    return delegate, make_interpreter(op_runtime(), model, [delegate])


def record(delegate):
    return delegate._native.profile(peaks=False)


def check_times(data):
    spans = {(span["inference"], span["partition"]): span for span in data["host"]}
    assert len(spans) == len(data["host"])
    assert data["inferences"] == len({number for number, _ in spans})
    for row in data["launches"]:
        assert row["queued"] <= row["submitted"] <= row["start"] <= row["end"], row
        assert row["host_start"] <= row["host_end"], row
        # On the host's clock, no effect precedes its cause.
        span = spans[row["inference"], row["partition"]]
        assert span["start"] <= row["host_start"] <= row["start"] + 1, row
        assert row["end"] <= span["end"] + 1, row
    ends = [span["end"] for span in data["host"]]
    starts = [span["start"] for span in data["host"]]
    assert all(end <= start for end, start in zip(ends, starts[1:])), "one after the other"


def test_the_first_inference_reads_what_loading_wrote(device, rng):
    """Recorded inferences have a queue of their own, which waits for that of loading."""
    m, shape, small = ModelMaker(), (2, 2, 7, 1), (2, 1, 4, 1)
    x, counts = m.input("x", shape), m.input("counts", shape, np.int32)
    y = m.op("ADD", [x, m.op("CAST", [counts], shape, dtype=np.float32)], shape)
    m.output(m.op("LOGISTIC", [y], shape))
    for source in (x, y):
        weights, bias = (
            m.constant(models.normal(rng, 1, 2, 2, 1)),
            m.constant(np.ones(1, np.float32)),
        )
        z = m.op(
            "DEPTHWISE_CONV_2D", [source, weights, bias], small, padding="SAME",
            stride_w=2, stride_h=2, depth_multiplier=1, fused_activation_function="NONE",
        )  # fmt: skip
        m.output(m.op("ADD_N", [z, z, z], small))
    model = m.build()
    inputs = [models.normal(rng, *shape), np.ones(shape, np.int32)]
    want = run_reference(model, inputs, op_runtime())
    for _ in range(60):
        _delegate, interpreter = prepared(
            model, device=device, profile=True, warm_up=False, cache="off", share_memory=False
        )
        for got, right in zip(run_interpreter(interpreter, inputs), want):
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("zero_copy", ["auto", "off"])
def test_every_command_is_recorded(device, precision, zero_copy, rng):
    delegate, interpreter = prepared(
        models.image(SHAPE), device=device, precision=precision, zero_copy=zero_copy,
        profile=True, exclude="MAX_POOL_2D",
    )  # fmt: skip
    for _ in range(3):
        run_interpreter(interpreter, [models.normal(rng, *SHAPE)])
    plan, data = delegate.explain(), record(delegate)
    assert (data["enabled"], data["inferences"], data["notes"]) == (True, 3, [])
    check_times(data)
    kinds = collections.Counter((row["partition"], row["kind"]) for row in data["launches"])
    roads = [(row["partition"], row["direction"]) for row in delegate.stats()["tensors"]
             if row["road"] != "host_pointer"]  # fmt: skip
    for index, partition in enumerate(plan.partitions):
        assert kinds[index, "launch"] == 3 * partition.launches
        assert kinds[index, "upload"] == 3 * roads.count((index, "input"))
        assert kinds[index, "download"] == 3 * roads.count((index, "output"))
    if zero_copy == "off":
        x, y = [row for row in data["launches"] if row["partition"] == 0 and row["tensor"]][:2]
        assert (x["kind"], x["op"], x["bytes"]) == ("upload", "UPLOAD", 4 * 7 * 6 * 3)
        assert (y["kind"], y["op"], y["bytes"]) == ("download", "DOWNLOAD", 4 * 7 * 6 * 4)
    nodes = {node["node"]: node for node in data["nodes"]}
    assert set(nodes) == {0, 2}
    for number, node in nodes.items():
        mine = [row for row in data["launches"] if row["node"] == number]
        assert {(row["op"], row["family"], row["candidate"]) for row in mine} == {
            (node["op"], node["family"], node["candidate"])
        }
        assert all(row["kernel"] and len(row["global"]) == len(row["local"]) == 3 for row in mine)
        assert sum(row["flops"] for row in mine) == pytest.approx(3 * node["flops"])
        touched = node["bytes_read"] + node["bytes_written"]
        assert sum(row["bytes"] for row in mine) == pytest.approx(3 * touched, abs=len(mine))


def test_inferences_are_recorded_in_a_row_then_some(device):
    delegate, interpreter = prepared(models.chain(), device=device, profile=True)
    x = np.ones((2, 5), np.float32)

    def numbers(runs):
        for _ in range(runs):
            run_interpreter(interpreter, [x])
        return [span["inference"] for span in record(delegate)["host"]]

    assert numbers(8) == list(range(1, 9)), "the first ones, all of them"
    later = numbers(100)[8:]
    assert all(b - a > 1 for a, b in zip([8, *later], later)), "as the time allows"
    delegate._native.reset_profile(in_a_row=40)
    assert record(delegate)["inferences"] == 0
    assert numbers(40) == list(range(117, 149)), "the last 32 of those asked for"


def test_profile_outlives_the_interpreter(device):
    delegate, interpreter = prepared(models.chain(), device=device, profile=True)
    run_interpreter(interpreter, [np.ones((2, 5), np.float32)])
    del interpreter
    data = record(delegate)
    assert data["inferences"] == 1
    check_times(data)


def test_recording_creates_no_objects_and_off_means_nothing(device):
    costs = {}
    x = np.ones((2, 5), np.float32)
    for profile in (False, True):
        delegate, interpreter = prepared(models.chain(), device=device, profile=profile)
        for _ in range(3):
            (y,) = run_interpreter(interpreter, [x])
        costs[profile] = (delegate.stats()["last_invoke"], y.tolist())
    assert costs[False] == costs[True]
    assert costs[True][0]["objects_created"] == 0
    interpreter.resize_tensor_input(0, [3, 5])
    run_interpreter(interpreter, [np.ones((3, 5), np.float32)])
    assert record(delegate)["inferences"] == 1, "the plan is another one"
    off = clgpu_delegate.load(device=device)._native.profile()
    assert not off["enabled"]
    assert (off["inferences"], off["peaks"]) == (0, None)
    assert off["nodes"] == off["launches"] == off["host"] == []


def test_moves_between_device_and_host_are_recorded(device, rng):
    model, x = models.detour(), models.normal(rng, 1, 64, 64, 4)
    delegate, interpreter = prepared(model, device=device)
    interpreter.allocate_tensors()
    full = delegate.explain()
    budget = (full.arena_bytes + full.partitions[0].weights_bytes) * 17 // 20
    delegate, interpreter = prepared(model, device=device, profile=True, memory_budget=budget)
    run_interpreter(interpreter, [x])
    data = record(delegate)
    check_times(data)
    (partition,) = delegate.explain().to_dict()["partitions"]
    swaps = [row for row in data["launches"] if row["kind"].startswith("swap")]
    assert [(row["kind"], row["op"], row["tensor"], row["bytes"]) for row in swaps] == [
        (f"swap_{move['kind']}", f"SWAP_{move['kind'].upper()}", move["tensor"], move["bytes"])
        for move in partition["moves"]
    ]
    assert {row["kind"] for row in swaps} == {"swap_in", "swap_out"}


def test_bands_share_the_work_of_their_node(device, rng):
    delegate, interpreter = prepared(
        models.image((1, 64, 6, 3)), device=device, profile=True, row_band=8
    )
    run_interpreter(interpreter, [models.normal(rng, 1, 64, 6, 3)])
    data = record(delegate)
    check_times(data)
    assert len(data["launches"]) > 8
    for node in data["nodes"]:
        mine = [row for row in data["launches"] if row["node"] == node["node"]]
        assert sum(row["flops"] for row in mine) == pytest.approx(node["flops"])


def test_profile_may_be_taken_while_others_run(device):
    model = models.image(SHAPE)
    delegate = clgpu_delegate.load(device=device, profile=True, exclude="MAX_POOL_2D")
    interpreters = [make_interpreter(op_runtime(), model, [delegate]) for _ in range(2)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()

    def work(interpreter):
        for _ in range(60):
            run_interpreter(interpreter, [np.ones(SHAPE, np.float32)])

    threads = [threading.Thread(target=work, args=[one]) for one in interpreters]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        data = record(delegate)
        check_times(data)
        assert len(data["host"]) == 2 * data["inferences"], "of both partitions, or none"
    assert 8 <= record(delegate)["inferences"] <= 32, "of the interpreter that was prepared last"
