"""Profiles: where the time of an inference goes.

`clgpu_delegate.measure.profiling` is not imported here: it needs the delegate, which needs this.
"""

from clgpu_delegate.profiling.profile import Profile
from clgpu_delegate.profiling.records import Invoke, Launch, NodeProfile, Totals

__all__ = ["Invoke", "Launch", "NodeProfile", "Profile", "Totals"]
