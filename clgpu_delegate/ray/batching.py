"""A model on a device of this machine, for any number of rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from clgpu_delegate.base.files import Source, read_content
from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.errors import ClgpuError, DeviceError, InputError, OptionError, PoolError
from clgpu_delegate.options import Settings
from clgpu_delegate.ray import slots
from clgpu_delegate.runner.members import Names, described, is_of_device
from clgpu_delegate.runner.runner import Runner
from clgpu_delegate.runner.tensors import Array, TensorSpec

_LOG = logging.getLogger("clgpu_delegate")
_WAIT_S = 60.0  # for the device of an actor that is about to end
_TIMING_S = 0.2  # of one batch size
_LONGEST_S = 1.0  # an inference that takes longer ends the search for a batch size
_GAIN = 1.05  # what a larger batch must be faster by


class Batching:
    """A model on a device that no other process has, with the batch size that is worth it.

    If the device fails, the next one that is free takes its place, and the rows that were under way
    are computed again. If none is free, every further call fails.

    Parameters
    ----------
    model
        Path or bytes.
    devices
        As in `clgpu_delegate.Pool`; the first one that is free is used.
    batch
        Rows of an inference; None: the smallest number whose throughput is within 5 % of the best
        one measured, of 1, 2, 4 ... ``most``. A model whose first axis cannot change keeps its own.
    settings
        The fields of `Options`, except ``device``.
    """

    def __init__(
        self, model: Source, *, devices: Names, batch: int | None, most: int, settings: Settings
    ) -> None:
        for name, value in (("batch", batch), ("most", most)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise OptionError(f"{name} is {value!r}; allowed: 1 and more")
        if "device" in settings:
            raise OptionError("option 'device': give devices=[...]; an actor takes one of them")
        self._content = read_content(model)
        self._devices, self._wanted, self._most = devices, batch, most
        self._settings = settings
        self._failed: dict[str, tuple[int, str, str]] = {}  # by slot
        self._runner: Runner | None = None  # None once no device is left
        self._open()

    def _open(self) -> None:
        """Take the first device that works; a PoolError if none does."""
        while len(self._failed) < len(slots.slots_of(self._devices)):
            self._slot = self._next_slot()
            delegate: Delegate | None = None
            try:
                own: Settings = {**self._settings, "device": self._slot.device.index}
                delegate = load(**own)
                self._runner = Runner(self._content, delegate=delegate)
                self._batch = self._sized(self._runner)
                self._inputs, self._outputs = self._runner.inputs, self._runner.outputs
                return
            except Exception as error:
                if not self._set_aside(error, delegate):
                    self._let_go()
                    raise
        raise PoolError(list(self._failed.values()))

    def _next_slot(self) -> slots.Slot:
        if not self._failed:
            return slots.take(self._devices, wait_s=_WAIT_S)
        try:
            return slots.take(self._devices, self._failed)
        except DeviceError as error:  # others use those that are left
            raise PoolError(list(self._failed.values())) from error

    def _set_aside(self, error: BaseException, delegate: Delegate | None) -> bool:
        if not is_of_device(error, delegate):
            return False
        device = self._slot.device
        self._failed[self._slot.name] = (device.index, device.name, described(error))
        _LOG.warning("device %d (%s) is set aside: %s", device.index, device.name, error)
        self._let_go()
        return True

    def _let_go(self) -> None:
        """Release the device, then the slot: another process may take it at once."""
        runner, self._runner = self._runner, None
        try:
            if runner is not None:
                runner.close()
        except Exception as error:
            name = self._slot.device.name
            _LOG.warning("device %s cannot be released: %s", name, described(error))
        finally:
            self._slot.release()

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._slot.device.name

    @property
    def batch(self) -> int:
        """Rows of an inference."""
        return self._batch

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Of an inference, so the first axis is `batch`."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Of an inference."""
        return self._outputs

    def check(self) -> None:
        """Run an inference of zeros; raises what fails."""
        runner = self._working()
        runner.run(_zeros(runner))

    def _working(self) -> Runner:
        if self._runner is None:
            raise PoolError(list(self._failed.values()))
        return self._runner

    def run(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """Results for rows.

        Parameters
        ----------
        columns
            By the name of each input an array whose first axis are the rows.

        Returns
        -------
        dict
            The same for outputs.

        Raises
        ------
        InputError
            If a column is missing, or its rows have another shape or dtype than the input.
        PoolError
            If the device fails, and no other one is free.
        """
        rows = self._checked(columns)
        while True:
            runner = self._working()
            try:
                results = list(runner.run_many(self._batches(columns, rows)))
                return self._joined(results, rows)
            except Exception as error:
                if not self._set_aside(error, runner.delegate):
                    raise
                self._open()

    def _checked(self, columns: Mapping[str, Array]) -> int:
        counts = set()
        for tensor in self.inputs:
            if tensor.name not in columns:
                raise InputError(
                    f"there is no column {tensor.name!r}; columns are: {', '.join(columns)}"
                )
            given = columns[tensor.name]
            if given.shape[1:] != tensor.shape[1:] or given.dtype != tensor.dtype:
                raise InputError(
                    f"column {tensor.name!r} takes rows that are {tensor.dtype.name} of shape "
                    f"{tensor.shape[1:]}; given are {given.dtype.name} of shape {given.shape[1:]}"
                )
            counts.add(len(given))
        if len(counts) != 1:
            raise InputError(f"columns have different numbers of rows: {sorted(counts)}")
        return counts.pop()

    def _batches(self, columns: Mapping[str, Array], rows: int) -> Iterator[list[Array]]:
        for begin in range(0, rows, self._batch):
            parts = [columns[tensor.name][begin : begin + self._batch] for tensor in self.inputs]
            if begin + self._batch > rows:  # another batch size would take another plan
                parts = [self._filled(part) for part in parts]
            yield parts

    def _filled(self, part: Array) -> Array:
        filled = np.zeros((self._batch, *part.shape[1:]), part.dtype)
        filled[: len(part)] = part
        return filled

    def _joined(self, results: list[Any], rows: int) -> dict[str, Array]:
        joined = {}
        for number, tensor in enumerate(self.outputs):
            parts = [r[number] if len(self.outputs) > 1 else r for r in results]
            empty = np.empty((0, *tensor.shape[1:]), tensor.dtype)
            joined[tensor.name] = np.concatenate([empty, *parts])[:rows]
        return joined

    def _sized(self, runner: Runner) -> int:
        """Give the runner the batch size; returns it."""
        own = _batch_of(runner)
        if self._wanted is not None:
            if self._wanted != own:
                _resize(runner, self._wanted)
            return self._wanted
        rates: dict[int, float] = {}
        for size in _powers(self._most):
            try:
                _resize(runner, size)
                rate, seconds = _rate(runner, size)
            except ClgpuError as error:
                if not rates and size == own:
                    raise
                _LOG.info("no batch of %d: %s", size, error)
                break
            rates[size] = rate
            if seconds > _LONGEST_S:
                break
        best = max(rates.values(), default=0.0)
        size = next((size for size, rate in rates.items() if rate * _GAIN >= best), own)
        _resize(runner, size)
        return size


def _powers(most: int) -> Iterator[int]:
    size = 1
    while size <= most:
        yield size
        size *= 2


def _batch_of(runner: Runner) -> int:
    """The common first axis of all inputs and outputs; an InputError if there is none."""
    sizes = {t.shape[0] if t.shape else 0 for t in (*runner.inputs, *runner.outputs)}
    if len(sizes) != 1 or 0 in sizes:
        told = ", ".join(f"{t.name!r}: {t.shape}" for t in (*runner.inputs, *runner.outputs))
        raise InputError(f"inputs and outputs have no common first axis, the batch: {told}")
    return sizes.pop()


def _resize(runner: Runner, size: int) -> None:
    if any(t.shape[0] != size for t in runner.inputs):
        runner.resize([(size, *t.shape[1:]) for t in runner.inputs])
    _batch_of(runner)


def _zeros(runner: Runner) -> list[Array]:
    return [np.zeros(t.shape, t.dtype) for t in runner.inputs]


def _rate(runner: Runner, size: int) -> tuple[float, float]:
    """Rows per second, and seconds of an inference."""
    x = _zeros(runner)
    runner.run(x)  # the first one may compile
    start = time.perf_counter()
    runner.run(x)
    once = time.perf_counter() - start
    count = max(4, min(200, int(_TIMING_S / max(once, 1e-6)))) if once < _TIMING_S else 1
    start = time.perf_counter()
    for _ in runner.run_many([x] * count):
        pass
    seconds = (time.perf_counter() - start) / count
    return size / seconds, seconds
