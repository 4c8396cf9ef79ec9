"""Figures from files: records, marks, renderers, charts, and the committed files."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from bench import (
    conv_measure,
    formats,
    mixed,
    nets,
    placement,
    plan_digests,
    pynet,
    recording,
    stream,
)
from bench.__main__ import app
from bench.conv_layers import LAYERS
from bench.figures import marks, tables
from bench.figures.charts import CHARTS, stamp_of
from bench.figures.command import Book, run
from bench.figures.source import Source, Sources
from bench.figures.tables import BY_BATCH, CPU, FIGURES, GPU, NETWORKS
from bench.peaks import Peaks
from bench.plans import snapshots
from bench.record import ROOT, Record, RecordError, Sheet, commit_of, read

ON_GPU = {
    "name": "Made Up 100", "platform": "Made Up", "driver": "1.2.3", "type": "gpu",
    "host": "Some CPU", "cores": 16,
}  # fmt: skip
ON_CPU = {**ON_GPU, "name": "Some CPU", "platform": "Some OpenCL", "type": "cpu", "cores": 2}
STOCK = {"runtime": "some_runtime 1.0", "threads": 4}
WITH_TORCH = {**STOCK, "torch": "9.8.7"}
PEAKS = Peaks(6e13, 6e14, 3e14, 4e12, 1e-6, 1e-5, 5e10, 5e10, 1e-5)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with made-up files, a page with all figures, and nothing rendered."""
    for name, record in made_up().items():
        path = tmp_path / "bench" / "figures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(record.text())
    (tmp_path / "docs").mkdir()
    places = "\n".join(f"<!-- figures: {name} -->\n<!-- /figures -->\n" for name in FIGURES)
    (tmp_path / "docs" / "all.md").write_text(f"# All\n\n{places}")
    (tmp_path / "README.md").write_text("# Nothing\n")
    return tmp_path


def record_of(what: str, rows: list[Any], *, device: Any, peers: Any, **more: Any) -> Record:
    return Record(
        what=what, command=f"python -m bench {what}", commit="0123456789", date="2026-01-02",
        device=device, peers=peers, options={}, plans=more.pop("plans", {}),
        rows=[dataclasses.asdict(row) for row in rows], **more,
    )  # fmt: skip


def net(name: str, batch: int, precision: str) -> nets.Row:
    """PyTorch is faster only with LeNet-5, the stock CPU with no network."""
    torch_ms = None if precision == "int8" else (0.5 if name == "lenet5" else 2.0) * batch
    return nets.Row(
        name, batch, precision, 30, 30, 29, cpu_ms=20.0 * batch, host_ms=1.5 * batch,
        device_ms=1.0 * batch, torch_ms=torch_ms, load_ms=100.0, compiled=0, error=1.5e-6,
        arena_bytes=10**6, peak_bytes=10**7, exact=True if precision == "int8" else None,
    )  # fmt: skip


