"""Ray Serve, by the example: batches, wrong requests, load, metrics, and a stop that drops none."""

from __future__ import annotations

import asyncio
import io
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.python import models
from tests.python.subprocesses import ROOT

pytestmark = pytest.mark.slow

X = np.arange(5, dtype=np.float32)
LONGEST = 180.0  # seconds; then the server is killed


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def server(tmp_path, short_folder):
    """The process of the example, the address of the model, and that of the metrics."""
    (tmp_path / "model.tflite").write_bytes(models.chain((1, 5), ("NEG",)))
    command = [sys.executable, "-m", "examples.serve", str(tmp_path / "model.tflite")]
    options = ["--device", "0", "--device", "0", "--replicas", "2", "--batch", "4"]
    ports = ["--port", str(free_port()), "--metrics-port", str(free_port())]
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": short_folder}
    with (tmp_path / "told").open("w") as told, subprocess.Popen(
        [*command, *options, *ports, "--wait-ms", "200"],
        env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=told, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        watch = threading.Timer(LONGEST, process.kill)
        watch.start()
        lines: list[str] = []
        while len(lines) < 2:
            line = process.stdout.readline()
            assert line, (tmp_path / "told").read_text()
            lines += [line.strip()] if line.startswith("http") else []
        yield process, *lines
        watch.cancel()
        process.kill()


def post(url: str, body: bytes, kind: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"content-type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def npy(x: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, x)
    return buffer.getvalue()


def ask(url: str, number: int) -> None:
    code, body = post(url, npy(X + number), "application/x-npy")
    assert code == 200, body
    np.testing.assert_array_equal(np.load(io.BytesIO(body)), -(X + number))


WRONG = [
    (npy(X[:4]), "application/x-npy", "input 'x' is float32 of shape (5,); given is float32"),
    (npy(X.astype("d")), "application/x-npy", "given is float64"),
    (b"nonsense", "application/x-npy", "the body is not application/x-npy"),
    (b"[[1], 2]", "application/json", "the body is not application/json"),
    (b'{"z": 1}', "application/json", "there is no 'x'; given are: z"),
    (b"", "text/plain", "content-type is 'text/plain'; allowed: application/x-npy"),
]


def check_forms(url: str) -> None:
    told = json.loads(get(url))
    assert (told["batch"], told["inputs"]) == (
        4,
        [{"name": "x", "shape": [5], "dtype": "float32"}],
    )
    name = told["outputs"][0]["name"]
    with ThreadPoolExecutor(24) as threads:
        list(threads.map(ask, [url] * 48, range(48)))
    buffer = io.BytesIO()
    np.savez(buffer, x=X)
    _, body = post(url, buffer.getvalue(), "application/x-npz")
    np.testing.assert_array_equal(np.load(io.BytesIO(body))[name], -X)
    for value in (X.tolist(), {"x": X.tolist()}):
        code, body = post(url, json.dumps(value).encode(), "application/json; charset=utf-8")
        assert (code, json.loads(body)) == (200, {name: (-X).tolist()})
    assert get(f"{url}-/healthz") == b"success"


def check_wrong_requests(url: str) -> None:
    for body, kind, words in WRONG:
        code, told = post(url, body, kind)
        assert code == 400
        assert words in json.loads(told)["error"]


def check_load(url: str) -> None:
    from examples import serve_load  # noqa: PLC0415  # it needs aiohttp

    outcomes = asyncio.run(serve_load.measure(url, clients=16, seconds=1.0))
    assert len(outcomes) == 4
    assert all(outcome.seconds and not outcome.failed for outcome in outcomes)


def check_metrics(url: str) -> None:
    end = time.monotonic() + 30
    while "clgpu_batch_rows_bucket" not in (told := get(url).decode()):
        assert time.monotonic() < end, told
        time.sleep(0.5)
    assert "clgpu_batch_seconds_sum" in told


def ask_until_stopped(url: str, number: int, answered: queue.SimpleQueue[int]) -> None:
    """Ask again and again; a request that is not answered was refused before it was taken."""
    while True:
        try:
            code, body = post(url, npy(X + number), "application/x-npy")
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return
            raise
        if code == 404:  # no application is there any more
            return
        assert code == 200, body
        np.testing.assert_array_equal(np.load(io.BytesIO(body)), -(X + number))
        answered.put(number)


def check_stop(process: subprocess.Popen[str], url: str) -> None:
    answered: queue.SimpleQueue[int] = queue.SimpleQueue()
    with ThreadPoolExecutor(6) as threads:
        asking = [threads.submit(ask_until_stopped, url, n, answered) for n in range(6)]
        for _ in range(12):  # each client has a request under way, or is about to
            answered.get(timeout=60)
        process.send_signal(signal.SIGTERM)
        for each in asking:
            each.result()
    assert process.wait(60) == 0


def test_the_example_answers_all_requests_until_it_is_stopped(server):
    process, url, metrics = server
    check_forms(url)
    check_wrong_requests(url)
    check_load(url)
    check_metrics(metrics)
    check_stop(process, url)
