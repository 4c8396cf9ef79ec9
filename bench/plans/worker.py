"""Makes the plans of networks as text, in a process whose OpenCL devices are profiles."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

from bench.plans import paper
from bench.plans.making import Planner
from bench.plans.models import Models, ways
from bench.plans.text import plan_text


def main() -> None:
    """Read the task from standard input, write plans to standard output, both as JSON.

    The task lists networks, the probe's facts of each device in the driver's order, and whether
    weights and ranges are real ones.
    """
    task = json.load(sys.stdin)
    driver = ctypes.CDLL(os.environ["CLGPU_OPENCL_LIBRARY"])
    driver.paper_unknown_kernels.restype = ctypes.c_char_p
    indices = paper.indices(task["profiles"])
    made: dict[str, Any] = {}
    for network in task["networks"]:
        models = Models(network, real=task["real"])
        planners = [Planner(models, str(index)) for index in indices]
        blocks: list[dict[str, list[str]]] = [{} for _ in indices]
        for way in ways(network):
            for planner, plans in zip(planners, blocks):
                plans[way.title] = plan_text(planner.plan(way))
        made[network] = [
            {
                "blocks": plans,
                "unknown": driver.paper_unknown_kernels(position).decode().splitlines(),
            }
            for position, plans in enumerate(blocks)
        ]
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
