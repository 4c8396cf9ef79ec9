"""``python -m bench formats``: networks in five number formats: time, memory and accuracy.

The tables of *Tuning of mixture-of-experts mixed-precision networks* (OpenCL Caffe, 2018), with the
delegate. Weights are random, so accuracy is compared with the float32 results of the stock CPU
kernels. One network is trained, `DIGITS`: its labels are known, too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import typer

import clgpu_delegate
from bench import mixed, networks
from bench.measure import device_medians, medians, relative_error, sentence_of
from bench.nets import quantized
from bench.report import Column, Report, TextTable, megabytes, name_column
from bench.session import Session
from bench.setting import Names, Setting, batch_sizes, check_known, split
from clgpu_delegate.tflite.inference import Array

DIGITS = "lenet5_digits"  # of examples/lenet.py, which trains it in some seconds
NETWORKS = ("lenet5", DIGITS, "alexnet", "imagenet_moe")

TUNED = "tuned"
_SCHEMES: Mapping[str, Literal["int16x8", "int8"]] = {"int16": "int16x8", "int8": "int8"}
# An int8 SOFTMAX has steps of 1/256. Random weights give most of a thousand classes less, so
# nearly all results would be 0, which says nothing about the format.
_FLOAT_IN_INT8 = {"alexnet": ("SOFTMAX",), "imagenet_moe": ("SOFTMAX",)}
FORMATS = ("fp32", "fp16", *_SCHEMES, TUNED)
_ALL = ",".join(FORMATS)


@dataclasses.dataclass(frozen=True)
class Row:
    """One network, batch and format; times are milliseconds of an inference.

    Attributes
    ----------
    format
        One of `FORMATS`. int16: activations of 16 bits and weights of 8; int8: both of 8; tuned: a
        plan of precisions, as `clgpu_delegate.tune` finds it for an error.
    claimed, nodes
        Nodes on the device, and nodes of the model. The other nodes run on the CPU, and only
        `host_ms` contains their time.
    device_ms
        The device's own time: many inferences in flight, nothing copied.
    host_ms
        From host array to host array, one inference at a time.
    peak_bytes
        Peak of all device memory.
    weight_bytes
        Device memory of constants.
    error
        The largest relative L2 error of the samples that neither tuning nor calibration saw,
        against the float network on the stock CPU kernels.
    top1
        Share of these samples with the same largest result as there.
    accuracy
        Share of the test set that is right; None where the network is not trained.
    note
        Why there are no numbers, what the plan contains, or what the quantised network computes
        in float.
    """

    network: str
    batch: int
    format: str
    claimed: int = 0
    nodes: int = 0
    device_ms: float | None = None
    host_ms: float | None = None
    peak_bytes: int | None = None
    weight_bytes: int | None = None
    error: float | None = None
    top1: float | None = None
    accuracy: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A network and the samples that it is judged by.

    Attributes
    ----------
    name, batch, model
        One of `NETWORKS`, and the bytes of its float .tflite file for such a batch.
    seen
        What tuning and calibration get.
    fresh
        What the results are compared on.
    labels
        The right classes of `fresh`, where they are known. The last batch may have more samples
        than labels; these are repetitions, and do not count.
    """

    name: str
    batch: int
    model: bytes
    seen: mixed.Samples
    fresh: mixed.Samples
    labels: Array | None = None

    @classmethod
    def of(cls, name: str, batch: int, count: int) -> Subject:
        """Make a network, with ``count`` samples for tuning.

        Raises
        ------
        ImportError
            If the digits are not installed.
        """
        if name == DIGITS:
            return cls._of_digits(batch, count)
        model = networks.build(name, batch)
        return cls(name, batch, model, *mixed.samples_of(model, count))

    @classmethod
    def _of_digits(cls, batch: int, count: int) -> Subject:
        # The digits are a part of scikit-learn, which only this network needs.
        from examples import digits, lenet  # noqa: PLC0415

        training, test = digits.split()
        batches = math.ceil(len(test.labels) / batch)
        return cls(
            DIGITS,
            batch,
            lenet.model(batch),
            _in_batches(lenet.enlarge(training), batch, count),
            _in_batches(lenet.enlarge(test), batch, batches),
            test.labels,
        )

    def results(self, session: Session) -> Array:
        """The results for `fresh`: ``(len(fresh), batch, classes)``."""
        results = []
        for sample in self.fresh:
            session.feed(sample)()
            results.append(session.real_outputs().reshape(self.batch, -1))
        return np.stack(results)

    def judge(self, got: Array, want: Array) -> dict[str, float | None]:
        """The fields of a row that tell how good results are."""
        counted = None if self.labels is None else len(self.labels)
        classes, wanted = (array.argmax(2).ravel()[:counted] for array in (got, want))
        right = None if self.labels is None else float((classes == self.labels).mean())
        return {
            "error": max(map(relative_error, got, want)),
            "top1": float((classes == wanted).mean()),
            "accuracy": right,
        }


def _in_batches(images: Array, batch: int, count: int) -> mixed.Samples:
    """So many batches of images, which are repeated where they are too few."""
    at = np.arange(count * batch) % len(images)
    return [[images[part]] for part in at.reshape(count, batch)]


class Search(NamedTuple):
    """How the tuned format is searched for: arguments of `clgpu_delegate.tune`."""

    max_error: float
    budget: float
    prefer: str


