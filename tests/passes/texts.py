"""Passes from text to text, without an interpreter or a device.

The form of the text is described in ``src_cpp/ir/text.hpp``. What has its usual value may be left
out, spaces, comments and empty lines are free.
"""

from __future__ import annotations

from typing import Any

import clgpu_delegate
from clgpu_delegate import _core


def after(text: str, *passes: str, **settings: Any) -> str:
    """Return the text of a graph after passes.

    Parameters
    ----------
    text
        A graph.
    *passes
        Names of passes, see ``_core.ir_passes()``, in the order in which they run.
    **settings
        Options of passes and facts of the device; a wrong name is an error that lists them.
    """
    return _core.ir_after(text, list(passes), **settings)


def normal(text: str) -> str:
    """Return a text as it is written."""
    return after(text)


def assert_becomes(before: str, passes: str, expected: str, **settings: Any) -> None:
    """Check the result of passes (names separated by spaces) on a text."""
    assert after(before, *passes.split(), **settings) == normal(expected)


def assert_stays(before: str, passes: str, *steps: str, **settings: Any) -> None:
    """Check that passes leave a graph as it is, and note these steps."""
    lines = "".join(f"step {step}\n" for step in steps)
    assert_becomes(before, passes, f"{before}\n{lines}", **settings)


def graphs_of(delegate: clgpu_delegate.Delegate, when: str) -> list[str]:
    """Return the texts of the partitions' graphs, "before" or "after" the passes, complete."""
    return [text for text in delegate._native.ir(when, complete=True) if text]


def assert_texts_are_read_back(delegate: clgpu_delegate.Delegate) -> None:
    """Check that the texts of all graphs of a delegate stay as they are, read and written again."""
    for when in ("before", "after"):
        for text in graphs_of(delegate, when):
            assert normal(text) == text, when
