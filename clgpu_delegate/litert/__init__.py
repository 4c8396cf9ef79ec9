"""LiteRT's ``CompiledModel`` on OpenCL: its environment, its delegates, and the switch."""

from clgpu_delegate.litert.delegates import litert_delegates
from clgpu_delegate.litert.environment import litert_environment
from clgpu_delegate.litert.switch import LiteRtSwitch, litert_off, litert_on, litert_status

__all__ = [
    "LiteRtSwitch",
    "litert_delegates",
    "litert_environment",
    "litert_off",
    "litert_on",
    "litert_status",
]
