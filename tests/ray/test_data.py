"""Ray Data on two nodes: every result is there once, whatever is killed."""

from __future__ import annotations

import pytest

from tests.ray.clusters import run_in_cluster

pytestmark = pytest.mark.slow

SCRIPT = """
ROWS = 3000


class Slow(clgpu_delegate.ray.Predictor):
    def __call__(self, batch):
        time.sleep(0.1)
        ids = batch["id"]
        x = ids[:, None].astype(np.float32) * np.ones((1, 5), np.float32)
        node = ray.get_runtime_context().get_node_id()
        told = {"pid": np.full(len(ids), os.getpid()), "node": np.full(len(ids), node)}
        return {**super().__call__({"id": ids, "x": x}), **told}


# The helper: bytes go through the object store, each actor has a device of its own.
given = ray.data.from_numpy([np.full((30, 5), n, np.float32) for n in range(4)])
results = clgpu_delegate.ray.map_batches(
    given, model, concurrency=2, batch_size=16, devices=[0, 0], most=4,
    inputs={"x": "data"}, outputs=OUTPUTS,
)
ys = np.concatenate([b["y"] for b in results.iter_batches(batch_size=30)])
assert sorted(ys[:, 0]) == sorted(-np.repeat(np.arange(4.0), 30)), ys
print("helper", flush=True)

settings = {"model": ray.put(model), "devices": [0, 0], "most": 4, "outputs": OUTPUTS}
rows = ray.data.range(ROWS, override_num_blocks=30).map_batches(
    Slow, fn_constructor_kwargs=settings, batch_size=50, num_cpus=0, resources={"opencl": 1},
    compute=ray.data.ActorPoolStrategy(size=2),
)
ids, by_node, killed, replaced = [], {}, None, None
head = cluster.head_node.node_id
for batch in rows.iter_batches(batch_size=50, prefetch_batches=0):
    assert np.array_equal(batch["y"][:, 0], -batch["id"].astype(np.float32))
    ids += batch["id"].tolist()
    for node, pid in zip(batch["node"], batch["pid"]):
        by_node.setdefault(str(node), set()).add(int(pid))
    if killed is None and head in by_node and len(ids) >= 200:
        (killed,) = by_node[head]
        os.kill(killed, signal.SIGKILL)
    elif killed and replaced is None and second.node_id in by_node and len(ids) >= 800:
        cluster.remove_node(second)
        replaced = cluster.add_node(**NODE)
assert killed and replaced, by_node
assert sorted(ids) == list(range(ROWS)), "each row once"
assert len(by_node[head]) == 2, "another actor in the place of the one that was killed"
print("kills")
"""
OUTPUTS = """
with clgpu_delegate.Runner(model, device=0) as runner:
    OUTPUTS = {runner.outputs[0].name: "y"}
"""


def test_every_row_is_there_once_though_an_actor_and_a_node_are_killed(short_folder):
    printed = run_in_cluster(OUTPUTS + SCRIPT, short_folder).splitlines()
    assert {"helper", "kills"} <= set(printed)  # Ray tells of what was killed, too
