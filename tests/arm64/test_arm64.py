"""The build for ARM64, run by qemu on ARM64's PoCL in ARM64's Python with both runtimes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.arm64 import models
from tools.arm64 import build, common, emulation, sites, system

GATES = common.REPOSITORY / "tools" / "check_library.py"
EXPORTS = common.REPOSITORY / "src_cpp" / "cmake" / "exports.map"
INSIDE = Path(__file__).with_name("on_arm.py")
MODELS = {"network": 5, "integers": 3}  # models and their numbers of operations


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def library() -> Path:
    """libclgpu_delegate.so for ARM64."""
    made(system.make_system)
    return made(build.build_library)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and their inputs."""
    path, rng = tmp_path_factory.mktemp("models"), np.random.default_rng(3)
    (path / "network.tflite").write_bytes(models.network(rng))
    np.savez(path / "network.npz", rng.standard_normal((1, 8, 8, 1)).astype(np.float32))
    (path / "integers.tflite").write_bytes(models.integers(rng))
    np.savez(path / "integers.npz", rng.integers(-128, 128, (1, 6, 6, 3), np.int8))
    return path


def run_on_arm(site: Path, *arguments: str | Path) -> Any:
    """What the ARM system's Python prints: JSON."""
    done = subprocess.run(
        [*made(emulation.python_command), *map(str, arguments)],
        env=emulation.environment(system.make_system(), [site]),
        cwd=common.FOLDER,  # in the source folder, -m would find the package there
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_library_is_as_loaders_want_it(library):
    pytest.importorskip("elftools")
    needed = "libc.so.6,libm.so.6,libgcc_s.so.1,libstdc++.so.6,ld-linux-aarch64.so.1"
    done = subprocess.run(
        [
            sys.executable, GATES, library, "--machine", "aarch64", "--needed", needed,
            "--glibc", "2.36", "--exports", EXPORTS,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sites.RUNTIMES)
def test_library_claims_models_and_is_right(name, library, folder):
    site = made(sites.make_site, name, sites.RUNTIMES[name])
    facts = run_on_arm(site, INSIDE, name, library, folder)
    check(facts, folder, name)


def test_wheel_claims_models_and_is_right(folder):
    made(system.make_system)
    name, wheel = "ai_edge_litert", made(build.build_wheel)
    site = made(sites.make_site, "wheel", (f"{wheel}[commands,litert]", *sites.RUNTIMES[name]))
    (device,) = run_on_arm(site, "-m", "clgpu_delegate", "devices", "--json")
    assert device["platform"] == "Portable Computing Language"
    check(run_on_arm(site, INSIDE, name, "package", folder), folder, name)


def made(make: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function; skips if this machine lacks its tools, which CI must have."""
    try:
        return make(*arguments)
    except common.Missing as reason:
        if os.environ.get("CLGPU_TEST_ARM64") == "required":
            raise
        return pytest.skip(str(reason))


def check(facts: Any, folder: Path, name: str) -> None:
    """One partition computes all nodes, with correct results."""
    assert facts["machine"] == "aarch64"
    for model, count in MODELS.items():
        *nodes, ours = facts["operations"][model]
        assert len(nodes) == count
        assert facts["explained"][model] == [[op, True] for op, *_ in nodes]
        assert ours[0] == "DELEGATE", "the runtime's name of any delegate's node"
        assert "DELEGATE" not in [name for name, *_ in nodes], "one partition"
        assert set(ours[1]) == read_from_outside(nodes), "it computes all nodes"
        assert ours[2] == nodes[-1][2]
        with np.load(folder / f"{model}.{name}.npz") as file:
            got, want = file["got"].astype(np.float64), file["want"].astype(np.float64)
        assert np.ptp(want) > 0.5
        tolerance = {"atol": 1} if model == "integers" else {"rtol": 1e-4, "atol": 1e-6}
        np.testing.assert_allclose(got, want, **tolerance)


def read_from_outside(nodes: list[Any]) -> set[int]:
    """Tensors that nodes read and do not write."""
    read = {tensor for _, inputs, _ in nodes for tensor in inputs if tensor >= 0}
    return read - {tensor for _, _, outputs in nodes for tensor in outputs}
