"""Pool: devices that fail in the middle; nothing is lost and nothing done twice."""

from __future__ import annotations

import pytest

from tests.faults.configurations import GPU
from tests.faults.test_found import run

# `devices` are members on one OpenCL device: a queue that is lost is that of one of them.
SCRIPT = """
import logging
OPTIONS = {options}
model = models.image((1, 7, 6, 3))
xs = [models.normal(np.random.default_rng(n), 1, 7, 6, 3) for n in range(60)]
with clgpu_delegate.Runner(model, **OPTIONS) as runner:
    want = [runner.run(x) for x in xs]
logged = []
logging.getLogger("clgpu_delegate").addHandler(logging.Handler())
logging.getLogger("clgpu_delegate").handlers[0].emit = lambda record: logged.append(
    record.getMessage())


def check_all(pool, ordered):
    given = []
    results = pool.map((given.append(n) or x for n, x in enumerate(xs)), ordered=ordered)
    found = list(enumerate(results)) if ordered else list(results)
    assert sorted(n for n, _ in found) == list(range(60)) == given
    for n, y in found:
        np.testing.assert_array_equal(y, want[n])
"""
WAYS = {
    "stream": ({"zero_copy": "off"}, GPU),
    "direct": ({}, {}),
    "interpreters": ({"exclude": "MAX_POOL_2D"}, GPU),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ordered", [True, False])
def test_a_device_that_is_lost_is_set_aside(way, ordered):
    options, device = WAYS[way]
    run(
        SCRIPT.format(options=options)
        + f"""
with clgpu_delegate.Pool(model, [0, 0, 0], **OPTIONS) as pool:
    for lost in (1, 2):
        layer.lose_queue(OUT_OF_RESOURCES, 41)
        check_all(pool, {ordered})
        layer.clear()
        stats = pool.stats()
        failed = [each for each in stats if each.state == "failed"]
        assert len(failed) == lost, stats
        assert sum(each.done for each in stats) == 60 * lost, "each input once"
        assert all(each.passed_on >= 1 for each in failed), stats
        assert all("CL_OUT_OF_RESOURCES (-5)" in each.error for each in failed), stats
        assert len(logged) == lost and "is set aside" in logged[0], logged
    before = [each.done for each in pool.stats()]
    check_all(pool, {ordered})
    changed = [a.done - b for a, b in zip(pool.stats(), before) if a.done != b]
    assert changed == [60], "the one that is left"
assert not layer.misuse, layer.misuse
""",
        **device,
    )


@pytest.mark.parametrize("way", WAYS)
def test_when_all_devices_are_lost_one_error_names_each(way):
    options, device = WAYS[way]
    run(
        SCRIPT.format(options=options)
        + """
with clgpu_delegate.Pool(model, [0, 0], **OPTIONS) as pool:
    check_all(pool, True)
    layer.lose_device(OUT_OF_RESOURCES, 100)
    futures, seen = [], 0
    try:
        for x in xs:
            futures.append(pool.submit(x))
    except clgpu_delegate.PoolError as error:
        seen = error
    for future, y in zip(futures, want):
        try:
            np.testing.assert_array_equal(future.result(30), y)
        except clgpu_delegate.PoolError as error:
            seen = error
    assert [index for index, _, _ in seen.failures] == [0, 0]
    assert all("CL_OUT_OF_RESOURCES (-5)" in why for _, _, why in seen.failures)
    assert str(seen).startswith("all devices have failed: 0 ("), seen
    for use in (lambda: pool.submit(xs[0]), lambda: list(pool.map(xs))):
        assert "all devices have failed" in error_of(use)
    layer.clear()
""",
        **device,
    )


def test_a_device_that_cannot_load_the_model_is_set_aside():
    run(
        SCRIPT.format(options={})
        + """
layer.fail("clCreateCommandQueue", OUT_OF_RESOURCES)
with clgpu_delegate.Pool(model, [0, 0], **OPTIONS) as pool:
    failed, works = sorted(pool.stats(), key=lambda each: each.state)
    assert (failed.state, works.state) == ("failed", "working")
    assert failed.error.startswith("no node of the model is on the device: "), failed
    assert "clCreateCommandQueue: CL_OUT_OF_RESOURCES (-5)" in failed.error
    check_all(pool, True)
    assert [each.done for each in pool.stats() if each.done] == [60]
""",
    )


def test_when_no_device_can_be_opened_one_error_names_each():
    run("""
layer.fail("clCreateContext", -2, count=-1)
told = error_of(lambda: clgpu_delegate.Pool(model, [0, 0]))
assert told.startswith("all devices have failed: 0 ("), told
assert told.count("clCreateContext: CL_DEVICE_NOT_AVAILABLE (-2)") == 2, told
""")
