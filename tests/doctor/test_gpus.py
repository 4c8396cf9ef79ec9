"""GPUs that the kernel knows but OpenCL does not offer, for different reasons."""

from __future__ import annotations

import pytest

from clgpu_delegate.doctor import nodes, nvidia, variables
from tests.doctor.machine import Machine, device

MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"
ELF = b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\0" + bytes(40)


def closed(path, _mode):
    """Deny access to /dev/dri and /dev/kfd, because root always has it."""
    return "/dev/" not in str(path)


def test_render_node_for_a_group_this_user_is_not_in(machine):
    machine.gpu("i915")
    machine.env.access = closed
    gid = machine.env.at("/dev/dri/renderD128").stat().st_gid
    machine.write("/etc/group", f"render:x:{gid}:\n")
    (found,) = machine.find(nodes.check)
    assert found.status == "problem"
    assert found.fix.startswith("sudo usermod -aG render $USER")
    machine.write("/etc/group", f"render:x:{gid}:other,somebody\n")
    assert machine.find(nodes.check)[0].fix == "log out and in again"
    machine.write("/.dockerenv")
    fix = f"docker run --device /dev/dri/renderD128 --group-add {gid} ..."
    machine.env = type(machine.env)(**vars_of(machine))
    assert machine.find(nodes.check)[0].fix == fix


def vars_of(machine: Machine) -> dict:
    """The fields of the environment, without cached values."""
    return {name: getattr(machine.env, name) for name in machine.env.__dataclass_fields__}


def test_render_node_is_a_warning_where_another_gpu_works(machine):
    machine.gpu("i915")
    machine.env.access = closed
    machine.devices = [device("GeForce", "gpu", "NVIDIA Corporation")]
    assert machine.find(nodes.check)[0].status == "warning"


def test_render_node_that_can_be_used(machine):
    machine.gpu("i915")
    assert machine.find(nodes.check)[0].status == "ok"


@pytest.mark.parametrize(
    ("file", "environ", "fix"),
    [
        ("/.dockerenv", {}, "docker run --device /dev/kfd --device /dev/dri ..."),
        ("/run/.containerenv", {}, "podman run --device /dev/kfd --device /dev/dri ..."),
        ("/.flatpak-info", {"FLATPAK_ID": "a.b"}, "flatpak override --user --device=all a.b"),
        ("/x", {"SNAP": "/snap/x", "SNAP_NAME": "x"}, "sudo snap connect x:opengl"),
        ("/x", {"APPTAINER_CONTAINER": "i.sif"}, "apptainer exec --rocm IMAGE COMMAND"),
    ],
)
def test_container_without_the_host_s_gpu(machine, file, environ, fix):
    machine.gpu("amdgpu", node=False)
    machine.write(file)
    machine.set(**environ)
    (found,) = machine.find(nodes.check, "problem")
    assert "this container does not" in found.what
    assert found.fix == fix


@pytest.mark.parametrize(
    ("driver", "vendor_file", "fix"),
    [
        ("i915", "", "sudo apt install intel-opencl-icd"),
        ("amdgpu", "libRusticlOpenCL.so.1", "export RUSTICL_ENABLE=radeonsi"),
        ("v3d", "libRusticlOpenCL.so.1", "export RUSTICL_ENABLE=v3d"),
        ("v3d", "", "sudo apt install mesa-opencl-icd"),
    ],
)
def test_gpu_that_no_driver_offers(machine, driver, vendor_file, fix):
    machine.gpu(driver)
    if vendor_file:
        machine.write("/etc/OpenCL/vendors/rusticl.icd", vendor_file)
    (found,) = machine.find(nodes.drivers)
    assert (found.status, found.fix) == ("problem", fix)
    machine.devices = [device()]
    assert machine.find(nodes.drivers)[0].status == "warning", "the CPU does"


