"""The table of planted faults fits the tree."""

from __future__ import annotations

import pytest

from tests.campaign.mutants import AREAS, ROOT, planted
from tests.campaign.planted import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.why}")
def test_line_is_still_there(fault):
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert planted(text, fault) != text
    assert fault.file.partition("/")[0] in AREAS
    assert fault.why
    for path in fault.tests:
        assert (ROOT / path).exists(), path
