"""Python imports this at the start of each process: parts of the package come from elsewhere.

The editable installation of the project answers before any path does; this is asked before it. Set
by `tests.swapped.environment.environment`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType

PACKAGE = os.environ.get("CLGPU_SWAPPED_PACKAGE")
EXTENSION = os.environ.get("CLGPU_SWAPPED_EXTENSION")
KERNELS = os.environ.get("CLGPU_SWAPPED_KERNELS")


class _Loader(ExtensionFileLoader):
    """Gives the extension the kernels of a folder that differ from its own."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for path, text in module.kernel_sources().items() if KERNELS else ():
            other = (Path(KERNELS) / path).read_text(encoding="utf-8")
            if other != text:
                module.override_kernel_source(path, other)


class _Swapped:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name == "clgpu_delegate._core" and EXTENSION:
            loader = _Loader(name, EXTENSION)
            return importlib.util.spec_from_file_location(name, EXTENSION, loader=loader)
        if name == "clgpu_delegate" and PACKAGE:
            return importlib.util.spec_from_file_location(
                name, str(Path(PACKAGE) / "__init__.py"), submodule_search_locations=[PACKAGE]
            )
        # Its modules are those of its folder: the editable installation knows others by name.
        if name.startswith("clgpu_delegate.") and PACKAGE:
            stem = Path(PACKAGE, *name.split(".")[1:])
            if (stem / "__init__.py").exists():
                return importlib.util.spec_from_file_location(
                    name, str(stem / "__init__.py"), submodule_search_locations=[str(stem)]
                )
            if stem.with_suffix(".py").exists():
                return importlib.util.spec_from_file_location(name, str(stem.with_suffix(".py")))
        return None


if PACKAGE or EXTENSION:
    sys.meta_path.insert(0, _Swapped)
