"""Make the pictures of the site from real runs: ``python tools/docs_pictures.py FOLDER``.

Runs small networks on the default OpenCL device and writes one file for each picture. A file
``NAME.html`` is a part of a page, ``NAME.page.html`` a separate page, ``NAME.svg`` an image.
`tools/docs_pages.py` runs this while the site is built, and puts the results where the pages have
``<!-- picture: NAME -->``.

Pictures of examples whose models or inputs are files of packages that are not installed are left
out, with a line about each.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def birds() -> None:
    """Write a spectrogram of three songs, and the species that BirdNET hears."""
    from examples import birds  # noqa: PLC0415
    from tools import docs_sounds  # noqa: PLC0415

    samples = docs_sounds.birds(birds.RATE)
    docs_sounds.save("songs.wav", samples, birds.RATE)
    said = _said(birds.main, "songs.wav")
    with _plot("songs.jpg", "kHz") as axes:
        axes.specgram(samples, NFFT=2048, Fs=birds.RATE / 1e3, vmin=-90, cmap="magma")
        axes.set_ylim(0, 6)
        seconds = range(0, 10, 3)
        axes.set_xticks([1e3 * second for second in seconds], map(str, seconds))
    _write_example("birds", "songs.jpg", said, "48rem")
    Path("songs.wav").unlink()


def wake_word() -> None:
    """Write a spoken sentence, the model's score while it is said, and where the word is."""
    from examples import media, wake_word  # noqa: PLC0415
    from tools import docs_sounds  # noqa: PLC0415

    spoken = "It rains. Okay nabu, turn on the light."
    samples = docs_sounds.speech(spoken, wake_word.RATE)
    docs_sounds.save("speech.wav", samples, wake_word.RATE)
    said = _said(wake_word.main, "speech.wav", "--word", "okay_nabu")
    model = media.packaged("pymicro_wakeword", "models/okay_nabu.tflite", "pymicro-wakeword")
    with clgpu_delegate.Runner(model) as runner:
        rows = wake_word.features((samples * 32767).astype(np.int16))
        scores = list(wake_word.scores(runner, rows))
    with _plot("speech.png", "score") as axes:
        axes.plot(np.arange(len(samples)) / wake_word.RATE, samples / 2 + 0.5, color="0.75")
        axes.plot(0.03 * np.arange(len(scores)), scores)
        axes.set_title(spoken, fontsize="medium")
    _write_example("wake_word", "speech.png", said, "48rem")
    Path("speech.wav").unlink()


def serve() -> None:
    """Write what a server of LeNet-5 answers, and its latencies under load."""
    import ray  # noqa: F401, PLC0415  # asked for here, as the server is another process

    from examples import serve_load  # noqa: PLC0415

    ports = [str(_free_port()) for _ in range(2)]
    command = [sys.executable, "-m", "examples.serve", str(Path("lenet5.tflite").resolve())]
    with subprocess.Popen(
        [*command, "--port", ports[0], "--metrics-port", ports[1]],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        try:
            url = next((line.strip() for line in server.stdout if line.startswith("http")), "")
            if not url:
                raise ImportError("the server did not start")
            with urllib.request.urlopen(url, timeout=60) as answer:
                told = "".join(f"{name}: {each}\n" for name, each in json.load(answer).items())
            outcomes: list[serve_load.Outcome] = []
            load = _said(lambda _: outcomes.extend(asyncio.run(serve_load.measure(url, 8, 2))))
        finally:
            server.send_signal(signal.SIGTERM)
    with _plot("latency.png", "ms") as axes:
        rates = (f"{share:.0%} of their rate" for share in serve_load.SHARES)
        for name, outcome in zip(("8 clients", *rates), outcomes):
            times = 1e3 * np.sort(outcome.seconds)
            axes.plot(100 * np.arange(1, len(times) + 1) / len(times), times, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("share of the requests that needed less time, %")
        axes.legend()
    _write_example("serve", "latency.png", f"{told}\n{load}", "48rem")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def _plot(path: str, unit: str) -> Iterator[Any]:
    """Axes over seconds, in a file."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure((9, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel("seconds")
    axes.set_ylabel(unit)
    yield axes
    figure.savefig(path, dpi=110)


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


def _write_example(name: str, picture: str, said: str, width: str = "24rem") -> None:
    """Write the part of a page: the picture, a file that is then removed, and the output."""
    parts = []
    if picture:
        kind = "png" if picture.endswith(".png") else "jpeg"
        data = base64.b64encode(Path(picture).read_bytes()).decode()
        source = f"data:image/{kind};base64,{data}"
        parts.append(f'<img src="{source}" alt="" style="max-width: {width}">')
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
        for example in (detect, segment, classify, birds, wake_word, formats, serve):
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