def load(subject: Subject, form: str, setting: Setting, search: Search) -> tuple[Session, str]:
    """Load a network in a format, and run it once.

    Returns
    -------
    session, str
        The network, and a note on it.

    Raises
    ------
    ClgpuError, RuntimeError, ValueError
        If the network cannot be converted, or does not run in this format on the device.
    """
    model, note = subject.model, ""
    options: dict[str, Any] = {"device": setting.device}
    if form in _SCHEMES:
        scheme = _SCHEMES[form]
        skip = _FLOAT_IN_INT8.get(subject.name, ()) if scheme == "int8" else ()
        model = quantized(model, setting.runtime, scheme=scheme, samples=subject.seen, skip=skip)
        note = f"{', '.join(skip)} in float" if skip else ""
    elif form == TUNED:
        plan = mixed.plan_of(model, subject.seen, setting, **search._asdict())
        options["precision"], note = plan, _contents_of(plan)
    else:
        options["precision"] = form
    session = setting.session(model, clgpu_delegate.load(**options)).feed(subject.fresh[0])
    session()
    explanation = session.delegate.explain()
    if not explanation.claimed:
        reasons = dict.fromkeys(node.reason for node in explanation.nodes)
        raise ValueError(f"no node runs on the device: {'; '.join(map(str, reasons))}")
    return session, note


def _contents_of(plan: clgpu_delegate.PrecisionPlan) -> str:
    counts = {"half": plan.half, "int8": plan.int8, "tf32": plan.tf32}
    parts = [f"{len(ids)} {name}" for name, ids in counts.items() if ids]
    stopped = "" if plan.complete else "; the search was stopped by its budget"
    return (", ".join(parts) or "all fp32") + stopped


def measure(
    subject: Subject, formats: Sequence[str], setting: Setting, search: Search
) -> list[Row]:
    """Measure a network in formats side by side; one that is refused is a row with a note."""
    sessions: dict[str, Session] = {}
    notes: dict[str, str] = {}
    for form in formats:
        try:
            sessions[form], notes[form] = load(subject, form, setting, search)
        except (clgpu_delegate.ClgpuError, RuntimeError, ValueError) as error:
            notes[form] = sentence_of(error)
    want = subject.results(setting.session(subject.model))
    judged = {
        form: subject.judge(subject.results(session), want) for form, session in sessions.items()
    }
    delegates = {form: session.delegate for form, session in sessions.items()}
    device = device_medians(delegates, **setting.timing(1 / 2))
    host = medians(sessions, **setting.timing(1 / 2))
    rows = []
    for form in formats:
        found: dict[str, Any] = {}
        if form in sessions:
            explanation = delegates[form].explain()
            found = {
                "claimed": explanation.claimed,
                "nodes": explanation.total,
                "device_ms": device[form] * 1e3,
                "host_ms": host[form] * 1e3,
                "peak_bytes": explanation.peak_bytes,
                "weight_bytes": sum(part.weights_bytes for part in explanation.partitions),
                **judged[form],
            }
        rows.append(Row(subject.name, subject.batch, form, note=notes[form], **found))
    return rows


def percent(heading: str, value: str, **options: Any) -> Column:
    """Return a column of shares."""
    return Column(f"{heading} %", value, ".1f", scale=100.0, **options)


COLUMNS = (
    name_column("network", "network"),
    Column("batch", "batch"),
    Column("format", "format", is_text=True),
    Column("nodes", lambda row: f"{row.claimed}/{row.nodes}" if row.nodes else ""),
    Column("device ms", "device_ms", ".3f"),
    Column("host ms", "host_ms", ".3f"),
    megabytes("device", "peak_bytes"),
    megabytes("weights", "weight_bytes"),
    Column("error", "error", ".1e"),
    percent("same top-1", "top1"),
    percent("accuracy", "accuracy", is_optional=True),
    name_column("note", "note", is_optional=True),
)


def run(
    setting: Setting,
    names: Names = None,
    formats: Annotated[str, typer.Option(help="Number formats, separated by commas.")] = _ALL,
    batch: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "1",
    samples: Annotated[
        int, typer.Option(min=2, help="That tuning and calibration get; as many check the results.")
    ] = 8,
    max_error: Annotated[
        float, typer.Option(help="Bound of the relative L2 error of the tuned format.")
    ] = 1e-3,
    search: Annotated[
        float, typer.Option(min=0.1, help="Seconds of the search for the tuned format.")
    ] = 60.0,
    prefer: mixed.Prefer = "time",
) -> list[Row]:
    """Measure networks in number formats: time, memory, and accuracy against the stock CPU.

    A row is red if the tuned format exceeds the bound, and yellow if a format was refused.

    Raises
    ------
    ValueError
        If a network, a format or a preference does not exist, a batch size is no number, or the
        bound is not above 0.
    """
    chosen, sizes = split(formats), batch_sizes(batch)
    check_known("network", names or (), NETWORKS)
    check_known("format", chosen, FORMATS)
    check_known("preference", [prefer], ("time", "memory"))
    if not 0 < max_error < math.inf:
        raise ValueError(f"max-error is {max_error:g}; allowed: a number above 0")
    title = f"{setting.title}, {samples} samples, tuned for errors up to {max_error:g}"
    report = Report[Row](setting, runtime=setting.runtime, threads=setting.cpu_threads)
    for name in names or NETWORKS:
        for size in sizes:
            with report.console.status(f"{name}, batch {size}"):
                try:
                    subject = Subject.of(name, size, samples)
                except ImportError as error:
                    report.say(f"{name}: left out: {error} (extra: examples)")
                    break
                rows = measure(subject, chosen, setting, Search(max_error, search, prefer))
            times = ", ".join(
                f"{row.format} " + (f"{row.device_ms:.3f} ms" if row.device_ms else "refused")
                for row in rows
            )
            report.add(rows, f"{name}, batch {size}: {times}", network=name)
    table = TextTable.of(title, report.rows, COLUMNS, lambda row: _style(row, max_error))
    return report.finish(table, device=setting.title)


def _style(row: Row, max_error: float) -> str:
    if row.error is None:
        return "yellow"
    return "red" if row.format == TUNED and row.error > max_error else ""
