"""A sample of the experiments: each phase of each configuration has some, drawn by the day's seed.

``python -m tests.campaign faults`` runs all of them.
"""

from __future__ import annotations

import datetime
import json

import pytest

from tests import quick
from tests.campaign import faults
from tests.campaign.table import Row
from tests.faults.configurations import CONFIGURATIONS
from tests.faults.control import can_preload
from tests.limits.build import LayerError

SEED = datetime.date.today().toordinal()
# Of each phase. An experiment takes some 30 ms, one that compiles half a second.
MOST = 4 if quick.is_on() else 12
MOST_COLD = 3

# `make test` runs only these.
QUICK = ("float", "resize", "swap", "runner, lanes")
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CONFIGURATIONS
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [faults.CALLS, faults.ALLOCATIONS], ids=["calls", "allocations"])
def test_next_inference_is_right_whatever_fails(kind, name):
    if kind == faults.ALLOCATIONS and not can_preload(faults.BUILD):
        pytest.skip("no library can be preloaded here")
    row, bad = Row(name), []
    most = MOST_COLD if CONFIGURATIONS[name].cold else MOST
    try:
        for seen in faults.experiments(name, kind, most=most, seed=SEED):
            row.count(seen["outcome"])
            if seen["outcome"] not in ("right", "told") or "leaked" in seen or "dead" in seen:
                bad.append(seen)
    except LayerError as error:
        pytest.skip(str(error))
    assert not bad, f"seed {SEED}\n" + "\n".join(json.dumps(seen) for seen in bad)
    assert row.tried > 10
    assert row.told > 0, "no call has failed"
