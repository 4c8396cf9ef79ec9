"""A profile sums the recordings, and all its forms show the same."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sys
from collections import defaultdict

import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, DependencyError, FileError, Profile
from clgpu_delegate.profiling import layout, page, records, trace
from tests.python import made_profile


@pytest.fixture
def made() -> Profile:
    return made_profile.profile()


def test_node_times_are_medians_of_sums(made):
    conv, softmax = made.nodes
    assert [conv.node, softmax.node] == [0, 2]
    assert conv.device_seconds == pytest.approx(120e-6)  # 100, 120 and 140
    assert softmax.device_seconds == pytest.approx(30e-6)
    assert conv.host_seconds == pytest.approx(2e-6)
    assert conv.launches == 2
    assert conv.share == pytest.approx(0.8)
    assert conv.flops_per_second == pytest.approx(60_000 / 120e-6)
    assert conv.bytes_per_second == pytest.approx(12_000 / 120e-6)


def test_peak_share_is_that_of_the_tighter_bound(made):
    conv, softmax = made.nodes
    assert (conv.bound, softmax.bound) == ("arithmetic", "memory")
    assert conv.peak_share == pytest.approx(60e-6 / 120e-6)
    assert softmax.peak_share == pytest.approx(15e-6 / 30e-6)


def test_more_than_the_peak_has_its_definition_beside_it(made):
    assert "of peak:" not in str(made)
    slow = made_profile.profile(peaks={**made_profile.PEAKS, "copy_bytes": 1e8})
    text = " ".join(str(slow).split())
    assert "500 %" in text
    assert "above 100 % where data come from caches, or where a node needs fewer" in text


def test_launches_have_a_peak_share_of_their_own():
    data = made_profile.recorded()
    data["launches"][1]["flops"] = 15_000.0
    profile = Profile(data, made_profile.explanation(), made_profile.memory())
    assert profile.launches[1].peak_share == pytest.approx(15e-6 / 30e-6)
    assert profile.launches[0].peak_share is None  # an upload
    assert profile.to_dict()["launches"][1]["peak_share"] == profile.launches[1].peak_share
    unknown = Profile({**data, "peaks": None}, made_profile.explanation(), made_profile.memory())
    assert unknown.launches[1].peak_share is None


def test_parts_of_an_inference_add_up_to_it(made):
    totals = made.totals
    assert totals.wall_seconds == pytest.approx(315e-6)
    assert totals.kernel_seconds == pytest.approx(150e-6)
    assert totals.transfer_seconds == pytest.approx(25e-6)  # 5 of the download lie under a kernel
    assert totals.gap_seconds == pytest.approx((160 + 80 - 175) * 1e-6)
    assert totals.cpu_seconds == pytest.approx((10 + 60 - 0 + 5) * 1e-6)
    assert (totals.launches, totals.bytes_up, totals.bytes_down) == (3, 400, 400)
    assert [made.inference(which) for which in ("fastest", "median", "slowest")] == [0, 1, 2]


def test_inferences_that_nobody_timed_are_left_out():
    parts = (made_profile.explanation(), made_profile.memory())
    profile = Profile(made_profile.recorded(), *parts, invokes=made_profile.invokes()[1:])
    assert profile.inferences == 2
    assert {launch.inference for launch in profile.launches} == {1, 2}
    assert Profile(made_profile.recorded(), *parts).totals.wall_seconds == pytest.approx(300e-6)


def test_profile_of_nothing_says_what_to_do():
    parts = (made_profile.explanation(), made_profile.memory())
    with pytest.raises(ClgpuError, match=r"load\(profile=True\)"):
        Profile({**made_profile.recorded(0), "enabled": False}, *parts)
    with pytest.raises(ClgpuError, match=r"call invoke\(\) first"):
        Profile(made_profile.recorded(0), *parts)


def test_table_has_the_longest_node_first_and_the_parts(made):
    text = str(made)
    assert text.index("CONV_2D") < text.index("SOFTMAX")
    for words in ("315 us", "80.0 %", "50 %", "kernels", "400 B up", "CPU"):
        assert words in text.replace("0.315 ms", "315 us")
    assert max(map(len, text.splitlines())) <= 100


def test_dictionary_and_csv_have_the_same_nodes(made, tmp_path):
    data = json.loads(json.dumps(made.to_dict()))
    rows = list(csv.DictReader(io.StringIO(made.to_csv())))
    assert [int(row["node"]) for row in rows] == [node["node"] for node in data["nodes"]]
    assert float(rows[0]["device_seconds"]) == data["nodes"][0]["device_seconds"]
    path = tmp_path / "launches.csv"
    assert made.to_csv(path, launches=True) is None
    launches = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(launches) == len(data["launches"]) == 15
    assert launches[1]["global_size"] == "8x4"


def test_trace_keeps_the_rules_of_its_format(made, tmp_path):
    path = tmp_path / "t.json"
    made.to_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C", "s", "f"}
    assert all(event["pid"] > 0 and event.get("tid", 1) > 0 for event in events), (
        "0 is the kernel's"
    )
    timed = [event for event in events if event["ph"] != "M"]
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    assert min(event["ts"] for event in timed) == 0
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    open_until = defaultdict(list)  # a stack for each track: spans that overlap are nested
    for event in timed:
        if event["ph"] == "X":
            track = (event["pid"], event["tid"])
            assert track in named
            end = event["ts"] + event["dur"]
            while open_until[track] and open_until[track][-1] <= event["ts"] + 1e-6:
                open_until[track].pop()
            assert not open_until[track] or end <= open_until[track][-1] + 1e-6, event
            open_until[track].append(end)
    starts, ends = ({e["id"]: e["ts"] for e in timed if e["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys()
    assert len(starts) == len(made.launches)
    assert all(starts[key] <= ends[key] for key in starts)
    assert len([e for e in timed if e["name"] == "CPU nodes"]) == 3


def test_trace_has_the_memory_in_use(made):
    counts = [e["args"]["bytes"] for e in trace.events(made) if e["ph"] == "C"]
    assert counts == [3000, 2000, 0, 500, 0] * 3


def test_copies_that_overlap_take_tracks_of_their_own():
    assert trace.lanes([(0, 5), (3, 8), (5, 9), (8, 10), (4, 6)]) == [0, 1, 0, 1, 2]
    assert records.union([(3, 8), (0, 5), (9, 9), (10, 11)]) == [(0, 8), (10, 11)]


def test_page_is_one_file_whose_script_alone_may_run(made):
    text = page.text(made)
    assert not re.search(r"(src|href)=(?!\"#)", text.split('<script type="application/json"')[0])
    (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert f"'sha256-{digest}'" in policy
    assert text.count("</script>") == 2
    (data,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["tensors"]["1"]["name"] == made_profile.HOSTILE
    assert "<script>document" not in text


@pytest.mark.parametrize("form", ["to_html", "to_chrome_trace", "to_csv"])
def test_file_is_written_as_a_whole_or_not_at_all(made, tmp_path, form):
    good = tmp_path / "good"
    good.write_bytes(b"old")
    getattr(made, form)(good)
    assert good.stat().st_size > 100
    with pytest.raises(FileError, match="cannot write"):
        getattr(made, form)(tmp_path / "nowhere" / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_plot_is_a_picture_or_says_what_is_missing(made, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    made.plot(tmp_path / "p.svg")
    assert "<svg" in (tmp_path / "p.svg").read_text()
    with pytest.raises(FileError, match="its ending is none of"):
        made.plot(tmp_path / "p.tflite")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DependencyError, match=r"pip install 'clgpu_delegate\[profile\]'"):
        made.plot(tmp_path / "q.png")
    assert not (tmp_path / "q.png").exists()


def test_nodes_of_a_layer_do_not_overlap_and_edges_go_down():
    nodes = list(range(40))
    edges = [(i, j) for i in nodes for j in (i + 1, 3 * i + 2, 7 * i + 5) if j < 40]
    placed = layout.lay_out(nodes, edges)
    rows = defaultdict(list)
    for x, row in placed.places.values():
        rows[row].append(x)
        assert 0.5 <= x <= placed.width - 0.5
    for row in rows.values():
        row.sort()
        assert all(right - left >= 1 for left, right in zip(row, row[1:]))
    for (source, target), path in zip(edges, placed.paths):
        assert path[0] == placed.places[source]
        assert path[-1] == placed.places[target]
        assert [row for _, row in path] == list(range(path[0][1], path[-1][1] + 1))


def test_a_fork_is_symmetric_and_a_chain_is_straight():
    placed = layout.lay_out(range(5), [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)])
    x = {node: place[0] for node, place in placed.places.items()}
    assert x[0] == x[1] == x[4] == pytest.approx((x[2] + x[3]) / 2)
    assert layout.isotonic([3, 1, 2, 5], [1, 1, 2, 1]) == [2, 2, 2, 5]
    assert clgpu_delegate.Profile is Profile


def test_weights_beside_each_layer_leave_the_chain_straight():
    """Models of float16 unpack weights and biases in nodes of their own, two for each layer."""
    count = 30
    nodes, edges = [0], []  # 0 is the model's input
    for i in range(count):
        weights, bias, layer = 3 * i + 1, 3 * i + 2, 3 * i + 3
        nodes += [weights, bias, layer]
        edges += [(max(0, 3 * i), layer), (weights, layer), (bias, layer)]
    placed = layout.lay_out(nodes, edges)
    chain = [placed.places[node][0] for node in range(3, 3 * count + 1, 3)]
    assert max(chain) - min(chain) <= 1
    assert placed.width <= 6


def test_profiles_stand_side_by_side(made, tmp_path):
    before = made.to_dict()
    slow, gone = (row["node"] for row in before["nodes"][:2])
    before["nodes"][0]["device_seconds"] /= 3
    before["nodes"][0]["candidate"] = "old_engine"
    del before["nodes"][1]
    path = tmp_path / "before.json"
    path.write_text(json.dumps(before))
    change = made.against(path)
    by_node = {each.node: each for each in change.nodes}
    assert by_node[slow].ratio == pytest.approx(3)
    assert by_node[gone].seconds_before is by_node[gone].ratio is None
    rest = [each for each in change.nodes if each.node not in (slow, gone)]
    assert all(each.difference == 0 and each.engine == each.engine_before for each in rest)
    assert [abs(each.difference) for each in change.nodes] == sorted(
        (abs(each.difference) for each in change.nodes), reverse=True
    )
    assert f"old_engine -> {made.nodes[0].candidate}" in str(change)
    assert json.loads(json.dumps(change.to_dict()))["wall_seconds"] == made.totals.wall_seconds
    assert made.against(made).nodes[0].difference == 0
    assert made.against(before) == change


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "cannot read the profile"), ("{", "is not a profile; `clgpu"),
     ("{}", "is not a profile"), ("[]", "is not"),
     ('{"nodes": [], "device": "d", "totals": {"wall_seconds": "x"}}', "is not a profile")],
)  # fmt: skip
def test_file_that_is_no_profile_is_told(made, tmp_path, text, message):
    path = tmp_path / "before.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FileError, match=message):
        made.against(path)
