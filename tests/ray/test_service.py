"""A replica of Ray Serve, without Ray: rows that cannot be computed, and devices that fail."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import numpy as np
import pytest

from clgpu_delegate import ClgpuError, FileError, InputError, PoolError
from clgpu_delegate.ray import slots
from clgpu_delegate.ray.batching import Batching
from clgpu_delegate.ray.serving import Service
from tests.model_maker import ModelMaker
from tests.python import models
from tests.ray.test_batching import fail


class Observed(list):
    """A metric."""

    def observe(self, value: float, _: dict[str, str]) -> None:
        self.append(value)


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(slots.tempfile, "gettempdir", lambda: str(tmp_path))
    m = ModelMaker()
    table = m.constant(np.arange(4, dtype=np.float32))
    m.output(m.op("GATHER", [table, m.input("i", (1,), np.int32)], (1,), axis=0))
    made = Service.__new__(Service)  # without what Ray is needed for
    settings = {"exclude": "GATHER"}
    made._model = Batching(m.build(), devices=0, batch=4, most=4, settings=settings)
    made._sizes, made._seconds, made._failure = Observed(), Observed(), ""
    return made


def rows(*indices: int) -> list[dict[str, np.ndarray]]:
    return [{"i": np.array(index, np.int32)} for index in indices]


def test_a_row_that_the_cpu_refuses_fails_alone(service):
    first, second, third = service._run(rows(3, 9, 1))
    assert [float(*found.values()) for found in (first, third)] == [3, 1]
    assert "index out of bounds" in str(second)
    assert service._sizes == [1, 1]
    assert [float(*found.values()) for found in service._run(rows(0, 1, 2))] == [0, 1, 2]
    assert service._sizes == [1, 1, 3]
    asyncio.run(service.check_health())


def test_a_caller_gets_the_error_of_its_row(service):
    async def together(row):
        return service._run([row])[0]

    service._together = together
    with pytest.raises(ClgpuError, match="index out of bounds"):
        asyncio.run(service.predict(rows(9)[0]))
    (found,) = asyncio.run(service.predict(rows(2)[0])).values()
    assert found == 2
    with pytest.raises(InputError, match=r"'i' is int32 of shape \(\); given is int64"):
        asyncio.run(service.predict({"i": np.array(2)}))


def test_health_tells_that_no_device_is_left(service):
    fail(service, times=1)
    with pytest.raises(PoolError):
        service._run(rows(1))
    with pytest.raises(RuntimeError, match="all devices have failed: 0 "):
        asyncio.run(service.check_health())


def test_health_tells_that_a_device_failed_while_the_others_were_in_use(service):
    service._model = Batching(
        models.chain((1, 5), ("NEG",)), devices=[0, 0], batch=4, most=4, settings={}
    )
    other = slots.take([0, 0])
    fail(service, times=1)
    row = {"x": np.ones(5, np.float32)}
    for _ in range(2):
        with pytest.raises(PoolError, match="CL_OUT_OF_RESOURCES"):
            service._run([row, row])
    with pytest.raises(RuntimeError, match="CL_OUT_OF_RESOURCES"):
        asyncio.run(service.check_health())
    assert service.describe()["batch"] == 4
    other.release()


class Posted:
    """A request of HTTP."""

    method = "POST"
    headers: ClassVar = {"content-type": "application/json"}

    async def body(self) -> bytes:
        return b'{"i": 2}'


def test_only_mistakes_of_a_request_are_answered_with_400(service):
    pytest.importorskip("starlette")
    error: Exception = InputError("a wrong shape")

    async def refuse(_):
        raise error

    service.predict = refuse
    for error in (InputError("a wrong shape"), ClgpuError("inference failed: an index")):
        answer = asyncio.run(service(Posted()))
        assert (answer.status_code, json.loads(answer.body)) == (400, {"error": str(error)})
    for error in (PoolError([(0, "one", "gone")]), FileError("cannot lock")):
        with pytest.raises(type(error), match=str(error)[:8]):
            asyncio.run(service(Posted()))


def test_json_has_null_for_what_is_no_number(service):
    pytest.importorskip("starlette")
    y = np.array([[1.5, np.nan], [np.inf, -np.inf]], np.float32)

    async def found(_):
        return {"y": y, "scalar": np.float32(np.nan), "n": np.array([1, 2])}

    service.predict = found
    answer = asyncio.run(service(Posted()))
    want = {"y": [[1.5, None], [None, None]], "scalar": None, "n": [1, 2]}
    assert (answer.status_code, json.loads(answer.body)) == (200, want)
