"""``python -m bench reuse``: frames of a camera, computed anew each time and with ``reuse``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import typer

from bench import networks
from bench.measure import medians, relative_error
from bench.report import Column, Report, TextTable, name_column
from bench.setting import Names, Precision, Setting, check_known, split
from clgpu_delegate import Runner
from tests.runtimes import resolve_runtime

# Networks of images, and what one of their frames is large enough for.
SIZES: dict[str, dict[str, int]] = {
    "espcn": {},
    "mobilenet_v1": {},
    "mobilenet_v2": {},
    "pynet": {"size": 64},
    "unet": {"size": 256},
}

_LEVEL = 2 / 255  # of a camera's 256, where a network takes -1 to 1
_NOISE = 1.0  # levels: standard deviation of a pixel
_FRAMES = 16  # different ones of a scene
_STEP = 3  # columns that a pan, or the object, moves from one frame to the next


@dataclasses.dataclass(frozen=True)
class Row:
    """One network and scene; times are milliseconds of a frame.

    Attributes
    ----------
    scene
        ``"static"``: sensor noise only. ``"object"``: a square of an eighth of the height that
        moves. ``"pan"``: the whole image moves.
    plain_ms, reuse_ms
        Without and with the option ``reuse``.
    times
        `plain_ms` by `reuse_ms`.
    computed
        Share of the arithmetic that was not left out.
    error
        Of the result for the first frame, after the last ones: relative L2, against that without.
    """

    network: str
    scene: str
    precision: str
    tolerance: float
    plain_ms: float
    reuse_ms: float
    times: float
    computed: float
    error: float


def scene(name: str, image: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """Return the frames of a scene whose background is an image of ``[1, height, width, c]``."""
    random = np.random.default_rng(seed)
    height, width = image.shape[1:3]
    side = max(1, height // 8)
    frames = []
    for number in range(_FRAMES):
        frame = image.copy()
        if name == "pan":
            frame = np.roll(frame, number * _STEP, axis=2)
        if name == "object":
            column = number * _STEP % max(1, width - side)
            top = (height - side) // 2
            frame[:, top : top + side, column : column + side] = 1
        frame += random.normal(0, _NOISE * _LEVEL, frame.shape)
        frames.append(frame.astype(np.float32))
    return frames


SCENES = ("static", "object", "pan")


def measure(
    name: str, setting: Setting, *, precision: str, levels: float, **options: Any
) -> Iterator[Row]:
    """Measure the scenes of a network, with and without the option, in turns."""
    model = networks.build(name, 1, **SIZES[name])
    (image,) = networks.sample_inputs(model, seed=1)
    tolerance = levels * _LEVEL
    make = functools.partial(
        Runner, model, runtime=resolve_runtime(setting.runtime), device=setting.device,
        precision=precision, **options,
    )  # fmt: skip
    with make() as plain, make(reuse=tolerance) as reusing:
        for kind in SCENES:
            frames = scene(kind, image)

            def ahead(runner: Runner, frames: list[np.ndarray] = frames) -> Callable[[], object]:
                order = itertools.cycle(frames)
                return lambda: runner.run(next(order))

            def counts() -> tuple[int, float]:
                (entry,) = reusing.stats()["reuse"]
                return entry["inferences"], entry["inferences"] * entry["computed"]

            reusing.run(frames[-1])
            before = counts()
            seconds = medians({"plain": ahead(plain), "reuse": ahead(reusing)}, **setting.timing())
            after = counts()
            yield Row(
                network=name,
                scene=kind,
                precision=precision,
                tolerance=tolerance,
                plain_ms=seconds["plain"] * 1e3,
                reuse_ms=seconds["reuse"] * 1e3,
                times=seconds["plain"] / seconds["reuse"],
                computed=(after[1] - before[1]) / (after[0] - before[0]),
                error=relative_error(reusing.run(frames[0]), plain.run(frames[0])),
            )


COLUMNS = (
    name_column("network", "network"),
    Column("scene", "scene"),
    Column("", "precision"),
    Column("plain ms", "plain_ms", ".2f"),
    Column("reuse ms", "reuse_ms", ".2f"),
    Column("x", "times", ".2f"),
    Column("computed", "computed", ".0%"),
    Column("error", "error", ".1e"),
)


def run(
    setting: Setting,
    names: Names = None,
    precision: Precision = "fp32",
    levels: Annotated[
        float, typer.Option(min=0, help="Tolerance, in steps of an image of 8 bits.")
    ] = 8,
    row_band: Annotated[int, typer.Option(min=0, help="As in Options.")] = 0,
) -> list[Row]:
    """Measure frames of a static camera, of a moving object and of a pan, with and without reuse.

    Raises
    ------
    ValueError
        If a network does not exist.
    """
    names = names or sorted(SIZES)
    check_known("network", names, tuple(sorted(SIZES)))
    report = Report[Row](setting, runtime=setting.runtime)
    for name in names:
        for each in split(precision):
            start = time.perf_counter()
            rows = list(measure(name, setting, precision=each, levels=levels, row_band=row_band))
            elapsed = time.perf_counter() - start
            report.add(rows, f"{name}, {each}: {elapsed:.1f} s", network=name)
    return report.finish(TextTable.of(setting.title, report.rows, COLUMNS), on=setting.title)
