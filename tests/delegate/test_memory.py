"""Device memory: the prediction equals the allocation, and all of it is released."""

from __future__ import annotations

import gc
import itertools
import json
import threading

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

SIDE = 16


def ladder(levels: int = 2, channels: int = 4, seed: int = 3) -> bytes:
    """Convolutions down to small images and up again, with skip connections, like a U-Net."""
    rng = np.random.default_rng(seed)
    m = ModelMaker()

    def convolution(x: int, side: int, cin: int, cout: int) -> int:
        weights = m.constant(models.normal(rng, cout, 3, 3, cin) / np.float32(3 * cin**0.5))
        return m.op(
            "CONV_2D", [x, weights, m.constant(models.normal(rng, cout))], (1, side, side, cout),
            padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
        )  # fmt: skip

    x, side, depth, across = m.input("x", (1, SIDE, SIDE, 3)), SIDE, 3, []
    for level in range(levels):
        x = convolution(x, side, depth, channels << level)
        depth = channels << level
        across.append((x, side, depth))
        side //= 2
        x = m.op(
            "MAX_POOL_2D", [x], (1, side, side, depth), padding="SAME",
            stride_w=2, stride_h=2, filter_width=2, filter_height=2,
        )  # fmt: skip
    for skip, size, other in reversed(across):
        x = m.op(
            "RESIZE_BILINEAR", [x, m.constant(np.array([size, size], np.int32))],
            (1, size, size, depth), align_corners=False, half_pixel_centers=False,
        )  # fmt: skip
        x = m.op(
            "CONCATENATION", [x, skip], (1, size, size, depth + other),
            axis=3, fused_activation_function="NONE",
        )  # fmt: skip
        x, depth = convolution(x, size, depth + other, other), other
    m.output(m.op("TANH", [x], (1, SIDE, SIDE, depth)))
    return m.build()


class Loaded:
    """A model on the device, and the memory that it takes."""

    def __init__(self, runtime, model, **options):
        # In the interpreter's memory, inputs and outputs would not be in the arena.
        self.delegate = clgpu_delegate.load(**{"zero_copy": "off", **options})
        gc.collect()
        self.delegate._native.reset_peak()
        self.before = self.stat("device_bytes")
        self.interpreter = make_interpreter(runtime, model, [self.delegate])
        self.interpreter.allocate_tensors()

    def stat(self, name):
        return self.delegate.stats()[name]

    @property
    def now(self):
        return self.stat("device_bytes") - self.before

    @property
    def peak(self):
        return self.stat("peak_device_bytes") - self.before


def image(rng):
    return models.normal(rng, 1, SIDE, SIDE, 3)


@pytest.mark.parametrize(
    "options",
    [{}, {"share_memory": False}, {"exclude": "RESIZE_BILINEAR"}, {"zero_copy": "auto"}],
    ids=["default", "apart", "partitions", "zero_copy"],
)
def test_predicted_peak_is_the_counted_one(device, precision, runtime, rng, options):
    loaded = Loaded(runtime, ladder(), device=device, precision=precision, **options)
    run_interpreter(loaded.interpreter, [image(rng)])
    plan = loaded.delegate.explain()
    weights = sum(part.weights_bytes for part in plan.partitions)
    assert loaded.peak == plan.peak_bytes
    assert loaded.now == plan.arena_bytes + weights
    for part in plan.partitions:
        assert part.bound_bytes <= part.arena_bytes <= part.naive_bytes
        assert part.peak_bytes >= part.arena_bytes + part.weights_bytes


def test_memory_is_free_when_the_interpreter_is_gone(device, runtime, rng):
    loaded = Loaded(runtime, ladder(), device=device)
    run_interpreter(loaded.interpreter, [image(rng)])
    assert loaded.now > 0
    del loaded.interpreter
    gc.collect()
    assert loaded.now == 0


def test_new_shapes_leave_nothing_behind(device, runtime):
    loaded = Loaded(runtime, models.chain((2, 64)), device=device)
    small = loaded.now
    for rows in (32, 2):
        loaded.interpreter.resize_tensor_input(0, [rows, 64])
        loaded.interpreter.allocate_tensors()
        assert loaded.now == small * rows // 2


