"""Latency of a server under load: ``python -m examples.serve_load http://127.0.0.1:8000/``.

First, ``--clients`` clients ask again and again, which gives the throughput. Then requests
come at 50, 80 and 95 % of it, whether or not earlier ones were answered; the latency of each counts
from the moment at which it was due.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import time
from typing import NamedTuple

import aiohttp
import numpy as np

SHARES = (0.5, 0.8, 0.95)
_NPY = {"content-type": "application/x-npy"}


class Outcome(NamedTuple):
    """What was measured at one rate: seconds of each request that was answered, and the others."""

    rate: float
    seconds: list[float]
    failed: int

    def line(self) -> str:
        """As text."""
        marks = np.percentile(np.array(self.seconds) * 1e3, [50, 90, 99]) if self.seconds else []
        told = "  ".join(f"p{p} {ms:6.1f} ms" for p, ms in zip((50, 90, 99), marks))
        return f"{self.rate:7.1f}/s  {told}  {len(self.seconds)} answered, {self.failed} failed"


class Client:
    """Asks with random inputs of the shapes that the server tells."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self._bodies = itertools.cycle([b""])

    async def prepare(self) -> None:
        """Learn what the model takes."""
        async with self._session.get(self._url) as answer:
            (tensor,) = (await answer.json())["inputs"]
        rng = np.random.default_rng(0)
        bodies = []
        for _ in range(4):
            buffer = io.BytesIO()
            np.save(buffer, rng.random(tensor["shape"]).astype(tensor["dtype"]))
            bodies.append(buffer.getvalue())
        self._bodies = itertools.cycle(bodies)

    async def ask(self) -> bool:
        """Whether a request is answered."""
        try:
            body = next(self._bodies)
            async with self._session.post(self._url, data=body, headers=_NPY) as answer:
                await answer.read()
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def closed(client: Client, clients: int, seconds: float) -> Outcome:
    """So many clients, each of which asks again when it has its answer."""
    times: list[float] = []
    failed = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal failed
        while (start := time.perf_counter()) < end:
            if await client.ask():
                times.append(time.perf_counter() - start)
            else:
                failed += 1

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return Outcome(len(times) / (time.perf_counter() - start), times, failed)


async def opened(client: Client, rate: float, seconds: float) -> Outcome:
    """Requests at random moments, at a rate."""
    gaps = np.random.default_rng(1).exponential(1 / rate, max(1, round(rate * seconds)))
    begin = time.perf_counter()
    times: list[float] = []
    failed = 0

    async def one(due: float) -> None:
        nonlocal failed
        await asyncio.sleep(due - time.perf_counter())
        if await client.ask():
            times.append(time.perf_counter() - due)
        else:
            failed += 1

    await asyncio.gather(*(one(begin + due) for due in np.cumsum(gaps)))
    return Outcome(rate, times, failed)


async def measure(url: str, clients: int, seconds: float) -> list[Outcome]:
    """The throughput, and latencies at shares of it."""
    limits = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=limits) as session:
        client = Client(session, url)
        await client.prepare()
        await closed(client, clients, min(seconds, 2.0))  # kernels and connections
        outcomes = [await closed(client, clients, seconds)]
        print("throughput", outcomes[0].line(), flush=True)
        for share in SHARES:
            outcomes.append(await opened(client, share * outcomes[0].rate, seconds))
            print(f"{share:10.0%}", outcomes[-1].line(), flush=True)
    return outcomes


def main() -> None:
    """Read the command line; exits with 1 if a request was not answered."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.url, arguments.clients, arguments.seconds))
    raise SystemExit(any(outcome.failed for outcome in found))


if __name__ == "__main__":
    main()
