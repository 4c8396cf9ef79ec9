"""What tools/build_aar.py knows of an AAR, for tests: see there. Needs pyelftools."""

from __future__ import annotations

import sys
from pathlib import Path

# The modules of tools/ import each other as programs do.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from build_aar import ABIS, LIBRARIES, check_natives
from check_library import MACHINES, global_names

__all__ = ["ABIS", "LIBRARIES", "MACHINES", "check_natives", "global_names"]
