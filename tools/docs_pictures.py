"""Make the pictures of the site from real runs: ``python tools/docs_pictures.py FOLDER``.

Runs small networks on the default OpenCL device and writes one file for each picture. A file
``NAME.html`` is a part of a page, ``NAME.page.html`` a separate page, ``NAME.svg`` an image.
`tools/docs_pages.py` runs this while the site is built, and puts the results where the pages have
``<!-- picture: NAME -->``.

Pictures of examples whose models or inputs are files of packages that are not installed are left
out, with a line about each.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
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


def detect() -> None:
    """Write a portrait with the boxes of the detector."""
    from examples import detect  # noqa: PLC0415

    portrait = _portrait()
    said = _said(detect.main, portrait, "--out", "boxes.jpg")
    _write_example("detect", "boxes.jpg", said)


def segment() -> None:
    """Write a portrait before a plain background."""
    from examples import segment  # noqa: PLC0415

    portrait = _portrait()
    said = _said(segment.main, portrait, "person.jpg", "--background", "seagreen")
    _write_example("segment", "person.jpg", said)


def classify() -> None:
    """Write a handwritten digit and its classes, by a network that is trained for it."""
    from PIL import Image  # noqa: PLC0415

    from examples import classify, digits, layers, writing  # noqa: PLC0415

    random = np.random.default_rng(0)
    training, test = digits.split()
    network = [layers.Dense(192, 32, random), layers.Relu(), layers.Dense(32, 10, random)]
    for _ in layers.train(
        network, np.repeat(2 * training.images.reshape(-1, 64) - 1, 3, 1),
        layers.cross_entropy_gradient(training.labels), epochs=40, batch=32, rate=0.005, rng=random,
    ):  # fmt: skip
        pass
    Path("digits.tflite").write_bytes(writing.write(network, (1, 8, 8, 3), softmax=True))
    Path("digits.txt").write_text("\n".join(map(str, range(10))))
    digit = Image.fromarray((255 * test.images[0]).astype(np.uint8))
    digit.save("digit.png")
    said = _said(classify.main, "digit.png", "digits.tflite", "digits.txt", "--top", "3")
    digit.resize((256, 256), Image.Resampling.NEAREST).save("digit.png")
    _write_example("classify", "digit.png", said)
    for name in ("digits.tflite", "digits.txt"):
        Path(name).unlink()


def formats() -> None:
    """Write the table of a network in four number formats."""
    from examples import digits  # noqa: PLC0415
    from examples import formats as example  # noqa: PLC0415

    rows = example.compare(digits.task())
    said = _said(lambda _: example.show(rows, "Handwritten digits", "accuracy, %"))
    _write_example("formats", "", said)


def _portrait() -> str:
    from examples import media  # noqa: PLC0415

    file = media.packaged("skimage", "data/astronaut.png", "--no-deps scikit-image")
    shutil.copy(file, "portrait.png")
    return "portrait.png"


def _said(example: Callable[[list[str]], object], *words: str) -> str:
    """What an example prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        example(list(words))
    return output.getvalue()


def _write_example(name: str, picture: str, said: str) -> None:
    """Write the part of a page: the picture, a file that is then removed, and the output."""
    parts = []
    if picture:
        kind = "png" if picture.endswith(".png") else "jpeg"
        data = base64.b64encode(Path(picture).read_bytes()).decode()
        parts.append(f'<img src="data:image/{kind};base64,{data}" alt="" style="max-width: 24rem">')
        Path(picture).unlink()
    parts.append(f"<pre>{html.escape(said)}</pre>")
    Path(f"{name}.html").write_text("".join(parts))
    Path("portrait.png").unlink(missing_ok=True)


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
        for example in (detect, segment, classify, formats):
            try:
                example()
            except (ImportError, SystemExit) as missing:
                print(f"no picture of the example {example.__name__}: {missing}", file=sys.stderr)
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
