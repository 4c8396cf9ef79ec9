"""Models for Python callers: arrays in, arrays out, many in flight."""

from __future__ import annotations

from clgpu_delegate.runner.members import PoolDevice
from clgpu_delegate.runner.pool import Pool
from clgpu_delegate.runner.runner import Runner
from clgpu_delegate.runner.tensors import TensorSpec

__all__ = ["Pool", "PoolDevice", "Runner", "TensorSpec"]