def made_up() -> dict[str, Record]:
    precisions = nets.PRECISIONS
    layers = [
        conv_measure.Row(p, layer, engine, default=engine == "some", ms=ms, error=None)
        for p in precisions
        for layer in LAYERS
        for engine, ms in (("some", 1.0), ("(cuDNN)", 0.5 if layer.number == 7 else 2.0))
    ]
    budgets = [
        pynet.Row("unconstrained", "fp32", None, 9.0, 8.0, 10**9, 10**9, 10**8, 0.0, None),
        pynet.Row("unconstrained", "fp16", None, 5.0, 4.0, 5 * 10**8, 5 * 10**8, 10**8),
        pynet.Row("1/4 of the peak", "fp16", 125 * 10**6, 46.0, 45.0, 10**8, 10**8, 10**8),
        pynet.Row("PyTorch", "fp16", device_ms=30.0, counted=2 * 10**9, psnr=58.6),
    ]
    rates = [
        stream.Row("unet", 16, "fp32", "stream", 12.6, 4.2, 900.0, 100.0, 200.0, many, 800.0, True)
        for many in (400.0, 250.0)
    ]
    plans = [
        mixed.Row("lenet5", 1, 3.0, 2.0, 1.0, 1e-6, error, 8e-4, 20.0, 10.0, 11.0, 5, 0, 9, 0, 0, 0,
                  8.0, True)
        for error in (2e-3, math.inf)
    ]  # fmt: skip
    kinds = [
        formats.Row("lenet5", 1, "fp32", 13, 13, 2.0, 2.1, 10**6, 10**5, 1e-6, 1.0, 0.98),
        formats.Row("lenet5", 1, "int16", note="refused"),
    ]
    placed = [placement.Row("lenet5", 0.01, 0.05, 0.01, 0.01, 0.02, 0.06, "cpu", "cpu", 0.5)]
    gpu: Any = {"device": ON_GPU, "peers": WITH_TORCH}
    cpu: Any = {"device": ON_CPU, "peers": STOCK}
    return {
        f"{GPU}/nets.json": record_of(
            "nets", [net(n, b, p) for n in NETWORKS for b in (1, 16) for p in precisions], **gpu
        ),
        f"{GPU}/batches.json": record_of(
            "nets", [net(n, b, p) for n in BY_BATCH for b in (2, 4) for p in precisions], **gpu
        ),
        f"{GPU}/int8.json": record_of(
            "nets",
            [net(n, 1, p) for n in ("mobilenet_v1", "resnet50") for p in ("fp32", "fp16", "int8")],
            **gpu,
        ),
        f"{GPU}/conv.json": record_of("conv", layers, peaks=dataclasses.asdict(PEAKS), **gpu),
        f"{GPU}/pynet.json": record_of("pynet", budgets, **gpu),
        f"{GPU}/mixed.json": record_of("mixed", plans, **gpu),
        f"{GPU}/stream.json": record_of("stream", rates, device=ON_GPU, peers={}),
        f"{CPU}/nets.json": record_of(
            "nets", [net("resnet50", 1, p) for p in ("fp32", "int8")], **cpu
        ),
        f"{CPU}/mixed.json": record_of("mixed", plans, **cpu),
        f"{CPU}/formats.json": record_of("formats", kinds, **cpu),
        f"{CPU}/placement.json": record_of("placement", placed, **cpu),
    }


# Files of measurements.


def test_command_writes_what_was_measured_and_how(tmp_path, device):
    path = tmp_path / "conv.json"
    arguments = ["conv", "--layers", "12", "--scale", "0.01", "--engines", "default", "--no-torch"]
    arguments += ["--precision", "fp32", "--rounds", "1", "--budget", "0.01", "--device", device]
    result = CliRunner().invoke(app, [*arguments, "--json", str(path), "--commit", "abc"])
    assert result.exit_code == 0, result.output
    record = read(path)
    assert (record.what, record.commit) == ("conv", "abc")
    assert record.options["scale"] == 0.01
    assert record.options["layers"] == "12"
    assert "json" not in record.options
    assert record.command == (
        "python -m bench conv --scale 0.01 --precision fp32 --engines default --layers 12 "
        f"--device {device} --rounds 1 --budget 0.01 --no-torch"
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)
    assert {"name", "platform", "driver", "type", "host", "cores"} == set(record.device)
    assert Peaks(**record.peaks).fma_flops > 0
    (row,) = [r for r in record.typed(conv_measure.Row) if r.ms is not None]
    assert row.default
    assert not list(tmp_path.glob("*.part"))


def test_rows_are_lines_and_numbers_are_short():
    rows = [recording.Row("a", 1 / 3, 2e-7 / 3, math.inf), recording.Row("b", 1e9 / 3, 4, 5.5)]
    record = record_of("recording", rows, device=ON_GPU, peers={})
    text = record.text()
    assert '{"network": "a", "off_us": 0.33333, "on_us": 6.6667e-08, "all_us": null},\n' in text
    assert '{"network": "b", "off_us": 333330000.0, "on_us": 4, "all_us": 5.5}\n' in text
    assert text.count("\n") == len(rows) + len(json.loads(text)) + 3
    assert '"peaks"' not in text


def test_rows_of_one_kind_come_back(tmp_path):
    path = tmp_path / "nets.json"
    path.write_text(made_up()[f"{GPU}/nets.json"].text())
    assert read(path).typed(nets.Row)[0] == net(NETWORKS[0], 1, "fp32")


