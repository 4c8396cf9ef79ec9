"""The option ``placement="measured"``: placements are measured, and the verdict is kept."""

from clgpu_delegate.placement.api import Placement, PlacementCandidate, measure_placement

__all__ = ["Placement", "PlacementCandidate", "measure_placement"]
