"""Ray Data: a model as a function of batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from clgpu_delegate.base.files import Source
from clgpu_delegate.errors import DependencyError, InputError
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.ray import slots
from clgpu_delegate.ray.batching import Batching
from clgpu_delegate.runner.members import Names
from clgpu_delegate.runner.tensors import Array

if TYPE_CHECKING:
    from typing_extensions import Unpack

RESOURCE = "opencl"
_Columns = Optional[Mapping[str, str]]


def imported(extra: str = "") -> Any:
    """The package ray, or a DependencyError."""
    try:
        import ray  # noqa: PLC0415

        if extra == "data":
            import ray.data  # noqa: PLC0415
        if extra == "serve":
            import ray.serve  # noqa: PLC0415
    except ImportError as error:
        raise DependencyError(
            f"Ray is missing ({error}); install it with: pip install 'clgpu_delegate[ray]'"
        ) from None
    return ray


def resources(devices: Names = None) -> dict[str, float]:
    """The custom resource of this machine, as ``ray start --resources`` takes it.

    Parameters
    ----------
    devices
        As in `clgpu_delegate.Pool`: those that actors may use, with the same value for the actors.

    Returns
    -------
    dict
        ``{"opencl": 2.0}`` where there are two devices.

    Raises
    ------
    DeviceError
        If there is no device.
    """
    return {RESOURCE: float(len(slots.slots_of(devices)))}


def content_of(model: Any) -> Source:
    """Path or bytes of a model, which may lie in Ray's object store."""
    if isinstance(model, (str, bytes, Path)):
        return model
    content: Source = imported().get(model)
    return content


class Predictor:
    """A model for ``map_batches`` of a Ray dataset: one actor, one device.

    An actor takes a device of its node that no other process has, loads the model, and measures
    which number of rows an inference should have. Batches of the dataset may have any other size:
    they are divided, and the last part is filled up with zeros. If the device fails, the actor
    takes another one that is free.

    Parameters
    ----------
    model
        Path on the nodes, the bytes of the file, or a reference to these from ``ray.put``.
    inputs
        By the name of an input the name of its column; None: they have the same names, or, if the
        model has one input and the dataset one column, these two belong together.
    outputs
        By the name of an output the name of its column; None: the names of the outputs.
    devices
        As in `clgpu_delegate.Pool`, on each node.
    batch
        Rows of an inference; None: measured.
    most
        The largest number of rows that is measured.
    **settings
        The fields of `Options`, except ``device``.

    Raises
    ------
    FileError, ModelError
        If the model cannot be read.
    OptionError
        If an option or a parameter is wrong.
    InputError
        If inputs and outputs have no common first axis, or it cannot be ``batch``.
    PoolError
        If no device of the node works.
    """

    @with_settings
    def __init__(
        self,
        model: Any,
        *,
        inputs: _Columns = None,
        outputs: _Columns = None,
        devices: Names = None,
        batch: int | None = None,
        most: int = 64,
        **settings: Unpack[Settings],
    ) -> None:
        self._model = Batching(
            content_of(model), devices=devices, batch=batch, most=most, settings=settings
        )
        self._inputs, self._outputs = inputs, dict(outputs or {})
        names = {tensor.name for tensor in self._model.outputs}
        for name in self._outputs:
            if name not in names:
                raise InputError(f"there is no output {name!r}; outputs are: {', '.join(names)}")

    @property
    def batch(self) -> int:
        """Rows of an inference."""
        return self._model.batch

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._model.device

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Results of a batch.

        Parameters
        ----------
        batch
            Arrays by column; the first axis are the rows.

        Returns
        -------
        dict
            The columns that are no inputs of the model, unchanged, and those of the outputs.

        Raises
        ------
        InputError
            If a column is missing, or has rows of another shape or dtype than the input.
        PoolError
            If the device fails, and no other one is free.
        """
        columns = self._columns_of(batch)
        given = {name: batch[column] for name, column in columns.items() if column in batch}
        missing = [column for column in columns.values() if column not in batch]
        if missing:
            raise InputError(f"there is no column {missing[0]!r}; columns are: {', '.join(batch)}")
        results = self._model.run(given)
        kept = {name: x for name, x in batch.items() if name not in columns.values()}
        return {**kept, **{self._outputs.get(name, name): y for name, y in results.items()}}

    def _columns_of(self, batch: Mapping[str, Array]) -> Mapping[str, str]:
        if self._inputs is not None:
            return self._inputs
        names = [tensor.name for tensor in self._model.inputs]
        if len(names) == len(batch) == 1:
            return {names[0]: next(iter(batch))}
        return {name: name for name in names}


@with_settings
def map_batches(
    dataset: Any,
    model: Any,
    *,
    concurrency: int | tuple[int, int] = 1,
    batch_size: int = 256,
    inputs: _Columns = None,
    outputs: _Columns = None,
    devices: Names = None,
    batch: int | None = None,
    most: int = 64,
    **settings: Unpack[Settings],
) -> Any:
    """Run a model over a Ray dataset.

    Bytes of a model are put into the object store once, and each node gets them from there.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``.
    model
        Path on the nodes, bytes, or a reference to bytes.
    concurrency
        Actors, each with one unit of the resource ``opencl``; or the least and the most of them.
    batch_size
        Rows that an actor gets at a time; inferences have their own size.
    inputs, outputs, devices, batch, most, **settings
        As in `Predictor`.

    Returns
    -------
    ray.data.Dataset
        Lazy, as all of Ray's.

    Raises
    ------
    DependencyError
        If Ray is not installed.
    """
    ray = imported("data")
    least, greatest = (concurrency,) * 2 if isinstance(concurrency, int) else concurrency
    shared = ray.put(bytes(model)) if isinstance(model, (bytes, bytearray)) else model
    return dataset.map_batches(
        Predictor,
        fn_constructor_kwargs={
            "model": shared,
            "inputs": inputs,
            "outputs": outputs,
            "devices": devices,
            "batch": batch,
            "most": most,
            **settings,
        },
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=least, max_size=greatest),
        num_cpus=0,
        resources={RESOURCE: 1},
    )
