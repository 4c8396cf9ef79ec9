"""A model behind HTTP with Ray Serve: ``python -m examples.serve model.tflite``.

POST an input without its batch axis to the address that it prints, as an array (.npy) or as JSON;
GET it for names, shapes and dtypes. ``/-/healthz`` tells whether it is well, and the second address
is for Prometheus. Ctrl-C or SIGTERM stop it after the requests that it has taken.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path

import ray
from ray import serve

import clgpu_delegate


def run(arguments: argparse.Namespace) -> None:
    """Start a node of Ray with this machine's devices, and serve until a signal comes."""
    devices = arguments.device or None
    ray.init(
        address="local",
        resources=clgpu_delegate.ray.resources(devices),
        _metrics_export_port=arguments.metrics_port,
        log_to_driver=False,
        logging_level="error",
    )
    serve.start(
        http_options={"host": arguments.host, "port": arguments.port},
        logging_config={"log_level": "ERROR"},
    )
    application = clgpu_delegate.ray.deployment(
        arguments.model.read_bytes(),
        replicas=arguments.replicas,
        devices=devices,
        batch=arguments.batch,
        wait_s=arguments.wait_ms / 1e3,
        queued=arguments.queued,
        precision=arguments.precision,
    )
    serve.run(application)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # in the place of Ray's own handlers
        signal.signal(number, lambda *_: stop.set())
    print(f"http://{arguments.host}:{arguments.port}/", flush=True)
    print(f"http://{arguments.host}:{arguments.metrics_port}/metrics", flush=True)
    stop.wait()
    serve.delete("default")  # waits for requests under way
    serve.shutdown()
    ray.shutdown()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", action="append", help="index or name; may be repeated")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--batch", type=int, help="rows of an inference; measured by default")
    parser.add_argument("--wait-ms", type=float, default=5, help="what a request waits for others")
    parser.add_argument("--queued", type=int, default=-1, help="then 503; -1: any number")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "tf32"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--metrics-port", type=int, default=8080)
    run(parser.parse_args())


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray ends the process that answers HTTP if it needs longer to start; busy machines take more
    # than the 5 seconds that it allows.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "50")
    main()
