"""The class Runner."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from clgpu_delegate import _core
from clgpu_delegate.base.arranging import Shapes, arrange_shapes
from clgpu_delegate.base.files import Source
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.delegate import Delegate, load
from clgpu_delegate.errors import ClgpuError, InputError, OptionError
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.profiling import Profile
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.runner.engines import Engine
from clgpu_delegate.runner.opening import Model
from clgpu_delegate.runner.sequence import Progress, bound, in_order
from clgpu_delegate.runner.tensors import (
    Array,
    ArrayOrList,
    Arrays,
    Named,
    TensorSpec,
    Unnamed,
    like,
)
from clgpu_delegate.runtimes import RuntimeName

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Runner:
    """A model with the delegate, for callers with NumPy arrays.

    Inputs are given as an array, if the model has one, a list in the order of `inputs`, or a dict
    by their names. Shapes and dtypes must be those of the model: nothing is cast. What comes back
    is an array, if the model has one output, or a list in the order of `outputs`; for a dict, a
    dict. An array that comes back is the caller's: nothing writes to it later.
    Quantised inputs and outputs are integers, as the model has them: see `TensorSpec.scale`.

    Methods may be called from several threads, but not in a process that was forked from the
    runner's: they raise DeviceError there, and futures of the parent never end.

    Parameters
    ----------
    model
        Path of a .tflite file, or its bytes.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    threads
        Of the CPU's kernels, for nodes that the delegate leaves; None: the runtime's choice.
    depth
        Inferences under way at most; 1 and more. Each takes memory for its inputs and outputs on
        the device.
    delegate
        A delegate to use, instead of a new one with ``settings``.
    **settings
        The fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If the model cannot be read, or the runtime rejects it.
    OptionError
        If an option or ``depth`` is wrong.
    DeviceError, RuntimeNotFoundError
        If there is no device, or no runtime.

    Examples
    --------
    >>> images = np.zeros((3, 1, 4, 4, 2), np.float32)
    >>> with clgpu_delegate.Runner("model.tflite") as runner:
    ...     y = runner.run(images[0])
    ...     shapes = [y.shape for y in runner.run_many(images)]
    >>> shapes
    [(1, 5), (1, 5), (1, 5)]
    """

    @with_settings
    def __init__(
        self,
        model: Source,
        *,
        runtime: RuntimeName | None = None,
        threads: int | None = None,
        depth: int = 3,
        delegate: Delegate | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        if not isinstance(depth, int) or depth < 1:
            raise OptionError(f"depth is {depth!r}; allowed: 1 and more")
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise OptionError(f"threads is {threads!r}; allowed: 1 and more, or None")
        if delegate is not None and settings:
            raise OptionError(f"option {next(iter(settings))!r}: the delegate given has its own")
        self._lock = threading.Lock()  # protects the fields below while they change
        # None: closed, or, where there is a model, not opened again since an error.
        self._engine: Engine | None = None
        self._depth = depth
        self._delegate = load(**settings) if delegate is None else delegate
        self._model: Model | None = Model(model, runtime, threads, self._delegate)
        self._engine = self._model.open(depth)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes and dtypes of the inputs."""
        return self._use().inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes and dtypes of the outputs."""
        return self._use().outputs

    @property
    def mode(self) -> str:
        """How inferences run.

        ``"stream"``: `depth` of them in flight, past the runtime. ``"direct"``: past the runtime,
        where device and host share memory: nothing is copied, one at a time. ``"interpreters"``:
        on as many interpreters as `depth`. ``"invoke"``: on one.
        """
        return self._use().mode

    @property
    def reason(self) -> str:
        """Why `mode` is ``"interpreters"`` or ``"invoke"``; else empty."""
        return self._use().reason

    @property
    def depth(self) -> int:
        """Inferences under way at most, as memory allows."""
        return self._use().depth

    @property
    def delegate(self) -> Delegate:
        """The delegate."""
        return self._delegate

    def explain(self) -> Explanation:
        """See `Delegate.explain`."""
        return self._delegate.explain()

    def stats(self) -> dict[str, Any]:
        """See `Delegate.stats`."""
        return self._delegate.stats()

    def profile(self) -> Profile:
        """See `Delegate.profile`; with the option `profile` inferences do not overlap."""
        return self._delegate.profile()

    @overload
    def run(self, x: Named, out: Arrays | None = None) -> dict[str, Array]: ...

    @overload
    def run(self, x: Unnamed, out: Arrays | None = None) -> ArrayOrList: ...

    def run(self, x: Arrays, out: Arrays | None = None) -> Any:
        """One inference.

        Parameters
        ----------
        x
            Inputs; not changed.
        out
            Arrays for the outputs, in any form that inputs may have, contiguous.

        Raises
        ------
        InputError
            If an array has another shape or dtype than its tensor.
        """
        engine = self._use()
        return like(engine.run(*bound(engine, x, out)), x, engine.outputs)

    @overload
    def run_async(self, x: Named, out: Arrays | None = None) -> Future[dict[str, Array]]: ...

    @overload
    def run_async(self, x: Unnamed, out: Arrays | None = None) -> Future[ArrayOrList]: ...

    def run_async(self, x: Arrays, out: Arrays | None = None) -> Future[Any]:
        """Begin an inference; parameters and errors as in `run`.

        Waits while `depth` inferences are under way. Afterwards the arrays ``x`` may change, except
        those of `input_arrays`, which the device reads in place.

        Returns
        -------
        concurrent.futures.Future
            Of what `run` returns.
        """
        engine = self._use()
        inputs, outs = bound(engine, x, out)
        # The form of `x` is all that is kept of it: its arrays may go.
        question: Any = {} if isinstance(x, Mapping) else None
        return engine.start_future(inputs, outs, lambda r: like(r, question, engine.outputs))

    @overload
    def run_many(
        self, items: Iterable[Named], *, progress: Progress = False
    ) -> Iterator[dict[str, Array]]: ...

    @overload
    def run_many(
        self, items: Iterable[Unnamed], *, progress: Progress = False
    ) -> Iterator[ArrayOrList]: ...

    def run_many(self, items: Iterable[Arrays], *, progress: Progress = False) -> Iterator[Any]:
        """Run a sequence of inputs; results come in its order.

        The caller's thread takes items from the iterable, up to `depth` + 1 ahead. If taking one
        fails, the results of the items before it come first, then the error.

        Parameters
        ----------
        items
            Inputs, each as in `run`.
        progress
            True for a progress bar, where standard error is a terminal, or a function that is
            called with the number of results so far, and the total, or None if that is unknown.

        Raises
        ------
        InputError
            As `run`.
        """
        self._use()
        return in_order(self._use, iter(items), length_hint(items, -1), progress)

    def input_arrays(self) -> ArrayOrList:
        """New arrays for the inputs, in memory from which the device takes them without a copy.

        An array, if the model has one input, or a list.
        """
        engine = self._use()
        return like([engine.empty(t) for t in engine.inputs], None, engine.inputs)

    def output_arrays(self) -> ArrayOrList:
        """New arrays for the parameter ``out``, into which the device writes without a copy.

        An array, if the model has one output, or a list.
        """
        engine = self._use()
        return like([engine.empty(t) for t in engine.outputs], None, engine.outputs)

    def resize(self, shape: Shapes) -> None:
        """Change the shapes of the inputs; waits for inferences under way.

        Parameters
        ----------
        shape
            Of the one input, or a list of shapes, or a dict by name.

        Raises
        ------
        InputError
            If the model does not work with these shapes; those of before are kept.
        """
        _core.refuse_forked_child()
        with self._lock:
            engine = self._open()
            shapes = arrange_shapes(shape, [each.name for each in engine.inputs])
            model = self._model
            assert model is not None  # it goes with the engine
            engine.close()
            self._engine = None
            try:
                model.resize(shapes)
            except (RuntimeError, ValueError) as error:
                why = one_line(error)
                raise InputError(f"shapes {shapes} do not fit the model: {why}") from None
            finally:
                self._engine = model.open(self._depth)

    def close(self) -> None:
        """Wait for inferences under way; let go of model and device. May be called again.

        In a process that was forked from the runner's, nothing is waited for: it is the parent's.
        """
        if _core.is_forked_child():
            return
        with self._lock:
            engine, self._engine, self._model = self._engine, None, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> Runner:
        self._use()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._engine.mode if self._engine else "closed" if self._model is None else "idle"
        return f"<clgpu_delegate.Runner on {self._delegate.device.name}: {state}>"

    def _use(self) -> Engine:
        _core.refuse_forked_child()  # the threads and locks below are the parent's
        engine = self._engine
        if engine is None:
            with self._lock:  # waits while another thread resizes
                engine = self._open()
        return engine

    def _open(self) -> Engine:
        if self._engine is None:
            if self._model is None:
                raise ClgpuError("the runner is closed")
            self._engine = self._model.open(self._depth)
        return self._engine
