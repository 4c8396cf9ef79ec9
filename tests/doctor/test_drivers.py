"""Broken loaders, vendor files and drivers in a folder; libraries are really loaded."""

from __future__ import annotations

import ctypes.util
import os

import pytest

import clgpu_delegate
from clgpu_delegate.doctor import devices, examination, loader, opencl_probe, vendors
from clgpu_delegate.doctor.child import Outcome
from tests.doctor.machine import NO_LOADER, Machine, device, library

DRIVER = """
#include <string.h>
static int platforms(unsigned n, void* p, unsigned* count) { if (count) *count = COUNT; return 0; }
void* clGetExtensionFunctionAddress(const char* name) {
  return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void*)platforms : 0;
}
"""
CRASHES = "__attribute__((constructor)) static void f(void) { *(volatile int*)0 = 1; }"
HANGS = (
    "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); }"
)


@pytest.fixture
def staged(machine: Machine) -> Machine:
    machine.real = ("load_vendor",)
    return machine


def icd(machine: Machine, text: str, name: str = "some.icd") -> None:
    machine.write(f"/etc/OpenCL/vendors/{name}", text)


def test_empty_folder_of_vendors_is_a_problem_without_any_other_device(staged):
    (staged.root / "etc/OpenCL/vendors").mkdir(parents=True)
    (found,) = staged.find(vendors.check)
    assert (found.status, found.fix) == ("problem", "pip install 'clgpu_delegate[cpu]'")
    assert "/etc/OpenCL/vendors is empty" in found.what
    staged.devices = [device()]
    assert staged.find(vendors.check)[0].status == "ok"


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("/nowhere/libpocl.so.2", "apt install pocl-opencl-icd"),
        ("/nowhere/libmade_up.so", "mv /etc/OpenCL/vendors/x.icd /etc/OpenCL/vendors/x.icd.off"),
    ],
)
def test_icd_that_names_a_missing_library(staged, name, fix):
    icd(staged, f"{name}\n", "x.icd")
    staged.env.access = lambda *_: False
    (found,) = staged.find(vendors.check, "problem")
    assert "the library does not exist" in found.what
    assert found.fix == f"sudo {fix}"


def test_icd_that_names_the_wrong_folder_is_corrected(staged, tmp_path):
    there = library(tmp_path, DRIVER.replace("COUNT", "1"), "libmoved.so")
    staged.set(LD_LIBRARY_PATH=str(tmp_path))
    icd(staged, "/nowhere/libmoved.so\n")
    (found,) = staged.find(vendors.check, "problem")
    assert found.fix == f"echo {there} | tee /etc/OpenCL/vendors/some.icd"


def test_icd_that_names_a_text_file(staged):
    text = staged.write("driver.so", "I am no library, but long enough to have had a header.\n" * 9)
    icd(staged, str(text))
    (found,) = staged.find(vendors.check, "problem")
    assert "the file is not a library" in found.what
    assert "invalid ELF header" in found.why
    icd(staged, "")
    assert "is empty" in staged.find(vendors.check, "problem")[0].what


def test_library_that_is_no_driver(staged):
    icd(staged, "libm.so.6")
    (found,) = staged.find(vendors.check, "problem")
    assert "the library is not an OpenCL driver" in found.what


def test_driver_that_lacks_a_library_of_its_own(staged, tmp_path):
    needed = library(tmp_path, "int f(void) { return 1; }", "libneeded.so")
    link = (f"-L{tmp_path}", "-Wl,--no-as-needed", "-lneeded")
    icd(staged, str(library(tmp_path, "int g(void) { return 1; }", "libuser.so", *link)))
    needed.unlink()
    staged.write("/etc/os-release", 'ID=fedora\nPRETTY_NAME="Fedora"\n')
    (found,) = staged.find(vendors.check, "problem")
    assert "libneeded.so, which it needs, is missing" in found.what
    assert found.fix == "sudo dnf install 'libneeded.so()(64bit)'"


@pytest.mark.parametrize(
    ("code", "timeout", "words"),
    [(CRASHES, 20.0, "SIGSEGV"), (HANGS, 1.0, "did not return in 1 s")],
    ids=["crash", "hang"],
)
def test_deadly_driver_is_named_and_nobody_else_loads_it(staged, tmp_path, code, timeout, words):
    icd(staged, str(library(tmp_path, code)), "bad.icd")
    icd(staged, str(library(tmp_path, DRIVER.replace("COUNT", "1"), "libgood.so")), "good.icd")
    staged.env.timeout = timeout
    # Everything that the test model needs, so that only the driver can fail.
    staged.env.pip_libraries, staged.devices = lambda: [tmp_path / "libpip.so"], [device()]
    staged.env.version = {"numpy": "1.26.4", "ai-edge-litert": "2.3.0"}.get
    right = {"error": "", "compile_seconds": 0.1, "run_seconds": 0.1}
    staged.answers["run_kernel"] = Outcome(right)
    diagnosis = examination.examine(staged.env)
    (found,) = [f for f in diagnosis.problems if f.check == "vendor files"]
    assert words in found.what
    assert "bad.icd" in found.what
    assert found.fix.endswith("mv /etc/OpenCL/vendors/bad.icd /etc/OpenCL/vendors/bad.icd.off")
    state = {f.check: f.status for f in diagnosis.findings}
    assert state["loader"] == state["test model"] == "skipped"
    assert state["devices"] == "ok"
    assert not diagnosis.healthy


