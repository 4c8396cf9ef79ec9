"""The extension's delegate, made from options, without the classes of this package."""

from __future__ import annotations

import dataclasses
import json

from clgpu_delegate import _core, cache
from clgpu_delegate.base import embedded
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.options import Options
from clgpu_delegate.precision import PrecisionPlan

_PLANS = "precision"  # kind of the cache's rows


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


def keep_plan(options: Options, plan: PrecisionPlan, label: str) -> PrecisionPlan:
    """Store a plan for ``precision="mixed"``, and beside it what was measured.

    The extension's row is the text of the plan, as it is all that a delegate needs. One that was
    not timed, because Ctrl-C came before, does not replace another one.

    Returns
    -------
    PrecisionPlan
        The same with `PrecisionPlan.stored`, and what is known of the plan that the cache had.
    """
    native = make(options)
    store = _store(options)
    text = native.kept_plan(plan.model)
    earlier = None if text is None else find_plan(native, options, text)
    if earlier is not None:
        plan = dataclasses.replace(
            plan, earlier_metric=earlier.metric, earlier_max_error=earlier.max_error
        )
    if store is None:
        return dataclasses.replace(plan, stored="off")
    if text is not None and text != plan.text and not plan.points:
        return dataclasses.replace(plan, stored="left")
    stored = "new" if text is None else "replaced"
    if earlier is not None and earlier.metric != plan.metric:
        stored = "other_metric"
    elif earlier is not None and earlier.max_error != plan.max_error:
        stored = "other_bound"
    plan = dataclasses.replace(plan, stored=stored)
    if not native.keep_plan(plan.text, label):
        return dataclasses.replace(plan, stored="off")
    key = _key_of_measured(native, plan.text)
    store.put(_PLANS, key, json.dumps(plan.to_dict()).encode(), f"{label}, measurements")
    return plan


def kept_plan(options: Options, model: str) -> PrecisionPlan | None:
    """The plan that the cache has for the model of this digest, with what was measured for it."""
    native = make(options)
    text = native.kept_plan(model)
    return None if text is None else find_plan(native, options, text)


def find_plan(native: _core.NativeDelegate, options: Options, text: str) -> PrecisionPlan | None:
    """The plan with this text that `keep_plan` has stored; None if the cache does not have it."""
    store = _store(options)
    value = None if store is None else store.get(_PLANS, _key_of_measured(native, text))
    if value is None:
        return None
    try:
        plan = PrecisionPlan.from_dict(json.loads(value))
    except (ValueError, RecursionError):  # of another version of this package
        return None
    return plan if plan.text == text else None


def _key_of_measured(native: _core.NativeDelegate, text: str) -> str:
    data = native.explain()
    facts = ["measured plan", data["platform"], data["device"], text]
    return _core.sha256(json.dumps(facts).encode())


def _store(options: Options) -> _core.Store | None:
    path = texts_of(options)["cache"]
    store = None if path == "off" else _core.Store(path)
    return store if store is not None and store.is_on else None


class BareDelegate:
    """The pointer of a delegate, for a runtime's interpreter."""

    def __init__(self, options: Options) -> None:
        self.native = make(options)

    def _get_native_delegate_pointer(self) -> int:
        """As in `clgpu_delegate.Delegate`, but without looking for a verdict."""
        return self.native.pointer
