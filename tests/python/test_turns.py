"""Times are measured in turns on an idle machine, and remarks say how reliable they are."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
import time

import pytest

from clgpu_delegate.errors import OptionError
from clgpu_delegate.measure import comparison, turns
from clgpu_delegate.measure.comparison import Beside, compare
from tests.python import models


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    return str(path)


@pytest.mark.parametrize("runs", [1, 3, 10])
def test_ways_take_turns_in_blocks_with_an_untimed_call_first(runs):
    calls: list[str] = []
    ways = {name: lambda name=name: calls.append(name) for name in "ab"}
    medians = turns.medians_ms(ways, runs, pause_s=0)
    assert set(medians) == {"a", "b"}
    assert min(medians.values()) >= 0
    blocks = [(name, len(list(group))) for name, group in itertools.groupby(calls)]
    assert [name for name, _ in blocks] == ["a", "b"] * min(4, runs)
    assert calls.count("a") == calls.count("b") == runs + min(4, runs)


def stat_file(tmp_path, monkeypatch, shares):
    """A file that gives one share of busy cores after another."""
    path = tmp_path / "stat"
    ticks = {"busy": 0, "idle": 0}
    rest = iter([0.0, *shares])

    def more(_: float = 0) -> None:
        share = next(rest)
        ticks["busy"] += round(100 * share)
        ticks["idle"] += round(100 * (1 - share))
        path.write_text(f"cpu  {ticks['busy']} 0 0 {ticks['idle']} 0 0 0 0 0 0\ncpu0 1 2\n")

    more()
    monkeypatch.setattr(turns, "_STATISTICS", path)
    monkeypatch.setattr(turns.time, "sleep", more)


def test_other_work_is_waited_for(tmp_path, monkeypatch):
    stat_file(tmp_path, monkeypatch, [0.9, 0.5, 0.1])
    assert turns.wait_until_quiet(1e3) == pytest.approx(0.1)


def test_other_work_that_does_not_end_is_told(tmp_path, monkeypatch):
    stat_file(tmp_path, monkeypatch, [0.75] * 9)
    assert turns.wait_until_quiet(0) == pytest.approx(0.75)


@pytest.mark.parametrize("text", [None, "", "cpu\n", "cpu one two three four five\n", "intr 1 2"])
def test_systems_that_do_not_tell_are_not_waited_for(text, tmp_path, monkeypatch):
    path = tmp_path / "stat"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(turns, "_STATISTICS", path)
    assert turns.wait_until_quiet() is None


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)


@pytest.mark.usefixtures("quiet")
def test_remarks_tell_what_the_times_are_worth(model):
    result = compare(model, runs=1)
    assert result.device.type == "cpu"
    said = " ".join(str(result).split())
    assert "OpenCL runs on the CPU here" in said
    assert "other work" not in said
    busy = " ".join(str(dataclasses.replace(result, busy=0.43)).split())
    assert "other work used 43% of the cores" in busy
    on_gpu = dataclasses.replace(result, device=dataclasses.replace(result.device, type="gpu"))
    assert "OpenCL runs on the CPU" not in str(on_gpu)


@pytest.mark.usefixtures("quiet")
def test_a_device_of_another_type_is_shown_beside(model, monkeypatch):
    own = compare(model, runs=1).device
    as_gpu = dataclasses.replace(own, type="gpu", name="a GPU")
    missing = dataclasses.replace(own, type="accelerator", index=99, name="a missing one")
    monkeypatch.setattr(comparison, "devices", lambda: [own, as_gpu, as_gpu, missing])
    result = compare(model, runs=1, every_device=True)
    gpu, absent = result.beside
    assert gpu.delegate_ms > 0
    assert absent == Beside(missing, None, absent.problem)
    assert "there is no OpenCL device with index 99" in absent.problem
    said = " ".join(str(result).split())
    assert f"{gpu.delegate_ms:.2f} ms on a GPU" in said
    assert "index 99" in said
    assert [other["device"]["name"] for other in result.to_dict()["beside"]] == [
        "a GPU", "a missing one",
    ]  # fmt: skip
    assert compare(model, runs=1).beside == ()


ENTERS = """
import time
from clgpu_delegate.measure import turns

print(flush=True)
with turns.alone():
    print(time.monotonic())
"""


def test_processes_with_a_timing_lock_are_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(turns.LOCK, str(tmp_path / "lock"))
    with turns.alone():
        other = subprocess.Popen([sys.executable, "-c", ENTERS], stdout=subprocess.PIPE)
        other.stdout.readline()  # it waits for the lock, or soon will
        time.sleep(0.2)
        released = time.monotonic()
    entered, _ = other.communicate(timeout=60)
    assert float(entered) >= released  # both count from the start of the machine


def test_timing_lock_that_cannot_be_opened_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv(turns.LOCK, str(tmp_path / "missing" / "lock"))
    with pytest.raises(OptionError, match=r"CLGPU_TIMING_LOCK is .*, which cannot be opened"):
        turns.alone().__enter__()
