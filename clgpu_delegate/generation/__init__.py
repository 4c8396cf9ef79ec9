"""Language models: tokens in, tokens out."""

from __future__ import annotations

from clgpu_delegate.generation.generator import Generation, Generator

__all__ = ["Generation", "Generator"]
