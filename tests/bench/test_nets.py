"""``python -m bench nets``: the smallest network, and wrong arguments."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from typer.testing import CliRunner

from bench import nets, networks, peers_torch
from bench.__main__ import app
from bench.report import TextTable
from bench.setting import Setting


@pytest.mark.slow
def test_network_is_measured_in_each_precision_and_batch(device, runtime, tmp_path):
    path = tmp_path / "nets.csv"
    rows = nets.run(
        Setting(device=device, runtime=runtime, threads=1, rounds=2, budget=0.1, csv=path),
        ["lenet5"],
        batch="1,2",
        precision="fp32,fp16,int8",
    )
    assert [(row.batch, row.precision) for row in rows] == [
        (1, "fp32"), (1, "fp16"), (1, "int8"), (2, "fp32"), (2, "fp16"), (2, "int8"),
    ]  # fmt: skip
    for row in rows:
        assert row.claimed == row.nodes == 13
        assert min(row.cpu_ms, row.host_ms, row.device_ms, row.load_ms, row.launches) > 0
        assert row.torch_ms is None
        assert row.error < {"fp32": 1e-5, "fp16": 2e-2, "int8": 0.2}[row.precision]
        assert row.exact is (True if row.precision == "int8" and row.batch == 1 else None)
    with path.open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == ["device", *(field.name for field in dataclasses.fields(nets.Row))]
    assert [row["precision"] for row in read] == ["fp32", "fp16", "int8"] * 2


def test_table_compares_with_pytorch_where_it_was_measured():
    row = nets.Row("lenet5", 1, "fp32", 13, 13, 6, 2.0, 1.0, 0.5, 0.25, 9.0, 0, 1e-7, 10, 20)
    alone = dataclasses.replace(row, network="espcn", torch_ms=None)
    table = TextTable.of("t", [row, alone], nets.COLUMNS)
    headings = [column.heading for column in table.columns]
    cells = dict(zip(headings, zip(*table.rows)))
    assert cells["x CPU"] == ("2.00", "2.00")
    assert cells["x PyTorch"] == ("0.50", "")
    shown = TextTable.of("t", [alone], nets.COLUMNS).columns
    assert [c.heading for c in shown] == [h for h in headings if "PyTorch" not in h]


def test_networks_of_pytorch_are_ours():
    assert set(peers_torch.NETWORKS) <= set(networks.NETWORKS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lenet6"], "'lenet6' is no network"),
        (["lenet5", "--precision", "fp64"], "'fp64' is no precision"),
        (["lenet5", "--batch", "0"], "'0' is no batch size"),
        (["lenet5", "--batch", "many"], "'many' is no batch size"),
    ],
)
def test_mistake_is_a_sentence(arguments, words):
    result = CliRunner().invoke(app, ["nets", "--no-torch", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())