def test_gpu_that_is_offered(machine):
    machine.gpu("amdgpu")
    machine.devices = [device("AMD Radeon RX (radeonsi, navi21)", "gpu", "AMD")]
    assert machine.find(nodes.drivers)[0].status == "ok"


def test_mali_library_that_is_not_registered(machine):
    machine.write("/dev/mali0")
    machine.write("/usr/lib/aarch64-linux-gnu/libmali.so.1").write_bytes(ELF)
    machine.env.machine = "aarch64"
    (found,) = machine.find(nodes.drivers)
    assert found.fix == "export CLGPU_OPENCL_LIBRARY=/usr/lib/aarch64-linux-gnu/libmali.so.1"


def nvidia_machine(machine: Machine, *parts: str) -> Machine:
    """A machine with NVIDIA's module and the given parts of: card, library, vendor file."""
    machine.write("/proc/driver/nvidia/version", MODULE)
    if "card" in parts:
        machine.write("/dev/nvidia0")
    if "library" in parts:
        folder = machine.write("/usr/lib/x86_64-linux-gnu/x").parent
        (folder / "libnvidia-opencl.so.535.104.05").write_bytes(ELF)
        (folder / "libnvidia-opencl.so.1").symlink_to("libnvidia-opencl.so.535.104.05")
    if "file" in parts:
        machine.write("/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n")
    return machine


FLAGS = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."


@pytest.mark.parametrize(
    ("parts", "container", "words", "fix"),
    [
        ((), True, "this container has none of its GPUs", FLAGS),
        (("card",), True, "without its OpenCL part", FLAGS),
        (("card",), False, "without its OpenCL part", "sudo apt install nvidia-opencl-icd"),
        (
            ("card", "library"), True, "no vendor file names it",
            "sudo mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 | "
            "sudo tee /etc/OpenCL/vendors/nvidia.icd",
        ),
        (("card", "library", "file"), False, "offers no OpenCL device", "nvidia-smi"),
    ],
)  # fmt: skip
def test_nvidia_s_chain_is_followed_to_the_first_missing_link(
    machine, parts, container, words, fix
):
    nvidia_machine(machine, *parts)
    machine.set(NVIDIA_DRIVER_CAPABILITIES="utility")
    if container:
        machine.write("/.dockerenv")
    (found,) = machine.find(nvidia.check, "problem")
    assert words in found.what
    assert found.fix == fix


def test_nvidia_s_package_is_that_of_the_distribution_and_the_module(machine):
    nvidia_machine(machine, "card")
    machine.write("/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")
    (found,) = machine.find(nvidia.check, "problem")
    assert found.fix == "sudo apt install libnvidia-compute-535"


def test_nvidia_s_module_of_another_version_than_its_libraries(machine):
    nvidia_machine(machine, "card", "library", "file")
    machine.write("/proc/driver/nvidia/version", MODULE.replace("535.104.05", "550.1"))
    (found,) = machine.find(nvidia.check, "problem")
    assert "the kernel's module is 550.1, the libraries are 535.104.05" in found.what
    assert found.fix == "sudo reboot"


def test_nvidia_that_works(machine):
    nvidia_machine(machine, "card", "library", "file")
    machine.devices = [device("NVIDIA A", "gpu", "NVIDIA Corporation")]
    assert [f.status for f in machine.find(nvidia.check)] == ["ok"]


@pytest.mark.parametrize("value", ["", "-1", " "])
def test_variable_that_hides_all_gpus(machine, value):
    nvidia_machine(machine, "card", "library", "file").set(CUDA_VISIBLE_DEVICES=value)
    (found,) = machine.find(variables.check, "problem")
    assert found.fix == "unset CUDA_VISIBLE_DEVICES"
    machine.set(CUDA_VISIBLE_DEVICES="0")
    assert machine.find(variables.check)[0].status == "ok"


def test_machine_without_a_gpu_says_nothing_of_gpus(machine):
    assert machine.find(nvidia.check) == machine.find(nodes.drivers) == []
    assert [f.status for f in machine.find(nodes.check)] == ["ok"]
