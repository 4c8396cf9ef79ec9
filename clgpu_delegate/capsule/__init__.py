"""Bug capsules: one file with everything needed to reproduce a failure elsewhere."""

from clgpu_delegate.capsule.capturing import Capture, capture
from clgpu_delegate.capsule.outcome import Outcome
from clgpu_delegate.capsule.replaying import Replay, replay

__all__ = ["Capture", "Outcome", "Replay", "capture", "replay"]
