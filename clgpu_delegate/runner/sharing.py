"""How the devices of a pool share inputs: one queue, from which each takes when it is free."""

from __future__ import annotations

import functools
import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from clgpu_delegate.errors import ClgpuError, PoolError
from clgpu_delegate.runner.engines import Pending
from clgpu_delegate.runner.members import Member, PoolDevice, described, is_of_device
from clgpu_delegate.runner.tensors import Array

_LOG = logging.getLogger("clgpu_delegate")
_CLOSED = "the pool is closed"


def _ending() -> ClgpuError:
    return ClgpuError("the process is ending: its threads take no more work")


def _tell(end: Callable[[], object]) -> None:
    """End a future, which runs its callbacks; futures pass on what is no Exception."""
    try:
        end()
    except BaseException:
        _LOG.exception("a callback of a future of a pool failed")


class Task:
    """An input on its way."""

    def __init__(self, inputs: list[Array], form: Callable[[list[Array]], Any]) -> None:
        self.inputs, self.form = inputs, form
        self.future: Future[Any] = Future()
        self.number = 0
        self.has_begun = False

    def __lt__(self, other: Task) -> bool:
        return self.number < other.number


class Sharing:
    """A bounded queue of tasks, and members of which each has at most one thread.

    A thread runs while there is something to do. So none waits in the queue, and those of a process
    that ends are waited for.
    """

    def __init__(self, members: Sequence[Member], bound: int) -> None:
        self.members, self.bound = members, bound
        self._change = threading.Condition()  # protects all below, and the fields of members
        self._queue: list[Task] = []  # a heap: an input that was passed on is the next one
        self._unfinished = 0
        self._number = 0
        self._is_closed = False
        self._here = threading.local()
        self._threads = ThreadPoolExecutor(len(members), thread_name_prefix="clgpu-pool")

    def put(self, task: Task) -> None:
        """Add a task; waits while there are as many as the bound allows.

        The threads of the members do not wait: they would wait for themselves.
        """
        with self._change:
            while self._unfinished >= self.bound and not hasattr(self._here, "works"):
                self.check()
                self._change.wait()
            self.check()
            task.number, self._number = self._number, self._number + 1
            heapq.heappush(self._queue, task)
            self._unfinished += 1
            left = self._wake()
        self._refuse(left, _ending)

    def check(self) -> None:
        """Raise an error if no task may be added."""
        if self._is_closed:
            raise ClgpuError(_CLOSED)
        if not any(member.works for member in self.members):
            raise self._all_failed()

    def cancel(self) -> None:
        """Drop the tasks that no device has taken."""
        with self._change:
            dropped = [task for task in self._queue if not task.has_begun]
            self._queue = [task for task in self._queue if task.has_begun]
            heapq.heapify(self._queue)
        for task in dropped:
            _tell(task.future.cancel)
            task.future.set_running_or_notify_cancel()
            self._finish()

    def close(self) -> None:
        """Wait for all tasks; let go of the devices."""
        if hasattr(self._here, "works"):
            raise ClgpuError(
                "a callback of a future cannot close the pool: close() waits for callbacks"
            )
        with self._change:
            self._is_closed = True
            self._change.notify_all()
            while self._unfinished:
                self._change.wait()
        self._threads.shutdown(wait=True)
        for member in self.members:
            member.close()

    def stats(self) -> list[PoolDevice]:
        """What each device has done so far."""
        with self._change:
            return [member.stats() for member in self.members]

    def _wake(self) -> list[Task]:
        """Start a thread for members that have none; returns tasks for which there is no thread."""
        idle = [member for member in self.members if member.works and not member.is_active]
        try:
            for member in idle[: len(self._queue)]:
                self._threads.submit(self._work, member)
                member.is_active = True
        except RuntimeError:
            if not any(member.is_active for member in self.members):
                left, self._queue = self._queue, []
                return left
        return []

    def _work(self, member: Member) -> None:
        self._here.works = True
        under_way: deque[tuple[Task, Pending]] = deque()
        try:
            while True:
                task = self._take(member)
                if task is not None:
                    self._start(member, task, under_way)
                elif under_way:
                    self._settle(member, *under_way.popleft())
                else:
                    return
        except _SetAsideError as failed:
            self._set_aside(member, failed, under_way)
        finally:
            del self._here.works

    def _take(self, member: Member) -> Task | None:
        """The next task for a member; None if it has to wait for a result, or has none."""
        with self._change:
            while self._queue and member.under_way < member.ahead:
                if member.under_way:
                    # A second one only if nobody else would begin with it at once.
                    free = sum(each.works and not each.under_way for each in self.members)
                    if len(self._queue) <= free:
                        return None
                task = heapq.heappop(self._queue)
                if not task.has_begun and not task.future.set_running_or_notify_cancel():
                    self._unfinished -= 1
                    self._change.notify_all()
                    continue
                task.has_begun = True
                member.begin()
                return task
            if not member.under_way:
                member.is_active = False
            return None

    def _start(self, member: Member, task: Task, under_way: deque[tuple[Task, Pending]]) -> None:
        try:
            under_way.append((task, member.start(task.inputs)))
        except BaseException as error:
            self._fail(member, task, error)

    def _settle(self, member: Member, task: Task, pending: Pending) -> None:
        try:
            result = task.form(pending.result())
        except BaseException as error:
            self._fail(member, task, error)
        else:
            self._deliver(member, task, result)

    def _deliver(self, member: Member, task: Task, result: Any) -> None:
        with self._change:
            member.end()
            member.done += 1
        task.inputs = []  # before the result is seen: their memory may be used again
        _tell(lambda: task.future.set_result(result))
        self._finish()

    def _fail(self, member: Member, task: Task, error: BaseException) -> None:
        if is_of_device(error, member.delegate):
            raise _SetAsideError(task, error) from error
        with self._change:
            member.end()
        self._refuse([task], lambda: error)

    def _set_aside(
        self, member: Member, failed: _SetAsideError, under_way: deque[tuple[Task, Pending]]
    ) -> None:
        with self._change:  # from now on it gets nothing
            member.error = described(failed.error)
        passed_on = [failed.task]
        while under_way:
            task, pending = under_way.popleft()
            try:
                result = task.form(pending.result())
            except BaseException:
                passed_on.append(task)
            else:
                self._deliver(member, task, result)
            del pending
        name = f"{member.device.index} ({member.device.name})"
        _LOG.warning("device %s of a pool is set aside: %s", name, member.error)
        try:
            member.close()
        except Exception as error:
            _LOG.warning("device %s of a pool cannot be released: %s", name, described(error))
        with self._change:
            member.is_active = False
            member.passed_on += len(passed_on)
            for task in passed_on:
                member.end()
                heapq.heappush(self._queue, task)
            if any(each.works for each in self.members):
                reason: Callable[[], BaseException] = _ending
                left = self._wake()
            else:
                reason = self._all_failed
                left, self._queue = self._queue, []
        self._refuse(left, reason)

    def _refuse(self, tasks: Sequence[Task], reason: Callable[[], BaseException]) -> None:
        for task in tasks:
            if task.has_begun or task.future.set_running_or_notify_cancel():
                _tell(functools.partial(task.future.set_exception, reason()))
            self._finish()

    def _finish(self) -> None:
        with self._change:
            self._unfinished -= 1
            self._change.notify_all()

    def _all_failed(self) -> PoolError:
        return PoolError([(m.device.index, m.device.name, m.error) for m in self.members])


class _SetAsideError(Exception):
    def __init__(self, task: Task, error: BaseException) -> None:
        super().__init__(str(error))
        self.task, self.error = task, error
