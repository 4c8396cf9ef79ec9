"""Each row of the table of drivers' quirks, on an emulated device that has it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from clgpu_delegate import _core
from tests.limits.build import LayerError, environment
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

# Names by which a device is known, over those of a profile.
BIFROST = {"LIMITS_NAME": "Mali-G76", "LIMITS_VENDOR": "ARM"}
VALHALL = {"LIMITS_NAME": "Mali-G78", "LIMITS_VENDOR": "ARM"}
NVIDIA = {"LIMITS_NAME": "NVIDIA H200", "LIMITS_VENDOR": "NVIDIA Corporation"}
ADRENO = {"LIMITS_NAME": "QUALCOMM Adreno(TM) 660", "LIMITS_VENDOR": "QUALCOMM"}
DRIVER_24 = {"LIMITS_DRIVER": "24.2@6603887"}
POCL = {"LIMITS_PLATFORM": "Portable Computing Language"}
# A CPU with registers of 512 bits.
RUSTICL = {"LIMITS_PLATFORM": "rusticl", "LIMITS_TYPE": "2", "LIMITS_VECTOR_FLOAT": "16"}
# tests/limits/test_flushes.py shows these.
FLUSHES = {
    name: f"{name.partition('_')[0]}_flushes"
    for name in ("adreno_660", "mali_g78", "powervr_bxm", "videocore")
}
LARGE_IMAGES = {"LIMITS_IMAGE_TEXELS": str(2**27)}

# A model in `m`. The tensors of the two branches fit side by side where a wider one was before.
MODEL_OF_BRANCHES = """
import json, sys
import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

m = ModelMaker()
x = m.input("x", (1, 16, 16, 8))
def convolution(x, cin, cout):
    weights = m.constant(np.full((cout, 1, 1, cin), 1 / cin, np.float32))
    bias = m.constant(np.zeros(cout, np.float32))
    return m.op("CONV_2D", [x, weights, bias], (1, 16, 16, cout),
                padding=1, stride_w=1, stride_h=1)
narrow = convolution(convolution(x, 8, 64), 64, 8)
left, right = convolution(narrow, 8, 32), convolution(narrow, 8, 32)
m.output(convolution(left, 32, 8), convolution(right, 32, 8))
"""
# Prints what convolutions are computed with.
BRANCHES = (
    MODEL_OF_BRANCHES
    + """
delegate = clgpu_delegate.load(engines=json.loads(sys.argv[1]), warm_up=True)
interpreter = make_interpreter(available_runtimes()[0], m.build(), [delegate])
for got in run_interpreter(interpreter, [np.full((1, 16, 16, 8), 3, np.float32)]):
    np.testing.assert_allclose(got, 3, rtol=1e-5)
