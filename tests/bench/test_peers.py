"""``python -m bench peers``: what becomes of peers that crash, hang, or are missing."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import networks
from bench.__main__ import app
from bench.peers import charts, command, onnx_net, page, registry, report, session
from bench.peers.energy import Meter
from bench.peers.peer import Means, nchw, nhwc
from bench.peers.session import FAILED, MEASURED, MISSING, UNSUITED, Plan, Row
from bench.peers.work import INT8, Made, Output, Work
from tests.bench import fake_peers

LENET = Work("lenet5", 1, "fp32", network="lenet5")


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    """One work with all kinds of fake peers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_TURN_LIMIT_S", 3.0)
        means = Means("", "cpu", "", "libOpenCL.so.1", 1)
        plan = Plan(means, rounds=3, turn_s=0.02, load_s=120)
        ((work, found),) = session.measure([LENET], fake_peers.PEERS, plan)
    assert work is LENET
    return {row.peer: row for row in found}


def test_all_peers_have_a_row_in_their_order(rows):
    assert list(rows) == [peer.name for peer in fake_peers.PEERS]


def test_good_peer_is_measured(rows):
    row = rows["good"]
    assert (row.status, row.images, row.reference) == (MEASURED, 1, "plain loops")
    assert [len(v) for v in (row.rounds_ms, row.many_rounds_ms, row.ratios)] == [3, 3, 3]
    assert row.device_rounds_ms == ()
    assert 0 < row.p10_ms <= row.median_ms <= row.p90_ms
    assert row.load_ms < row.first_ms
    assert row.cold_ms > row.load_ms
    assert row.host_bytes > 10e6
    assert row.error < 1e-4
    assert row.ratios == (1.0, 1.0, 1.0)
    assert row.version


def test_wrong_result_is_no_time(rows):
    row = rows["wrong"]
    assert (row.status, row.error) == (MEASURED, pytest.approx(1, rel=1e-3))
    assert report.is_wrong(row)
    fast = dataclasses.replace(row, ratio=5.0)
    assert not report.losses([rows["good"], fast]).rows


def test_own_ways_are_no_losses(rows):
    fast = dataclasses.replace(rows["good"], ratio=2.0)
    assert report.losses([fast]).rows
    assert not report.losses([dataclasses.replace(fast, is_ours=True)]).rows
    ours = {peer.name for peer in registry.PEERS if peer.is_ours}
    assert ours == {f"clgpu_delegate ({way})" for way in ("Interpreter", "CompiledModel", "Runner")}


def test_quantised_networks_may_differ_by_amplified_steps(rows):
    row = dataclasses.replace(rows["good"], error=0.3)
    assert report.is_wrong(row)
    assert not report.is_wrong(dataclasses.replace(row, precision=INT8))
    assert report.is_wrong(dataclasses.replace(row, precision=INT8, error=0.6))


def test_rounds_that_differ_are_marked(rows):
    steady = dataclasses.replace(rows["good"], rounds_ms=(1.0, 1.2, 1.1))
    noisy = dataclasses.replace(steady, rounds_ms=(1.0, 1.3, 1.1))
    assert (report.is_noisy(steady), report.is_noisy(noisy)) == (False, True)
    assert report.of_work([noisy]).rows[0][-1] == "noisy"


def test_crash_is_told_with_the_last_words(rows):
    row = rows["crashing"]
    assert row.status == FAILED
    assert row.note == "the process ended with signal 9: these are my last words"


def test_hang_is_cut_off(rows):
    row = rows["hanging"]
    assert row.status == FAILED
    assert row.note == "after 1 rounds: no answer within 3 s: one moment"


def test_refusal_is_told(rows):
    assert rows["refusing"].status == FAILED
    assert rows["refusing"].note == "unsupported operator SOFTMAX"


def test_missing_peer_is_told_with_its_install_line(rows):
    assert (rows["missing"].status, rows["missing"].note) == (
        MISSING, "pip install no-such-package",
    )  # fmt: skip
    table = report.not_installed(rows.values())
    assert table.rows == [("missing", "pip install no-such-package")]


