"""The examples in C++ fit the library that is installed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.library.conftest import ROOT, run, tool
from tests.litert import host, opencl
from tests.model_maker import ModelMaker

HERE = Path(__file__).parent
CPP = ROOT / "examples" / "cpp"


def built_examples(installed: Path, folder: Path, *options: str) -> Path:
    """Build the programs in C++; returns their folder."""
    # TensorFlow Lite's functions are declared in tflite/ and defined here: they know no model.
    header = (HERE / "tflite" / "tensorflow" / "lite" / "c" / "c_api.h").read_text()
    names = set(re.findall(r"(TfLite\w+)\(", header))
    names |= {f"TfLiteExternalDelegate{end}" for end in ("OptionsDefault", "Create", "Delete")}
    source, library = folder / "none.c", folder / "libtensorflowlite_c.so"
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in sorted(names)))
    assert (
        run(tool("cc", "gcc", "clang"), "-shared", "-fPIC", source, "-o", library).returncode == 0
    )
    build = folder / "build"
    paths = [
        f"-DCMAKE_PREFIX_PATH={installed}", f"-DTFLITE_INCLUDE_DIR={HERE / 'tflite'}",
        f"-DTFLITE_LIBRARY={library}",
    ]  # fmt: skip
    ninja = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    strict = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Werror"
    command = [tool("cmake"), "-S", CPP, "-B", build, *ninja, strict, *paths, *options]
    assert run(*command).returncode == 0
    assert run(tool("cmake"), "--build", build).returncode == 0
    return build


def test_cpp_examples_are_built_by_find_package(installed, tmp_path):
    build = built_examples(installed, tmp_path)
    refused = run(build / "run_model", "none.tflite", "precision=fp64")
    assert refused.returncode == 1
    assert "allowed: fp32, fp16, tf32, mixed, a plan" in refused.stderr
    assert "this is no model" in run(build / "run_model", "none.tflite", "cache=off").stderr


def test_camera_buffers_are_built_with_the_ndk(installed, tmp_path):
    declared = "".join(path.read_text() for path in sorted((HERE / "ndk").rglob("*.h")))
    for name, prefix in (("nativewindow", "AHardwareBuffer_"), ("mediandk", "AImage")):
        names = sorted(set(re.findall(rf"\b({prefix}\w+)\(", declared)))
        assert len(names) > 2
        source = tmp_path / f"{name}.c"
        source.write_text("".join(f"void* {each}(void) {{ return 0; }}\n" for each in names))
        library = tmp_path / f"lib{name}.so"
        compiler = tool("cc", "gcc", "clang")
        assert run(compiler, "-shared", "-fPIC", source, "-o", library).returncode == 0
    build = built_examples(
        installed, tmp_path, "-DCAMERA_BUFFERS=ON", f"-DCMAKE_SHARED_LINKER_FLAGS=-L{tmp_path}",
        f"-DCMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES={HERE / 'ndk'}",
    )  # fmt: skip
    assert (build / "libcamera_buffers.so").exists()


def test_camera_frame_stays_in_opencl_memory(installed, library, tmp_path):
    litert, loader = host.litert(), opencl.loader()
    if litert is None:
        pytest.skip("LiteRT is not installed, or has no library of its own")
    if loader is None:
        pytest.skip("no OpenCL loader of the system")
    build = built_examples(
        installed, tmp_path, "-DLITERT=ON",
        f"-DLITERT_INCLUDE_DIR={HERE / 'litert'}", f"-DLITERT_LIBRARY={litert}",
        f"-DOPENCL_INCLUDE_DIR={HERE / 'opencl'}", f"-DOPENCL_LIBRARY={loader}",
    )  # fmt: skip
    m = ModelMaker()
    m.output(m.op("TANH", [m.input("x", (1, 6, 8, 3))], (1, 6, 8, 3)))
    (tmp_path / "m.tflite").write_bytes(m.build())
    result = run(build / "camera_frame", library.parent, tmp_path / "m.tflite", CLGPU_CACHE="off")
    assert result.returncode == 0
    y, x = np.mgrid[0:6, 0:8]
    y, x = y * 48 // 6, x * 64 // 8  # of the frame
    pixels = np.stack([4 * x, 5 * y, x + y], axis=-1).astype(np.uint8) / np.float32(255)
    found = [float(line) for line in result.stdout.splitlines() if not line.startswith("INFO")]
    np.testing.assert_allclose(found, np.tanh(pixels).ravel(), atol=1e-5)
