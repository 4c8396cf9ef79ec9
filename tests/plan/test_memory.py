"""The layout of intermediate tensors in shared buffers."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from clgpu_delegate import _core

_LIFETIMES = st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda t: (t[0], sum(t)))
_BLOCKS = st.lists(st.tuples(st.integers(1, 10**6), _LIFETIMES), max_size=40).map(
    lambda blocks: [(size, *life) for size, life in blocks]
)


@given(_BLOCKS)
def test_tensors_alive_together_never_share(blocks):
    objects, _ = _core.lay_out(blocks)
    for (a, (_, first_a, last_a)), (b, (_, first_b, last_b)) in itertools.combinations(
        zip(objects, blocks), 2
    ):
        if first_a <= last_b and first_b <= last_a:
            assert a != b


@given(_BLOCKS)
def test_each_object_is_as_large_as_its_largest_tensor(blocks):
    objects, sizes = _core.lay_out(blocks)
    for index, size in enumerate(sizes):
        assert size == max(b[0] for o, b in zip(objects, blocks) if o == index)
    assert sum(sizes) <= sum(size for size, *_ in blocks)


def test_a_chain_needs_two_objects():
    objects, sizes = _core.lay_out([(100, i, i + 1) for i in range(10)])
    assert len(sizes) == 2
    assert len(set(objects)) == 2


def test_a_small_tensor_takes_the_place_of_a_large_one():
    objects, sizes = _core.lay_out([(1000, 0, 1), (10, 2, 3)])
    assert sizes == [1000]
    assert objects == [0, 0]