def test_unsuited_peer_is_told(rows):
    row = rows["unsuited"]
    assert (row.status, row.note) == (UNSUITED, "it does not read .tflite files")
    kept = report.left_out(rows.values()).rows
    assert [cells[1] for cells in kept] == ["crashing", "hanging", "refusing", "unsuited"]


def test_page_and_chart_show_what_was_measured(rows):
    all_rows = [*rows.values()]
    text = page.render(all_rows, {"device": "<one>"})
    assert "&lt;one&gt;" in text
    assert "these are my last words" in text
    assert "pip install no-such-package" in text
    svg = charts.draw(all_rows)
    assert svg.startswith("<svg")
    assert "wrong (wrong result)" in svg
    assert not charts.draw([rows["missing"]])
    assert all(table.markdown() in _markdown(all_rows) for table in report.tables(all_rows))


def _markdown(rows: list[Row]) -> str:
    return "\n".join(table.markdown() for table in report.tables(rows))


def test_losses_come_first_and_the_largest_first(rows):
    slow = [
        dataclasses.replace(rows["good"], peer=name, ratio=ratio)
        for name, ratio in (("a", 1.5), ("b", 3.0), ("c", 0.9))
    ]
    first, *_ = report.tables([rows["good"], *slow])
    assert first.title == "Where others are faster"
    assert [cells[2] for cells in first.rows] == ["b", "a"]


def test_reference_of_int8_has_real_numbers(tmp_path):
    made = session.make(Work("lenet5", 1, INT8, network="lenet5"), tmp_path, 1)
    assert made == Made.read(tmp_path)
    (image,) = made.inputs()
    assert (image.dtype, image.shape) == (np.int8, (1, 32, 32, 1))
    (output,) = made.outputs
    assert output.scale > 0
    assert made.expected().shape == (10,)
    assert 0.9 < made.expected().sum() < 1.1
    stored = made.expected() / output.scale + output.zero_point
    np.testing.assert_allclose(made.real([stored]), made.expected())
    with pytest.raises(ValueError, match=r"outputs of \[9\] elements instead of \[10\]"):
        made.real([stored[:9]])


def test_batch_and_file_and_layer(tmp_path):
    file = tmp_path / "model.tflite"
    file.write_bytes(networks.build("lenet5", 2))
    works = command.works_of(
        ["lenet5", str(file)], batches=[1, 4], precisions=["fp32", INT8], layers="2", scale=0.01
    )
    assert [work.label for work in works] == [
        "lenet5, fp32", "lenet5, int8", "lenet5, batch 4, fp32", "lenet5, batch 4, int8",
        "model, fp32", "layer 2: 32,14,20,3,32, fp32", "layer 2: 32,14,20,3,32, int8",
        "layer 2: 32,14,20,3,32, batch 4, fp32", "layer 2: 32,14,20,3,32, batch 4, int8",
    ]  # fmt: skip
    images = []
    for number, work in enumerate((works[4], works[7])):
        folder = tmp_path / str(number)
        folder.mkdir()
        images.append(session.make(work, folder, 1).images)
    assert images == [2, 4]


def test_opencl_of_a_package_is_named_to_the_loader():
    means = Means("", "cpu", "", "/lib/libintelocl.so", 1)
    assert set(means.opencl_environment.values()) == {"/lib/libintelocl.so"}
    assert not dataclasses.replace(means, library="libOpenCL.so.1").opencl_environment


def test_onnx_file_has_the_same_results(tmp_path):
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    reference = pytest.importorskip("onnx.reference")
    made = session.make(LENET, tmp_path, 1)
    (result,) = reference.ReferenceEvaluator(str(made.onnx)).run(
        None, {"image": nchw(made.inputs())[0]}
    )
    np.testing.assert_allclose(made.real([result]), made.expected(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "expected"),
    [(224, 3, 2, (0, 1)), (224, 3, 1, (1, 1)), (7, 5, 1, (2, 2)), (13, 1, 2, (0, 0))],
)
def test_padding_is_that_of_tensorflow(extent, kernel, stride, expected):
    assert onnx_net.pads_of(extent, kernel, stride, "SAME") == expected
    assert onnx_net.pads_of(extent, kernel, stride, "VALID") == (0, 0)


