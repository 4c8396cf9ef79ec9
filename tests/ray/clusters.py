"""A Ray cluster of two nodes on this machine, in a process of its own."""

from __future__ import annotations

from tests.python.subprocesses import assert_succeeds, run_python

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import ray, ray.data
from ray.cluster_utils import Cluster
import clgpu_delegate
from tests.python import models

NODE = {"num_cpus": 1, "resources": {"opencl": 1}, "object_store_memory": 100 << 20}
model = models.chain((1, 5), ("NEG",))
cluster = Cluster(initialize_head=True, head_node_args=NODE)
second = cluster.add_node(**NODE)
ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
ray.data.DataContext.get_current().enable_progress_bars = False
"""
END = """
ray.shutdown()
cluster.shutdown()
"""


def run_in_cluster(script: str, folder: str) -> str:
    """Run a script with the names of `PRELUDE`; return what it prints.

    Both nodes are this machine, so its devices, the first one twice, are for the actors of both.
    """
    result = run_python(
        PRELUDE + script + END,
        timeout=240,
        TMPDIR=folder,  # with the locks of devices
        RAY_USAGE_STATS_ENABLED="0",
    )
    assert_succeeds(result)
    return result.stdout
