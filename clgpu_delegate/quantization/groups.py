"""Disjoint sets."""

from __future__ import annotations


class Groups:
    """Disjoint sets of integers."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}

    def root(self, item: int) -> int:
        """The item that represents the set of this one."""
        while (parent := self._parent.get(item, item)) != item:
            item = parent
        return item

    def join(self, one: int, other: int) -> None:
        """Unite two sets; the root of the first represents the result."""
        first, second = self.root(one), self.root(other)
        if first != second:
            self._members[first] = [*self.members(one), *self.members(other)]
            self._parent[second] = first

    def members(self, item: int) -> list[int]:
        """The set of an item."""
        root = self.root(item)
        return self._members.get(root, [root])
