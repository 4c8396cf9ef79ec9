"""A replica of Ray Serve, without Ray: rows that cannot be computed, and devices that fail."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from clgpu_delegate import ClgpuError, InputError, PoolError
from clgpu_delegate.ray import slots
from clgpu_delegate.ray.batching import Batching
from clgpu_delegate.ray.serving import Service
from tests.model_maker import ModelMaker
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
