"""Ray Serve: a model behind HTTP, whose requests are computed in batches."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from clgpu_delegate.base.files import Source
from clgpu_delegate.errors import ClgpuError, InputError, PoolError
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.ray.batching import Batching
from clgpu_delegate.ray.data import RESOURCE, imported
from clgpu_delegate.runner.members import Names
from clgpu_delegate.runner.tensors import Array

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NPY, _NPZ, _JSON = "application/x-npy", "application/x-npz", "application/json"
_SIZES = [1, 2, 4, 8, 16, 32, 64, 128]
_SECONDS = [0.001 * 2**power for power in range(14)]


class Service:
    """A replica: a device, a model, and one queue of requests."""

    def __init__(
        self,
        model: Source,
        wait_s: float,
        devices: Names,
        batch: int | None,
        most: int,
        settings: Settings,
    ) -> None:
        serve = imported("serve").serve
        self._model = Batching(model, devices=devices, batch=batch, most=most, settings=settings)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="clgpu-serve")
        self._failure = ""
        self._sizes = serve.metrics.Histogram(
            "clgpu_batch_rows", "Requests that an inference answered.", _SIZES, ("device",)
        )
        self._seconds = serve.metrics.Histogram(
            "clgpu_batch_seconds", "Seconds of an inference.", _SECONDS, ("device",)
        )

        @serve.batch(max_batch_size=self._model.batch, batch_wait_timeout_s=wait_s)  # type: ignore[untyped-decorator]
        async def together(rows: list[dict[str, Array]]) -> list[dict[str, Array] | Exception]:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self._run, rows)

        self._together = together

    def _run(self, rows: list[dict[str, Array]]) -> list[dict[str, Array] | Exception]:
        """Results of rows; of a row that cannot be computed, what it fails with."""
        start = time.perf_counter()
        try:
            results = self._model.run({name: np.stack([r[name] for r in rows]) for name in rows[0]})
        except PoolError as error:
            self._failure = str(error)
            raise
        except Exception as error:
            # One row fails all: index out of range, for example. The others have their results.
            return [error] if len(rows) == 1 else [self._run([row])[0] for row in rows]
        tags = {"device": self._model.device}
        self._sizes.observe(len(rows), tags)
        self._seconds.observe(time.perf_counter() - start, tags)
        return [{name: y[n] for name, y in results.items()} for n in range(len(rows))]

    async def predict(self, row: Mapping[str, Array]) -> dict[str, Array]:
        """One inference, for callers with a handle.

        Parameters
        ----------
        row
            Arrays by input, without the batch axis.

        Raises
        ------
        InputError
            If an array is missing, or has another shape or dtype than the input.
        ClgpuError
            If a kernel of the CPU refuses the input.
        PoolError
            If the device fails, and no other one is free.
        """
        checked = {}
        for tensor in self._model.inputs:
            if tensor.name not in row:
                raise InputError(f"there is no {tensor.name!r}; given are: {', '.join(row)}")
            x = np.asarray(row[tensor.name])
            if x.shape != tensor.shape[1:] or x.dtype != tensor.dtype:
                raise InputError(
                    f"input {tensor.name!r} is {tensor.dtype.name} of shape {tensor.shape[1:]}; "
                    f"given is {x.dtype.name} of shape {x.shape}"
                )
            checked[tensor.name] = x
        result: dict[str, Array] | Exception = await self._together(checked)
        if isinstance(result, Exception):
            raise result
        return result

    async def __call__(self, request: Any) -> Any:
        """Answer a request of HTTP; see `deployment`."""
        from starlette.responses import JSONResponse, Response  # noqa: PLC0415

        if request.method != "POST":
            return JSONResponse(self.describe())
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            row = self._read(await request.body(), kind)
            result = await self.predict(row)
        except ClgpuError as error:
            # What a kernel of the CPU refuses has no class of its own; others are the server's.
            if not isinstance(error, InputError) and type(error) is not ClgpuError:
                raise
            return JSONResponse({"error": str(error)}, status_code=400)
        if kind == _JSON:
            return JSONResponse({name: _listed(y) for name, y in result.items()})
        return Response(_written(result, kind), media_type=kind)

    def describe(self) -> dict[str, Any]:
        """Inputs and outputs, the device, and the batch size."""
        return {
            "device": self._model.device,
            "batch": self._model.batch,
            "inputs": _described(self._model.inputs),
            "outputs": _described(self._model.outputs),
        }

    async def check_health(self) -> None:
        """Raise what the last inference failed with: Ray replaces the replica then."""
        if self._failure:
            raise RuntimeError(self._failure)

    def _read(self, body: bytes, kind: str) -> dict[str, Array]:
        inputs = self._model.inputs
        try:
            if kind == _JSON:
                found = json.loads(body)
                if not isinstance(found, dict):
                    found = {inputs[0].name: found}
                dtypes = {tensor.name: tensor.dtype for tensor in inputs}
                return {name: np.asarray(x, dtypes.get(name)) for name, x in found.items()}
            if kind in (_NPY, _NPZ):
                loaded = np.load(io.BytesIO(body), allow_pickle=False)
                return {inputs[0].name: loaded} if kind == _NPY else dict(loaded)
        except Exception as error:  # of json, of zip, of numpy
            raise InputError(f"the body is not {kind}: {error}") from None
        raise InputError(f"content-type is {kind!r}; allowed: {_NPY}, {_NPZ}, {_JSON}")


def _described(tensors: Any) -> list[dict[str, Any]]:
    return [{"name": t.name, "shape": t.shape[1:], "dtype": t.dtype.name} for t in tensors]


def _listed(y: Array) -> Any:
    """Nested lists, with None for what is no number in JSON."""
    if y.dtype.kind != "f" or np.isfinite(y).all():
        return y.tolist()
    numbers = np.asarray(y).astype(object)
    numbers[~np.isfinite(y)] = None
    return numbers.tolist()


def _written(result: dict[str, Array], kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == _NPY:
        np.save(buffer, next(iter(result.values())), allow_pickle=False)
    else:
        np.savez(buffer, **result)
    return buffer.getvalue()


@with_settings
def deployment(
    model: Source,
    *,
    name: str = "clgpu",
    replicas: int = 1,
    wait_s: float = 0.005,
    at_once: int = 256,
    queued: int = -1,
    devices: Names = None,
    batch: int | None = None,
    most: int = 64,
    **settings: Unpack[Settings],
) -> Any:
    """Make a Ray Serve application of a model, for ``ray.serve.run``.

    POST an input without its batch axis; the result comes back in the form of the request:
    ``application/x-npy``, an array for a model with one input, and its first output;
    ``application/x-npz``, arrays by name; ``application/json``, lists by name, with null for NaN
    and infinity. A wrong input is answered with 400 and the reason. GET tells inputs, outputs,
    device and batch size.

    Each replica takes a device of its node. It collects requests until there are as many as the
    batch size, or the first one has waited ``wait_s``. A device that fails is replaced by one that
    is free; if there is none, the replica's health check fails, and Ray starts another one.
    Prometheus gets ``clgpu_batch_rows`` and ``clgpu_batch_seconds`` beside Serve's own metrics.

    Parameters
    ----------
    model
        Path on the nodes; or bytes, which Serve keeps with the deployment: an object of the object
        store would go with the program that has put it there.
    name
        Of the deployment.
    replicas
        Each takes one unit of the resource ``opencl``.
    wait_s
        Seconds that a request waits for others at most.
    at_once
        Requests that a replica has at a time.
    queued
        Requests that wait for a replica; further ones are answered with 503. -1: any number.
    devices, batch, most, **settings
        As in `Predictor`.

    Raises
    ------
    DependencyError
        If Ray Serve is not installed.
    """
    ray = imported("serve")
    made = ray.serve.deployment(Service).options(
        name=name,
        num_replicas=replicas,
        max_ongoing_requests=at_once,
        max_queued_requests=queued,
        ray_actor_options={"num_cpus": 0, "resources": {RESOURCE: 1}},
    )
    return made.bind(model, wait_s, devices, batch, most, settings)
