"""Everything generated from the table of options is up to date."""

from __future__ import annotations

import subprocess
import sys

from tests.repo.test_shape_of_repo import ROOT

TOOL = ROOT / "tools" / "render_options.py"
ADVICE = "run: python tools/render_options.py --write"


def test_python_and_the_page_are_as_the_table_has_them():
    done = subprocess.run(
        [sys.executable, str(TOOL)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{ADVICE}"


def test_each_part_has_its_place():
    files = [ROOT / "clgpu_delegate" / "options.py", ROOT / "docs" / "options.md"]
    text = "\n".join(file.read_text() for file in files)
    assert all(text.count(f"options: {part}") == 1 for part in ("settings", "fields", "table"))
    assert text.count("/options") >= 3
