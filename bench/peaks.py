"""The measured peaks of a device, and the least time of a computation under them."""

from __future__ import annotations

import dataclasses

from clgpu_delegate import _core


@dataclasses.dataclass(frozen=True)
class Peaks:
    """The best measured rates of an OpenCL device, each measured with a dedicated kernel."""

    fma_flops: float
    """Float operations per second, two for each multiply-add."""

    mma_f16_flops: float
    mma_tf32_flops: float
    """The same on tensor cores, with fp16 and TF32 factors and float sums; else 0."""

    copy_bytes: float
    """Bytes per second, read and written, in device memory."""

    launch_seconds: float
    """Time of an empty kernel, with many in flight."""

    round_trip_seconds: float
    """Time of an empty kernel that the host waits for."""

    upload_bytes: float
    download_bytes: float
    """Bytes per second between the device and pageable host memory."""

    transfer_seconds: float
    """Time of a copy of a few bytes that the host waits for."""

    cache_bytes: float = 0.0
    """Bytes per second, read from a cache that all compute units share; 0 in files of before."""

    def __str__(self) -> str:
        tensor = ""
        if self.mma_f16_flops:
            rates = (self.mma_tf32_flops / 1e12, self.mma_f16_flops / 1e12)
            tensor = "{:.0f} TF32 and {:.0f} fp16 on tensor cores, ".format(*rates)
        return (
            f"{self.fma_flops / 1e12:.3g} TFLOP/s of float multiply-adds, {tensor}"
            f"copies at {self.copy_bytes / 1e9:.3g} GB/s (read and written), "
            f"{self.launch_seconds * 1e6:.2g} us a launch"
        )

    def or_better(self, other: Peaks) -> Peaks:
        """Return for each field the better value of two measurements."""
        return Peaks(
            **{
                field.name: (min if field.name.endswith("seconds") else max)(
                    getattr(self, field.name), getattr(other, field.name)
                )
                for field in dataclasses.fields(self)
            }
        )

    def flops(self, precision: str) -> float:
        """Return operations per second in a precision, on tensor cores where they support it."""
        tensor = {"fp16": self.mma_f16_flops, "tf32": self.mma_tf32_flops}
        return max(self.fma_flops, tensor.get(precision, 0.0))

    def bound_ms(self, precision: str, flops: float, size: float) -> float:
        """Return the least milliseconds for some operations and for some bytes that must move."""
        return 1e3 * max(flops / self.flops(precision), size / self.copy_bytes)


def measure(device: str = "", seconds: float = 1.0) -> Peaks:
    """Measure a device for about ``seconds``; ``device`` as in `clgpu_delegate.Options`."""
    return Peaks(**_core.measure_peaks(device, seconds))
