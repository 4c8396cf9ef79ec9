"""Fixtures: every test that names ``device`` runs on each OpenCL device of this machine."""

from __future__ import annotations

import argparse
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest

from tests import quick
from tests.limits.build import LayerError, environment, rusticl
from tests.limits.profiles import PROFILES
from tests.runtimes import available_runtimes

if TYPE_CHECKING:
    import clgpu_delegate

# Tests must not use the user's cache; tests of the cache name a file.
os.environ["CLGPU_CACHE"] = "off"
# Only compiled programs are stored, for the next process and the next run, because compiling
# kernels takes most of the time. Tests of compilation set this variable to an empty text.
PROGRAMS = "CLGPU_PROGRAMS"

hypothesis.settings.register_profile(
    "clgpu",
    deadline=None,  # the first example compiles kernels
    derandomize=True,
    database=None,
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.filter_too_much,
    ],
)
hypothesis.settings.load_profile("clgpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--limits",
        choices=[*sorted(PROFILES), "rusticl"],
        help="run on one device: an OpenCL CPU with the limits of a mobile one, or the CPU through "
        "Mesa's rusticl, which has limits of its own (docs/devices.md)",
    )
    parser.addoption(
        "--sample",
        type=_fraction,
        metavar="1/N",
        help="run one test in N, always the same ones: those that a hash of their names draws",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="run what tests/quick.py draws: one device, one case of a test function on it",
    )


def _fraction(text: str) -> int:
    match = re.fullmatch(r"1/([1-9]\d*)", text)
    if match is None:
        message = f"{text!r} is not a fraction like 1/8"
        raise argparse.ArgumentTypeError(message)
    return int(match[1])


def pytest_configure(config: pytest.Config) -> None:
    """Set variables before devices are listed; child processes of tests inherit them.

    Workers of pytest-xdist do, too.
    """
    if config.rootpath.stat().st_uid in (os.geteuid(), 0):  # otherwise no store would use the file
        shared = config.rootpath / "build" / "programs" / "devices.sqlite"
        os.environ.setdefault(PROGRAMS, str(shared))
    if config.getoption("--quick"):
        os.environ[quick.VARIABLE] = "1"
    profile = config.getoption("--limits")
    if profile is None or os.environ.get("CLGPU_LIMITS") == profile:
        return
    import clgpu_delegate  # noqa: PLC0415

    try:
        if profile == "rusticl":
            os.environ.update(rusticl())
            name = profile
        else:
            os.environ.update(environment(profile, config.rootpath / "build" / "limits"))
            # The layer changes the compiled programs.
            name = Path(os.environ["CLGPU_OPENCL_LIBRARY"]).stem
        programs = config.rootpath / "build" / "programs" / f"{name}.sqlite"
        os.environ[PROGRAMS] = str(programs)
        clgpu_delegate.devices()
    except (LayerError, clgpu_delegate.DeviceError) as error:
        message = f"--limits {profile}: {error}"
        raise pytest.UsageError(message) from None


_SHORT_NAMES = {"portable computing": "pocl", "intel": "intel", "oclgrind": "oclgrind"}


def _short_name(device: clgpu_delegate.Device) -> str:
    if "CLGPU_LIMITS" in os.environ:
        return os.environ["CLGPU_LIMITS"]
    for part, name in _SHORT_NAMES.items():
        if part in device.platform.lower():
            return name
    return device.name.lower().replace(" ", "_")


def _devices() -> dict[str, str]:
    """Index of every device by a short name; empty when there is none."""
    import clgpu_delegate  # noqa: PLC0415  # tests of the tools below run without the extension

    try:
        found = clgpu_delegate.devices()
    except clgpu_delegate.DeviceError:
        return {}
    names: dict[str, str] = {}
    for device in found:
        name = _short_name(device)
        names[name if name not in names else f"{name}{device.index}"] = str(device.index)
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        # Without a device the tests fail in `device` below instead of disappearing.
        names: dict[str, str | None] = {**_devices()} or {"none": None}
        metafunc.parametrize("device", names.values(), ids=names, indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """Index of an OpenCL device, as an option of `clgpu_delegate.load`."""
    if request.param is None:
        import clgpu_delegate  # noqa: PLC0415

        clgpu_delegate.devices()  # raises: no device
    return str(request.param)


@pytest.fixture(params=["fp32", "fp16"])
def precision(request: pytest.FixtureRequest) -> str:
    """Each precision of the delegate."""
    return str(request.param)


@pytest.fixture(params=available_runtimes())
def runtime(request: pytest.FixtureRequest) -> str:
    """Each TensorFlow Lite runtime that is installed."""
    return str(request.param)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers, the same in every run of the same test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)  # after -k and -m, which select the tests for this rule
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that were not requested.

    On interpreted devices also hypothesis tests, because their shapes are not small.
    """
    left_out: list[pytest.Item] = []
    if os.environ.get("CLGPU_TEST_SMALL"):
        left_out += [i for i in items if getattr(getattr(i, "obj", None), "is_hypothesis_test", 0)]
    if n := config.getoption("--sample"):
        left_out += [item for item in items if zlib.crc32(item.nodeid.encode()) % n]
    if config.getoption("--quick"):
        names = _devices() if any(map(quick.is_sampled, items)) else {}
        device = quick.device_of(names)
        stay = set(quick.kept(items, names.get(device) if device else None))
        left_out += [item for item in items if item not in stay]
    gone = set(left_out)
    config.stash[LEFT_OUT] = len(gone)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in gone]
    # The longest tests start first, so that no core waits for another at the end.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell pytest-xdist how many tests this worker has deselected."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001
    """Get the number from a worker; all have deselected the same tests."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT] = output.get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what was deselected, and how to run it."""
    if config.getoption("--quick"):
        terminalreporter.write_line(
            f"quick: {config.stash.get(LEFT_OUT, 0)} tests were left out: other OpenCL devices, "
            "further cases of tests on devices and in runtimes, and what is slow (whole-tree "
            "builds, emulators, browsers, notebooks). Run all: make test-all"
        )
