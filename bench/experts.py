"""``python -m bench experts``: mixtures of experts, with all of them and with those chosen."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterator
from typing import Annotated, Any

import typer

import clgpu_delegate
from bench import networks
from bench.measure import device_median_s, medians
from bench.report import Column, Report, TextTable, name_column
from bench.session import Session
from bench.setting import Names, Precision, Setting, check_known, split
from tests.tolerance import relative_l2


@dataclasses.dataclass(frozen=True)
class Row:
    """One network and batch; times are milliseconds of an inference, host array to host array.

    Attributes
    ----------
    form
        How the file has the experts: ``"dense"``, ``"gathered"`` by index, or as ``"branches"`` of
        an IF each.
    all_ms
        Of the dense file, with every expert computed (``experts="dense"``).
    dense_ms, sparse_ms
        Of this file, with the option ``experts`` as the name says; `dense_ms` is `all_ms`
        where the file is dense. In a file with branches, the host reads the conditions then.
    stock_ms
        Of this file with the stock CPU kernels; 0 if they were not asked for.
    times
        `all_ms` by `sparse_ms`.
    all_device_ms, device_ms
        `all_ms` and `sparse_ms` without copies: the device's own time, many in flight. On CPUs the
        inputs are zeros then, so all samples pick the same experts.
    device_times
        `all_device_ms` by `device_ms`.
    error
        Of the results with ``"sparse"``: relative L2, against those with ``"dense"``.
    """

    network: str
    form: str
    experts: int
    chosen: int
    batch: int
    precision: str
    stock_ms: float
    all_ms: float
    dense_ms: float
    sparse_ms: float
    times: float
    all_device_ms: float
    device_ms: float
    device_times: float
    error: float


FORMS = ("dense", "gathered", "branches")


def models(
    name: str, batch: int, forms: Collection[str], sizes: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Yield these forms of a network that it has; the dense one first, and always."""
    for form in FORMS:
        if form == "dense" or (form in forms and (form != "gathered" or name == "decoder_moe")):
            yield form, networks.build(name, batch, form=form, **sizes)


def measure(
    name: str,
    setting: Setting,
    *,
    batch: int,
    precision: str,
    stock: bool,
    forms: Collection[str] = FORMS,
    **sizes: int,
) -> list[Row]:
    """Measure forms of a network side by side."""
    sessions: dict[tuple[str, str], Session] = {}
    by_form = dict(models(name, batch, forms, sizes))
    for form, model in by_form.items():
        inputs = networks.sample_inputs(model, seed=1)
        for experts in ("dense", "sparse"):
            delegate = clgpu_delegate.load(
                device=setting.device, precision=precision, experts=experts
            )
            sessions[form, experts] = setting.session(model, delegate).feed(inputs)
        if stock:
            sessions[form, "stock"] = setting.session(model).feed(inputs)
    seconds = medians(sessions, **setting.timing())

    def device_ms(form: str, experts: str) -> float:
        # Without shared memory no result takes the place of the inputs, which choose experts.
        delegate = clgpu_delegate.load(
            device=setting.device, precision=precision, experts=experts, share_memory=False
        )
        session = setting.session(by_form[form], delegate).feed(sessions[form, experts].inputs)
        session()
        return device_median_s(delegate, **setting.timing(1 / 4)) * 1e3

    all_device_ms = device_ms("dense", "dense")
    rows = []
    for form in by_form:
        ms = {experts: seconds[form, experts] * 1e3 for experts in ("dense", "sparse")}
        all_ms = seconds["dense", "dense"] * 1e3
        sparse_device_ms = device_ms(form, "sparse")
        outputs = [sessions[form, experts].output() for experts in ("sparse", "dense")]
        rows.append(
            Row(
                network=name,
                form=form,
                experts=sizes["experts"],
                chosen=sizes["chosen"],
                batch=batch,
                precision=precision,
                stock_ms=seconds.get((form, "stock"), 0.0) * 1e3,
                all_ms=all_ms,
                dense_ms=ms["dense"],
                sparse_ms=ms["sparse"],
                times=all_ms / ms["sparse"],
                all_device_ms=all_device_ms,
                device_ms=sparse_device_ms,
                device_times=all_device_ms / sparse_device_ms,
                error=relative_l2(*outputs),
            )
        )
    return rows


COLUMNS = (
    name_column("network", "network"),
    Column("file", "form"),
    Column("experts", lambda row: f"{row.chosen} of {row.experts}"),
    Column("batch", "batch"),
    Column("", "precision"),
    Column("stock ms", lambda row: f"{row.stock_ms:.2f}" if row.stock_ms else ""),
    Column("all ms", "all_ms", ".2f"),
    Column("file, dense", "dense_ms", ".2f"),
    Column("sparse ms", "sparse_ms", ".2f"),
    Column("x", "times", ".2f"),
    Column("device: all", "all_device_ms", ".3f"),
    Column("sparse", "device_ms", ".3f"),
    Column("x", "device_times", ".2f"),
    Column("error", "error", ".1e"),
)


def run(
    setting: Setting,
    names: Names = None,
    precision: Precision = "fp32",
    batch: Annotated[str, typer.Option(help="Samples of an input, separated by commas.")] = "1,8",
    experts: Annotated[int, typer.Option(min=1, help="Experts.")] = 16,
    chosen: Annotated[int, typer.Option(min=1, help="Experts of a sample.")] = 4,
    width: Annotated[int, typer.Option(min=1, help="Of a decoder's token.")] = 2048,
    hidden: Annotated[int, typer.Option(min=1, help="Width within a decoder's expert.")] = 1024,
    size: Annotated[int, typer.Option(min=67, help="Height and width of images.")] = 227,
    forms: Annotated[
        str,
        typer.Option(help="Of the file, separated by commas; the dense one is always measured."),
    ] = ",".join(FORMS),
    stock: Annotated[bool, typer.Option(help="Also measure the stock CPU kernels.")] = False,
) -> list[Row]:
    """Measure mixtures of experts, with all experts and with those that samples have chosen.

    Raises
    ------
    ValueError
        If a network or a form does not exist, or more experts are chosen than there are.
    """
    names = names or sorted(networks.MIXTURES)
    check_known("network", names, tuple(networks.MIXTURES))
    check_known("form", split(forms), FORMS)
    if chosen > experts:
        raise ValueError(f"{chosen} experts are chosen of {experts}; allowed: 1 to {experts}")
    report = Report[Row](setting, runtime=setting.runtime)
    for name in names:
        own = {"width": width, "hidden": hidden} if name == "decoder_moe" else {"size": size}
        sizes = {"experts": experts, "chosen": chosen, **own}
        for each in split(precision):
            for samples in map(int, split(batch)):
                start = time.perf_counter()
                rows = measure(
                    name, setting,
                    batch=samples, precision=each, stock=stock, forms=split(forms), **sizes,
                )  # fmt: skip
                elapsed = time.perf_counter() - start
                report.add(rows, f"{name}, batch {samples}, {each}: {elapsed:.1f} s", network=name)
    return report.finish(TextTable.of(setting.title, report.rows, COLUMNS), on=setting.title)
