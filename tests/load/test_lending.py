"""Runners get lent objects back, however a call ends."""

from __future__ import annotations

import gc
import queue

import pytest

from clgpu_delegate._core import lend


@pytest.fixture
def pool() -> queue.SimpleQueue:
    made: queue.SimpleQueue = queue.SimpleQueue()
    made.put(lend(made, "thing"))
    return made


def test_what_is_dropped_is_back(pool):
    pool.get()  # as where a signal's handler raises before the result has a name
    gc.collect()
    lent = pool.get(timeout=1)
    assert lent.thing == "thing"
    assert pool.empty()


def test_what_is_given_back_is_gone_for_who_gave_it(pool):
    lent = pool.get()
    lent.give_back()
    lent.give_back()
    assert lent.thing is None
    assert lent.move() is None
    del lent
    assert pool.qsize() == 1


def test_one_owner_only_gives_it_back(pool):
    lent = pool.get()
    mine = lent.move()
    lent.give_back()  # it belongs to another one now
    assert pool.empty()
    assert mine.thing == "thing"
    del mine
    assert pool.get(timeout=1).thing == "thing"


def test_what_is_kept_never_goes_back(pool):
    lent = pool.get()
    lent.keep()
    del lent
    assert pool.empty()


def test_pool_and_things_go_together():
    class Thing:
        gone = False

        def __del__(self) -> None:
            Thing.gone = True

    made: queue.SimpleQueue = queue.SimpleQueue()
    made.put(lend(made, Thing()))
    outside = made.get()
    made.put(lend(made, None))
    del made
    outside.give_back()
    assert outside.thing is None
    assert Thing.gone