def test_file_of_another_version_is_a_sentence(tmp_path):
    rows = [recording.Row("lenet5", 60.0, 61.0, 120.0)]
    record = record_of("recording", rows, device=ON_GPU, peers={})
    row = {k: v for k, v in record.rows[0].items() if k != "on_us"}
    with pytest.raises(RecordError, match="differ from those of today in on_us; measure again: py"):
        dataclasses.replace(record, rows=[row]).typed(recording.Row)
    row = {**record.rows[0], "more": 1}
    with pytest.raises(RecordError, match="in more; measure again"):
        dataclasses.replace(record, rows=[row]).typed(recording.Row)
    budget = made_up()[f"{GPU}/pynet.json"]
    row = {k: v for k, v in budget.rows[0].items() if k != "launches"}
    assert dataclasses.replace(budget, rows=[row]).typed(pynet.Row)[0].launches is None
    path = tmp_path / "x.json"
    for text, words in (
        (None, "there is no .*x.json; docs/benchmarks.md says"),
        ("{", "x.json cannot be read"),
        ("[]", "x.json has format None, not 1"),
        (record.text().replace('"format": 1', '"format": 99'), "has format 99, not 1"),
        ('{"format": 1, "what": "nets"}', "is no file of measurements"),
    ):
        if text is not None:
            path.write_text(text)
        with pytest.raises(RecordError, match=words):
            read(path)


def test_what_is_missing_is_told_before_anything_is_measured(tmp_path):
    arguments: dict[str, Any] = {"command": "", "options": {}, "commit": "abc"}
    with pytest.raises(RecordError, match="there is no folder for"):
        Sheet.open(tmp_path / "none" / "x.json", "nets", **arguments)
    with pytest.raises(RecordError, match="name it with --commit or in CLGPU_COMMIT"):
        commit_of(tmp_path)


def test_commit_tells_of_changes(tmp_path, monkeypatch):
    answers = {"status": "", "rev-parse": "0123456789\n"}
    done = lambda command, **_: SimpleNamespace(stdout=answers[command[3]])  # noqa: E731
    monkeypatch.setattr("bench.record.subprocess.run", done)
    assert commit_of(tmp_path) == "0123456789"
    answers["status"] = " M kernels/x.cl"
    assert commit_of(tmp_path) == "0123456789-dirty"


# Marks in pages.


def test_places_are_filled_again_and_again():
    text = "# T\n\n<!-- figures: a -->\nold\n<!-- /figures -->\ntext\n"
    text += "<!-- figures: b -->\n<!-- /figures -->\n"
    assert marks.names(text, "page") == ["a", "b"]
    once = marks.fill(text, {"a": "A", "b": "B"})
    assert once == (
        "# T\n\n<!-- figures: a -->\n\nA\n\n<!-- /figures -->\ntext\n"
        "<!-- figures: b -->\n\nB\n\n<!-- /figures -->\n"
    )
    assert marks.fill(once, {"a": "A", "b": "B"}) == once


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!-- figures: a -->\n", "the figures a do not end"),
        ("<!-- /figures -->\n", "an end of figures without a beginning"),
        ("<!-- figures: a -->\n<!-- figures: b -->\n<!-- /figures -->\n", "end before b"),
        (2 * "<!-- figures: a -->\n<!-- /figures -->\n", "two places for the figures a"),
        ("text <!-- figures: a -->\n", "is no mark"),
        ("<!-- figures a -->\n", "is no mark"),
    ],
)
def test_bad_marks_are_a_sentence(text, words):
    with pytest.raises(marks.MarkError, match=words):
        marks.names(text, "page")


# Renderers.


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_each_figure_says_where_it_comes_from(root, name):
    text = FIGURES[name].text(Sources(root))
    words = " ".join(text.split())
    assert "0123456789" in text
    assert "2026-01-02" in text
    assert "Made Up 100" in words or "Some OpenCL on 2 cores of Some CPU" in words
    assert "nan" not in text
    assert "None" not in text
    if "|" in text:
        assert "1.2.3" in text, "the driver"
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1


