"""The extension's delegate, made from options, without the classes of this package."""

from __future__ import annotations

from clgpu_delegate import _core, cache
from clgpu_delegate.base import embedded
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.options import Options


def make(options: Options) -> _core.NativeDelegate:
    """Errors as `clgpu_delegate.load`."""
    with embedded.registered():
        return _core.make_delegate(texts_of(options))


def texts_of(options: Options) -> dict[str, str]:
    """The options as strings, with the place of the cache."""
    return {"cache": cache.default_path(), **options.as_delegate_dict()}


def device_of(native: _core.NativeDelegate, options: Options) -> Device:
    """The device that it uses; ``options`` are those that it was made with."""
    data = native.explain()
    name = (data["platform"], data["device"])
    alike = [d for d in devices() if (d.platform, d.name) == name]
    # An index in the options distinguishes devices of the same name.
    return next((d for d in alike if str(d.index) == options.device), alike[0])


class BareDelegate:
    """The pointer of a delegate, for a runtime's interpreter."""

    def __init__(self, options: Options) -> None:
        self.native = make(options)

    def _get_native_delegate_pointer(self) -> int:
        """As in `clgpu_delegate.Delegate`, but without looking for a verdict."""
        return self.native.pointer
