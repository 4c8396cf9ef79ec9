"""The class Pool."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.files import Source, read_content
from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.devices import Device
from clgpu_delegate.errors import InputError, OptionError, PoolError
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.runner.members import Member, Names, PoolDevice, chosen, set_idle_aside
from clgpu_delegate.runner.runner import Runner
from clgpu_delegate.runner.sequence import Progress, progress_bar
from clgpu_delegate.runner.sharing import Sharing, Task
from clgpu_delegate.runner.tensors import (
    Array,
    ArrayOrList,
    Arrays,
    Named,
    TensorSpec,
    Unnamed,
    bind,
    like,
)
from clgpu_delegate.runtimes import RuntimeName

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Pool:
    """A model on several devices of this machine, which share one queue of inputs.

    Each device has a `Runner` and takes the next input when it is free. A device that fails is set
    aside: the other ones get the inputs that it had begun, so each input has one result. A device
    that can compute no node of the model is set aside if others can. `stats` tells what each device
    did. Inputs and results have the forms that `Runner` describes.

    Devices compute in different orders, so the last bits of results depend on the device.

    Methods may be called from several threads, but not in a process that was forked from the
    pool's: they raise DeviceError there, except `close`.

    Parameters
    ----------
    model
        Path of a .tflite file, or its bytes.
    devices
        An index or a part of the name of a device or platform, as `clgpu_delegate.devices` lists
        them, or a list of these; a name stands for all devices that have it. ``"all"``: every
        device. None: those that the variable CLGPU_DEVICE names, or without it every GPU and
        accelerator, or without any the CPUs of the first platform.
    bound
        The most inputs that are waiting or under way; None: twice as many as the devices work on
        at a time.
    shape
        Shapes of the inputs, as `Runner.resize` takes them; None: those of the model.
    copy
        Whether arrays are copied when they are given. If not, they must not change before their
        results are there.
    runtime, threads
        As in `Runner`.
    depth
        As in `Runner`, of each device.
    **settings
        The fields of `Options`, except ``device``.

    Raises
    ------
    FileError, ModelError, InputError
        If the model cannot be read, or the runtime rejects it or its shapes.
    OptionError
        If an option or a parameter is wrong.
    DeviceError, RuntimeNotFoundError
        If there is no such device, or no runtime.
    PoolError
        If no device can load the model. Those that cannot are set aside as long as there is one
        that can.

    Examples
    --------
    >>> images = np.zeros((7, 1, 4, 4, 2), np.float32)
    >>> with clgpu_delegate.Pool("model.tflite", devices="all") as pool:
    ...     shapes = [y.shape for y in pool.map(images)]
    ...     done = sum(each.done for each in pool.stats())
    >>> len(shapes), shapes[0], done
    (7, (1, 5), 7)
    """

    @with_settings
    def __init__(
        self,
        model: Source,
        devices: Names = None,
        *,
        bound: int | None = None,
        shape: Shapes | None = None,
        copy: bool = True,
        runtime: RuntimeName | None = None,
        threads: int | None = None,
        depth: int = 3,
        **settings: Unpack[Settings],
    ) -> None:
        if bound is not None and (not isinstance(bound, int) or bound < 1):
            raise OptionError(f"bound is {bound!r}; allowed: 1 and more, or None")
        if "device" in settings:
            raise OptionError("option 'device': a Pool takes several, with devices=[...]")
        content = read_content(model)
        members = [Member(device) for device in chosen(devices)]

        def delegate_for(device: Device) -> Delegate:
            own: Settings = {**settings, "device": device.index}
            return load(**own)

        def runner_with(delegate: Delegate) -> Runner:
            runner = Runner(
                content, runtime=runtime, threads=threads, depth=depth, delegate=delegate
            )
            if shape is not None:
                runner.resize(shape)
            return runner

        try:
            with ThreadPoolExecutor(len(members), thread_name_prefix="clgpu-pool") as loading:
                for opened in [loading.submit(m.open, delegate_for, runner_with) for m in members]:
                    opened.result()
        except BaseException:
            for member in members:
                member.close()
            raise
        set_idle_aside(members)
        able = [member for member in members if member.works]
        if not able:
            raise PoolError([(m.device.index, m.device.name, m.error) for m in members])
        runner = able[0].runner
        assert runner is not None
        self._inputs, self._outputs, self._copy = runner.inputs, runner.outputs, copy
        self._sharing = Sharing(members, bound or 2 * sum(member.ahead for member in able))

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes and dtypes of the inputs."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes and dtypes of the outputs."""
        return self._outputs

    @property
    def bound(self) -> int:
        """The most inputs that are waiting or under way."""
        return self._sharing.bound

    def stats(self) -> list[PoolDevice]:
        """What each device has done so far, in the order in which they were given."""
        _core.refuse_forked_child()
        return self._sharing.stats()

    @overload
    def submit(self, x: Named) -> Future[dict[str, Array]]: ...

    @overload
    def submit(self, x: Unnamed) -> Future[ArrayOrList]: ...

    def submit(self, x: Arrays) -> Future[Any]:
        """Give an input; waits while `bound` of them are waiting or under way.

        Returns
        -------
        concurrent.futures.Future
            Of what `Runner.run` returns. It may be cancelled until a device takes the input. Its
            callbacks run in a thread that a device waits for, and may call `submit`, which does not
            wait then.

        Raises
        ------
        InputError
            If an array has another shape or dtype than its tensor; no device sees it.
        PoolError
            If every device has failed. Futures of inputs that none could compute raise it, too.
        ClgpuError
            If the pool is closed.
        """
        _core.refuse_forked_child()  # the threads and locks are the parent's
        self._sharing.check()
        inputs = bind(x, self._inputs, "input")
        if self._copy:
            inputs = [np.array(array, order="C") for array in inputs]
        # The form of `x` is all that is kept of it: its arrays may go.
        question: Any = {} if isinstance(x, Mapping) else None
        outputs = self._outputs
        task = Task(inputs, lambda results: like(results, question, outputs))
        self._sharing.put(task)
        return task.future

    @overload
    def map(
        self, items: Iterable[Named], *, ordered: Literal[True] = True, progress: Progress = False
    ) -> Iterator[dict[str, Array]]: ...

    @overload
    def map(
        self, items: Iterable[Unnamed], *, ordered: Literal[True] = True, progress: Progress = False
    ) -> Iterator[ArrayOrList]: ...

    @overload
    def map(
        self, items: Iterable[Named], *, ordered: Literal[False], progress: Progress = False
    ) -> Iterator[tuple[int, dict[str, Array]]]: ...

    @overload
    def map(
        self, items: Iterable[Unnamed], *, ordered: Literal[False], progress: Progress = False
    ) -> Iterator[tuple[int, ArrayOrList]]: ...

    def map(
        self, items: Iterable[Arrays], *, ordered: bool = True, progress: Progress = False
    ) -> Iterator[Any]:
        """Run a sequence of inputs on all devices.

        The caller's thread takes items from the iterable, up to `bound` ahead of the results that
        it was given. If taking one fails, or an item is no input of the model, the results of the
        items before it come first, then the error. Inputs that nobody has begun with when the loop
        is left are dropped.

        Parameters
        ----------
        items
            Inputs, each as in `Runner.run`.
        ordered
            Results come in the order of the inputs. If not, they come when they are ready, each in
            a pair with the number of its input, from 0.
        progress
            As in `Runner.run_many`.

        Raises
        ------
        InputError
            As `submit`, with the number of the item.
        PoolError, ClgpuError
            As `submit`.
        """
        _core.refuse_forked_child()
        self._sharing.check()
        waiting: _InOrder | _AsReady = _InOrder() if ordered else _AsReady()
        return self._mapped(iter(items), length_hint(items, -1), waiting, progress)

    def _mapped(
        self,
        items: Iterator[Arrays],
        count: int,
        waiting: _InOrder | _AsReady,
        progress: Progress,
    ) -> Iterator[Any]:
        failure: Exception | None = None
        taken, more = 0, True
        try:
            with progress_bar(progress, None if count < 0 else count) as bar:
                while True:
                    if more and len(waiting) < self.bound:
                        try:
                            waiting.add(taken, self._item(taken, next(items)))
                            taken += 1
                        except StopIteration:
                            more = False
                        except Exception as error:
                            more, failure = False, error
                    if more and len(waiting) < self.bound and not waiting.is_ready():
                        continue
                    if not len(waiting):
                        break
                    yield waiting.take()
                    _core.refuse_forked_child()  # no thread would end what is under way
                    bar.step()
        finally:
            waiting.cancel()
        if failure is not None:
            raise failure

    def _item(self, number: int, x: Arrays) -> Future[Any]:
        try:
            return self.submit(x)
        except InputError as error:
            raise InputError(f"item {number}: {error}") from None

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the inputs that were given; let go of model and devices.

        May be called again. In a process that was forked from the pool's, nothing is waited for.

        Parameters
        ----------
        cancel
            Drop inputs that no device has begun with: their futures are cancelled.
        """
        if _core.is_forked_child():
            return
        if cancel:
            self._sharing.cancel()
        self._sharing.close()

    def __enter__(self) -> Pool:
        _core.refuse_forked_child()
        self._sharing.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(cancel=error is not None)

    def __repr__(self) -> str:
        # Without the lock: in a forked child it may be held for ever.
        told = ", ".join(f"{m.device.index}: {m.state}" for m in self._sharing.members)
        return f"<clgpu_delegate.Pool on {told}>"


class _InOrder:
    """Futures, of which the oldest is taken first."""

    def __init__(self) -> None:
        self._futures: deque[Future[Any]] = deque()

    def __len__(self) -> int:
        return len(self._futures)

    def add(self, _: int, future: Future[Any]) -> None:
        self._futures.append(future)

    def is_ready(self) -> bool:
        """Whether `take` does not wait."""
        return bool(self._futures) and self._futures[0].done()

    def take(self) -> Any:
        return self._futures.popleft().result()

    def cancel(self) -> None:
        for future in self._futures:
            future.cancel()


class _AsReady:
    """Numbered futures, of which the first one that is ready is taken first."""

    def __init__(self) -> None:
        self._numbers: dict[Future[Any], int] = {}
        self._ready: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, future: Future[Any]) -> None:
        self._numbers[future] = number
        future.add_done_callback(self._ready.put)

    def is_ready(self) -> bool:
        """Whether `take` does not wait."""
        return not self._ready.empty()

    def take(self) -> Any:
        future = self._ready.get()
        return self._numbers.pop(future), future.result()

    def cancel(self) -> None:
        for future in self._numbers:
            future.cancel()
