"""Workers that misbehave, and the search among nodes."""

from __future__ import annotations

import io

import numpy as np
import pytest

from clgpu_delegate.capsule.outcome import Outcome, kernels_that_fail, outcome_of_one
from clgpu_delegate.capsule.protocol import send
from clgpu_delegate.capsule.shrinking import minimise
from clgpu_delegate.capsule.trials import Bench


@pytest.fixture
def run(tmp_path):
    """Run a model with a shell script as the worker; ``answer`` has the CPU's results."""
    message = io.BytesIO()
    send(message, {"stage": "expected"}, {"out0": np.ones(4, np.float32)})
    (tmp_path / "answer").write_bytes(message.getvalue())

    def run(script: str, timeout: float = 60):
        # Like a worker, it first waits for the request.
        wait = "head -c 1 >/dev/null"
        command = ["sh", "-c", f"{wait}; answer='{tmp_path / 'answer'}'; {script}"]
        with Bench(
            "any", reference=False, tolerance=0.1, timeout=timeout, command=command
        ) as bench:
            return bench.run(b"", [np.zeros(4, np.float32)], {})

    return run


def test_worker_that_hangs_on_the_device_is_ended(run):
    trial = run('cat "$answer"; exec sleep 60', timeout=2)
    assert trial.outcome == Outcome("hang", "after 2 s")
    assert np.array_equal(trial.expected[0], np.ones(4))


def test_worker_that_dies_on_the_device_tells_how(run):
    trial = run('cat "$answer"; echo help >&2; kill -ABRT $$')
    assert trial.outcome == Outcome("crash", "SIGABRT")
    assert "help" in trial.log


def test_worker_that_dies_before_does_not_blame_the_device(run):
    assert run("exit 3").outcome.kind == "unusable"
    assert run("exec sleep 60", timeout=0.3).outcome.kind == "unusable"


@pytest.mark.parametrize("culprits", [{0}, {41}, {7, 8}, {3, 77}, {1, 40, 99}])
def test_search_finds_the_smallest_set(culprits):
    tried = []

    def fails(nodes):
        tried.append(nodes)
        return culprits <= set(nodes)

    assert set(minimise(range(100), fails)) == culprits
    assert len(tried) < 200


def test_numbers_are_compared_by_their_kind():
    one, nan = np.ones(8, np.float32), np.full(8, np.nan, np.float32)
    codes, index = np.arange(8, dtype=np.int8), np.arange(8)
    assert not outcome_of_one(one * 1.05, one, 0.1).failed
    assert outcome_of_one(one * 1.2, one, 0.1).relative_l2 == pytest.approx(0.2)
    assert not outcome_of_one(nan, nan, 0.1).failed
    assert outcome_of_one(nan, one, 0.1).failed
    assert outcome_of_one(one, nan, 0.1).failed
    assert not outcome_of_one(codes + np.int8(1), codes, 0.1).failed
    assert outcome_of_one(codes + np.int8(1), codes, 0).failed
    assert outcome_of_one(codes + np.int8(2), codes, 0.1).wrong == 8
    assert outcome_of_one(index + 1, index, 0.1).failed
    assert outcome_of_one(one[:4], one, 0.1).failed


def test_failures_are_alike_by_what_they_are_and_not_by_their_words():
    def error(text, *signs):
        return Outcome("error", text, signs=signs)

    launch = "OpenCLError", "clEnqueueNDRangeKernel", "CL_OUT_OF_RESOURCES (-5)"
    read = "OpenCLError", "clEnqueueReadBuffer", "CL_OUT_OF_RESOURCES (-5)"
    assert error("of node 3", *launch).is_like(error("of 'x'", *launch))
    assert not error("of node 3", *launch).is_like(error("of node 3", *read))
    assert error("of an older version").is_like(error("of node 3", *launch))

    def faults(*kernels):
        told = [{"kernel": kernel, "kind": "fails", "why": "no"} for kernel in kernels]
        return kernels_that_fail([{"kernel": "add/a", "kind": "group", "why": "64"}, *told])

    assert faults() is None
    assert faults("softmax/rows").signs == ("softmax/rows",)
    assert faults("softmax/rows").is_like(faults("conv2d/direct", "softmax/rows"))
    assert not faults("softmax/rows").is_like(faults("softmax/groups"))
