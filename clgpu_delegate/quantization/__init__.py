"""Observing float models and quantising them."""

from clgpu_delegate.quantization.api import pseudo_quantize, quantize
from clgpu_delegate.quantization.observers import Observer
from clgpu_delegate.quantization.report import Quantization, QuantizedLayer

__all__ = ["Observer", "Quantization", "QuantizedLayer", "pseudo_quantize", "quantize"]
