"""Disjoint sets."""

from __future__ import annotations


class Groups:
    """Disjoint sets of integers."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def root(self, item: int) -> int:
        """The item that stands for the set of this one."""
        while (parent := self._parent.get(item, item)) != item:
            item = parent
        return item

    def join(self, one: int, other: int) -> None:
        """Make one set of two; it goes by the root of the first."""
        self._parent[self.root(other)] = self.root(one)
