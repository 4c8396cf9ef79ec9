"""Models on several machines with Ray: one actor per OpenCL device.

Nothing here imports ray before it is used.
"""

from __future__ import annotations

from clgpu_delegate.ray.data import Predictor, map_batches, resources
from clgpu_delegate.ray.serving import deployment

__all__ = ["Predictor", "deployment", "map_batches", "resources"]
