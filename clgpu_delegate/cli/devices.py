"""The command ``clgpu devices``."""

from rich import box
from rich.table import Table

from clgpu_delegate.cli.printing import print_json, print_rich
from clgpu_delegate.cli.settings import Json
from clgpu_delegate.devices import devices as find_devices


def devices(as_json: Json = False) -> None:
    """List the OpenCL devices."""
    found = find_devices()
    if as_json:
        print_json([device.to_dict() for device in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("index", "name", "type", "platform", "OpenCL", "units", "memory", "half"):
        table.add_column(heading)
    for device in found:
        table.add_row(
            str(device.index),
            device.name,
            device.type,
            device.platform,
            " ".join(device.opencl_version.split()[1:2]),  # "OpenCL 3.0 vendor's words"
            str(device.compute_units),
            f"{device.global_bytes / 2**30:.1f} GiB",
            "yes" if device.has_half else "storage only",
        )
    print_rich(table)
