"""Cases that run in separate processes; ``python -m tests.load.cases CASE COUNT DEVICE``.

Each case is a function that returns how many of its attempts ended in which column of
`tests.campaign.table.Row`. `attempt` runs it and counts exceptions, ends by a signal, and hangs.
"""

from __future__ import annotations

import collections
import faulthandler
import gc
import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

import clgpu_delegate
from clgpu_delegate import ClgpuError, DeviceError, Runner
from tests.campaign.table import Row
from tests.faults.control import Layer, environment
from tests.python import models
from tests.python.models import SHAPE, WAYS
from tests.python.subprocesses import ROOT
from tests.runtimes import make_interpreter, run_interpreter, run_reference

Counts = collections.Counter[str]


class Wrong(Exception):
    """A result differs from that of the runtime without the delegate."""


class Known:
    """A model, some inputs, and the runtime's results without the delegate."""

    def __init__(self, model: bytes, shape: tuple[int, ...] = SHAPE, count: int = 3) -> None:
        rng = np.random.default_rng(7)
        self.model = model
        self.inputs = [models.normal(rng, *shape) for _ in range(count)]
        self.results = [run_reference(model, [x])[0] for x in self.inputs]

    def check(self, position: int, got: np.ndarray) -> None:
        """Raise Wrong unless this is the result of an input."""
        want = self.results[position % len(self.results)]
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-5):
            raise Wrong

    def interpreter(self, device: str, delegate: Any = None, **options: Any) -> Any:
        """Return an interpreter with the given delegate, or with a new one."""
        if delegate is None:
            delegate = clgpu_delegate.load(device=device, **options)
        return make_interpreter("auto", self.model, [delegate])

    def run(self, interpreter: Any, position: int) -> None:
        """Run an input and check its result."""
        x = self.inputs[position % len(self.inputs)]
        self.check(position, run_interpreter(interpreter, [x])[0])

    def call(self, runner: Runner, position: int) -> None:
        """Run an input with a runner and check its result."""
        self.check(position, runner.run(self.inputs[position % len(self.inputs)]))


def counted(what: Callable[..., object], *arguments: Any) -> str:
    """Return the column of one attempt."""
    try:
        what(*arguments)
    except Wrong:
        return "wrong"
    except (ClgpuError, RuntimeError, ValueError) as error:
        return "told" if str(error).strip() else "stuck"
    return "right"


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(0)``, ``work(1)`` ... at the same time; raises what one of them has raised."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))


def interpreters(count: int, device: str) -> Counts:
    """As many interpreters at once, half of them with their own delegates."""
    known, shared = Known(models.image()), clgpu_delegate.load(device=device)
    pooled = clgpu_delegate.load(device=device, memory_pool="process")
    delegates = itertools.cycle([shared, None, pooled, None])
    made = [known.interpreter(device, next(delegates)) for _ in range(count)]
    outcomes = Counts()
    for position, interpreter in enumerate(made):
        outcomes[counted(known.run, interpreter, position)] += 1
    random.Random(count).shuffle(made)
    while made:  # in another order than that in which they were made
        made.pop()
        if made:
            outcomes[counted(known.run, made[-1], len(made))] += 1
    return outcomes


def threads(count: int, device: str) -> Counts:
    """Sixteen threads with this many inferences each, on interpreters of shared delegates."""
    known, lock, outcomes = Known(models.image()), threading.Lock(), Counts()
    options: list[dict[str, Any]] = [{}, {"memory_pool": "process"}, {"zero_copy": "off"}]
    shared = [clgpu_delegate.load(device=device, **chosen) for chosen in options]

    def work(thread: int) -> None:
        interpreter = known.interpreter(device, shared[thread % len(shared)])
        mine = Counts(counted(known.run, interpreter, thread + i) for i in range(count))
        with lock:
            outcomes.update(mine)

    in_threads(16, work)
    return outcomes


