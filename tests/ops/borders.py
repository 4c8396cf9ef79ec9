"""Borders around an image that convolutions take in: zeros, a mirror, or rows and columns less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.model_maker import ModelMaker


class Border(NamedTuple):
    """Rows and columns around an image; negative ones are cut off."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    reflect: bool = True

    def shape(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the image with its border."""
        return (image[0], image[1] + sum(self.rows), image[2] + sum(self.columns), image[3])

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Return the image with its border."""
        widths = [(0, 0), self.rows, self.columns, (0, 0)]
        kept = [slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(image.shape, widths)]
        cut = image[tuple(kept)]
        added = [(max(0, a), max(0, b)) for a, b in widths]
        return np.pad(cut, added, mode="reflect" if self.reflect else "constant")

    def add(self, m: ModelMaker, x: int) -> int:
        """Add the operations that border a tensor: a crop, then a padding."""
        widths = [(0, 0), self.rows, self.columns, (0, 0)]
        shape = m.shape(x)
        if any(min(pair) < 0 for pair in widths):
            begin = [max(0, -a) for a, _ in widths]
            end = [min(0, b) for _, b in widths]
            shape = tuple(n - a + b for n, a, b in zip(shape, begin, end))
            constants = [m.constant(np.array(v, np.int32)) for v in (begin, end, [1] * 4)]
            mask = sum(1 << i for i, n in enumerate(end) if n == 0)
            x = m.op("STRIDED_SLICE", [x, *constants], shape, end_mask=mask)
        if any(max(pair) > 0 for pair in widths):
            added = [(max(0, a), max(0, b)) for a, b in widths]
            shape = tuple(n + sum(pair) for n, pair in zip(shape, added))
            inputs = [x, m.constant(np.array(added, np.int32))]
            options = {"mode": "REFLECT"} if self.reflect else {}
            x = m.op("MIRROR_PAD" if self.reflect else "PAD", inputs, shape, **options)
        return x