def test_tables_have_the_numbers_of_their_files(root):
    sources = Sources(root)
    networks = FIGURES["networks"].text(sources)
    assert (
        "| ResNet50 | 1.00 / 1.00 / 1.00 | 2.00 / 2.00 / 2.00 | 1.50 / 1.50 | 20.0 | 2e-6 / 2e-6 |"
        in networks
    )
    assert "ResNet50 16.0 / 16.0 / 16.0 (32.0 / 32.0 / 32.0)." in " ".join(networks.split())
    assert "4 threads of Some CPU" in networks
    assert "| 9x9 (1) | 1.00 (2.00), " in FIGURES["conv-layers"].text(sources)
    highlights = " ".join(FIGURES["highlights"].text(sources).split())
    assert "35.0 ms in fp32 (cuDNN 68.5)" in highlights
    assert "2.5 to 4.0 times" in highlights
    assert highlights.count(" - ") == 4
    assert "| LeNet-5, batch 16, fp32 | 16.0 | PyTorch | 8.00 | 2.00 |" in (
        losses := FIGURES["losses"].text(sources)
    )
    assert "| PyNET, 1/4 of the peak, fp16 | 45.0 | PyTorch | 30.0 | 1.50 |" in losses
    assert "PyNET, unconstrained" not in losses
    assert "| 1 of 35 convolution layers, tf32 | 1.00 | cuDNN | 0.500 | 2.00 |" in losses
    assert "stock CPU" not in losses


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0312, "0.0312"), (1.4549, "1.45"), (9.999, "10.0"), (745.2, "745"), (0.1, "0.100"),
     (1448, "1448"), (None, ""), (0, "0")],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert tables.number(value) == text


def test_row_that_is_missing_is_a_sentence(root):
    source = Source(f"{GPU}/nets.json", root)
    words = "nets.json has no row of network vgg, batch 1; measure again: python -m bench nets --js"
    with pytest.raises(RecordError, match=words):
        source.row(nets.Row, network="vgg", batch=1)


def test_file_that_was_not_finished_is_a_sentence(root):
    path = root / "bench" / "figures" / GPU / "conv.json"
    record = read(path)
    path.write_text(dataclasses.replace(record, rows=record.rows[:-4]).text())
    with pytest.raises(
        RecordError, match=r"conv\.json lacks 2 of 35 layers in fp16; measure again"
    ):
        FIGURES["conv-layers"].text(Sources(root))


# Charts.


def test_charts_carry_the_digests_of_their_files(root):
    pytest.importorskip("matplotlib")
    sources = Sources(root)
    for chart in CHARTS:
        svg = chart.svg(sources)
        assert stamp_of(svg) == chart.stamp(sources)
        assert all(name in stamp_of(svg) for name in chart.files)
        assert "Made Up 100" in svg, "text stays text"
        assert svg == chart.svg(sources), "no date, no random names"
        assert not re.search(r"\d{4}-\d\d-\d\dT", svg)
    assert stamp_of("<svg/>") == ""


def test_every_chart_is_shown(root):
    sources = Sources(root)
    text = "".join(figure.text(sources) for figure in FIGURES.values())
    assert "(docs/images/networks.svg)" in text, "in the README"
    assert all(f"(images/{chart.name}.svg)" in text for chart in CHARTS)


# The command.


def test_pages_and_charts_are_written_and_compared(root, capsys):
    pytest.importorskip("matplotlib")
    assert set(Book(root).compare().differences) == {
        "docs/all.md", *(chart.path.as_posix() for chart in CHARTS),
    }  # fmt: skip
    assert run(root, write=True) == 0
    assert "written: docs/images/networks.svg" in capsys.readouterr().out
    assert run(root) == 0
    assert run(root, write=True) == 0
    assert "nothing to write" in capsys.readouterr().out

    page = root / "docs" / "all.md"
    text = page.read_text()
    page.write_text(text.replace("1.00 / 1.00 / 1.00", "0.90 / 1.00 / 1.00", 1))
    assert run(root) == 1
    out = capsys.readouterr().out
    assert "docs/all.md differs from its files; python -m bench figures --write renews it" in out
    assert re.search(r"^-\| LeNet-5 \| 0\.90", out, re.MULTILINE)

    page.write_text(text)
    file = root / "bench" / "figures" / GPU / "conv.json"
    file.write_text(file.read_text().replace('"ms": 1.0', '"ms": 1.25'))
    assert set(Book(root).compare().differences) == {"docs/all.md", "docs/images/roofline.svg"}


def test_nothing_is_written_where_something_cannot_be_rendered(root, capsys):
    (root / "bench" / "figures" / GPU / "stream.json").unlink()
    before = (root / "docs" / "all.md").read_text()
    assert run(root, write=True) == 1
    assert "there is no bench/figures/nvidia_h200/stream.json" in capsys.readouterr().out
    assert (root / "docs" / "all.md").read_text() == before
    assert not (root / "docs" / "images").exists()


