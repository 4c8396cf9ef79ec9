"""The ceilings of a device, measured; what bounds a computation from below."""

from __future__ import annotations

import dataclasses

from clgpu_delegate import _core


@dataclasses.dataclass(frozen=True)
class Peaks:
    """What an OpenCL device did at most, in kernels that do nothing else."""

    fma_flops: float
    """Float operations per second, two for each multiply-add."""

    mma_f16_flops: float
    mma_tf32_flops: float
    """The same of tensor cores, of halves and TF32 numbers with sums in float; 0 without."""

    copy_bytes: float
    """Bytes per second, read and written, in device memory."""

    launch_seconds: float
    """Of an empty kernel, with many in flight."""

    round_trip_seconds: float
    """Of an empty kernel that is waited for."""

    upload_bytes: float
    download_bytes: float
    """Bytes per second between the device and pageable host memory."""

    transfer_seconds: float
    """Of a copy of hardly any bytes that is waited for."""

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
        """The better of each figure of two measurements."""
        return Peaks(
            **{
                field.name: (min if field.name.endswith("seconds") else max)(
                    getattr(self, field.name), getattr(other, field.name)
                )
                for field in dataclasses.fields(self)
            }
        )

    def flops(self, precision: str) -> float:
        """Operations per second that a precision allows: by tensor cores where they do it."""
        tensor = {"fp16": self.mma_f16_flops, "tf32": self.mma_tf32_flops}
        return max(self.fma_flops, tensor.get(precision, 0.0))

    def bound_ms(self, precision: str, flops: float, size: float) -> float:
        """Least milliseconds for operations in a precision and bytes that must move."""
        return 1e3 * max(flops / self.flops(precision), size / self.copy_bytes)


def measure(device: str = "", seconds: float = 1.0) -> Peaks:
    """Measure a device for about so many seconds; ``device`` as in `clgpu_delegate.Options`."""
    return Peaks(**_core.measure_peaks(device, seconds))
