"""Make the pictures of the site from real runs: ``python tools/docs_pictures.py FOLDER``.

Runs small networks on the default OpenCL device and writes one file for each picture. A file
``NAME.html`` is a part of a page, ``NAME.page.html`` a separate page, ``NAME.svg`` an image.
`tools/docs_pages.py` runs this while the site is built, and puts the results where the pages have
``<!-- picture: NAME -->``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def quickstart() -> None:
    """Write what the tour prints."""
    Path("quickstart.html").write_text(_html(clgpu_delegate.quickstart("tour")))
    shutil.rmtree("tour")


def profile() -> None:
    """Write the page of a profile, and its plot."""
    recorded = clgpu_delegate.profile_model("mobilenet_v1.tflite", runs=8)
    recorded.to_html("profile.page.html")
    recorded.plot("timeline.svg")


def memory() -> None:
    """Write the memory map of LeNet-5."""
    Path("memory.html").write_text(_html(clgpu_delegate.map_memory("lenet5.tflite")))


def tuning() -> None:
    """Write the table of a tuning of LeNet-5."""
    Path("tuning.html").write_text(_html(clgpu_delegate.tune("lenet5.tflite")))


def quantization() -> None:
    """Write the report about LeNet-5 in int8."""
    samples = np.random.default_rng(0).random((8, 32, 32, 1), np.float32)
    report = clgpu_delegate.quantize("lenet5.tflite", samples, "int8.tflite")
    Path("quantization.html").write_text(_html(report))


def _html(result: object) -> str:
    return result._repr_html_()  # like a notebook


def main() -> None:
    """Make all pictures in the folder; it has the models, too, so that pictures show no path."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    models = [Path(f"{name}.tflite") for name in ("mobilenet_v1", "lenet5")]
    for model in models:
        model.write_bytes(build(model.stem))
    try:
        for picture in (quickstart, profile, memory, tuning, quantization):
            picture()
    finally:
        for model in (*models, Path("int8.tflite")):
            model.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CLGPU_CACHE"] = str(Path(cache, "cache.sqlite"))
        import clgpu_delegate
        from bench.networks import build

        main()