def test_figures_that_do_not_exist_are_a_sentence(root, capsys):
    (root / "README.md").write_text("<!-- figures: speed -->\n<!-- /figures -->\n")
    (root / "docs" / "bad.md").write_text("<!-- figures: networks -->\n")
    assert run(root, write=True) == 1
    out = capsys.readouterr().out
    assert "README.md: there are no figures speed" in out
    assert "docs/bad.md: the figures networks do not end" in out


def test_file_of_other_plans_is_told(root, monkeypatch):
    path = root / "bench" / "figures" / GPU / "nets.json"
    digests = {"resnet50": "1", "lenet5": "1"}
    path.write_text(dataclasses.replace(read(path), plans=digests).text())
    monkeypatch.setattr(plan_digests, "digests", lambda *_: {"resnet50": "1", "lenet5": "1"})
    assert Book(root).old() == []
    monkeypatch.setattr(plan_digests, "digests", lambda *_: {"resnet50": "2", "lenet5": "1"})
    assert Book(root).old() == [
        "bench/figures/nvidia_h200/nets.json was measured with other plans of resnet50; "
        "measure again: python -m bench nets --json bench/figures/nvidia_h200/nets.json"
    ]


def snapshot(*plans: str) -> str:
    return "\n\n".join(["head", *plans]) + "\n"


def test_digests_are_those_of_the_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    device = {"name": "NVIDIA H200", "platform": "NVIDIA CUDA", "type": "gpu"}
    assert plan_digests.digests(device, ["resnet50"]) == {}
    path = tmp_path / "nvidia_h200" / "resnet50.txt"
    path.parent.mkdir()
    counts = "nodes 30 of 30, partitions 1, launches 29"
    path.write_text(snapshot(f"fp32, batch 1\n  {counts}\n  peak 5, arena 4, weights 1 bytes"))
    before = plan_digests.digests(device, ["resnet50", "lenet5"])
    assert list(before) == ["resnet50"]
    assert plan_digests.digests(ON_GPU, ["resnet50"]) == {}, "a device without a profile"

    rows = [net("resnet50", 1, "fp32"), net("lenet5", 1, "fp32")]
    without = record_of("nets", rows, device=device, peers={})
    record = dataclasses.replace(without, plans=before)
    assert plan_digests.changed(record) == plan_digests.changed(without) == []

    path.write_text(path.read_text().replace("arena 4", "arena 5"))
    assert plan_digests.changed(record) == ["resnet50"]
    assert plan_digests.changed(without) == [], "launches alone do not tell"
    path.write_text(path.read_text().replace("launches 29", "launches 31"))
    assert plan_digests.changed(without) == ["resnet50"]


def test_launches_of_pynet_are_compared_where_there_are_no_digests(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    device = {"name": "NVIDIA H200", "platform": "NVIDIA CUDA", "type": "gpu"}
    row = pynet.Row("unconstrained", "fp16", launches=470)
    record = record_of("pynet", [row], device=device, peers={})
    path = tmp_path / "nvidia_h200" / "pynet_12mp.txt"
    path.parent.mkdir()
    for launches, old in ((470, []), (471, ["pynet_12mp"])):
        counts = f"nodes 1 of 1, partitions 1, launches {launches}"
        path.write_text(snapshot(f"unconstrained, fp16\n  {counts}\n  peak 5"))
        assert plan_digests.changed(record) == old


# The committed files.


def test_committed_pages_and_charts_are_those_of_their_files():
    outcome = Book().compare()
    assert not outcome.problems, "\n".join(outcome.problems)
    assert not outcome.differences, "\n".join(outcome.differences.values())


def test_pages_tell_which_plans_have_changed_since_the_measurement():
    """A device to measure again on is not always at hand."""
    book = Book()
    pages = "".join(page.read_text(encoding="utf-8") for page in book.pages())
    sources = Sources()
    for name in book.files():
        if changed := sources[name].changed:
            assert f"{sources[name].when}" in pages, f"{name}: {changed}"


def test_every_figure_has_a_place():
    places = Book().places()
    assert {name for names in places.values() for name in names} == set(FIGURES)
    assert places[ROOT / "README.md"][0] == "networks", "with the first chart"