explanation = delegate.explain()
print(json.dumps({
    "quirks": clgpu_delegate.devices()[0].quirks,
    "candidates": sorted({node.candidate for node in explanation.nodes}),
    "faults": [fault.kernel for fault in explanation.faults],
    "layout": explanation.partitions[0].layout,
}))
"""
)
IMAGES = json.dumps({"conv2d": "quads_image"})
BUFFERS = json.dumps({"conv2d": "naive"})


def run(profile: str, script: str, *arguments: str, **changes: str) -> dict:
    """What a script prints on a device with a profile, some answers of which are changed."""
    try:
        variables = environment(profile, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    result = run_python(script, *arguments, **{**variables, **changes})
    assert_succeeds(result)
    return json.loads(result.stdout)


def test_every_row_is_shown_here():
    names = [row["name"] for row in _core.quirk_table()]
    assert len(set(names)) == len(names)
    shown = {
        "powervr_sub_buffer_images", "mali_sub_buffer_images", "nvidia_sub_buffers",
        "pocl_programs", "rusticl_vectors", *FLUSHES.values(),
    }  # fmt: skip
    assert set(names) == shown


def test_powervr_reads_no_sub_buffers_as_images():
    found = run("powervr_bxm", BRANCHES, "{}", **LARGE_IMAGES)
    assert found["quirks"] == ["powervr_sub_buffer_images", "powervr_flushes"]
    assert all("image" in name for name in found["candidates"])
    assert found["faults"] == []
    assert found["layout"].startswith("whole objects")


def test_powervr_without_images_divides_its_buffers():
    found = run("powervr_bxm", BRANCHES, BUFFERS, **LARGE_IMAGES)
    assert found["candidates"] == ["naive"]
    assert found["layout"].startswith("offsets")


def test_a_later_driver_of_powervr_may():
    changes = {**LARGE_IMAGES, **DRIVER_24, "LIMITS_SUB_BUFFER_IMAGES": "1"}
    found = run("powervr_bxm", BRANCHES, "{}", **changes)
    assert found["quirks"] == ["powervr_flushes"]
    assert all("image" in name for name in found["candidates"])
    assert found["layout"].startswith("offsets")


def test_without_the_row_the_device_would_refuse_images():
    found = run("powervr_bxm", BRANCHES, "{}", **LARGE_IMAGES, **DRIVER_24)
    assert found["faults"] != []


@pytest.mark.parametrize(
    ("names", "quirks", "layout"),
    [
        (BIFROST, ["mali_sub_buffer_images", "mali_flushes"], "whole objects"),
        (VALHALL, ["mali_flushes"], "offsets"),
    ],
)
def test_images_that_are_asked_for_on_mali(names, quirks, layout):
    refuses = "0" if "mali_sub_buffer_images" in quirks else "1"
    found = run("mali_g78", BRANCHES, IMAGES, **names, LIMITS_SUB_BUFFER_IMAGES=refuses)
    assert found["quirks"] == quirks
    assert all("image" in name for name in found["candidates"])
    assert found["faults"] == []
    assert found["layout"].startswith(layout)


def test_nvidia_has_whole_buffers_where_they_cost_little():
    changes = {"LIMITS_EXTENSIONS": ""}
    found = run("adreno_660", BRANCHES, BUFFERS, **NVIDIA, **changes)
    assert found["quirks"] == ["nvidia_sub_buffers"]
    assert found["layout"].startswith("whole objects")
    found = run("adreno_660", BRANCHES, BUFFERS, **ADRENO, **changes)
    assert found["quirks"] == ["adreno_flushes"]
    assert found["layout"].startswith("offsets")


PROGRAMS = """
import json, os, sqlite3
import numpy as np
import clgpu_delegate
from tests.python.models import chain
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter

delegate = clgpu_delegate.load(cache="off")
interpreter = make_interpreter(available_runtimes()[0], chain(), [delegate])
interpreter.allocate_tensors()
del interpreter, delegate
path = os.environ["CLGPU_PROGRAMS"]
rows = sqlite3.connect(path).execute("SELECT count(*) FROM rows").fetchone()[0]
print(json.dumps({"rows": rows, "quirks": clgpu_delegate.devices()[0].quirks}))
"""


def test_programs_of_pocl_are_not_stored(tmp_path):
    changes = {"CLGPU_PROGRAMS": str(tmp_path / "programs.sqlite")}
    assert run("mali_g78", PROGRAMS, **changes)["rows"] > 0
    changes = {"CLGPU_PROGRAMS": str(tmp_path / "others.sqlite"), **POCL}
    found = run("mali_g78", PROGRAMS, **changes)
    assert found["rows"] == 0
    assert "pocl_programs" in found["quirks"]


NARROW = {"pairs_6", "pairs_4", "pairs_1"}  # tiles for vectors of 256 bits
PRODUCTS = """
import json
import numpy as np
import clgpu_delegate
from tests.quantized.test_conv2d import CASES, build
from tests.runtimes import available_runtimes, make_interpreter

rng = np.random.default_rng(1)
model = build(rng, CASES["dilated_chunks"], np.int8, per_channel=True)
delegate = clgpu_delegate.load()
make_interpreter(available_runtimes()[0], model, [delegate]).allocate_tensors()
explanation = delegate.explain()
print(json.dumps({
    "quirks": clgpu_delegate.devices()[0].quirks,
    "candidates": [node.candidate for node in explanation.nodes],
}))
"""


def test_rusticl_gets_no_vectors_of_32_elements():
    found = run("mali_g78", PRODUCTS, LIMITS_NAME="llvmpipe", LIMITS_VENDOR="Mesa", **RUSTICL)
    assert found["quirks"] == ["rusticl_vectors"]
    assert found["candidates"]
    assert set(found["candidates"]) <= NARROW
    other = {**RUSTICL, "LIMITS_PLATFORM": "another"}
    found = run("mali_g78", PRODUCTS, LIMITS_NAME="llvmpipe", LIMITS_VENDOR="Mesa", **other)
    assert not set(found["candidates"]) & NARROW


def test_page_has_the_table():
    tool = ROOT / "tools" / "render_quirks.py"
    done = subprocess.run(
        [sys.executable, str(tool)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: {tool.name} --write"
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    assert page.count("<!-- quirks -->") == page.count("<!-- /quirks -->") == 1