def runner_threads(count: int, device: str) -> Counts:
    """Sixteen threads with this many inferences each on one runner, for each of its modes."""
    known, lock, outcomes = Known(models.image()), threading.Lock(), Counts()
    for options in WAYS.values():
        with Runner(known.model, device=device, **options) as runner:

            def work(thread: int) -> None:
                def one(i: int) -> None:
                    x = known.inputs[i % len(known.inputs)]
                    known.check(i, runner.run_async(x).result() if i % 4 == 0 else runner.run(x))

                mine = Counts(counted(one, thread + i) for i in range(count))
                with lock:
                    outcomes.update(mine)

            in_threads(16, work)
    return outcomes


def loads(count: int, device: str) -> Counts:
    """As many interpreters one after the other: memory and OpenCL objects do not grow."""
    known = Known(models.image())
    alive = _counter()
    outcomes, seen = Counts(), []
    settled = max(10, count // 4)  # drivers and Python keep memory that they have once needed
    for i in range(count):
        delegate = clgpu_delegate.load(device=device, zero_copy="off" if i % 3 else "auto")
        interpreter = known.interpreter(device, delegate)
        outcomes[counted(known.run, interpreter, i)] += 1
        if i % 2:
            del interpreter, delegate
        else:
            del delegate, interpreter
        if i % 10 == 0 and i >= settled:
            gc.collect()
            seen.append((resident_bytes(), alive()))
    first, last = seen[0], seen[-1]
    # A leak of a kilobyte per load shows after thousands of loads.
    allowed = max(4 << 20, 1024 * (count - settled))
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        allowed = 1 << 30  # it keeps freed memory to detect its use
    if last[0] - first[0] > allowed or last[1] != first[1]:
        print(f"resident bytes and objects: {first} after {settled} loads, {last} after {count}")
        outcomes["leaked"] += 1
    return outcomes


def runners(count: int, device: str) -> Counts:
    """The same with runners, resized while inferences are in flight."""
    known, alive = Known(models.image()), _counter()
    outcomes, seen = Counts(), []
    for i in range(count):
        with Runner(known.model, device=device, **list(WAYS.values())[i % len(WAYS)]) as runner:
            outcomes[counted(known.call, runner, i)] += 1
            runner.run_async(known.inputs[0])
            runner.resize((2, *SHAPE[1:]))
            runner.resize(SHAPE)
            runner.run_async(known.inputs[0])
        if i >= count // 2:
            gc.collect()
            seen.append(alive())
    if min(seen[:4]) < min(seen[-4:]):
        print(f"objects alive: {seen}")
        outcomes["leaked"] += 1
    return outcomes


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _counter() -> Callable[[], int]:
    """The number of OpenCL objects; zero if the library does not count them."""
    if "FAULTS_LIBRARY" not in os.environ:
        return lambda: 0
    layer = Layer()
    # Contexts live as long as a process.
    return lambda: sum(n for kind, n in layer.live().items() if kind != "context")


def _child(work: Callable[[], str], patience: float = 30) -> str:
    """Return the column of a forked child's work; it ends like a script."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(patience / 2)  # where it waits
        try:
            os.write(write, work().encode())
        except BaseException as error:
            os.write(write, b"stuck")
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(0)
    os.close(write)
    until = time.monotonic() + patience
    while (done := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hung"
        time.sleep(0.01)
    with os.fdopen(read) as pipe:
        column = pipe.read()
    return column if done[1] == 0 else "died"


def _refused(use: Callable[[], object]) -> str:
    """Return the column of a use of the delegate in a forked child; best is one sentence."""
    try:
        use()
    except (DeviceError, RuntimeError) as error:
        if "forked" in str(error):
            return "told"
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return "stuck"
    return "wrong"  # it may have worked by luck only


def forks(count: int, device: str) -> Counts:
    """Children of a process that has used OpenCL, with and without inferences in flight."""
    known, outcomes = Known(models.image()), Counts()
    first = _child(lambda: counted(known.run, known.interpreter(device), 0))
    outcomes["right" if first == "right" else first] += 1  # forked before the first use
    delegate = clgpu_delegate.load(device=device)
    interpreter = known.interpreter(device, delegate)
    known.run(interpreter, 0)
    way = itertools.cycle(WAYS.values())
    for i in range(count):
        runner = Runner(known.model, device=device, **next(way))
        x = known.inputs[0]
        done, flight = runner.run_async(x), runner.run_async(x)
        done.result()
        many = runner.run_many(known.inputs)
        next(many)
        uses: list[Callable[[], object]] = [
            lambda: known.run(interpreter, 0),
            lambda: clgpu_delegate.load(device=device),
            lambda: known.interpreter(device, delegate).allocate_tensors(),
            delegate.explain,
            lambda: runner.run(x),  # noqa: B023
            lambda: runner.run_async(x),  # noqa: B023
            lambda: next(many),  # noqa: B023
            clgpu_delegate.devices,
        ]

        def ends(k: int = i) -> str:
            if k % 2:
                runner.close()  # noqa: B023
            return "right"

        outcomes[_child(ends)] += 1
        outcomes[_child(lambda: _refused(uses[i % len(uses)]))] += 1  # noqa: B023
        outcomes[counted(known.check, 0, flight.result())] += 1
        outcomes[counted(known.run, interpreter, i)] += 1
        many.close()
        runner.close()
    return outcomes


def forks_among_threads(count: int, device: str) -> Counts:
    """Children of a process whose other threads run inferences: locks are held during the fork."""
    known, outcomes, stop = Known(models.image()), Counts(), threading.Event()
    shared = clgpu_delegate.load(device=device, memory_pool="process")
    made = [known.interpreter(device, shared) for _ in range(3)]
    idle = known.interpreter(device, shared)  # the runtime refuses one that a thread has left
    known.run(idle, 0)
    failed: list[str] = []

    def work(interpreter: Any) -> None:
        while not stop.is_set():
            column = counted(known.run, interpreter, 0)
            if column != "right":
                failed.append(column)

    with Runner(known.model, delegate=shared) as runner, ThreadPoolExecutor(4) as pool:
        for interpreter in made:
            pool.submit(work, interpreter)
        pool.submit(lambda: [runner.run(known.inputs[0]) for _ in iter(stop.is_set, True)])
        for i in range(count):
            use = [lambda: known.run(idle, 0), lambda: runner.run(known.inputs[0])][i % 2]

            def ends() -> str:
                made.clear()
                runner.close()
                gc.collect()
                return "right"

            outcomes[_child(lambda: _refused(use)) if i % 3 else _child(ends)] += 1  # noqa: B023
        stop.set()
    outcomes.update(failed)
    return outcomes


def _in_new_process(device: str) -> str:
    known = Known(models.image())
    return counted(known.run, known.interpreter(device), 0)


def spawns(count: int, device: str) -> Counts:
    """Processes of multiprocessing's 'spawn' and 'forkserver', whose parent has used OpenCL."""
    known = Known(models.image())
    interpreter = known.interpreter(device)
    known.run(interpreter, 0)
    outcomes = Counts()
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            outcomes.update(pool.map(_in_new_process, [device] * count))
    outcomes[counted(known.run, interpreter, 1)] += 1
    return outcomes


class _Interrupt(Exception):
    """What the handler of SIGALRM raises."""


def _signals(number: signal.Signals, error: type[BaseException], count: int, device: str) -> Counts:
    """Loads, inferences and runners that a signal's handler ends at any moment, in turns.

    After each, both new and interrupted objects work.
    """
    known, outcomes = Known(models.image()), Counts()
    interpreter = known.interpreter(device)
    known.run(interpreter, 0)
    runners = [Runner(known.model, device=device, **options) for options in WAYS.values()]
    rng = random.Random(count)

    def many(runner: Runner) -> None:
        for i, got in enumerate(runner.run_many(known.inputs * 3)):
            known.check(i, got)

    def waited(runner: Runner) -> None:
        futures = [runner.run_async(x) for x in known.inputs]
        for i, future in enumerate(futures):
            known.check(i, future.result())

    for i in range(count):
        runner = runners[i // 5 % len(runners)]
        uses: list[Callable[[], object]] = [
            lambda: known.run(known.interpreter(device), 0),
            lambda: [known.run(interpreter, k) for k in range(9)],
            lambda: [known.call(runner, k) for k in range(20)],  # noqa: B023
            lambda: many(runner),  # noqa: B023
            lambda: waited(runner),  # noqa: B023
        ]
        use = uses[i % len(uses)]
        # From another process: at any moment, also between two instructions.
        timer = threading.Timer(rng.uniform(0.0005, 0.02), os.kill, (os.getpid(), number))
        try:
            try:
                timer.start()
                use()
            finally:
                timer.join()
        except error:
            pass
        except Wrong:
            outcomes["wrong"] += 1
            continue
        outcomes[counted(lambda: (known.run(interpreter, i), known.call(runner, i)))] += 1  # noqa: B023
    for runner in runners:
        runner.close()
    return outcomes


def interrupts(count: int, device: str) -> Counts:
    """SIGINT at any moment of loads, inferences and runners."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return _signals(signal.SIGINT, KeyboardInterrupt, count, device)


def alarms(count: int, device: str) -> Counts:
    """SIGALRM with a handler that raises, at the same moments."""

    def handler(*_: object) -> NoReturn:
        raise _Interrupt

    signal.signal(signal.SIGALRM, handler)
    return _signals(signal.SIGALRM, _Interrupt, count, device)


_TERMINATED = """
import signal, sys, threading
import clgpu_delegate
from tests.load.cases import Known, WAYS
from tests.python import models
way, handled, device = sys.argv[1], sys.argv[2] == "handled", sys.argv[3]
if handled:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
known = Known(models.image())
runner = clgpu_delegate.Runner(known.model, device=device, **WAYS[way])
known.call(runner, 0)
print("ready", flush=True)
while True:
    flights = [runner.run_async(x) for x in known.inputs]
    known.check(0, flights[0].result())
"""


def terminations(count: int, device: str) -> Counts:
    """SIGTERM in the middle of inferences: it ends the process, with a handler by sys.exit."""
    outcomes = Counts()
    rng = random.Random(count)
    for i in range(count):
        way, handled = list(WAYS)[i % len(WAYS)], bool(i // len(WAYS) % 2)
        script = [_TERMINATED, way, "handled" if handled else "default", device]
        with _python(*script) as process:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                outcomes["stuck"] += 1
                continue
            time.sleep(rng.uniform(0, 0.05))
            process.terminate()
            try:
                code = process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                outcomes["hung"] += 1
                continue
        outcomes["right" if code == (7 if handled else -signal.SIGTERM) else "died"] += 1
    return outcomes


_PRELUDE = """
import sys, threading
import numpy as np
import clgpu_delegate
from clgpu_delegate import Runner
from tests.load.cases import Known, WAYS
from tests.python import models
device = sys.argv[1]
known = Known(models.image())
x = known.inputs[0]
"""
# Objects that the last lines of a script leave for the end of the interpreter.
ENDINGS = {
    "delegate first": """
delegate = clgpu_delegate.load(device=device)
interpreter = known.interpreter(device, delegate)
known.run(interpreter, 0)
delegate = None
""",
    "interpreter first": """
delegate = clgpu_delegate.load(device=device)
interpreter = known.interpreter(device, delegate)
known.run(interpreter, 0)
interpreter = None
""",
    "a cycle of both": """
delegate = clgpu_delegate.load(device=device)
cycle = [delegate, known.interpreter(device, delegate)]
known.run(cycle[1], 0)
cycle.append(cycle)
del delegate
""",
    "in sys.modules": """
delegate = clgpu_delegate.load(device=device)
sys.kept = [known.interpreter(device, delegate), delegate, clgpu_delegate]
known.run(sys.kept[0], 0)
""",
    "daemon threads that run inferences": """
def work(interpreter):
    while True:
        known.run(interpreter, 0)
delegate = clgpu_delegate.load(device=device, memory_pool="process")
for _ in range(4):
    interpreter = known.interpreter(device, delegate)
    known.run(interpreter, 0)
    threading.Thread(target=work, args=(interpreter,), daemon=True).start()
""",
    "daemon threads that run a runner": """
def work(runner):
    while True:
        runner.run(x)
for options in WAYS.values():
    runner = Runner(known.model, device=device, **options)
    known.call(runner, 0)
    threading.Thread(target=work, args=(runner,), daemon=True).start()
""",
    "daemon threads that load": """
def work():
    while True:
        known.run(known.interpreter(device), 0)
known.run(known.interpreter(device), 0)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
""",
    "inferences in flight": """
runners = [Runner(known.model, device=device, **options) for options in WAYS.values()]
flights = [runner.run_async(x) for runner in runners for _ in range(2)]
""",
    "a generator in the middle": """
runners = [Runner(known.model, device=device, **options) for options in WAYS.values()]
generators = [runner.run_many([x] * 9) for runner in runners]
for generator in generators:
    next(generator)
""",
    "used by atexit": """
import atexit
runners = [Runner(known.model, device=device, **options) for options in WAYS.values()]
interpreter = known.interpreter(device)
known.run(interpreter, 0)
atexit.register(lambda: (known.run(interpreter, 0), [known.call(r, 0) for r in runners]))
""",
    "used by a destructor": """
class Last:
    def __init__(self):
        self.runner, self.delegate = Runner(known.model, device=device), clgpu_delegate.load()
    def __del__(self):
        self.runner.close()
        self.delegate.stats()
last = Last()
""",
}


def endings(count: int, device: str) -> Counts:
    """Processes that end with live objects; `count` times all orders of `ENDINGS`."""
    outcomes = Counts()
    for _ in range(count):
        for name, ending in ENDINGS.items():
            with _python(_PRELUDE + ending + "\nprint('end', flush=True)", device) as process:
                try:
                    out, err = process.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    outcomes["hung"] += 1
                    print(f"{name}: hung")
                    continue
            died = process.returncode < 0
            good = process.returncode == 0 and out.strip() == "end" and "Error" not in err
            outcomes["right" if good else "died" if died else "stuck"] += 1
            if not good:
                print(f"{name}: exit {process.returncode}\n{out}{err}")
    return outcomes


def throwing(count: int, device: str) -> Counts:  # noqa: PLR0915  # a function for each way
    """Iterables and callbacks of `Runner.run_many` that raise, and generators that are dropped."""
    known, outcomes = Known(models.image()), Counts()
    rng = random.Random(count)

    def items(good: int, error: BaseException | None) -> Iterator[np.ndarray]:
        for k in range(good):
            yield known.inputs[k % len(known.inputs)]
        if error is not None:
            raise error

    def throws(runner: Runner, good: int, error: BaseException) -> None:
        got = 0
        try:
            for k, result in enumerate(runner.run_many(items(good, error))):
                known.check(k, result)
                got += 1
        except type(error):
            # What comes before an Exception is delivered; a KeyboardInterrupt ends all at once.
            if isinstance(error, Exception) and got != good:
                raise Wrong from None
            return
        raise Wrong

    def callback_throws(runner: Runner, good: int) -> None:
        def progress(done: int, _: int | None) -> None:
            if done >= good:
                raise ZeroDivisionError

        try:
            for k, result in enumerate(runner.run_many(items(9, None), progress=progress)):
                known.check(k, result)
        except ZeroDivisionError:
            return
        raise Wrong

    def dropped(runner: Runner, good: int) -> None:
        generator = runner.run_many(items(9, None))
        for _ in range(good % 5):
            next(generator)
        generator.close()

    def thrown_into(runner: Runner, good: int) -> None:
        generator: Any = runner.run_many(items(9, None))
        for _ in range(1 + good % 5):
            next(generator)
        try:
            generator.throw(ZeroDivisionError())
        except ZeroDivisionError:
            return
        raise Wrong

    def bad_item(runner: Runner, good: int) -> None:
        def mixed() -> Iterator[np.ndarray]:
            yield from items(good, None)
            yield np.zeros((3, 3), np.float32)

        got = 0
        try:
            for k, result in enumerate(runner.run_many(mixed())):
                known.check(k, result)
                got += 1
        except clgpu_delegate.InputError:
            if got == good:
                return
        raise Wrong

    def closed_by_items(runner: Runner, good: int) -> None:
        def closing() -> Iterator[np.ndarray]:
            yield from items(good, None)
            runner.resize((2, *SHAPE[1:]))
            runner.resize(SHAPE)
            yield from items(good, None)

        for k, result in enumerate(runner.run_many(closing())):
            known.check(k if k < good else k - good, result)

    for i in range(count):
        options = list(WAYS.values())[i % len(WAYS)]
        with Runner(known.model, device=device, **options) as runner:
            good = rng.randrange(7)
            error = [ZeroDivisionError(), KeyboardInterrupt(), MemoryError()][i % 3]
            uses: list[Callable[[], object]] = [
                lambda: throws(runner, good, error),  # noqa: B023
                lambda: callback_throws(runner, 1 + good),  # noqa: B023
                lambda: dropped(runner, good),  # noqa: B023
                lambda: thrown_into(runner, good),  # noqa: B023
                lambda: bad_item(runner, good),  # noqa: B023
                lambda: closed_by_items(runner, good),  # noqa: B023
            ]
            for use in uses:
                outcomes[counted(lambda: (use(), known.call(runner, i)))] += 1  # noqa: B023
    return outcomes


class Case(NamedTuple):
    """A case, and how often a test and the campaign run it."""

    what: str
    run: Callable[[int, str], Counts]
    few: int
    many: int
    counts_objects: bool = False


CASES = {
    case.run.__name__: case
    for case in (
        Case("interpreters at once", interpreters, 12, 100, counts_objects=False),
        Case("inferences of sixteen threads", threads, 10, 1000),
        Case("inferences of sixteen threads on a runner", runner_threads, 5, 1000),
        Case("interpreters that come and go", loads, 60, 3000, counts_objects=True),
        Case("runners that come and go", runners, 16, 400, counts_objects=True),
        Case("forks after the first use", forks, 4, 100),
        Case("forks while threads run inferences", forks_among_threads, 6, 200),
        Case("processes by spawn and forkserver", spawns, 1, 10),
        Case("SIGINT at any moment", interrupts, 20, 1000),
        Case("handlers of SIGALRM that raise", alarms, 20, 1000),
        Case("SIGTERM between inferences", terminations, 2, 40),
        Case("ends of a process", endings, 1, 10),
        Case("runners whose items or callbacks raise", throwing, 4, 200),
    )
}


def _python(script: str, *arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def counting(folder: Path) -> dict[str, str]:
    """Return the variables with which a process counts the OpenCL objects it makes.

    Raises `tests.limits.build.LayerError`.
    """
    return environment(folder)


def attempt(
    name: str, count: int, device: str = "", patience: float = 3000, **environment: str
) -> tuple[Row, str]:
    """Run a case in a separate process; return its row and its output.

    Parameters
    ----------
    name, count, device
        A key of `CASES`, how often it is to be tried, and the option `device`.
    patience
        Time limit in seconds; a process that runs longer counts as hung.
    """
    row = Row(CASES[name].what)
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.load.cases"]
    with subprocess.Popen(
        [*command, name, str(count), device],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            # Makes its threads print their stacks; its children are in the same session.
            os.kill(process.pid, signal.SIGABRT)
            time.sleep(1)
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            row.count("hung")
            return row, out + err
    said = out + err
    lines = out.strip().splitlines()
    if process.returncode != 0 or not lines:
        row.count("died" if process.returncode < 0 else "stuck")
        return row, said
    for column, times in json.loads(lines[-1]).items():
        if column == "leaked":
            row.leaked += times
            continue
        for _ in range(times):
            row.count(column)
    return row, said


def main() -> None:
    """Run the named case and print its counts."""
    name, count, device = sys.argv[1:]
    outcomes = CASES[name].run(int(count), device)
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main()
