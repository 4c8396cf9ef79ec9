"""Inferences of a sequence of inputs, several of them under way."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union

from clgpu_delegate import _core
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.runner.engines import Engine, Pending
from clgpu_delegate.runner.tensors import Array, Arrays, bind, like

Progress = Union[bool, Callable[[int, "int | None"], object]]  # results so far, and of all


def bound(
    engine: Engine, x: Arrays, out: Arrays | None
) -> tuple[list[Array], Sequence[Array | None]]:
    """Arrays for an engine's inputs and outputs, checked; see `bind`."""
    inputs = bind(x, engine.inputs, "input")
    if out is None:
        return inputs, [None] * len(engine.outputs)
    return inputs, bind(out, engine.outputs, "output", write=True)


def in_order(
    engine_of: Callable[[], Engine], items: Iterator[Arrays], count: int, progress: Progress
) -> Iterator[Any]:
    """Results for items; see `Runner.run_many`.

    Parameters
    ----------
    engine_of
        Returns the current engine, or raises an error.
    count
        Number of items; negative if unknown.
    """
    under_way: deque[tuple[Pending, Arrays, Engine]] = deque()
    failure: Exception | None = None
    more = True
    with progress_bar(progress, None if count < 0 else count) as bar:
        while True:
            while more and len(under_way) < engine_of().ahead:
                try:
                    x = next(items)
                    engine = engine_of()
                    under_way.append((engine.start(*bound(engine, x, None)), x, engine))
                except StopIteration:
                    more = False
                except Exception as error:
                    more, failure = False, error
            if not under_way:
                break
            pending, x, engine = under_way.popleft()
            _core.refuse_forked_child()  # no thread would end it
            result = like(pending.result(), x, engine.outputs)
            del pending, x  # their memory may be used again
            yield result
            del result
            bar.step()
    if failure is not None:
        raise failure


@contextlib.contextmanager
def progress_bar(progress: Progress, count: int | None) -> Iterator[Bar]:
    """A bar of so many inferences; None: nobody knows how many."""
    if callable(progress):
        report = progress
        bar = Bar(lambda _, done, total: report(done, total))
    else:
        bar = Bar(None if progress else False)
    with bar:
        bar.stage("inferences", count)
        yield bar
