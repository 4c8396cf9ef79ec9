"""``python -m clgpu_delegate.doctor``: for set-ups so broken that ``clgpu doctor`` does not run."""

from __future__ import annotations

import json
import sys

from clgpu_delegate.base import interrupts
from clgpu_delegate.doctor import doctor

if __name__ == "__main__":
    try:
        with interrupts.raised():
            found = doctor()
    except KeyboardInterrupt:
        print("clgpu: interrupted", file=sys.stderr)
        sys.exit(interrupts.INTERRUPTED)
    if "--json" in sys.argv[1:]:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print(found)
    sys.exit(0 if found.healthy else 5)
