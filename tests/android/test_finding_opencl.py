"""The search for OpenCL on Android, tested with substitutes for a phone's libraries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.python.subprocesses import assert_succeeds, run_python

SOURCE = Path(__file__).with_name("vendor_opencl.c")

LIST = """
from clgpu_delegate import _core
try:
    print(*set(_core.devices_as_on_android()))
except _core.DeviceError as error:
    print(error)
    missing = [name for name in _core.android_libraries() if name not in str(error)]
    assert not missing, missing
"""


def real_library() -> Path:
    """An OpenCL library of this machine that has a device."""
    name = clgpu_delegate.devices()[0].library
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if name in line:
            return Path(line.split(maxsplit=5)[5])
    return pytest.skip(f"no file of {name} is known")


class Phone:
    """Folders of libraries: those that an app reaches, and the vendor's own."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self.compiler = compiler
        self.app, self.vendor = folder / "app", folder / "vendor"
        self.app.mkdir()
        self.vendor.mkdir()
        self.build(self.app / "libOpenCL.so")  # without any function: the search goes on

    def build(self, path: Path, **macros: Path | int) -> str:
        defines = [f'-D{k}="{v}"' if isinstance(v, Path) else f"-D{k}" for k, v in macros.items()]
        command = [self.compiler, "-shared", "-fPIC", *defines, "-o", path, SOURCE, "-ldl"]
        subprocess.run(command, check=True)
        return str(path)

    def devices(self, **environment: str) -> str:
        path = os.pathsep.join([str(self.app), os.environ.get("LD_LIBRARY_PATH", "")])
        variables = {"CLGPU_OPENCL_LIBRARY": "", "LD_LIBRARY_PATH": path, **environment}
        result = run_python(LIST, **variables)
        assert_succeeds(result)
        return result.stdout.strip()


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    return Phone(tmp_path, compiler)


def test_functions_are_asked_of_the_library_once_it_is_enabled(phone):
    phone.build(phone.app / "libOpenCL-pixel.so", HIDDEN=1, REAL=real_library())
    assert phone.devices() == "libOpenCL-pixel.so"


def test_library_out_of_reach_is_loaded_by_the_vendors_loader(phone):
    phone.build(phone.vendor / "libOpenCL-car.so", HIDDEN=1, REAL=real_library())
    assert "no OpenCL library was found" in phone.devices()
    phone.build(phone.app / "libvndksupport.so", VENDOR=phone.vendor)
    assert phone.devices() == "libOpenCL-car.so"


def test_variable_wins(phone):
    phone.build(phone.app / "libOpenCL-pixel.so", HIDDEN=1, REAL=real_library())
    path = phone.build(phone.vendor / "libmine.so", HIDDEN=1, REAL=real_library())
    assert phone.devices(CLGPU_OPENCL_LIBRARY=path) == path


def test_phone_without_opencl_is_told_what_the_manifest_needs(phone):
    text = phone.devices()  # each name that was tried is in it, which LIST asserts
    assert '<uses-native-library android:name="libOpenCL.so" android:required="false"/>' in text
    assert "libvndksupport.so" in text


def test_page_about_android_lists_what_is_tried_in_its_order():
    page = (Path(__file__).parents[2] / "docs" / "android.md").read_text(encoding="utf-8")
    table = page[page.index("| name | who has it |") :]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) == _core.android_libraries()
