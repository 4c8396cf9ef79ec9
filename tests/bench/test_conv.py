"""``python -m bench conv`` at tiny sizes, and the values computed from its times."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from typer.testing import CliRunner

from bench import conv, conv_report
from bench.__main__ import app
from bench.conv_layers import LAYERS, Case, Layer, select
from bench.conv_measure import Row, roots_of, wanted
from bench.peaks import Peaks
from bench.report import write_csv
from bench.setting import Setting
from clgpu_delegate import _core
from tests.limits import needs
from tests.runtimes import run_reference

PEAKS = Peaks(
    fma_flops=1e12, mma_f16_flops=8e12, mma_tf32_flops=0.0, copy_bytes=1e11,
    launch_seconds=1e-6, round_trip_seconds=1e-5, upload_bytes=1e9, download_bytes=1e9,
    transfer_seconds=1e-5,
)  # fmt: skip
LAYER = Layer(1, 4, 10, 12, 3, 8)
OTHER = Layer(2, 8, 10, 12, 3, 8)


def rows() -> list[Row]:
    """Two layers: winograd is best in the first and refuses the second."""
    return [
        Row("fp32", LAYER, "winograd_f2x2_3x3", default=False, ms=1.0, error=1e-5),
        Row("fp32", LAYER, "winograd_f4x4_3x3", default=True, ms=2.0, error=1e-4),
        Row("fp32", LAYER, "direct", ms=8.0, error=1e-6),
        Row("fp32", LAYER, "direct_wide", ms=4.0, error=1e-6),
        Row("fp32", LAYER, "(cuDNN)", ms=0.5),
        Row("fp32", OTHER, "direct", default=True, ms=3.0),
        Row("fp32", OTHER, "implicit_gemm_32x32", ms=6.0),
        Row("fp32", OTHER, "winograd_f4x4_3x3", note="filters are 1 x 1"),
        Row("fp16", OTHER, "direct", default=True, ms=1.0),
    ]


def test_layers_are_those_published():
    assert len(LAYERS) == 35
    assert [layer.number for layer in LAYERS] == list(range(1, 36))
    assert str(LAYERS[32]) == "16,2880,3968,3,16"
    assert sum(layer.flops for layer in LAYERS) == pytest.approx(3.65e12, rel=0.5)


def test_layers_are_chosen_by_numbers_and_ranges():
    assert select("") == LAYERS
    assert [layer.number for layer in select("3, 5-7,6")] == [3, 5, 6, 7]


@pytest.mark.parametrize("text", ["0", "36", "4-2", "x", "1-", "-3"])
def test_layer_that_does_not_exist_is_an_error(text):
    with pytest.raises(ValueError, match="layers are 1 to 35"):
        select(text)


def test_work_of_a_layer():
    assert LAYER.flops == 2 * 10 * 12 * 8 * 3 * 3 * 4
    assert LAYER.bytes(4) == 4 * (10 * 12 * (4 + 8) + 8 * 3 * 3 * 4)
    assert LAYER.scaled(0.25)[1:] == (4, 2, 3, 3, 8)


@pytest.mark.parametrize("layer", [LAYER, Layer(3, 3, 16, 7, 5, 3), Layer(4, 2, 2, 2, 9, 4)])
def test_model_of_a_layer_computes_its_reference(layer, runtime):
    case = Case.of(layer)
    (got,) = run_reference(case.model(), [case.tile], runtime)
    assert got.shape == (len(case.pixels), layer.filters)
    assert case.error(got) < 1e-5
    got[3] += 0.1
    assert case.error(got) > 1e-2, "an error shows"


def test_engines_are_told_from_their_variants():
    names = ["direct_wide", "direct", "implicit_gemm_128x64", "implicit_gemm_split", "naive"]
    names += ["winograd_f4x4_3x3", "winograd_f2x2_5x5_rows", "tensor_gemm_128x64"]
    assert list(roots_of(names).values()) == [
        "direct", "direct", "implicit_gemm", "implicit_gemm", "naive", "winograd", "winograd",
        "tensor_gemm",
    ]  # fmt: skip
    assert wanted("winograd_f4x4_3x3", ["direct", "winograd"])
    assert not wanted("directed", ["direct"])


def test_totals():
    sums = conv_report.totals(rows(), "fp32")
    assert sums is not None
    assert (sums.layers, sums.default_ms, sums.best_ms) == (2, 5.0, 4.0)
    assert (sums.peer_layers, sums.peer_ms) == (1, 0.5)
    assert sums.tuning_geomean == pytest.approx(2**0.5)
    assert sums.tuning_max == 2.0
    assert sums.over_direct == {
        "winograd": (1, pytest.approx(4.0), pytest.approx(4.0)),  # over the best variant of direct
        "implicit_gemm": (1, pytest.approx(0.5), pytest.approx(0.5)),
    }
    assert len(conv_report.sentences(sums, "fp32")) == 4
    assert conv_report.totals(rows(), "tf32") is None


def test_records_and_csv(tmp_path):
    path = tmp_path / "conv.csv"
    write_csv(path, conv_report.records(rows(), "a device", PEAKS))
    with path.open() as file:
        read = list(csv.DictReader(file))
    assert ",".join(read[0]) == (
        "device,precision,layer,C,H,W,filter,K,gflop,engine,default,ms,gflops,over_direct,"
        "peak_share,bound_ms,bound_share,max_error,note"
    )
    assert len(read) == len(rows())
    first, refused = read[0], read[7]
    assert (first["C"], first["H"], first["W"], first["filter"], first["K"]) == (
        "4", "10", "12", "3", "8",
    )  # fmt: skip
    assert float(first["gflops"]) == pytest.approx(LAYER.flops / 1e-3 / 1e9, rel=1e-3)
    assert float(first["over_direct"]) == 4.0
    assert float(first["peak_share"]) == pytest.approx(LAYER.flops / 1e-3 / 1e12, rel=1e-3)
    bound = 1e3 * max(LAYER.flops / 1e12, LAYER.bytes(4) / 1e11)
    assert float(first["bound_ms"]) == pytest.approx(bound, rel=1e-3)
    half = conv_report.records(rows()[-1:], "a device", PEAKS)[0]
    assert float(half["peak_share"]) == pytest.approx(OTHER.flops / 1e-3 / 8e12, rel=1e-3)
    assert (refused["ms"], refused["note"]) == ("", "filters are 1 x 1")


def test_table_plot_and_notes(tmp_path):
    table = conv_report.table_of(rows(), "fp32", PEAKS)
    first, second = ([*zip((c.heading for c in table.columns), row)] for row in table.rows)
    assert first[1:] == [
        ("C,H,W,filter,K", "4,10,12,3,8"), ("GFLOP", "6.912e-05"), ("bound ms", "6.91e-05"),
        ("default", "winograd_f4x4_3x3"), ("ms", "2"), ("best", "winograd_f2x2_3x3"), ("ms", "1"),
        ("GFLOP/s", "0"), ("of peak", "0%"), ("of bound", "0%"), ("x direct", "4.00"),
        ("error", "1e-04"), ("cuDNN ms", "0.5"), ("x cuDNN", "0.50"), ("direct ms", "4"),
        ("winograd ms", "1"), ("implicit_gemm ms", ""),
    ]  # fmt: skip
    assert dict(second)["cuDNN ms"] == dict(second)["winograd ms"] == ""
    refused = [*rows(), *2 * [Row("fp32", LAYER, "winograd_f4x4_3x3", note="too small")]]
    assert conv_report.notes(rows()) == ["fp32: winograd_f4x4_3x3: filters are 1 x 1 (1 layer)"]
    assert conv_report.notes(refused) == [
        "fp32: winograd_f4x4_3x3: too small (2 layers; other reasons: 1)"
    ]
    pytest.importorskip("matplotlib")
    conv_report.plot(tmp_path / "conv.png", rows(), "a device", PEAKS)
    assert (tmp_path / "conv.png").stat().st_size > 1000


def test_better_of_two_measurements_counts():
    other = dataclasses.replace(PEAKS, fma_flops=2e12, launch_seconds=2e-6)
    assert PEAKS.or_better(other) == dataclasses.replace(PEAKS, fma_flops=2e12)
    assert PEAKS.flops("fp16") == 8e12
    assert PEAKS.flops("tf32") == PEAKS.flops("fp32") == 1e12


@pytest.mark.slow
def test_every_engine_of_a_device_is_measured(device, tmp_path):
    needs.work_groups_of(64, "conv2d_direct")
    measured = conv.run(
        Setting(device=device, rounds=1, budget=0.01, csv=tmp_path / "conv.csv"),
        scale=0.01,
        precision="fp32,fp16",
        layers="1,12",
    )
    for precision, limit in (("fp32", 1e-4), ("fp16", 2e-2)):
        ran = [r for r in measured if r.precision == precision and r.ms is not None]
        assert {row.layer.number for row in ran} == {1, 12}
        assert sum(row.default for row in ran) == 2
        assert len(ran) > 2
        assert all(row.ms > 0 and row.error < limit for row in ran)
    assert (tmp_path / "conv.csv").exists()


def test_engine_that_fails_is_shown_with_the_reason(device):
    needs.work_groups_of(128, "conv2d_direct")
    _core.override_kernel_source("conv2d/naive.cl", "#error not today\n")
    try:
        measured = conv.run(
            Setting(device=device, rounds=1, budget=0.01),
            scale=0.01,
            precision="fp32",
            engines="direct,naive",
            layers="1",
        )
    finally:
        _core.override_kernel_source("conv2d/naive.cl", None)
    (failed,) = [row for row in measured if row.engine == "naive"]
    assert failed.ms is None
    assert "naive" in failed.note
    assert any(row.ms for row in measured if row.engine == "direct")


def test_chosen_engine_alone(device):
    measured = conv.run(
        Setting(device=device, rounds=1, budget=0.01),
        scale=0.01,
        precision="fp32",
        engines="default",
        layers="3",
    )
    (row,) = [r for r in measured if r.ms is not None]
    assert row.default


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--layers", "77"], "layers are 1 to 35"),
        (["--precision", "fp8"], "is no precision"),
        (["--engines", "magic", "--layers", "1", "--scale", "0.01"], "no layer has an engine"),
        (["--device", "no such device"], "no such device"),
        (["--csv", "no/such/folder.csv"], "there is no folder for no/such/folder.csv"),
    ],
)
def test_mistake_is_a_sentence(arguments, words):
    result = CliRunner().invoke(app, ["conv", "--no-torch", "--precision", "fp32", *arguments])
    assert result.exit_code != 0
    assert words in " ".join((result.output + str(result.exception)).replace("│", " ").split())