def test_driver_without_a_platform(staged, tmp_path):
    icd(staged, str(library(tmp_path, DRIVER.replace("COUNT", "0"))))
    (found,) = staged.find(vendors.check)
    assert found.status == "ok", "of a GPU that is not here"
    assert "0 platforms" in found.what


def test_no_loader(machine):
    machine.real, machine.env.loader_names = ("list_platforms",), NO_LOADER
    (found,) = machine.find(loader.check)
    assert (found.status, found.fix) == ("problem", "sudo apt install ocl-icd-libopencl1")
    assert "there is no OpenCL loader" in found.what
    machine.write("/etc/os-release", "ID=somebodys\nID_LIKE=arch\n")
    machine.env.uid = 0
    assert machine.find(loader.check)[0].fix == "pacman -S ocl-icd"


def test_loader_that_is_a_broken_link_or_of_another_machine(machine):
    machine.real, machine.env.loader_names = ("list_platforms",), NO_LOADER
    folder = machine.write("/usr/lib/x86_64-linux-gnu/other").parent
    (folder / "libOpenCL.so.1").symlink_to("libOpenCL.so.1.0.0")
    assert "link to a file that does not exist" in machine.find(loader.check)[0].what
    (folder / "libOpenCL.so.1").unlink()
    (folder / "libOpenCL.so.1").write_bytes(b"\x7fELF\x01\x01" + bytes(12) + b"\x03\0" + bytes(40))
    assert "is for i386, not x86_64" in machine.find(loader.check)[0].what


def test_loader_that_ld_library_path_puts_before_the_right_one(machine, tmp_path):
    first = library(tmp_path, "int f(void) { return 1; }", "libOpenCL.so.1")
    machine.set(LD_LIBRARY_PATH=str(tmp_path))
    machine.answers["list_platforms"] = Outcome({"error": "bad", "platforms": []})
    (found,) = machine.find(loader.check, "problem")
    assert found.fix == "unset LD_LIBRARY_PATH"
    second = machine.write("/usr/lib/libOpenCL.so.1")
    second.write_bytes(first.read_bytes())
    del machine.answers["list_platforms"]

    def call(_file, _function, name, **_how):
        platforms = [{"name": "P"}] if name == str(second) else []
        return Outcome({"error": "", "platforms": platforms, "file": str(first)})

    machine.env.call_process = call
    (found,) = machine.find(loader.check, "problem")
    assert found.fix == f"export CLGPU_OPENCL_LIBRARY={second}"


def test_loader_that_does_not_heed_the_variable(machine, tmp_path):
    machine.write("some.icd", "libsome.so")
    machine.set(OCL_ICD_VENDORS=str(tmp_path))
    (found,) = machine.find(loader.check, "problem")
    assert found.fix == "sudo cp /some.icd /etc/OpenCL/vendors/"
    machine.devices = [device()]
    assert machine.find(loader.check, "problem") == []


@pytest.mark.skipif(not ctypes.util.find_library("OpenCL"), reason="no OpenCL loader")
def test_machine_without_a_device(machine, tmp_path):
    machine.real = ("list_platforms",)
    machine.set(OCL_ICD_VENDORS=str(tmp_path))
    (found,) = machine.find(devices.check)
    assert (found.status, found.fix) == ("problem", "pip install 'clgpu_delegate[cpu]'")
    machine.env.machine = "aarch64"
    assert machine.find(devices.check)[0].fix == "sudo apt install pocl-opencl-icd"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("int clBuildProgram() { return -11; }", "clBuildProgram failed (-11)"),
        ("int clEnqueueNDRangeKernel() { return 0; }", "numbers are wrong"),
        ("int clEnqueueReadBuffer() { return *(volatile int*)0; }", "crashed (SIGSEGV)"),
    ],
    ids=["no compiler", "wrong", "crash"],
)
def test_kernel_on_a_broken_device(machine, tmp_path, code, words):
    name = clgpu_delegate.devices()[0].library
    real = name if "/" in name else opencl_probe.list_platforms(name)["file"]
    # The real library has the missing symbols.
    broken = library(tmp_path, code, "libbroken.so", "-Wl,--no-as-needed", real)
    machine.real = ("list_platforms", "run_kernel")
    machine.set(**{**os.environ, "CLGPU_OPENCL_LIBRARY": str(broken)})
    machine.env.device = "0"
    (found,) = machine.find(devices.kernels, "problem")
    assert words in found.what


def test_pocl_that_offers_nothing_as_it_cannot_write(machine):
    platform = {"name": "Portable Computing Language", "version": "3", "code": -1, "devices": []}
    answer = {"error": "", "platforms": [platform], "file": ""}
    machine.answers["list_platforms"] = Outcome(answer)
    (found,) = machine.find(devices.platforms, "problem")
    assert found.fix == 'export POCL_CACHE_DIR="$(mktemp -d)"'
    platform.update(name="rusticl")
    assert "rusticl offers no device" in machine.find(devices.platforms, "ok")[0].what


def test_driver_that_is_known_to_be_bad_is_told(machine):
    machine.devices = [device("FPGA Emulation Device"), device("Good CPU")]
    found = machine.find(devices.check)
    assert [f.status for f in found] == ["warning", "ok"]