def test_networks_without_a_builder_are_told():
    unet = Work("unet", 1, "fp32", network="unet")
    for name in ("ONNX Runtime CPU", "tinygrad (OpenCL)", "PyTorch (eager)"):
        (peer,) = (each for each in registry.PEERS if each.name == name)
        assert "has no builder" in peer.unsuited(unet)
        assert not peer.unsuited(LENET)


def test_layouts():
    image = np.arange(24.0).reshape(1, 2, 3, 4)
    (turned,) = nchw([image])
    assert turned.shape == (1, 4, 2, 3)
    np.testing.assert_array_equal(nhwc([turned])[0], image)


def test_output_of_floats_is_itself():
    assert Output((2,)).real(np.float32([1, 2])).tolist() == [1, 2]


def test_importing_the_worker_and_all_peers_loads_no_library():
    code = (
        "import sys; import bench.peers.worker, bench.peers.registry; "
        "print(*{'clgpu_delegate', 'ai_edge_litert', 'tflite_runtime', 'cv2', 'openvino', 'torch',"
        " 'onnxruntime'} & set(sys.modules))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert not done.stdout.strip()


def test_peers_have_different_names_and_install_lines():
    names = [peer.name for peer in registry.PEERS]
    assert len(set(names)) == len(names)
    assert all("install" in peer.install for peer in registry.PEERS)


def test_choice_keeps_the_first_peer():
    chosen = [peer.name for peer in registry.chosen(["openvino"])]
    assert chosen == [registry.PEERS[0].name, "OpenVINO CPU", "OpenVINO GPU"]
    with pytest.raises(ValueError, match="no peer's name contains 'nobody'"):
        registry.chosen(["nobody"])


def test_energy_of_a_counter_that_wraps(tmp_path):
    package = tmp_path / "intel-rapl:0"
    package.mkdir()
    (package / "max_energy_range_uj").write_text("10000000")
    (package / "energy_uj").write_text("9000000")
    (tmp_path / "intel-rapl:0:0").mkdir()  # a part of the package
    meter = Meter(tmp_path, nvml=False)
    meter.start()
    (package / "energy_uj").write_text("1000000")
    assert meter.joules() == pytest.approx(2.0)
    nothing = Meter(tmp_path / "nowhere", nvml=False)
    nothing.start()
    assert (nothing.joules(), nothing.sources) == (None, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vgg"], "'vgg' is no network"),
        (["nowhere.tflite"], "there is no file nowhere.tflite"),
        (["lenet5", "--precision", "fp8"], "'fp8' is no precision"),
        (["lenet5", "--peers", "nobody"], "no peer's name contains"),
        (["lenet5", "--batch", "0"], "is no batch size"),
    ],
)
def test_wrong_requests_are_told(words, said):
    result = CliRunner().invoke(app, ["peers", *words])
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


@pytest.mark.slow
def test_command_measures_ours_and_stock(device, tmp_path):
    files = [tmp_path / name for name in ("p.json", "p.md", "p.html", "plots")]
    words = [
        part for pair in zip(("--json", "--markdown", "--html", "--plots"), files) for part in pair
    ]
    request = ["peers", "lenet5", "--peers", "clgpu,XNNPACK", "--precision", "fp32,int8",
               "--rounds", "2", "--budget", "0.05", "--device", device, "--commit", "0",
               *map(str, words)]  # fmt: skip
    result = CliRunner().invoke(app, request)
    assert result.exit_code == 0, result.output
    data = json.loads(files[0].read_text())
    assert data["what"] == "peers"
    assert (
        "ai-edge-litert" in data["peers"]["software"]
        or "tflite-runtime" in data["peers"]["software"]
    )
    ours = [row for row in data["rows"] if row["peer"] == registry.PEERS[0].name]
    assert [(row["precision"], row["status"]) for row in ours] == [
        ("fp32", MEASURED), (INT8, MEASURED),
    ]  # fmt: skip
    assert all(row["device_rounds_ms"] and row["device_bytes"] for row in ours)
    assert ours[1]["error"] == 0
    assert "clgpu_delegate (Interpreter)" in files[1].read_text()
    assert files[2].read_text().count("<svg") == 2
    assert len(list(files[3].glob("*.svg"))) == 2
