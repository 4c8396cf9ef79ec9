"""The delegate object that TensorFlow Lite's interpreters take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import numpy as np

from clgpu_delegate import _core, native
from clgpu_delegate.base import embedded
from clgpu_delegate.devices import Device
from clgpu_delegate.errors import OptionError
from clgpu_delegate.options import Options, Settings, with_settings
from clgpu_delegate.precision import ChannelMeans, Int8Scale, plan_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from clgpu_delegate.precision import PrecisionPlan
    from clgpu_delegate.profiling import Profile
    from clgpu_delegate.report.explanation import Explanation
    from clgpu_delegate.report.memory import MemoryMap


class LaunchTime(NamedTuple):
    """A kernel launch of an inference, or a copy in its middle, and what it takes.

    Examples
    --------
    >>> with clgpu_delegate.Runner("model.tflite") as runner:
    ...     times = runner.delegate.launch_times()
    >>> times[0].op
    'CONV_2D'
    """

    node: int
    """Index of the node in the model; of a copy, the one that waits for it, or -1."""

    op: str
    """Operation of the node; of a copy, ``SWAP_OUT`` to the host or ``SWAP_IN`` to the device."""

    candidate: str
    """The family's way to compute the node; it may consist of several launches."""

    kernel: str
    """Name of the kernel function; of a copy, of the tensor."""

    microseconds: float
    """On the device."""

    bytes: int
    """That are copied; 0 for a launch."""


