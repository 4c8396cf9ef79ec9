"""docs/operations.md tells what the compiled extension does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.repo.test_shape_of_repo import ROOT

TOOL = ROOT / "tools" / "render_operations.py"
ADVICE = "run: python tools/render_operations.py --write"


@pytest.mark.slow  # 900 models of one node
def test_the_page_of_operations_is_as_the_delegate_claims():
    pytest.importorskip("ai_edge_litert", reason="the page is of the nodes that LiteRT loads")
    done = subprocess.run(
        [sys.executable, str(TOOL)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CLGPU_CACHE": "off"},
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{ADVICE}"
