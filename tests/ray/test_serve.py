"""Ray Serve: requests are answered in batches, wrong ones with a reason, and a stop drops none."""

from __future__ import annotations

import pytest

from tests.ray.clusters import run_in_cluster

pytestmark = pytest.mark.slow

SCRIPT = """
import io, json, socket, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
from ray import serve

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
serve.start(http_options={"host": "127.0.0.1", "port": port})
URL = f"http://127.0.0.1:{port}/"
application = clgpu_delegate.ray.deployment(
    model, replicas=2, devices=[0, 0], batch=4, wait_s=0.3, at_once=64
)
handle = serve.run(application)


def post(body, kind):
    request = urllib.request.Request(URL, body, {"content-type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def npy(x):
    buffer = io.BytesIO()
    np.save(buffer, x)
    return buffer.getvalue()


x = np.arange(5, dtype=np.float32)
with urllib.request.urlopen(URL) as answer:
    told = json.load(answer)
assert told["batch"] == 4 and told["inputs"] == [
    {"name": "x", "shape": [5], "dtype": "float32"}
], told
name = told["outputs"][0]["name"]


def ask(n):
    code, body = post(npy(x + n), "application/x-npy")
    assert code == 200, body
    np.testing.assert_array_equal(np.load(io.BytesIO(body)), -(x + n))


with ThreadPoolExecutor(24) as threads:
    list(threads.map(ask, range(48)))
    buffer = io.BytesIO()
    np.savez(buffer, x=x)
    code, body = post(buffer.getvalue(), "application/x-npz")
    np.testing.assert_array_equal(np.load(io.BytesIO(body))[name], -x)
    for value in (x.tolist(), {"x": x.tolist()}):
        code, body = post(json.dumps(value).encode(), "application/json; charset=utf-8")
        assert (code, json.loads(body)) == (200, {name: (-x).tolist()}), body
    for body, kind, words in [
        (npy(x[:4]), "application/x-npy", "input 'x' is float32 of shape (5,); given is float32"),
        (npy(x.astype("d")), "application/x-npy", "given is float64"),
        (b"nonsense", "application/x-npy", "the body is not application/x-npy"),
        (b"[[1], 2]", "application/json", "the body is not application/json"),
        (b'{"z": 1}', "application/json", "there is no 'x'; given are: z"),
        (b"", "text/plain", "content-type is 'text/plain'; allowed: application/x-npy"),
    ]:
        code, told = post(body, kind)
        assert code == 400 and words in json.loads(told)["error"], (code, told)
    assert handle.predict.remote({"x": x}).result()[name][1] == -1
    assert "RUNNING" in str(serve.status().applications["default"].status)
    # A stop: three requests wait for a fourth one in each replica.
    late = [threads.submit(ask, n) for n in range(6)]
    time.sleep(0.1)
    serve.delete("default")
    for each in late:
        each.result()
print("served")
serve.shutdown()
"""


def test_requests_are_answered_in_batches(tmp_path):
    assert "served" in run_in_cluster(SCRIPT, tmp_path).splitlines()