class Delegate:
    """An OpenCL delegate, for the ``experimental_delegates`` of an Interpreter; made by `load`.

    It may serve several interpreters, at once too, and may be deleted before or after them.

    Examples
    --------
    >>> delegate = clgpu_delegate.load(precision="fp16")
    >>> delegate.options.precision
    'fp16'
    """

    __slots__ = ("__weakref__", "_native", "_options")

    def __init__(self, options: Options) -> None:
        self._native = native.make(options)
        self._options = options

    @classmethod
    def _of_native(cls, native: _core.NativeDelegate, options: Options) -> Delegate:
        """Wrap an existing native delegate."""
        delegate = cls.__new__(cls)
        delegate._native, delegate._options = native, options
        return delegate

    def _get_native_delegate_pointer(self) -> int:
        """Address of the TfLiteDelegate; the runtimes' interpreters call this."""
        if self._options.placement == "measured":
            from clgpu_delegate.placement import verdicts  # noqa: PLC0415

            frame = sys._getframe(1) if hasattr(sys, "_getframe") else None
            verdicts.hand_over(self._native, self._options, frame)
        return self._native.pointer

    @property
    def options(self) -> Options:
        """The options it was made with."""
        return self._options

    @property
    def device(self) -> Device:
        """The device it uses."""
        return native.device_of(self._native, self._options)

    def explain(self) -> Explanation:
        """What it did with the model it was last given: which nodes it claimed, and why not all."""
        explanation = self._bare_explanation()
        plan = self._plan_of(explanation)
        return explanation if plan is None else explanation.following(plan)

    def _bare_explanation(self) -> Explanation:
        """`explain` without what was measured for a plan, which the cache may have."""
        from clgpu_delegate.report.explanation import Explanation  # noqa: PLC0415

        return Explanation(self._native.explain())

    def stats(self) -> dict[str, Any]:
        """Counters of its work so far.

        Returns
        -------
        dict
            ``device_bytes`` and ``peak_device_bytes`` (device memory that this process holds now,
            and has held at most, on the delegate's device), ``invokes``, ``launches`` (kernels
            started), ``bytes_up`` and ``bytes_down`` (copied to and from the device),
            ``objects_created`` (OpenCL buffers, programs and kernels), among them
            ``programs_built`` (compiled from source) and ``programs_loaded`` (of binaries that the
            cache has kept), and under ``last_invoke`` and ``load`` the same counters for the last
            inference and for loading alone. ``tensors`` lists the inputs and outputs of the
            partitions of the model it was last given, as long as its interpreter exists: each a
            dict of ``partition``, ``name``, ``direction`` (``"input"``, ``"output"``), ``bytes`` on
            the device, ``road``, ``reason``, why not a better one, and ``pinned`` (see the option
            ``pin_tensors``). Roads are ``"host_pointer"`` (the device works on the interpreter's
            memory), ``"mapped"`` (the host copies or converts in an object that device and host
            share), ``"copy"`` (the driver copies) and ``"lent"`` (an OpenCL buffer of the
            application's). What stays in place counts neither as ``bytes_up`` nor as
            ``bytes_down``; its objects are created by the first inference after
            ``allocate_tensors``. ``chains`` has, for each partition, a dict of ``partition``,
            ``kernels`` (those of an inference whose stages are launches), ``launches`` (that are
            such stages; see the option ``chain``), ``early`` (those of them that read weights
            before they wait for others), ``divided`` (launches at which a chain ends because it
            would take more than 0.1 s), ``slower`` (further chains, whose launches were measured
            to be faster) and ``reason``, why there are none. ``bundles``
            has, for each partition, a dict of ``partition``, ``kernels`` (those of an inference
            that compute several small launches side by side), ``launches`` (that they compute) and
            ``reason``, the error for which launches run by themselves that could be bundled.
            ``command_lists`` has, for each partition, a dict of ``partition``, ``extension`` (of
            OpenCL, by which the driver takes all launches in one call or a few, each of which
            counts as one of ``launches``; see the option ``command_list``), ``launches`` (in the
            list) and ``reason``, why there is no list. ``reuse`` has, for each partition that keeps
            results (see the option ``reuse``), a dict of ``partition``, ``launches`` (those of an
            inference that may be left out), ``inferences`` so far, since everything was last
            computed because of an error, a measurement or a verification, and ``computed``, the
            share of the arithmetic of such launches that these have computed. Reading it waits for
            inferences in flight.
        """
        return self._native.stats()

    def device_time(self, runs: int = 10, node: int | None = None) -> float:
        """Measure the device's own time per inference: many in flight, nothing copied.

        The launches of ``runs`` inferences are enqueued back to back and waited for once. They
        compute with the contents of the device's memory: the last inputs, or what has overwritten
        them. Times vary; take the median of several calls.

        Parameters
        ----------
        runs
            Inferences in flight; 1 and more.
        node
            Index of the only node to run; None for all. One that was fused into another, or needs
            no kernel, takes no time.

        Returns
        -------
        float
            Seconds per inference of the last model, summed over its partitions, without nodes on
            the CPU and copies.

        Raises
        ------
        ClgpuError
            If no node of that model is on the device, or its interpreter is gone.
        """
        return self._native.device_time(runs, node)

    def launch_times(self, rounds: int = 5) -> list[LaunchTime]:
        """Measure each kernel launch by itself, with the device's own clock.

        Parameters
        ----------
        rounds
            Inferences to take medians of; 1 and more.

        Returns
        -------
        list of LaunchTime
            In the order of an inference. Gaps between launches are not in their times, so the sum
            is below `device_time` where launches are short.

        Raises
        ------
        ClgpuError
            As `device_time`.
        """
        rows = self._native.launch_times(rounds)
        return [LaunchTime(*row[:4], row[4] * 1e6, row[5]) for row in rows]

    def carried(self) -> list[dict[str, Any]]:
        """The tensors of the option ``carry``, of the interpreter that it was last given to.

        Returns
        -------
        list of dict
            ``name``, ``shape``, ``type`` (``"float32"``), ``bytes`` on the device (0, and None for
            shape and type, before a graph uses the tensor there), ``graphs``: by index of the
            graph, why the tensor is an ordinary input and output there, empty where it is carried;
            and ``copied``: by graph, why its next value is copied on the device at the end of an
            inference, empty where it is written in place.
        """
        return self._native.carried()

    def read_carried(self, name: str) -> np.ndarray[Any, Any]:
        """A copy of a carried tensor, in its shape and type.

        Raises
        ------
        OptionError
            If the option ``carry`` does not have the name.
        ClgpuError
            If no graph uses it on the device, or its interpreter is gone.
        """
        content = self._native.read_carried(name)
        found = next(entry for entry in self.carried() if entry["name"] == name)
        return np.frombuffer(content, found["type"]).reshape(found["shape"]).copy()

    def write_carried(self, name: str, value: np.ndarray[Any, Any]) -> None:
        """Set a carried tensor to an array of its shape and type; errors as `read_carried`."""
        value = np.asarray(value)
        found = next((entry for entry in self.carried() if entry["name"] == name), None)
        if found is not None and found["shape"] is not None:
            given = (value.dtype.name, list(value.shape))
            if given != (found["type"], found["shape"]):
                raise OptionError(
                    f"the carried tensor {name!r} is {found['type']}{found['shape']}; the value is "
                    f"{given[0]}{given[1]}"
                )
        self._native.write_carried(name, np.ascontiguousarray(value).tobytes())

    def _largest_carried(
        self, name: str, count: int | None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The `count` largest elements of each row of a carried tensor, and their indices.

        None: the sums of the rows, and the indices of their largest elements.

        Raises
        ------
        OptionError, ClgpuError
            As `read_carried`; also if the device cannot find them.
        """
        values, indices = self._native.largest_carried(name, count or 0)
        return np.frombuffer(values, np.float32), np.frombuffer(indices, np.int32)

    def clear_carried(self) -> None:
        """Make all elements of all carried tensors zero, as they are in the beginning."""
        self._native.clear_carried()

    def _graph_texts(self, when: str) -> tuple[str, ...]:
        """As `clgpu_delegate.inspection.graph_texts`, while the interpreter exists."""
        return tuple(self._native.ir(when))

    def memory_map(self) -> MemoryMap:
        """The addresses and lifetimes of the last model's tensors in device memory."""
        from clgpu_delegate.report.memory import MemoryMap  # noqa: PLC0415

        return MemoryMap({"partitions": self._native.memory_map()})

    def profile(self) -> Profile:
        """The times of the last inferences of the last model.

        The delegate must be made with ``profile=True``, and its interpreter must have run. The
        first 8 inferences are recorded, or as many as `reset_profile` asks for, and a small share
        of the others. The last 32 recordings are kept, even after the interpreter is deleted. A
        `Runner` with several inferences in flight does not record.

        Raises
        ------
        ClgpuError
            If nothing is recorded; the message says what to do.
        """
        return self._profile("", ())

    def reset_profile(self, inferences: int = 8) -> None:
        """Forget what `profile` would tell, and record the next inferences.

        Parameters
        ----------
        inferences
            So many in a row, 1 and more; the last 32 are kept.
        """
        if inferences < 1:
            raise OptionError(f"inferences is {inferences}; allowed: 1 and more")
        self._native.reset_profile(inferences)

    def _profile(self, model: str, spans: Sequence[tuple[int, int]]) -> Profile:
        """`profile` of a model by name, and of the inferences within the spans: nanoseconds."""
        from clgpu_delegate.profiling import Profile  # noqa: PLC0415

        explanation = self.explain()
        return Profile(
            self._native.profile(),
            explanation,
            self.memory_map(),
            model=model,
            invokes=spans,
            plan=self._plan_of(explanation),
        )

    def _plan_of(self, explanation: Explanation) -> PrecisionPlan | None:
        """The plan that the last model follows, if its measurements are known."""
        mixed = explanation.mixed
        if mixed is None or not mixed.source:
            return None
        if self._options.plan is not None:
            return self._options.plan
        text = plan_text(
            mixed.model,
            mixed.error,
            mixed.half,
            mixed.int8,
            mixed.tf32,
            mixed.half_sums,
            mixed.bfloat,
            mixed.integers,
            (Int8Scale(*scale) for scale in mixed.scales),
            (ChannelMeans(*means) for means in mixed.means),
            mixed.bf16_pairs,
        )
        return native.find_plan(self._native, self._options, text)

    def _tune(
        self, budget: float, again: bool, progress: Callable[[int, int, Any, str], None]
    ) -> list[dict[str, Any]]:
        """See `clgpu_delegate.tune`; of the model it was last given."""
        return self._native.tune(budget, again, progress)

    def _leave_winners(self) -> None:
        """Record that the tuned kernels of the model it was last given are slower together."""
        self._native.leave_winners()

    def __repr__(self) -> str:
        settings = "".join(f", {k}={v!r}" for k, v in self._options.as_delegate_dict().items())
        return f"<clgpu_delegate.Delegate on {self.device.name}{settings}>"


@with_settings
def load(**settings: Unpack[Settings]) -> Delegate:
    """Make a delegate.

    Parameters
    ----------
    **settings
        The fields of `Options`.

    Raises
    ------
    OptionError
        If an option is unknown or its value is not allowed.
    DeviceError
        If there is no such OpenCL device, or none at all, or this process was forked after OpenCL
        was used: in such a child methods of the parent's delegates raise it, too.

    Examples
    --------
    >>> delegate = clgpu_delegate.load(precision="fp16")
    >>> interpreter = Interpreter("model.tflite", experimental_delegates=[delegate])
    >>> interpreter.allocate_tensors()
    >>> delegate.explain().claimed
    4
    """
    return Delegate(Options.from_settings(**settings))


def plugin_path() -> str:
    """The file to give to a runtime's own ``load_delegate``.

    Options go with it as strings, see `Options.as_delegate_dict`.

    Examples
    --------
    >>> from pathlib import Path
    >>> Path(clgpu_delegate.plugin_path()).is_file()
    True
    """
    with embedded.registered():
        return str(Path(_core.__file__).resolve())