def test_element_wise_operations_work_in_place(device, runtime, rng):
    ops = ("EXP", "SIN", "SOFTMAX", "COS")
    loaded = Loaded(runtime, models.chain((8, 32), ops), device=device)
    x = models.normal(rng, 8, 32)
    (part,) = loaded.delegate.explain().partitions
    assert part.arena_bytes == x.nbytes
    assert part.naive_bytes == 5 * x.nbytes
    (want,) = run_reference(models.chain((8, 32), ops), [x], runtime)
    for _ in range(2):
        (got,) = run_interpreter(loaded.interpreter, [x])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_is_needed_later_is_not_overwritten(device, runtime, rng):
    m = ModelMaker()
    shape = (4, 32)
    x = m.input("x", shape)
    a = m.op("EXP", [x], shape)
    b = m.op("SIN", [a], shape)
    c = m.op("MUL", [b, b], shape, fused_activation_function="NONE")
    d = m.op("SUB", [a, c], shape, fused_activation_function="NONE")
    m.output(c)
    m.output(m.op("ADD", [d, x], shape, fused_activation_function="NONE"))
    model = m.build()
    x = models.normal(rng, *shape)
    loaded = Loaded(runtime, model, device=device)
    for got, want in zip(
        run_interpreter(loaded.interpreter, [x]), run_reference(model, [x], runtime)
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_constants_are_not_overwritten(device, runtime, rng):
    """Neither by who reads one last, as later inferences need it, nor by what is computed of it."""
    m = ModelMaker()
    shape = (4, 32)
    x, c = m.input("x", shape), m.constant(models.normal(rng, *shape))
    first = m.op("ADD", [x, c], shape, fused_activation_function="NONE")
    last = m.op("MUL", [first, c], shape, fused_activation_function="NONE")
    negative = m.op("NEG", [c], shape)
    m.output(first, last, m.op("MUL", [x, negative], shape, fused_activation_function="NONE"))
    model = m.build()
    x = models.normal(rng, *shape)
    wanted = run_reference(model, [x], runtime)
    loaded = Loaded(runtime, model, device=device)
    for _ in range(2):
        for got, want in zip(run_interpreter(loaded.interpreter, [x]), wanted):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_partitions_take_turns_in_one_arena(device, runtime, rng):
    x = image(rng)
    model = ladder()
    loaded = Loaded(runtime, model, device=device, exclude="RESIZE_BILINEAR")
    plan = loaded.delegate.explain()
    arenas = [part.arena_bytes for part in plan.partitions]
    assert len(arenas) > 2
    assert max(arenas) <= plan.arena_bytes < sum(arenas)
    (want,) = run_reference(model, [x], runtime)
    for _ in range(2):
        (got,) = run_interpreter(loaded.interpreter, [x])
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_interpreters_of_a_process_take_turns_where_asked_to(device, runtime, rng):
    small, large = models.chain((8, 32)), ladder()
    inputs = [models.normal(rng, 8, 32), image(rng)]
    wanted = [run_reference(m, [x], runtime)[0] for m, x in zip((small, large), inputs)]
    loaded = [Loaded(runtime, m, device=device, memory_pool="process") for m in (small, large)]
    plans = [item.delegate.explain() for item in loaded]
    weights = sum(part.weights_bytes for plan in plans for part in plan.partitions)
    assert loaded[0].now - weights < sum(plan.arena_bytes for plan in plans)

    def work(which):
        for _ in range(20):
            (got,) = run_interpreter(loaded[which].interpreter, [inputs[which]])
            if not np.allclose(got, wanted[which], rtol=1e-4, atol=1e-5):
                wrong.append(which)

    wrong: list[int] = []
    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    before, loaded[1] = loaded[0].before, loaded[0]  # the large one goes, and its memory
    gc.collect()
    work(0)
    assert not wrong
    assert loaded[0].stat("device_bytes") - before == plans[0].arena_bytes


def test_map_shows_where_tensors_lie(device, runtime):
    loaded = Loaded(runtime, ladder(), device=device)
    memory = loaded.delegate.memory_map()
    assert json.loads(memory.to_json()) == memory.to_dict()
    (part,) = memory.partitions
    assert sum(item.bytes for item in part.objects) == loaded.now
    for item in part.objects:
        assert item.bytes == max(block.offset + block.bytes for block in item.blocks)
        for a, b in itertools.combinations(item.blocks, 2):
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
            assert apart or not together
    names = [block.tensor for item in part.objects for block in item.blocks]
    assert any("x" in name for name in names)
    text = str(memory)
    assert text.startswith(f"partition 0: {part.launches} launches, arena ")
    assert max(map(len, text.splitlines())) <= 120


def test_map_without_a_model_is_empty(device):
    memory = clgpu_delegate.load(device=device).memory_map()
    assert memory.partitions == ()
    assert str(memory) == "no model is on the device"


def test_no_object_is_larger_than_asked_for(device, runtime, rng):
    model, x = ladder(), image(rng)
    most = SIDE * SIDE * 4 * 8  # bytes of the largest tensor, and some
    loaded = Loaded(runtime, model, device=device, max_object=2 * most)
    (part,) = loaded.delegate.memory_map().partitions
    assert max(item.bytes for item in part.objects) <= 2 * most
    np.testing.assert_allclose(
        run_interpreter(loaded.interpreter, [x])[0],
        run_reference(model, [x], runtime)[0],
        rtol=1e-4,
        atol=1e-5,
    )
