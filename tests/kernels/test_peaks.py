"""The peak rates of a device are measured with special kernels."""

from __future__ import annotations

import pytest

import clgpu_delegate
from clgpu_delegate import _core


def test_peaks_are_plausible(device):
    peaks = _core.measure_peaks(device, 0.05)
    assert all(value > 0 for name, value in peaks.items() if not name.startswith("mma"))
    assert peaks["fma_flops"] < 1e15
    for rate in ("copy_bytes", "cache_bytes", "upload_bytes", "download_bytes"):
        assert peaks[rate] < 1e14
    # A copy in memory reads and writes; reading alone from a cache is not much slower anywhere.
    assert peaks["cache_bytes"] > peaks["copy_bytes"] / 2


def test_unknown_device_is_an_error():
    with pytest.raises(clgpu_delegate.DeviceError):
        _core.measure_peaks("no such device", 0.05)


def test_the_hosts_rates_are_plausible():
    peaks = _core.measure_host_peaks()
    assert 1e8 < peaks["fma_flops"] < 1e13
    assert 1e8 < peaks["memory_bytes"] < 1e13
    assert 1e8 < peaks["cache_bytes"] < 1e14
