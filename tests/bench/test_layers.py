"""``python -m bench layers``: the smallest network, its geometry, and wrong arguments."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from typer.testing import CliRunner

from bench import layers, networks
from bench.__main__ import app
from bench.peaks import Peaks
from bench.peers_torch import Product
from bench.setting import Setting
from clgpu_delegate.tflite.reader import parse

PEAKS = Peaks(1e12, 8e12, 4e12, 1e12, 1e-6, 1e-6, 1e9, 1e9, 1e-6)


def products(name: str, batch: int = 1) -> list[Product]:
    graph = parse(networks.build(name, batch)).main
    found = (layers.product_of(graph, operator) for operator in graph.operators)
    return [product for product in found if product is not None]


def test_rows_of_a_network(device, runtime, tmp_path):
    path = tmp_path / "layers.csv"
    rows = layers.run(
        Setting(device=device, runtime=runtime, threads=1, rounds=2, budget=0.1, csv=path),
        ["lenet5"],
        batch="2",
        precision="fp32,int8",
    )
    for precision in ("fp32", "int8"):
        some = [row for row in rows if row.precision == precision]
        convolutions = [row for row in some if row.op == "CONV_2D"]
        assert [row.node for row in convolutions] == [0, 3, 6]
        assert convolutions[1].shape == "2x14x14x6 -> 16, 5x5"
        assert all(row.own_us > 0 and row.bound_us > 0 for row in convolutions)
        assert all(row.lost_us == row.own_us - row.bound_us for row in convolutions)
        assert all(row.lost_us is None for row in some if row.op == "SOFTMAX")
    with path.open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == ["device", *(field.name for field in dataclasses.fields(layers.Row))]
    assert len(read) == len(rows)


def test_flops_are_those_of_the_network():
    net = networks.NETWORKS["mobilenet_v2"].make(2)
    assert sum(product.flops for product in products("mobilenet_v2", 2)) == 2 * net.macs


def test_sizes_are_those_of_the_file():
    first, deep, *_ = products("mobilenet_v2")
    assert (first.op, first.stride, first.same, first.activation) == (
        "CONV_2D", (2, 2), True, "RELU6",
    )  # fmt: skip
    assert (first.src, first.dst) == ((1, 224, 224, 3), (1, 112, 112, 32))
    assert str(deep) == "1x112x112x32 -> 32, 3x3"


def test_bounds_are_products_or_bytes():
    wide = Product("FULLY_CONNECTED", (1000, 1000), (1000, 1000), (1000, 1000))
    assert layers.bound_us(wide, "fp32", PEAKS) == pytest.approx(2e9 / 1e12 * 1e6)
    assert layers.bound_us(wide, "int8", PEAKS) == pytest.approx(2e9 / 16e12 * 1e6)
    thin = Product("FULLY_CONNECTED", (1, 1000), (1000, 1000), (1, 1000))
    assert layers.bound_us(thin, "fp16", PEAKS) == pytest.approx(2 * 1.002e6 / 1e12 * 1e6)


def test_the_largest_loss_comes_first():
    row = layers.Row("n", 1, "fp16", "CONV_2D", "", "direct", 0, 2, 5.0, 4.0, 1.0)
    slow = dataclasses.replace(row, peer_us=None)
    other = dataclasses.replace(row, peer_us=None, bound_us=None)
    assert (row.lost_us, slow.lost_us, other.lost_us) == (2.0, 8.0, None)
    assert layers.by_loss([other, row, slow]) == [slow, row, other]
    assert layers.totals([row, other]) == (
        "launches 20 us; of these, convolutions and products 10 us, by their bounds 2 us; "
        "10 us where cuDNN takes 8 us"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lenet6"], "'lenet6' is no network"),
        (["lenet5", "--precision", "fp8"], "'fp8' is no precision"),
        (["lenet5", "--batch", "0"], "'0' is no batch size"),
    ],
)
def test_mistakes(arguments, words):
    result = CliRunner().invoke(app, ["layers", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())
