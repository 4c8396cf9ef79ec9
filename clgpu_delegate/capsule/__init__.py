"""Bug capsules: one file with all that it takes to see a failure again elsewhere."""

from clgpu_delegate.capsule.capturing import Capture, capture
from clgpu_delegate.capsule.outcome import Outcome
from clgpu_delegate.capsule.replaying import Replay, replay

__all__ = ["Capture", "Outcome", "Replay", "capture", "replay"]
