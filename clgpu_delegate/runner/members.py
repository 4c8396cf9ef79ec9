"""The devices of a pool: which ones are meant, their runners, and what each has done."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union

from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.devices import Device, devices
from clgpu_delegate.errors import (
    BuildError,
    DeviceError,
    InternalError,
    OpenCLError,
    OptionError,
)
from clgpu_delegate.runner.engines import Pending
from clgpu_delegate.runner.runner import Runner
from clgpu_delegate.runner.tensors import Array

Names = Union[str, int, Sequence[Union[str, int]], None]
_OF_DEVICE = (BuildError, DeviceError, InternalError, OpenCLError)
_ALLOWED = (
    "an index or a part of a device's or platform's name, a list of these, 'all', or None for "
    "every GPU and accelerator"
)


@dataclasses.dataclass(frozen=True)
class PoolDevice:
    """A device of a `Pool`, and what it has done so far.

    Examples
    --------
    >>> with clgpu_delegate.Pool("model.tflite") as pool:
    ...     results = list(pool.map([x, x]))
    ...     sum(each.done for each in pool.stats())
    2
    """

    device: Device

    state: Literal["working", "failed"]
    """``"failed"``: it was set aside, and gets no more inputs."""

    mode: str
    """See `Runner.mode`; empty if the model could not be loaded on the device."""

    done: int
    """Inputs whose results it gave."""

    passed_on: int
    """Inputs that it had begun when it failed, and that other devices got."""

    busy_s: float
    """Seconds in which at least one input was under way."""

    error: str
    """What made it fail; empty while it works."""

    @property
    def per_second(self) -> float:
        """Inputs per second of `busy_s`; 0 before the first one."""
        return self.done / self.busy_s if self.busy_s else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {**dataclasses.asdict(self), "per_second": self.per_second}


class Member:
    """A device of a pool; the pool's lock protects its fields."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.runner: Runner | None = None
        self.mode = ""
        self.error = ""
        self.is_active = False  # a thread works for it, or is about to
        self.under_way = 0
        self.done = 0
        self.passed_on = 0
        self._busy_ns = 0
        self._since_ns = 0  # while something is under way

    @property
    def delegate(self) -> Delegate | None:
        """Of the runner."""
        return None if self.runner is None else self.runner.delegate

    @property
    def ahead(self) -> int:
        """Inputs that are worth starting before the first result."""
        assert self.runner is not None  # otherwise nobody works for it
        return self.runner._use().ahead

    def start(self, inputs: Sequence[Array]) -> Pending:
        """Begin with arrays that were checked."""
        assert self.runner is not None
        engine = self.runner._use()
        return engine.start(inputs, [None] * len(engine.outputs))

    @property
    def works(self) -> bool:
        """Whether it was not set aside."""
        return not self.error

    @property
    def state(self) -> Literal["working", "failed"]:
        """As in `PoolDevice`."""
        return "working" if self.works else "failed"

    def begin(self) -> None:
        """One more input is under way."""
        if self.under_way == 0:
            self._since_ns = time.perf_counter_ns()
        self.under_way += 1

    def end(self) -> None:
        """One input less is under way."""
        self.under_way -= 1
        if self.under_way == 0:
            self._busy_ns += time.perf_counter_ns() - self._since_ns

    def stats(self) -> PoolDevice:
        """What it has done so far."""
        busy = self._busy_ns
        if self.under_way:
            busy += time.perf_counter_ns() - self._since_ns
        return PoolDevice(
            device=self.device,
            state=self.state,
            mode=self.mode,
            done=self.done,
            passed_on=self.passed_on,
            busy_s=busy / 1e9,
            error=self.error,
        )

    def open(self, load: Callable[[Device], Delegate], make: Callable[[Delegate], Runner]) -> None:
        """Load the model; keeps an error of the device, raises any other one."""
        delegate: Delegate | None = None
        try:
            delegate = load(self.device)
            self.runner = make(delegate)
            self.mode = self.runner.mode
        except Exception as error:
            if not is_of_device(error, delegate):
                raise
            self.error = described(error)

    def close(self) -> None:
        """Let go of model and device."""
        runner, self.runner = self.runner, None
        if runner is not None:
            runner.close()


def set_idle_aside(members: Sequence[Member]) -> None:
    """Set those aside that have left a model to the CPU of which others compute nodes."""
    plans = [(m, m.runner.explain()) for m in members if m.runner is not None]
    if not any(plan.claimed for _, plan in plans):
        return
    for member, plan in plans:
        if not plan.claimed:
            reasons = sorted({node.reason for node in plan.nodes})
            member.error = f"no node of the model is on the device: {one_line('; '.join(reasons))}"
            member.close()


def is_of_device(error: BaseException, delegate: Delegate | None) -> bool:
    """Whether an error tells that a device fails, and not that an input or a model is wrong."""
    if isinstance(error, _OF_DEVICE):
        return True
    # Runtimes pass on a message alone; the delegate has kept what it was made of.
    failure = None if delegate is None else delegate.explain().failure
    return failure is not None and failure.kind in {kind.__name__ for kind in _OF_DEVICE}


def described(error: BaseException) -> str:
    """Class and message, in a line."""
    return f"{type(error).__name__}: {one_line(error)}"


def chosen(names: Names) -> list[Device]:
    """The devices that are meant; see `Pool`.

    Raises
    ------
    DeviceError
        If there is none, or a name is that of none.
    OptionError
        If a value is not allowed.
    """
    found = devices()
    if names is None or names == "":
        named = os.environ.get("CLGPU_DEVICE")
        return _named(named, found) if named else _usual(found)
    if isinstance(names, str) and names.lower() == "all":
        return found
    if isinstance(names, (str, int)):
        names = [names]
    if not isinstance(names, Sequence) or not names:
        raise _wrong(names)
    return [device for name in names for device in _named(name, found)]


def _usual(found: list[Device]) -> list[Device]:
    quick = [device for device in found if device.type in ("gpu", "accelerator")]
    # Platforms for CPUs all use the same cores.
    return quick or [device for device in found if device.platform == found[0].platform]


def _named(name: str | int, found: list[Device]) -> list[Device]:
    if not isinstance(name, (str, int)) or isinstance(name, bool) or name == "":
        raise _wrong(name)
    text = str(name).lower()
    if text.isdecimal():
        meant = [device for device in found if str(device.index) == text]
    else:
        meant = [d for d in found if text in d.name.lower() or text in d.platform.lower()]
    if not meant:
        listed = "; ".join(f"{d.index}: {d.name} ({d.platform})" for d in found)
        raise DeviceError(f"no OpenCL device is {name!r}; devices are: {one_line(listed)}")
    return meant


def _wrong(names: object) -> OptionError:
    return OptionError(f"devices is {names!r}; allowed: {_ALLOWED}")
