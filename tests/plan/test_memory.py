"""The layout of intermediate tensors in shared objects."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clgpu_delegate import _core

_LIFETIMES = st.tuples(st.integers(-1, 30), st.integers(0, 10)).map(lambda t: (t[0], sum(t)))
_BLOCKS = st.lists(st.tuples(st.integers(1, 10**6), _LIFETIMES), max_size=40).map(
    lambda blocks: [(size, *life) for size, life in blocks]
)
_LIMITS = st.fixed_dictionaries(
    {
        "alignment": st.sampled_from([1, 128, 512, 4096]),
        "max_bytes": st.sampled_from([10**6, 2 * 10**6, 2**62]),
        "offsets": st.booleans(),
        "size_classes": st.sampled_from([0, 1, 16]),
    }
)


@given(_BLOCKS, _LIMITS)
def test_blocks_alive_together_never_overlap(blocks, limits):
    layout = _core.lay_out(blocks, **limits)
    places = zip(layout["objects"], layout["offsets"], layout["spans"], blocks)
    for (object_a, at_a, size_a, a), (object_b, at_b, size_b, b) in itertools.combinations(
        places, 2
    ):
        if object_a == object_b and a[1] <= b[2] and b[1] <= a[2]:
            assert at_a + size_a <= at_b or at_b + size_b <= at_a


@given(_BLOCKS, _LIMITS)
def test_objects_hold_their_blocks_and_keep_the_limits(blocks, limits):
    layout = _core.lay_out(blocks, **limits)
    tops = [0] * len(layout["bytes"])
    for number, offset, span in zip(layout["objects"], layout["offsets"], layout["spans"]):
        tops[number] = max(tops[number], offset + span)
        assert offset % limits["alignment"] == 0
        assert limits["offsets"] or offset == 0
    assert tops == layout["bytes"]
    assert max(tops, default=0) <= limits["max_bytes"]


@given(_BLOCKS, _LIMITS)
def test_total_lies_between_the_bound_and_no_sharing(blocks, limits):
    layout = _core.lay_out(blocks, **limits)
    assert layout["bound"] <= sum(layout["bytes"]) <= sum(layout["spans"])
    whole = _core.lay_out(blocks, **{**limits, "offsets": False})
    assert sum(layout["bytes"]) <= sum(whole["bytes"])


@given(_BLOCKS, _LIMITS)
def test_spans_are_sizes_or_those_of_their_class(blocks, limits):
    spans = _core.lay_out(blocks, **limits)["spans"]
    for (size, *_), span in zip(blocks, spans):
        if limits["size_classes"] == 0:
            assert span == size
        else:
            step = max(limits["alignment"], 2 ** (size.bit_length() - 1) // limits["size_classes"])
            assert span == min(-(-size // step) * step, limits["max_bytes"])


def test_blocks_of_one_size_class_take_turns_at_one_place():
    # In turns a large block, and two small ones of almost the same sizes.
    blocks = []
    for step in range(0, 40, 2):
        blocks += [(10**6, step, step), (300_000 + step, step + 1, step + 1)]
        blocks += [(300_001 + step, step + 1, step + 1)]

    def parts(size_classes):
        layout = _core.lay_out(blocks, alignment=512, size_classes=size_classes)
        places = set(zip(layout["objects"], layout["offsets"], layout["spans"]))
        return len(places), sum(layout["bytes"])

    exact, rounded = parts(0), parts(16)
    assert rounded[0] == 3
    assert rounded[0] < exact[0]
    assert rounded[1] <= exact[1] * 1.1


@given(_BLOCKS)
def test_bound_is_the_fullest_step(blocks):
    alive = [sum(s for s, first, last in blocks if first <= t <= last) for t in range(-1, 41)]
    assert _core.lay_out(blocks)["bound"] == max(alive)


def test_a_chain_needs_two_objects():
    layout = _core.lay_out([(100, i, i + 1) for i in range(10)])
    assert layout["bytes"] == [100, 100]
    assert layout["strategy"].startswith("whole objects")


def test_a_small_tensor_takes_the_place_of_a_large_one():
    layout = _core.lay_out([(1000, 0, 1), (10, 2, 3)])
    assert layout["bytes"] == [1000]
    assert layout["objects"] == [0, 0]


def test_small_tensors_lie_side_by_side_where_a_large_one_was():
    blocks = [(1000, 0, 1), (500, 2, 4), (500, 3, 4)]
    layout = _core.lay_out(blocks)
    assert layout["bytes"] == [1000]
    assert sorted(layout["offsets"]) == [0, 0, 500]
    assert sum(_core.lay_out(blocks, offsets=False)["bytes"]) == 1500


def test_blocks_beyond_the_limit_of_one_object_take_several():
    blocks = [(700, 0, 2)] * 3 + [(300, 0, 4)] * 3 + [(700, 4, 4)] * 3
    layout = _core.lay_out(blocks, max_bytes=1000)
    assert layout["bytes"] == [1000] * 3 or layout["strategy"].startswith("whole")
    assert sum(layout["bytes"]) == 3000


def test_nothing_needs_nothing():
    assert _core.lay_out([])["bytes"] == []


@pytest.mark.parametrize("max_bytes", [2**62, 3 * 10**6])
def test_thousands_of_blocks_take_a_second_at_most(max_bytes):
    rng = random.Random(1)
    blocks = []
    for i in range(5000):  # bands of streamed rows, and some tensors with a long life
        life = rng.randrange(200) if rng.random() < 0.05 else rng.randrange(1, 4)
        blocks.append((rng.randrange(1, 1000) * 1000, i, i + life))
    start = time.perf_counter()
    layout = _core.lay_out(blocks, alignment=512, max_bytes=max_bytes)
    assert time.perf_counter() - start < 3
    assert sum(layout["bytes"]) < 1.2 * layout["bound"]
