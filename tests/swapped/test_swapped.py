"""Processes use the replaced parts of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from clgpu_delegate import _core
from tests.python.subprocesses import ROOT
from tests.swapped.environment import environment

SCRIPT = """
import clgpu_delegate
from clgpu_delegate import _core, options
from clgpu_delegate.runner import engines
for module in (clgpu_delegate, options, engines, _core):
    print(module.__file__)
print(*_core.kernel_overrides())
"""


def test_package_extension_and_kernels_are_those_of_the_folders(tmp_path):
    package, kernels = tmp_path / "package", tmp_path / "kernels"
    shutil.copytree(ROOT / "clgpu_delegate", package)
    shutil.copytree(ROOT / "kernels", kernels)
    kernel = kernels / "softmax" / "softmax.cl"
    kernel.write_text(kernel.read_text() + "// planted\n")
    extension = tmp_path / Path(str(_core.__file__)).name
    shutil.copy(str(_core.__file__), extension)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment(extension, package, kernels)},
        cwd="/", capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = ["__init__.py", "options.py", "runner/engines.py"]
    assert done.stdout.split() == [
        *(str(package / name) for name in names), str(extension), "softmax/softmax.cl",
    ]  # fmt: skip
